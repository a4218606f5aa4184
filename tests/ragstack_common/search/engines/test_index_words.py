"""Words of an index on S3 Vectors, searched next to Retrieve: on a local Bedrock, with failures on the way to it."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError

from local_bedrock.creation import create_knowledge_base, create_vector_index
from ragstack_common.access.callers import OPERATOR
from ragstack_common.core.artefacts import text_of
from ragstack_common.core.errors import InvalidFilterError, RetrievalError
from ragstack_common.filters import parse
from ragstack_common.filters.tree import clauses_of
from ragstack_common.ingestion.requests import text_document
from ragstack_common.search import RetrievedChunk, SearchOutcome, SearchRequest, create_retrieval_backend
from ragstack_common.search.engines.bedrock import BedrockBackend, BedrockEngine
from ragstack_common.search.engines.index_words import (
    REMEMBERED_SECONDS,
    IndexWords,
    WordsState,
    combined,
    state_of,
)
from ragstack_common.search.wrappers.divided import DividedBackend
from ragstack_common.services.search import QueryService
from ragstack_common.services.search_models import RetrieveRequest
from ragstack_common.settings.names import OPENSEARCH_SERVERLESS, S3_VECTORS, SOURCE_URI_KEY, TEXT_KEY
from ragstack_common.settings.relevance import logistic
from ragstack_common.settings.search import QuerySettings
from tests.local_bedrock.support import OPENSEARCH, Bedrock, Clock, client, serving

ANIMALS: dict[str, tuple[str, dict[str, Any]]] = {
    "cheetah": ("The cheetah is the fastest animal on land.", {"legs": 4, "place": "land"}),
    "snail": ("The snail is slow. It carries its house.", {"legs": 0, "place": "land"}),
    "whale": ("The whale is the largest animal.", {"legs": 0, "place": "sea"}),
    "eel": ("Quokka Zyzzyva, part 42-B.", {"legs": 0, "place": "sea"}),
}
MANY = 130
"""Documents that have the same word: more than a page."""


@dataclass
class Service:
    """A knowledge base on an index, and the calls to QueryVectors, which a handler can answer or fail."""

    bedrock: Bedrock
    base: str
    index: str
    vectors: Any
    calls: list[dict[str, Any]] = field(default_factory=list)
    handler: Callable[..., Any] | None = None

    def engine(self, **options: Any) -> BedrockEngine:
        return BedrockEngine(self.base, **self.options(**options))

    def options(self, **options: Any) -> dict[str, Any]:
        clients = {"client": self.bedrock.runtime, "index_client": self.vectors, "agent_client": self.bedrock.agent}
        return {"vector_store": S3_VECTORS, "timeout_seconds": 30.0, **clients, **options}

    def words(self) -> IndexWords:
        return IndexWords(self.base, self.index, timeout_seconds=30.0, client=self.vectors)

    def search(
        self, query: str, top_k: int = 3, *, engine: BedrockEngine | None = None, **fields: Any
    ) -> SearchOutcome:
        return asyncio.run((engine or self.engine()).search(SearchRequest(query, top_k, **fields)))

    @contextmanager
    def answering(self, handler: Callable[..., Any]) -> Iterator[None]:
        self.handler = handler
        try:
            yield
        finally:
            self.handler = None

    def on_call(self, request: Any, **_: Any) -> Any:
        self.calls.append(json.loads(request.body))
        return None if self.handler is None else self.handler(self.calls[-1])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("bedrock")) as bedrock:
        vectors = client("s3vectors", bedrock.url)
        index = create_vector_index(vectors, "animals")
        base = create_knowledge_base(bedrock.agent, "animals", index)
        source = bedrock.custom_source(base)
        documents = [text_document(name, text, attributes) for name, (text, attributes) in ANIMALS.items()]
        documents += [text_document(f"n{n}", f"Number {n} of the counted things.", {"legs": n}) for n in range(MANY)]
        for start in range(0, len(documents), 10):
            source.ingested(*documents[start : start + 10])
        service = Service(bedrock, base, index, vectors)
        vectors.meta.events.register("before-send.s3vectors.QueryVectors", service.on_call)
        yield service


@pytest.fixture
def service(server: Service) -> Service:
    server.calls.clear()
    return server


def refused(status: int, code: str, message: str = "arn:aws:iam::123456789012:role/secret") -> Callable[..., Any]:
    """Return a handler that answers with an error of the service."""

    return lambda _: response(status, {"x-amzn-errortype": code}, json.dumps({"message": message}).encode())


def response(status: int, headers: dict[str, str], body: bytes) -> AWSResponse:
    class Raw:
        @staticmethod
        def stream(*_: Any, **__: Any) -> Iterator[bytes]:
            yield body

    return AWSResponse("http://local", status, HTTPHeaders.from_dict(headers), Raw())


def raised(error: Exception) -> Callable[..., Any]:
    def handler(_: Any) -> None:
        raise error

    return handler


def _listed(key: str, filter_: Any) -> int:
    """Count the values of one attribute."""
    return sum(len(clause.values) for clause in clauses_of(filter_) if clause.key == key)


def sources(chunks: list[RetrievedChunk]) -> list[str]:
    return [chunk.source for chunk in chunks]


def test_words_find_what_vectors_miss_and_the_scores_are_of_both(service: Service) -> None:
    outcome = service.search("zyzzyva 42-B")
    best = outcome.chunks[0]

    assert best.source == "eel"
    assert best.ranking is not None
    assert best.ranking.signals.keys() == {"vector", "lexical"}
    assert best.score == pytest.approx(sum(best.ranking.contributions.values()))
    assert best.ranking.contributions["lexical"] == pytest.approx(0.9)  # the best BM25, and the share of `hashed`
    assert (outcome.complete, outcome.notes) == (True, ())


def test_a_chunk_of_both_searches_appears_once_as_retrieve_shows_it(service: Service) -> None:
    found = service.search("cheetah animal", 10).chunks
    retrieved = service.search("cheetah animal", 10, engine=service.engine(search_type="SEMANTIC")).chunks

    assert len({chunk.chunk_id for chunk in found}) == len(found)
    same = {chunk.chunk_id: chunk for chunk in retrieved}
    for chunk in found[:2]:
        own = same[chunk.chunk_id]
        assert (chunk.content, chunk.metadata, chunk.location) == (own.content, own.metadata, own.location)


def test_a_chunk_that_only_words_found_looks_as_retrieve_shows_it(service: Service) -> None:
    (hit,) = service.words().page("zyzzyva", None, 1).hits
    retrieved = service.search("Quokka Zyzzyva", engine=service.engine(search_type="SEMANTIC")).chunks[0]
    result = {"content": hit.result["content"]["text"], **hit.result["location"]}

    assert result == {"content": retrieved.content, **(retrieved.location or {})}
    assert hit.result["metadata"] == retrieved.metadata


def test_one_call_is_added_and_another_one_with_a_filter_beyond_the_scope(service: Service) -> None:
    service.search("animal", scope_filter={"legs": {"$gte": 0}})
    assert [call["topK"] for call in service.calls] == [100]

    service.calls.clear()
    service.search("animal", scope_filter={"legs": {"$gte": 0}}, filters={"place": "sea"})
    scope = {"legs": {"$gte": 0}}
    assert {call["topK"]: call["filter"] for call in service.calls} == {
        100: {"$and": [scope, {"place": {"$eq": "sea"}}]},
        1: scope,
    }


def test_searches_with_several_filters_share_the_call_for_the_best(service: Service) -> None:
    """As those of corpora do."""
    engine = service.engine()
    requests = [SearchRequest("animal", filters={"place": place}) for place in ("land", "sea", "air")]

    async def together() -> list[SearchOutcome]:
        return await asyncio.gather(*map(engine.search, requests))

    with service.answering(lambda _: time.sleep(0.3)):  # so that all are under way at the same time
        outcomes = asyncio.run(together())

    assert all(outcome.complete for outcome in outcomes)
    assert sorted(call["topK"] for call in service.calls) == [1, 100, 100, 100]


def test_filters_without_a_scope_may_be_one(service: Service) -> None:
    """The retriever tool gives the caller's scope as a filter: no score may depend on what is outside."""
    filters = {"place": "sea"}

    found = asyncio.run(service.engine().retrieve("fastest animal", filters=filters))

    assert [(call["topK"], call["filter"]) for call in service.calls] == [(100, {"place": {"$eq": "sea"}})]
    assert found[0].source == "whale"
    assert found[0].ranked_by.contributions["lexical"] == pytest.approx(0.9)


