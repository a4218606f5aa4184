"""Searches of knowledge bases of type MANAGED, against a service that checks each request by its model."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.core.errors import ConfigurationError, InvalidFilterError
from ragstack_common.core.uris import s3_urls
from ragstack_common.filters import And, Clause, Filter, Not, Operator, Or, evaluate
from ragstack_common.search import RetrievedChunk, SearchRequest, create_retrieval_backend
from ragstack_common.search.engines.bedrock import BedrockBackend
from ragstack_common.search.engines.forms import ManagedForm
from ragstack_common.settings.names import MANAGED
from tests.support.aws_service import AwsService
from tests.support.knowledge_base import DATA_SOURCE, KNOWLEDGE_BASE, hits

SOURCE_URI = "x-amz-bedrock-kb-source-uri"
URI = "s3://documents/hr/parental leave.pdf"
URLS = [
    "https://documents.s3.eu-west-1.amazonaws.com/hr/parental%20leave.pdf",
    "https://documents.s3.amazonaws.com/hr/parental%20leave.pdf",
]
CONVERTED = "s3://documents/hr/parental leave.pdf.ragstack.md"


def managed_hit(text: str = "A passage.", source: str = URI, score: float = 0.99, **metadata: Any) -> dict[str, Any]:
    is_url = source.startswith("https:")
    location = {"s3Location": {"uri": source}} if is_url else {"customDocumentLocation": {"id": source}}
    return {
        "content": {"type": "TEXT", "text": text},
        "documentId": "DOC-1",
        "score": score,
        "location": {"type": "S3" if is_url else "CUSTOM", **location},
        "metadata": {"_source_uri": source, "_data_source_id": DATA_SOURCE, "_language_code": "en", **metadata},
    }


def backend(searches: AwsService, **options: Any) -> BedrockBackend:
    return BedrockBackend(KNOWLEDGE_BASE, client=searches.client(), vector_store=MANAGED, **options)


def search(searches: AwsService, request: SearchRequest, **options: Any) -> list[RetrievedChunk]:
    return asyncio.run(backend(searches, **options).search(request)).chunks


def asked(searches: AwsService) -> list[dict[str, Any]]:
    assert searches.refusals == []
    return [request["retrievalConfiguration"]["managedSearchConfiguration"] for request in searches.asked("Retrieve")]


def filter_sent(searches: AwsService, filters: dict[str, Any], **options: Any) -> Any:
    searches.program("Retrieve", hits())
    search(searches, SearchRequest("leave", filters=filters), **options)
    return asked(searches)[-1]["filter"]


def test_a_managed_knowledge_base_is_asked_in_its_own_form(searches: AwsService) -> None:
    searches.program("Retrieve", hits(managed_hit()))

    search(searches, SearchRequest("leave", 3))

    assert asked(searches) == [{"numberOfResults": 3}]


@pytest.mark.parametrize("search_type", ["HYBRID", "SEMANTIC"])
def test_a_search_type_is_refused(search_type: str) -> None:
    config = {"type": "bedrock", "knowledge_base_id": KNOWLEDGE_BASE, "vector_store": MANAGED}

    with pytest.raises(ConfigurationError, match="managed search is always hybrid; leave search_type out"):
        create_retrieval_backend({**config, "search_type": search_type})


@pytest.mark.parametrize("source", [URI, *URLS, "https://s3.us-east-1.amazonaws.com/documents/hr/parental leave.pdf"])
def test_a_hit_has_the_attributes_of_other_knowledge_bases(searches: AwsService, source: str) -> None:
    searches.program("Retrieve", hits(managed_hit(source=source, _document_page_number=4.0, topic="leave")))

    (found,) = search(searches, SearchRequest("leave"))

    assert found.source == URI
    assert found.location == {"type": "S3", "s3Location": {"uri": URI}}
    assert found.metadata[SOURCE_URI] == URI
    assert found.metadata["x-amz-bedrock-kb-data-source-id"] == DATA_SOURCE
    assert found.metadata["x-amz-bedrock-kb-document-page-number"] == 4.0
    assert found.metadata["_source_uri"] == source
    assert found.metadata["topic"] == "leave"
    assert found.score == 0.99


@pytest.mark.parametrize(
    ("hit", "source"),
    [
        ({"location": {"type": "WEB", "webLocation": {"url": "https://example.com/a"}}}, "https://example.com/a"),
        ({"documentId": "DOC-7"}, "DOC-7"),
        ({"documentId": "DOC-7", "metadata": {"_source_uri": "https://example.com/b"}}, "https://example.com/b"),
    ],
)
def test_documents_outside_s3_keep_the_name_of_the_service(
    searches: AwsService, hit: dict[str, Any], source: str
) -> None:
    searches.program("Retrieve", hits({"content": {"type": "TEXT", "text": "A passage."}, **hit}))

    (found,) = search(searches, SearchRequest("leave"))

    assert found.source == source


def test_a_converted_text_is_found_under_the_name_of_its_document(searches: AwsService) -> None:
    searches.program("Retrieve", hits(managed_hit("## Page 2\n\nLeave.", CONVERTED)))

    (found,) = search(searches, SearchRequest("leave"))

    assert found.source == URI
    assert str(found.chunk_id).startswith(f"{URI}#")


def test_the_id_of_a_chunk_depends_on_its_source_and_its_text(searches: AwsService) -> None:
    searches.program(
        "Retrieve",
        hits(
            managed_hit("One.", score=0.9),
            managed_hit("Two.", score=0.8),
            managed_hit("One.", "s3://documents/b.txt", score=0.7),
            managed_hit("One.", score=0.6),
        ),
    )

    found = search(searches, SearchRequest("leave"))

    assert [(chunk.source, chunk.content) for chunk in found] == [
        (URI, "One."),
        (URI, "Two."),
        ("s3://documents/b.txt", "One."),
    ]
    assert len({chunk.chunk_id for chunk in found}) == 3


@pytest.mark.parametrize("key", ["_source_uri", SOURCE_URI, "x-amz-bedrock-kb-chunk-id"])
def test_an_attribute_cannot_name_another_document(searches: AwsService, key: str) -> None:
    forged = managed_hit("One.")
    forged["metadata"][key] = "s3://documents/policy.txt"
    searches.program("Retrieve", hits(forged, managed_hit("One.")))

    found = search(searches, SearchRequest("leave"))

    assert {(chunk.source, chunk.metadata[SOURCE_URI]) for chunk in found} == {(URI, URI)}
    assert len({chunk.chunk_id for chunk in found}) == 1


def test_a_chunk_is_looked_up_among_all_of_its_document(searches: AwsService) -> None:
    searches.program("Retrieve", hits(managed_hit("One."), managed_hit("Two.")))
    engine = backend(searches)
    (_, second) = asyncio.run(engine.retrieve("leave"))

    found = asyncio.run(engine.get_by_id(str(second.chunk_id)))

    assert found is not None
    assert (found.content, found.score) == ("Two.", 1.0)
    lookup = asked(searches)[-1]
    assert lookup["rerankingModelType"] == "NONE"
    assert set(lookup["filter"]["in"]["value"]) >= {URI, *URLS}


@pytest.mark.parametrize(
    ("filters", "sent"),
    [
        ({"topic": "leave"}, {"equals": {"key": "topic", "value": "leave"}}),
        (
            {"x-amz-bedrock-kb-data-source-id": "DSDSDSDSD2"},
            {"equals": {"key": "_data_source_id", "value": "DSDSDSDSD2"}},
        ),
        (
            {"_source_uri": "https://example.com/a"},
            {"equals": {"key": "_source_uri", "value": "https://example.com/a"}},
        ),
        (
            {SOURCE_URI: "https://example.com/a"},
            {"in": {"key": "_source_uri", "value": ["https://example.com/a"]}},
        ),
    ],
)
def test_attributes_of_vector_stores_become_those_of_the_service(
    searches: AwsService, filters: dict[str, Any], sent: dict[str, Any]
) -> None:
    assert filter_sent(searches, filters) == sent


@pytest.mark.parametrize(
    ("filters", "operator"),
    [
        ({SOURCE_URI: URI}, "in"),
        ({SOURCE_URI: {"$in": [URI]}}, "in"),
        ({SOURCE_URI: {"$ne": URI}}, "notIn"),
        ({SOURCE_URI: {"$nin": [URI]}}, "notIn"),
        ({SOURCE_URI: {"$not": {"$in": [URI]}}}, "notIn"),
        ({"notIn": {"key": SOURCE_URI, "value": [URI]}}, "notIn"),
    ],
)
def test_a_document_is_named_by_every_name_that_the_service_may_know(
    searches: AwsService, filters: dict[str, Any], operator: str
) -> None:
    sent = filter_sent(searches, filters)

    assert sent[operator]["key"] == "_source_uri"
    assert {URI, CONVERTED, *URLS} <= set(sent[operator]["value"])


def test_a_negation_of_many_documents_is_one_clause(searches: AwsService) -> None:
    sent = filter_sent(searches, {SOURCE_URI: {"$nin": [f"s3://documents/{n}.pdf" for n in range(100)]}})

    assert [*sent] == ["notIn"]


@pytest.mark.parametrize("key", ["x-amz-bedrock-kb-chunk-id", "x-amz-bedrock-kb-document-page-number"])
@pytest.mark.parametrize("field", ["filters", "metadata_filter", "scope_filter"])
def test_an_attribute_that_the_service_does_not_have_is_refused(searches: AwsService, key: str, field: str) -> None:
    fields: dict[str, Any] = {field: {key: 1}}

    with pytest.raises(InvalidFilterError, match=f"{key}.*does not have this attribute"):
        search(searches, SearchRequest("leave", **fields))
    assert searches.requests == []


@pytest.mark.parametrize("operator", ["startsWith", "stringContains"])
@pytest.mark.parametrize("field", ["filters", "metadata_filter", "scope_filter"])
def test_an_operator_on_parts_of_strings_is_refused_with_the_alternative(
    searches: AwsService, operator: str, field: str
) -> None:
    fields: dict[str, Any] = {field: {operator: {"key": "team", "value": "legal"}}}

    with pytest.raises(InvalidFilterError, match=r"type MANAGED.*use equals, in or a comparison"):
        search(searches, SearchRequest("leave", **fields))
    assert searches.requests == []


def test_a_data_source_restricts_every_search(searches: AwsService) -> None:
    sent = filter_sent(searches, {"topic": "leave"}, data_source_id=DATA_SOURCE)

    source = {"equals": {"key": "_data_source_id", "value": DATA_SOURCE}}
    assert sent == {"andAll": [source, {"equals": {"key": "topic", "value": "leave"}}]}


def test_further_documents_are_found_without_those_that_the_service_named(searches: AwsService) -> None:
    long = [managed_hit(f"Passage {n}.", URLS[0], 0.9 - n / 1000) for n in range(100)]
    others = [managed_hit("Another.", f"s3://documents/{n}.txt", 0.5 - n / 100) for n in range(4)]

    def answer(parameters: dict[str, Any]) -> Any:
        search = parameters["retrievalConfiguration"]["managedSearchConfiguration"]
        excluded = search.get("filter", {}).get("notIn", {}).get("value", [])
        kept = [each for each in [*long, *others] if each["metadata"]["_source_uri"] not in excluded]
        return hits(*kept[: search["numberOfResults"]])

    searches.program("Retrieve", answer)

    found = search(searches, SearchRequest("leave", 5, deduplicate_by="document"))

    assert [chunk.source for chunk in found] == [URI, *(f"s3://documents/{n}.txt" for n in range(4))]
    assert asked(searches)[-1]["filter"] == {"notIn": {"key": "_source_uri", "value": [URLS[0]]}}


def test_scores_near_one_have_no_relevance_without_a_calibration_of_their_own(searches: AwsService) -> None:
    searches.program("Retrieve", hits(managed_hit(score=0.99), managed_hit("Two.", score=0.97)))
    shapes: list[dict[str, Any]] = [
        {"embedding": None, "search_type": kind, "intercept": -90, "weights": {"score": 92}}
        for kind in ("HYBRID", "SEMANTIC", None)
    ]
    own = {**shapes[0], "search_type": "MANAGED"}

    def relevances(calibrations: list[dict[str, Any]]) -> list[float | None]:
        found = search(searches, SearchRequest("leave"), relevance_calibration={"calibrations": calibrations})
        return [chunk.relevance for chunk in found]

    assert relevances(shapes) == [None, None]
    assert relevances([*shapes, own]) == [pytest.approx(0.7465, abs=1e-3), pytest.approx(0.3186, abs=1e-3)]


@pytest.mark.parametrize("merge", ["trust", "boost"])
def test_a_preference_decides_among_scores_near_one(searches: AwsService, merge: str) -> None:
    """The reranker's scores differ little, so a preference must reorder them without leaving 0 to 1."""

    def answer(parameters: dict[str, Any]) -> Any:
        filtered = "filter" in parameters["retrievalConfiguration"]["managedSearchConfiguration"]
        preferred = managed_hit("Preferred.", "s3://documents/b.txt", 0.985, topic="leave")
        return hits(preferred) if filtered else hits(managed_hit("Best.", score=0.992), preferred)

    searches.program("Retrieve", answer)
    request = SearchRequest("leave", metadata_filter={"topic": "leave"}, min_score=0.9, filter_trust=0.8)

    found = search(searches, request, merge=merge)

    assert [chunk.content for chunk in found] == ["Preferred.", "Best."]
    assert all(0.9 <= chunk.ranked_by.base_score <= chunk.score <= 1 or merge == "trust" for chunk in found)


