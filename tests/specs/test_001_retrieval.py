"""The examples of the retrieval module's specification, against a service that refuses what AWS would refuse."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from ragstack_common.core.errors import RagStackError
from ragstack_common.multislice_retriever import MultiSliceRetriever, deduplicate_results
from tests.support.aws_service import AwsService, Fault, aws_service
from tests.support.knowledge_base import KNOWLEDGE_BASE, hit, hits, is_filtered, is_unfiltered

DATA_SOURCE = "DSDSDSDSD4"
METADATA_FILTER = {"topic": {"$eq": "genealogy"}}
logger = logging.getLogger(__name__)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsService]:
    """The service, where default clients find it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    with aws_service("bedrock-agent-runtime") as service:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME", service.endpoint)
        yield service


@pytest.fixture(autouse=True)
def _own_clients() -> Iterator[None]:
    from ragstack_common.core import clients  # noqa: PLC0415 - what is cached belongs to one endpoint

    clients.retrieval_client.cache_clear()
    yield
    clients.retrieval_client.cache_clear()


def result(uri: str, score: float, content: str = "") -> dict[str, Any]:
    return {"score": score, "content": content, "location": {"type": "S3", "s3Location": {"uri": uri}}, "metadata": {}}


def test_a_retriever_takes_the_documented_configurations() -> None:
    # Default config
    MultiSliceRetriever()

    # Custom config
    MultiSliceRetriever(timeout_seconds=10.0, max_slices=2, enabled=True, filtered_score_boost=1.3)  # 30% boost

    # Disable multi-slice (fallback to single query)
    MultiSliceRetriever(enabled=False)


def test_a_simple_query_returns_results_in_the_format_of_the_document(searches: AwsService) -> None:
    metadata = {"topic": "genealogy", "x-amz-bedrock-kb-data-source-id": DATA_SOURCE}
    searches.program("Retrieve", hits(hit("s3://bucket/path/content.txt", 0.85, "Extracted text", metadata=metadata)))
    retriever = MultiSliceRetriever()

    # Simple query (no filter)
    results = retriever.retrieve(
        query="What is RAGStack?", knowledge_base_id=KNOWLEDGE_BASE, data_source_id=DATA_SOURCE, num_results=5
    )

    assert {name: results[0][name] for name in ("score", "content", "location", "metadata")} == {
        "score": 0.85,  # Relevance score (boosted if filtered)
        "content": "Extracted text",
        "location": {"type": "S3", "s3Location": {"uri": "s3://bucket/path/content.txt"}},
        "metadata": metadata,
    }
    assert searches.refusals == []


def test_a_query_with_a_metadata_filter_boosts_what_matches_it(
    searches: AwsService, capsys: pytest.CaptureFixture[str]
) -> None:
    searches.program("Retrieve", hits(hit("s3://bucket/judy.txt", 0.75, "Judy in the garden")), when=is_filtered)
    searches.program("Retrieve", hits(hit("s3://bucket/other.txt", 0.80, "A garden")), when=is_unfiltered)
    retriever = MultiSliceRetriever()

    # Query with metadata filter
    results = retriever.retrieve(
        query="Pictures of Judy",
        knowledge_base_id=KNOWLEDGE_BASE,
        data_source_id=DATA_SOURCE,
        metadata_filter=METADATA_FILTER,
        num_results=10,
    )

    # Process results
    for found in results:
        print(f"Score: {found['score']:.3f}")  # noqa: T201 - the example's
        print(f"Content: {found['content'][:100]}...")  # noqa: T201
        print(f"URI: {found['location']['s3Location']['uri']}")  # noqa: T201
    # Unfiltered result: score 0.80; filtered result: score 0.75 -> boosted to 0.94: the filtered result ranks first
    assert capsys.readouterr().out.splitlines() == [
        "Score: 0.938",
        "Content: Judy in the garden...",
        "URI: s3://bucket/judy.txt",
        "Score: 0.800",
        "Content: A garden...",
        "URI: s3://bucket/other.txt",
    ]


def test_deduplicating_keeps_the_highest_score_for_each_unique_uri() -> None:
    filtered_results = [result("s3://b/x", 0.9), result("s3://b/y", 0.3)]
    unfiltered_results = [result("s3://b/x", 0.7), result("s3://b/z", 0.5)]
    all_results = filtered_results + unfiltered_results

    unique_results = deduplicate_results(all_results)

    # Keeps highest score for each unique S3 URI
    assert unique_results == [filtered_results[0], unfiltered_results[1], filtered_results[1]]


@pytest.mark.parametrize("code", ["ResourceNotFoundException", "AccessDeniedException"])
def test_the_documented_error_handling_catches_a_failed_search(
    searches: AwsService, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    searches.program("Retrieve", Fault(code, "That is why."))
    retriever = MultiSliceRetriever(timeout_seconds=10.0)

    try:
        results = retriever.retrieve("Judy", KNOWLEDGE_BASE, DATA_SOURCE)
    except Exception as e:  # noqa: BLE001 - the example's
        # Timeout, KB not found, permission denied, etc.
        logger.error(f"Retrieval failed: {e}")  # noqa: G004, TRY400 - the example's
        results = []
        assert isinstance(e, RagStackError)  # noqa: PT017 - what the example leaves open

    assert results == []
    assert f"Retrieval failed: Retrieve failed: {code}; " in caplog.text