def test_a_filter_changes_no_score(service: Service) -> None:
    everything = {chunk.source: chunk.score for chunk in service.search("largest fastest animal", 134).chunks}
    filtered = service.search("largest fastest animal", filters={"place": "sea"}).chunks

    assert {chunk.source: chunk.score for chunk in filtered} == {name: everything[name] for name in sources(filtered)}


def test_hits_that_do_not_match_the_filter_are_dropped(service: Service) -> None:
    """What negations find in lists is not documented, for example: the service may find more than it should."""
    event = "provide-client-params.s3vectors.QueryVectors"

    def unfiltered(params: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {name: value for name, value in params.items() if name != "filter"}

    service.vectors.meta.events.register(event, unfiltered)
    try:
        page = service.words().page("animal", parse({"place": "sea"}), 10)
    finally:
        service.vectors.meta.events.unregister(event, unfiltered)

    assert [hit.result["metadata"]["place"] for hit in page.hits] == ["sea"]


@pytest.mark.parametrize("filters", [None, {"place": {"$in": ["land", "sea"]}}])
def test_the_parts_of_a_scope_have_the_scores_of_all_of_it(service: Service, filters: dict[str, Any] | None) -> None:
    engine = service.engine()
    scope = {"legs": {"$in": [4, 7, 0, 8]}}
    divided = DividedBackend(engine, 2, timeout_seconds=30.0, count=lambda each: _listed("legs", each))

    found = asyncio.run(divided.search(SearchRequest("zyzzyva animal", 10, scope_filter=scope, filters=filters)))
    whole = service.search("zyzzyva animal", 10, scope_filter=scope, filters=filters)

    assert [(part.name, part.status) for part in found.parts] == [("part-1", "ok"), ("part-2", "ok")]
    assert found.chunks[0].source == "eel"
    assert {chunk.source: chunk.score for chunk in found.chunks} == {
        chunk.source: pytest.approx(chunk.score) for chunk in whole.chunks
    }


def test_hits_that_are_dropped_change_no_scale(service: Service) -> None:
    """Not even if the best of all is one."""

    def hit(number: int) -> dict[str, Any]:
        metadata = {TEXT_KEY: f"text {number}", SOURCE_URI_KEY: f"d{number}", "legs": 2 if number else -1}
        scores = {"bm25Scores": [{"metadataKey": TEXT_KEY, "score": 200.0 - number}]}
        return {"key": str(number), "metadata": metadata, "scores": scores}

    def unfiltered(call: dict[str, Any]) -> AWSResponse:
        page = {"vectors": [hit(number) for number in range(call["topK"])], "distanceMetric": "cosine"}
        return response(200, {}, json.dumps(page).encode())

    with service.answering(unfiltered):
        found = service.search("animal", 100, scope_filter={"legs": {"$gte": 0}}, filters={"legs": {"$lt": 4}}).chunks

    parts = {chunk.source: chunk.ranked_by.contributions["lexical"] for chunk in found}
    assert parts["d1"] == pytest.approx(0.9)
    assert parts["whale"] == pytest.approx(0.9 * 0.5 * 101 / 199)  # the index may have more


def test_a_long_ranking_reads_further_pages_of_both(service: Service) -> None:
    outcome = service.search("counted things", MANY)

    assert len(outcome.chunks) == MANY
    assert all(chunk.ranked_by.signals["lexical"] > 0 for chunk in outcome.chunks)
    assert [call["topK"] for call in service.calls] == [100, 10_000, 10_000]
    assert outcome.complete


def test_a_stream_yields_everything_once_best_first(service: Service) -> None:
    async def streamed(limit: int | None) -> list[RetrievedChunk]:
        return [chunk async for chunk in service.engine().stream("counted things", limit)]

    first, everything = asyncio.run(streamed(5)), asyncio.run(streamed(None))

    assert len({chunk.chunk_id for chunk in everything}) == len(everything) == MANY + len(ANIMALS)
    assert [chunk.score for chunk in everything] == sorted((chunk.score for chunk in everything), reverse=True)
    assert sources(first) == sources(everything)[:5] == sources(service.search("counted things", 5).chunks)


@pytest.mark.parametrize(
    ("handler", "status", "reason"),
    [
        (refused(429, "TooManyRequestsException"), "failed", "TooManyRequestsException; send fewer requests a second"),
        (refused(503, "ServiceUnavailableException"), "failed", "ServiceUnavailableException; try again"),
        (refused(500, "InternalServerException"), "failed", "InternalServerException; try again"),
        (raised(ReadTimeoutError(endpoint_url="http://local")), "timeout", "did not answer in time"),
        (raised(EndpointConnectionError(endpoint_url="http://local")), "failed", "EndpointConnectionError"),
    ],
    ids=["throttled", "unavailable", "internal", "timeout", "unreachable"],
)
def test_a_failure_that_passes_leaves_the_semantic_result(
    service: Service, handler: Callable[..., Any], status: str, reason: str
) -> None:
    engine = service.engine()
    with service.answering(handler):
        outcome = service.search("fast cheetah", engine=engine)

    semantic = service.search("fast cheetah", engine=service.engine(search_type="SEMANTIC"))
    assert outcome.chunks == semantic.chunks
    assert not outcome.complete
    assert [part.status for part in outcome.parts] == ["ok", status]
    (note,) = outcome.notes
    assert note.kind == "words"
    assert reason in note.text
    assert "secret" not in note.text
    assert service.search("fast cheetah", engine=engine).complete  # it is asked again


@pytest.mark.parametrize("code", ["TooManyRequestsException", "AccessDeniedException"])
@pytest.mark.parametrize("preferred", [None, {"place": "sea"}], ids=["one search", "slices"])
def test_without_words_there_is_a_relevance_all_the_same(
    service: Service, code: str, preferred: dict[str, Any] | None
) -> None:
    """On AWS, the only calibration may be one of both signals."""
    weights = {"vector": 4.0, "lexical": 3.0}
    calibration = {"embedding": None, "search_type": None, "intercept": -2.0, "weights": weights}
    calibrations = {"calibrations": [calibration]}
    backend = BedrockBackend(service.base, **service.options(relevance_calibration=calibrations))
    request = SearchRequest("cheetah animal", 3, min_relevance=0.3, metadata_filter=preferred)
    event = "after-call.bedrock-agent-runtime.Retrieve"

    def as_on_aws(parsed: dict[str, Any], **_: Any) -> None:
        parsed["ResponseMetadata"]["HTTPHeaders"].clear()

    service.bedrock.runtime.meta.events.register(event, as_on_aws)
    try:
        both = asyncio.run(backend.search(request)).chunks
        with service.answering(refused(400, code)):
            vectors = asyncio.run(backend.search(request)).chunks
    finally:
        service.bedrock.runtime.meta.events.unregister(event, as_on_aws)

    assert set(sources(both)) == set(sources(vectors)) == {"cheetah", "whale"}
    for each in vectors:
        assert each.relevance == pytest.approx(logistic(-2.0 + 4.0 * each.ranked_by.base_score + 3.0 * 0.3))


def test_words_that_are_late_do_not_fail_the_search(service: Service) -> None:
    with service.answering(lambda _: time.sleep(2.5)):
        start = time.perf_counter()
        outcome = service.search("fast cheetah", engine=service.engine(timeout_seconds=2.0))

    assert time.perf_counter() - start < 2.0
    assert outcome.parts[-1].status == "timeout"
    assert outcome.chunks


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (refused(403, "AccessDeniedException"), "allow s3vectors:QueryVectors and s3vectors:GetVectors"),
        (refused(404, "NotFoundException"), "check the name of the index"),
        (refused(400, "KmsDisabledException"), "check the KMS key"),
        (refused(400, "ValidationException"), "the index rejects word searches"),
    ],
    ids=["denied", "no index", "key", "invalid"],
)
def test_a_lasting_reason_is_noted_and_remembered(service: Service, handler: Callable[..., Any], reason: str) -> None:
    engine = service.engine()
    with service.answering(handler):
        first = service.search("fast cheetah", engine=engine)
        asked = len(service.calls)
        again = service.search("fast cheetah", engine=engine)

    assert len(service.calls) == asked
    for outcome in (first, again):
        assert outcome.complete
        (note,) = outcome.notes
        assert reason in note.text
        assert "secret" not in note.text
        assert sources(outcome.chunks)[0] == "cheetah"