def test_a_stream_asks_for_everything_that_a_service_without_pages_returns(searches: AwsService) -> None:
    every = [managed_hit(f"Passage {n}.", f"s3://documents/{n}.txt", 0.9 - n / 1000) for n in range(100)]
    searches.program("Retrieve", hits(*every))

    async def streamed() -> list[str]:
        return [chunk.content async for chunk in backend(searches).stream("leave", page_size=10)]

    assert asyncio.run(streamed()) == [f"Passage {n}." for n in range(100)]
    assert [search["numberOfResults"] for search in asked(searches)] == [100]


DOCUMENTS = ["s3://documents/a b.pdf", "s3://documents/ü.txt", "https://example.com/page"]
CLAUSES = st.one_of(
    st.builds(
        Clause,
        st.sampled_from([Operator.EQUALS, Operator.NOT_EQUALS]),
        st.just(SOURCE_URI),
        st.sampled_from(DOCUMENTS),
    ),
    st.builds(
        Clause,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.just(SOURCE_URI),
        st.lists(st.sampled_from(DOCUMENTS), min_size=1, max_size=3).map(tuple),
    ),
    st.builds(
        Clause,
        st.just(Operator.EQUALS),
        st.sampled_from(["topic", "x-amz-bedrock-kb-data-source-id"]),
        st.sampled_from(["leave", DATA_SOURCE]),
    ),
)
FILTERS = st.recursive(
    CLAUSES,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        *(st.builds(kind, st.lists(inner, min_size=2, max_size=3).map(tuple)) for kind in (And, Or)),
    ),
    max_leaves=6,
)


@given(filter_=FILTERS, document=st.sampled_from(DOCUMENTS), topic=st.sampled_from(["leave", "food"]))
def test_a_filter_means_the_same_by_every_name_of_a_document(filter_: Filter, document: str, topic: str) -> None:
    known = {SOURCE_URI: document, "x-amz-bedrock-kb-data-source-id": DATA_SOURCE, "topic": topic}
    names = [document, *(s3_urls(document, "eu-west-1") if document.startswith("s3:") else ())]

    sent = ManagedForm(lambda: "eu-west-1").as_indexed(filter_)

    found = {evaluate(sent, {"_source_uri": name, "_data_source_id": DATA_SOURCE, "topic": topic}) for name in names}
    assert found == {evaluate(filter_, known)}
