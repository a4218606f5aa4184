"""The whole stack on a managed knowledge base that another program has made, and that has documents of its own."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest

from local_bedrock.server import running
from ragstack_common.core.uris import SIDECAR_SUFFIX
from ragstack_local.stack.deployment import KNOWLEDGE_BASE
from ragstack_local.stack.local_stack import BEDROCK
from tests.e2e.support import LocalStack, client, iterate
from tests.e2e.test_access_stack import People
from tests.support.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("managed stack")]

PLACE = "samples/documents/people/"
HERON = f"{PLACE}heron.md"
ELSEWHERE = "wiki:herons"
"""A document of another data source, which no registry knows."""


def create(agent: Any) -> None:
    """Create a knowledge base and its data sources, as any program does that knows nothing of RAGStack."""
    knowledge_base = agent.create_knowledge_base(
        name=KNOWLEDGE_BASE,
        roleArn="arn:aws:iam::123456789012:role/knowledge-base",
        knowledgeBaseConfiguration={
            "type": "MANAGED",
            "managedKnowledgeBaseConfiguration": {"embeddingModelType": "MANAGED"},
        },
    )["knowledgeBase"]["knowledgeBaseId"]
    until("ACTIVE", lambda: agent.get_knowledge_base(knowledgeBaseId=knowledge_base)["knowledgeBase"])
    create_source(agent, knowledge_base, KNOWLEDGE_BASE)
    wiki = create_source(agent, knowledge_base, "wiki")
    content = {
        "dataSourceType": "CUSTOM",
        "custom": {
            "customDocumentIdentifier": {"id": ELSEWHERE},
            "sourceType": "IN_LINE",
            "inlineContent": {"type": "TEXT", "textContent": {"data": "The wiki says that herons eat voles."}},
        },
    }
    agent.ingest_knowledge_base_documents(**wiki, documents=[{"content": content}])
    asked = {**wiki, "documentIdentifiers": [{"dataSourceType": "CUSTOM", "custom": {"id": ELSEWHERE}}]}
    until("INDEXED", lambda: agent.get_knowledge_base_documents(**asked)["documentDetails"][0])


def create_source(agent: Any, knowledge_base: str, name: str) -> dict[str, str]:
    """Create a data source with the connector CUSTOM; returns its ids."""
    source = agent.create_data_source(
        knowledgeBaseId=knowledge_base,
        name=name,
        dataSourceConfiguration={
            "type": "MANAGED_KNOWLEDGE_BASE_CONNECTOR",
            "managedKnowledgeBaseConnectorConfiguration": {"connectorParameters": {"type": "CUSTOM", "version": "1"}},
        },
    )["dataSource"]["dataSourceId"]
    ids = {"knowledgeBaseId": knowledge_base, "dataSourceId": source}
    until("AVAILABLE", lambda: agent.get_data_source(**ids)["dataSource"])
    return ids


def until(status: str, describe: Callable[[], Any]) -> None:
    eventually(lambda: describe()["status"] == status)


@pytest.fixture(scope="module")
def stack(installed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    stack = LocalStack(tmp_path_factory.mktemp("managed"), auth="none,oidc")
    with running(stack.folder / "data" / BEDROCK) as url:
        session: Any = boto3.Session("test", "test", region_name="us-east-1")
        create(session.client("bedrock-agent", endpoint_url=url))
    yield from iterate(stack)


@pytest.fixture(scope="module")
def heron(stack: LocalStack) -> str:
    """An indexed document with attributes."""
    stack.put(HERON + SIDECAR_SUFFIX, json.dumps({"metadataAttributes": {"topic": "birds", "year": 2026}}))
    uri = stack.put(HERON, "# Herons\n\nThe grey heron waits motionless for frogs at the pond.\n")
    assert stack.settled(uri) == {uri: "INDEXED"}
    return uri


def test_a_document_is_indexed_with_a_receipt_and_found_by_its_attributes(stack: LocalStack, heron: str) -> None:
    record = stack.records(heron)[heron]
    query = "What does the grey heron wait for?"

    found = {year: stack.search(query, metadata_filter={"year": year}, filter_mode="strict") for year in (2026, 2025)}

    assert stack.connection.vector_store == "MANAGED"
    assert record.receipt is not None
    assert record.receipt.is_complete
    assert [result["source"] for result in found[2026]] == [heron]
    assert found[2026][0]["metadata"]["topic"] == "birds"
    assert found[2025] == []


def test_a_question_is_answered_with_a_citation(stack: LocalStack, heron: str) -> None:
    status, answer = stack.request("POST", "/api/ask", {"question": "What does the grey heron wait for?"})

    assert status == 200, answer
    assert "frogs" in answer["answer"]
    assert heron in [source["source"] for source in answer["sources"] if source["cited"]]


def test_labels_decide_who_finds_it_and_hide_what_has_none(stack: LocalStack, heron: str) -> None:
    """Documents of other data sources have no labels: callers without restrictions alone find them."""
    people = People(stack)
    query = "What do herons eat or wait for?"

    everything = {result["source"] for result in stack.search(query)}
    ours = {"x-amz-bedrock-kb-data-source-id": stack.connection.data_source_id}
    filtered = {result["source"] for result in stack.search(query, metadata_filter=ours, filter_mode="strict")}
    alice, bob = (people.got(user, "POST", "/api/retrieve", {"query": query})["results"] for user in ("alice", "bob"))

    assert {heron, ELSEWHERE} <= everything
    assert (heron in filtered, ELSEWHERE in filtered) == (True, False)
    assert [result["source"] for result in alice] == [heron]
    assert bob == []


def test_a_converted_document_is_found_under_its_own_name_and_goes_whole(stack: LocalStack) -> None:
    uri = stack.put(f"{PLACE}talk.rst", "Storks\n======\n\nThe stork nests on the chimney.\n")
    statuses = stack.settled(uri)

    result = stack.found("Where does the stork nest?", "on the chimney")
    stack.delete(f"{PLACE}talk.rst")
    eventually(lambda: stack.records(uri)[uri].status == "DELETED")

    assert statuses == {uri: "INDEXED"}
    assert result["source"] == uri
    assert uri not in [found["source"] for found in stack.search("Where does the stork nest?")]
    made = client(stack.connection, "s3").list_objects_v2(Bucket=stack.connection.bucket, Prefix=f"{PLACE}talk.rst.rag")
    assert made["KeyCount"] == 0


def test_a_replaced_document_is_found_in_its_new_version_alone(stack: LocalStack) -> None:
    uri = stack.put(f"{PLACE}crane.md", "The crane dances in March.")
    stack.settled(uri)

    stack.put(f"{PLACE}crane.md", "The crane dances in April.")
    statuses = stack.settled(uri)
    contents = [result["content"] for result in stack.search("When does the crane dance?") if result["source"] == uri]

    assert statuses == {uri: "INDEXED"}
    assert ["April" in content for content in contents] == [True]


def reconciled(stack: LocalStack, *options: str) -> dict[str, Any]:
    """Reconcile until there is something to do: what was written in the last seconds is left alone."""

    def look() -> dict[str, Any] | None:
        done = stack.run("reconcile", "--json", *options)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)["report"]["differences"]
        return found or None

    return eventually(look)


def test_a_reconciliation_restores_what_another_program_deleted(stack: LocalStack, heron: str) -> None:
    connection = stack.connection
    agent = client(connection, "bedrock-agent")
    ids = {"knowledgeBaseId": connection.knowledge_base_id, "dataSourceId": connection.data_source_id}
    identifiers = [{"dataSourceType": "CUSTOM", "custom": {"id": heron}}]
    agent.delete_knowledge_base_documents(**ids, documentIdentifiers=identifiers)
    eventually(lambda: stack.known(heron)[heron] == "NOT_FOUND")

    differences = reconciled(stack)

    assert differences["not_searchable"]["samples"] == [heron]
    assert stack.settled(heron) == {heron: "INDEXED"}
    assert stack.found("What does the grey heron wait for?", "motionless for frogs")["source"] == heron


def test_a_full_reconciliation_submits_documents_again(stack: LocalStack) -> None:
    uri = stack.put(f"{PLACE}egret.md", "The egret follows the cattle.")
    stack.settled(uri)
    before = stack.records(uri)[uri].operation

    eventually(lambda: uri in reconciled(stack, "--full")["read_before"]["samples"])

    eventually(lambda: stack.records(uri)[uri].operation != before)
    assert stack.settled(uri) == {uri: "INDEXED"}
    assert stack.found("What does the egret follow?", "cattle")["source"] == uri