def test_a_reason_is_forgotten_after_some_minutes(service: Service) -> None:
    clock = Clock()
    words = IndexWords(
        service.base, timeout_seconds=5.0, client=service.vectors, agent=service.bedrock.agent, clock=lambda: clock.now
    )
    with service.answering(refused(403, "AccessDeniedException")):
        assert words.state().search_type == "SEMANTIC"
    assert words.problem is not None

    clock.now += REMEMBERED_SECONDS + 1

    assert words.problem is None
    assert words.page("cheetah", None, 1).hits


def test_a_request_that_the_service_refuses_does_not_count_for_the_next(service: Service) -> None:
    """The index itself answers, so the filter or the text of this search was at fault."""

    def refusing_filters(call: dict[str, Any]) -> Any:
        return refused(400, "ValidationException")(call) if "filter" in call else None

    engine = service.engine()
    with service.answering(refusing_filters):
        outcome = service.search("cheetah", filters={"place": "land"}, engine=engine)
        other = service.search("cheetah", engine=engine)

    assert not outcome.complete
    assert sources(outcome.chunks)[0] == "cheetah"
    assert (other.complete, other.notes) == (True, ())


def states(service: Service, base: str, **more: Any) -> WordsState:
    words = IndexWords(base, timeout_seconds=5.0, client=service.vectors, agent=service.bedrock.agent, **more)
    return words.state()


def test_the_state_says_why_an_index_is_not_searched_by_words(service: Service) -> None:
    vectors, agent = service.vectors, service.bedrock.agent
    vectors.create_vector_bucket(vectorBucketName="states")
    plain = {"vectorBucketName": "states", "dataType": "float32", "dimension": 1024, "distanceMetric": "cosine"}
    arn = vectors.create_index(indexName="plain", **plain)["indexArn"]
    without = create_knowledge_base(agent, "without", arn)
    elsewhere = service.bedrock.knowledge_base("elsewhere", OPENSEARCH)

    assert states(service, service.base) == WordsState("HYBRID")
    assert "has no text search configuration" in str(states(service, without).reason)
    assert "is not on S3 Vectors" in str(states(service, elsewhere).reason)
    assert "ResourceNotFoundException" in str(states(service, "ABCDEFGHIJ").reason)
    assert states(service, "ABCDEFGHIJ", index_arn=service.index) == WordsState("HYBRID")


def test_the_state_of_a_deployment_follows_its_settings(service: Service) -> None:
    def state(**variables: str) -> WordsState | None:
        settings = QuerySettings.from_env({"KNOWLEDGE_BASE_ID": service.base, **variables})
        return state_of(settings, client=service.vectors, agent=service.bedrock.agent)

    assert state() is None
    assert state(VECTOR_STORE="S3_VECTORS") == WordsState("HYBRID")
    assert state(VECTOR_STORE="S3_VECTORS", VECTOR_INDEX_ARN=service.index) == WordsState("HYBRID")
    assert state(VECTOR_STORE="S3_VECTORS", SEARCH_TYPE="SEMANTIC") == WordsState("SEMANTIC", "SEARCH_TYPE is SEMANTIC")


def test_the_index_of_a_knowledge_base_is_asked_for_once(service: Service) -> None:
    asked = []
    service.bedrock.agent.meta.events.register_first(
        "before-send.bedrock-agent.GetKnowledgeBase", lambda **_: asked.append(1)
    )
    engine = service.engine()
    service.search("cheetah", engine=engine)
    service.search("whale", engine=engine)
    service.search("whale", engine=service.engine(vector_index_arn=service.index))

    assert len(asked) == 1


def test_each_tenant_has_the_index_of_its_own_knowledge_base(service: Service) -> None:
    index = create_vector_index(service.vectors, "plants")
    tenant = create_knowledge_base(service.bedrock.agent, "plants", index)
    service.bedrock.custom_source(tenant).ingested(text_document("fern", "The fern likes shade.", {}))

    outcome = service.search("fern", engine=service.engine(vector_index_arn=service.index).on(tenant))

    assert sources(outcome.chunks) == ["fern"]
    assert {call["indexArn"] for call in service.calls} == {index}
    assert (outcome.complete, outcome.notes) == (True, ())


def test_converted_documents_are_found_under_their_own_names(service: Service) -> None:
    text = text_of("s3://bucket/folder/deck.pptx")
    hit = {
        "key": "one",
        "metadata": {TEXT_KEY: "Slide words", SOURCE_URI_KEY: text, "x-amz-bedrock-kb-chunk-id": "one"},
        "scores": {"bm25Scores": [{"metadataKey": TEXT_KEY, "score": 3.0}]},
    }
    body = json.dumps({"vectors": [hit], "distanceMetric": "cosine"}).encode()

    def answered(_: Any) -> AWSResponse:
        return response(200, {}, body)

    with service.answering(answered):
        outcome = service.search("words", filters={SOURCE_URI_KEY: "s3://bucket/folder/deck.pptx"})

    assert sources(outcome.chunks) == ["s3://bucket/folder/deck.pptx"]
    assert {"$in": ["s3://bucket/folder/deck.pptx", text]} in [
        call["filter"][SOURCE_URI_KEY] for call in service.calls if "filter" in call
    ]


@pytest.mark.parametrize(
    "lacking", [{"metadata": None}, {"metadata": {SOURCE_URI_KEY: "x"}}, {"scores": None}, {"scores": {}}]
)
def test_hits_without_text_or_score_are_no_results(service: Service, lacking: dict[str, Any]) -> None:
    hit = {"metadata": {TEXT_KEY: "text", SOURCE_URI_KEY: "whole"}, "scores": {"bm25Scores": [{"score": 3.0}]}}

    def answering(*hits: dict[str, Any]) -> SearchOutcome:
        body = json.dumps({"vectors": hits, "distanceMetric": "cosine"}).encode()
        with service.answering(lambda _: response(200, {}, body)):
            return service.search("cheetah", 200)

    some, none = answering(hit, hit | lacking), answering(hit | lacking)

    assert some.complete
    assert {*sources(some.chunks)} - {*sources(none.chunks)} == {"whole"}
    assert not none.complete
    assert "none of the hits has a text and a score" in none.notes[0].text


def test_an_old_botocore_is_a_reason_and_no_crash(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    members = service.vectors.meta.service_model.operation_model("QueryVectors").input_shape.members
    monkeypatch.delitem(members, "queryTexts")

    outcome = service.search("cheetah")

    assert "install 1.44.5 or later" in outcome.notes[0].text
    assert outcome.complete


def test_only_s3_vectors_is_searched_so_and_not_a_semantic_search(service: Service) -> None:
    service.search("cheetah", engine=service.engine(search_type="SEMANTIC"))
    assert service.engine(vector_store=OPENSEARCH_SERVERLESS).words is None
    assert BedrockEngine(service.base, vector_store=S3_VECTORS, client=service.bedrock.runtime).words is None
    assert service.calls == []


def test_hybrid_is_never_sent_to_retrieve_on_s3_vectors(service: Service) -> None:
    assert service.search("zyzzyva", engine=service.engine(search_type="HYBRID")).chunks[0].source == "eel"


def test_a_filter_that_words_cannot_have_is_the_callers_mistake(service: Service) -> None:
    backend = BedrockBackend(service.base, **service.options())

    with pytest.raises(InvalidFilterError, match=r"listContains\(place, 'sea'\)"):
        asyncio.run(backend.search(SearchRequest("whale", metadata_filter={"place": {"$listContains": "sea"}})))


def test_slices_share_one_note(service: Service) -> None:
    backend = create_retrieval_backend({"type": "bedrock", "knowledge_base_id": service.base, **service.options()})
    with service.answering(refused(403, "AccessDeniedException")):
        outcome = asyncio.run(backend.search(SearchRequest("whale", metadata_filter={"place": "sea"})))

    assert [note.kind for note in outcome.notes] == ["words"]
    assert outcome.complete


def test_a_failure_within_a_stream_is_raised(service: Service) -> None:
    async def streamed() -> list[RetrievedChunk]:
        return [chunk async for chunk in service.engine().stream("cheetah")]

    with (
        service.answering(refused(503, "ServiceUnavailableException")),
        pytest.raises(RetrievalError, match="QueryVec"),
    ):
        asyncio.run(streamed())
    with service.answering(refused(403, "AccessDeniedException")):
        assert asyncio.run(streamed())[0].source == "cheetah"


def test_a_deployment_searches_the_words_of_its_index(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BEDROCK_AGENT_RUNTIME", "S3VECTORS"):
        monkeypatch.setenv(f"AWS_ENDPOINT_URL_{name}", service.bedrock.url)
    variables = {
        "KNOWLEDGE_BASE_ID": service.base,
        "VECTOR_STORE": "S3_VECTORS",
        "VECTOR_INDEX_ARN": service.index,
        "RETRIEVAL_TIMEOUT_SECONDS": "20",
    }

    found = QueryService.from_env(variables).retrieve(RetrieveRequest(query="zyzzyva 42-B", explain=True), OPERATOR)

    assert found.results[0].source == "eel"
    assert found.results[0].ranking is not None
    assert found.results[0].ranking.signals["lexical"] > 0
    assert (found.complete, found.notes) == (True, ())


def test_a_process_remembers_indexes_for_all_engines() -> None:
    make = partial(BedrockEngine, "ABCDEFGHIJ", vector_store=S3_VECTORS)

    assert make().words is make().words is not make().on("KLMNOPQRST").words
    assert make(vector_index_arn="arn").words is not make().words


def chunk(name: str, score: float = 0.0, chunk_id: str | None = None) -> RetrievedChunk:
    return RetrievedChunk(content=f"text of {name}", source=name, chunk_id=chunk_id, score=score)


def test_what_one_search_did_not_find_counts_as_half_of_its_lowest() -> None:
    vectors, words = [chunk("a", 0.8), chunk("b", 0.5)], [(chunk("b"), 6.0), (chunk("c"), 12.0)]

    found = combined(vectors, words, 12.0, 0.7, has_more=True)

    assert {each.source: each.score for each in found} == {
        "a": pytest.approx(0.7 * 0.8 + 0.3 * 0.25),
        "b": pytest.approx(0.7 * 0.5 + 0.3 * 0.5),
        "c": pytest.approx(0.7 * 0.25 + 0.3),
    }


def test_a_chunk_that_words_did_not_find_has_none_if_there_is_no_more() -> None:
    found = combined([chunk("a", 0.8)], [(chunk("c"), 12.0)], 12.0, 0.7, has_more=False)

    assert {each.source: each.ranked_by.contributions["lexical"] for each in found} == {
        "a": 0.0,
        "c": pytest.approx(0.3),
    }


def test_chunks_are_the_same_by_id_or_by_source_and_text() -> None:
    vectors = [chunk("a", 0.8, "one"), chunk("b", 0.5)]

    found = combined(
        vectors, [(chunk("a", chunk_id="one"), 1.0), (chunk("b", chunk_id="other"), 1.0)], 1.0, 0.5, has_more=False
    )

    assert [each.chunk_id for each in found] == ["one", None]


def test_the_best_of_several_hits_of_a_chunk_counts() -> None:
    """With hierarchical chunking, several vectors may have the id of one chunk."""
    words = [(chunk("a", chunk_id="one"), 8.0), (chunk("a", chunk_id="one"), 2.0)]

    found = combined([chunk("a", 0.8, "one")], words, 8.0, 0.5, has_more=False)

    assert [each.score for each in found] == [pytest.approx(0.9)]


def test_without_any_word_the_score_is_that_of_the_vectors() -> None:
    found = combined([chunk("a", 0.8)], [], 0.0, 0.7, has_more=False)

    assert found[0].score == pytest.approx(0.56)
