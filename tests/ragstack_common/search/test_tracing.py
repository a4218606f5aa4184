"""Spans of searches: what they show, what they hide, and their parents."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from openinference.semconv.trace import (
    DocumentAttributes,
    OpenInferenceSpanKindValues,
    RerankerAttributes,
    SpanAttributes,
)
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan

from ragstack_common.core.deadline import in_thread
from ragstack_common.core.errors import ServiceUnavailableError
from ragstack_common.filters import Filter
from ragstack_common.knowledge_base import KnowledgeBase
from ragstack_common.multislice_retriever import MultiSliceRetriever
from ragstack_common.search import RetrievalBackend, RetrievedChunk, SearchRequest
from ragstack_common.search.engine import Engine
from ragstack_common.search.engines.bedrock import BedrockBackend
from ragstack_common.search.engines.chroma.backend import ChromaBackend
from ragstack_common.search.tracing import TracingSettings, configure_tracing
from ragstack_common.search.wrappers.balanced import BalancedBackend
from ragstack_common.search.wrappers.cached import CachedRetrievalBackend
from ragstack_common.search.wrappers.federated import FederatedBackend
from ragstack_common.search.wrappers.metered import MeteredBackend
from ragstack_common.search.wrappers.multislice import MultiSliceBackend
from ragstack_common.search.wrappers.reranked import RerankedBackend
from ragstack_common.services.search import QueryService
from ragstack_common.tools.retriever import RetrieverSettings, RetrieverTool, SearchedCollection
from tests.support.aws_service import AwsService
from tests.support.knowledge_base import KNOWLEDGE_BASE, hit, hits
from tests.support.spans import FIVE, Spans, attributes, recorded

SECRET = "appeal of John Smith"
TEXT = "The tribunal heard the appeal."
EVERYTHING = TracingSettings.from_env({"RAGSTACK_TRACE_CONTENT": "true"})


@pytest.fixture(autouse=True)
def heard() -> Iterator[Spans]:
    with recorded() as heard:
        yield heard


class Library(Engine):
    """Finds the same text a few times, in a thread, and can fail."""

    name = "library"

    def __init__(self, *, found: int = 2, error: Exception | None = None) -> None:
        super().__init__()
        self.found = found
        self.error = error

    async def _find(self, query: str, count: int, condition: Filter | None) -> list[RetrievedChunk]:
        def work() -> list[RetrievedChunk]:
            with trace.get_tracer("store").start_as_current_span("in the thread"):
                if self.error is not None:
                    raise self.error
                return [
                    RetrievedChunk(
                        content=f"{TEXT} {n} {condition}",
                        score=0.5,
                        source=f"s3://b/{n}",
                        chunk_id=f"{condition}{n}",
                        metadata={"corpus": "nz", "year": 1893},
                    )
                    for n in range(min(self.found, count))
                ]

        assert query
        return await in_thread(work)


def spans_of(
    heard: Spans, backend: Any, corpus_filter: str | None = None, **request: Any
) -> dict[str, list[ReadableSpan]]:
    asyncio.run(backend.search(SearchRequest(SECRET, corpus_filter=corpus_filter, **request)))
    return heard.by_name()


def documents(span: ReadableSpan, prefix: str) -> Sequence[str]:
    return sorted({name.split(".")[2] for name in attributes(span) if name.startswith(f"{prefix}.")}, key=int)


def test_a_search_is_a_retriever_span_as_openinference_has_it(heard: Spans) -> None:
    configure_tracing(EVERYTHING)

    shown = attributes(spans_of(heard, Library(), top_k=3)["retrieve library"][0])

    first = f"{SpanAttributes.RETRIEVAL_DOCUMENTS}.0."
    assert shown[SpanAttributes.OPENINFERENCE_SPAN_KIND] == OpenInferenceSpanKindValues.RETRIEVER.value
    assert shown[SpanAttributes.INPUT_VALUE] == SECRET
    assert shown[first + DocumentAttributes.DOCUMENT_ID] == "None0"
    assert shown[first + DocumentAttributes.DOCUMENT_CONTENT].startswith(TEXT)
    assert shown[first + DocumentAttributes.DOCUMENT_SCORE] == 0.5
    metadata = json.loads(shown[first + DocumentAttributes.DOCUMENT_METADATA])
    assert metadata == {"corpus": "nz", "year": 1893, "source": "s3://b/0"}
    assert (shown["search_k"], shown["results"], shown["complete"]) == (3, 2, True)


def test_a_balanced_search_shows_the_specified_attributes(heard: Spans, tmp_path: Path) -> None:
    fill_collection(tmp_path)

    async def searched() -> None:
        async with BalancedBackend(MultiSliceBackend(ChromaBackend(tmp_path, "library")), ["au", "nz"]) as backend:
            await backend.search(SearchRequest(SECRET, 2))

    asyncio.run(searched())

    assert heard.five("retrieve balanced") == ("balanced", 2, 200, "none", "all")
    assert heard.five("retrieve multislice")[3:] == ("none", "all")
    (balanced,) = map(attributes, heard.by_name()["retrieve balanced"])
    assert (balanced["corpus.nz.candidates"], balanced["corpus.nz.results"]) == (1, 1)
    assert (balanced["corpus.au.candidates"], balanced["corpus.au.results"]) == (0, 0)
    corpora = [attributes(span) for span in heard.by_name()["retrieve chroma"]]
    assert sorted((shown["corpus_filter"], shown["search_k"]) for shown in corpora) == [("au", 2), ("nz", 2)]


@pytest.mark.parametrize(
    ("corpus_filter", "corpora", "size"), [("people", ["people"], 500), ("all", ["law", "people"], 200)]
)
async def test_the_spans_of_bedrock_name_the_corpus_that_they_search(
    heard: Spans, searches: AwsService, corpus_filter: str, corpora: list[str], size: int
) -> None:
    searches.program("Retrieve", hits(hit(score=0.5)))
    backend = BalancedBackend(BedrockBackend(KNOWLEDGE_BASE, client=searches.client()), ["law", "people"])

    await backend.search(SearchRequest("days of leave", 3, corpus_filter=corpus_filter))

    assert heard.five("retrieve balanced") == ("balanced", 3, size, "unknown", corpus_filter)
    assert heard.five("retrieve bedrock")[1] == 3
    assert heard.five("retrieve bedrock")[4] == corpus_filter
    slices = [[attributes(span)[name] for name in FIVE] for span in heard.by_name()["retrieve bedrock slice"]]
    assert sorted(slices) == [["service's default", 3, size, "unknown", corpus] for corpus in corpora]


def test_the_poolings_of_several_engines_are_listed(heard: Spans) -> None:
    class Pooled(Library):
        def __init__(self, pooling: str) -> None:
            super().__init__()
            self.pooling = pooling

        def span_attributes(self) -> dict[str, str]:
            return {"pooling": self.pooling}

    spans_of(heard, FederatedBackend({"a": Pooled("mean"), "b": Pooled("cls"), "c": Pooled("mean")}))

    (federated,) = heard.by_name()["retrieve federated"]
    assert attributes(federated)["pooling"] == "cls, mean"


class Third(RetrievalBackend):
    name = "third"

    async def retrieve(self, *_arguments: Any, **_named: Any) -> list[RetrievedChunk]:
        return [RetrievedChunk(content=TEXT, score=0.5, source="a")]


@pytest.mark.parametrize(
    ("backend", "name", "shown"),
    [
        (Library(), "library", ("library", 2, 8, "unknown", "nz")),
        (Third(), "third", ("third", 2, 8, "unknown", "nz")),
        (MultiSliceBackend(Library()), "multislice", ("multislice", 2, 40, "unknown", "nz")),
        (RerankedBackend(Library(), candidates=30), "reranked", ("reranked", 2, 30, "unknown", "nz")),
        (FederatedBackend([Library()]), "federated", ("federated", 2, 200, "unknown", "nz")),
        (CachedRetrievalBackend(Library()), "cached", ("cached", 2, 2, "unknown", "nz")),
        (MeteredBackend(Library(), name="metered"), "metered", ("metered", 2, 2, "unknown", "nz")),
    ],
)
def test_every_search_shows_the_five_attributes(
    heard: Spans, backend: RetrievalBackend, name: str, shown: tuple[Any, ...]
) -> None:
    preferred = {"year": 1893} if name == "multislice" else None

    spans_of(heard, backend, top_k=2, filters={"corpus": "nz"}, metadata_filter=preferred, deduplicate_by="document")

    assert heard.five(f"retrieve {name}") == shown


def test_a_batch_is_one_span_with_the_five_attributes(heard: Spans, tmp_path: Path) -> None:
    configure_tracing(EVERYTHING)
    fill_collection(tmp_path)

    async def searched() -> None:
        async with ChromaBackend(tmp_path, "library") as backend:
            await backend.retrieve_batch([SECRET, "lunch"], 3, filters={"corpus": "nz"})

    asyncio.run(searched())

    (span,) = heard.by_name()["retrieve chroma"]
    assert heard.five("retrieve chroma") == ("SEMANTIC", 3, 3, "none", "nz")
    assert attributes(span)["queries"] == 2
    assert json.loads(attributes(span)[SpanAttributes.INPUT_VALUE]) == [SECRET, "lunch"]
    assert attributes(span)["results"] == 2


def fill_collection(folder: Path) -> None:
    with KnowledgeBase("library", folder, environment={}) as base:
        base.collection.add(ids=["1"], documents=[TEXT], metadatas=[{"corpus": "nz"}])


def test_the_knowledge_base_shows_the_five_attributes(heard: Spans, tmp_path: Path) -> None:
    fill_collection(tmp_path)

    with KnowledgeBase("library", tmp_path, environment={}) as base:
        base.retrieve(SECRET, 3)
        plain = heard.five("retrieve knowledge_base")
        heard.clear()
        base.search_by_topic(SECRET, 3)

    assert plain == ("SEMANTIC", 3, 3, "none", "all")
    assert heard.five("retrieve knowledge_base") == ("HYBRID", 3, 50, "none", "all")
    assert SECRET not in str([attributes(span) for span in heard.by_name()["retrieve knowledge_base"]])


def test_the_retriever_shows_the_five_attributes_in_its_callers_span(heard: Spans, searches: AwsService) -> None:
    searches.program("Retrieve", hits(hit(score=0.5)))
    retriever = MultiSliceRetriever(searches.client(), timeout_seconds=60, search_type="HYBRID")

    with trace.get_tracer("caller").start_as_current_span("caller") as caller:
        retriever.retrieve("days of leave", KNOWLEDGE_BASE, None, {"corpus": "people"}, 4)

    (span,) = heard.by_name()["retrieve bedrock"]
    assert heard.five("retrieve bedrock") == ("HYBRID", 4, 16, "unknown", "all")
    assert span.parent is not None
    assert span.parent.span_id == caller.get_span_context().span_id


async def test_the_pages_of_a_stream_show_the_five_attributes(heard: Spans, searches: AwsService) -> None:
    searches.program("Retrieve", hits(hit(score=0.5)))
    backend = BedrockBackend(KNOWLEDGE_BASE, client=searches.client())

    assert len([chunk async for chunk in backend.stream("days of leave", page_size=7)]) == 1

    assert heard.five("retrieve bedrock page") == ("service's default", 7, 7, "unknown", "all")


def test_the_retriever_tool_shows_the_five_attributes(heard: Spans, tmp_path: Path) -> None:
    fill_collection(tmp_path)
    collection = SearchedCollection({"type": "chroma", "path": str(tmp_path), "collection_name": "library"}, "corpus")
    tool = RetrieverTool(RetrieverSettings({"library": collection}))

    async def run() -> None:
        await tool.run(
            {"collection_name": "library", "texts": [SECRET, "tribunal"], "top_k": 4, "partition_name": "nz"}
        )
        await tool.close()

    asyncio.run(run())

    (span,), (batch,) = heard.by_name()["retrieve tool retriever"], heard.by_name()["retrieve chroma"]
    assert heard.five("retrieve tool retriever") == ("tool", 4, 8, "none", "nz")
    assert attributes(span)["results"] == 1
    assert batch.parent is not None
    assert batch.parent.span_id == span.context.span_id


def test_spans_of_corpora_and_threads_are_children_of_the_search(heard: Spans) -> None:
    spans = spans_of(heard, BalancedBackend(Library(), ["au", "nz"]))

    (balanced,), corpora, threads = spans["retrieve balanced"], spans["retrieve library"], spans["in the thread"]
    assert balanced.parent is None
    assert [span.parent.span_id for span in corpora if span.parent] == [balanced.context.span_id] * 2
    assert {s.parent.span_id for s in threads if s.parent} == {s.context.span_id for s in corpora}
    assert [span.parent.span_id for span in spans["rerank lexical"] if span.parent] == [balanced.context.span_id]


def test_a_reranking_is_a_reranker_span(heard: Spans) -> None:
    configure_tracing(EVERYTHING)

    shown = attributes(spans_of(heard, BalancedBackend(Library(), ["au", "nz"]))["rerank lexical"][0])

    assert shown[SpanAttributes.OPENINFERENCE_SPAN_KIND] == OpenInferenceSpanKindValues.RERANKER.value
    assert shown[RerankerAttributes.RERANKER_QUERY] == SECRET
    assert shown[RerankerAttributes.RERANKER_MODEL_NAME] == "lexical"
    assert f"{RerankerAttributes.RERANKER_INPUT_DOCUMENTS}.3.document.content" in shown
    assert f"{RerankerAttributes.RERANKER_OUTPUT_DOCUMENTS}.3.document.score" in shown


def test_spans_hide_queries_texts_and_attributes_by_default(heard: Spans) -> None:
    spans = spans_of(heard, BalancedBackend(Library(), ["au", "nz"]))

    everything = str([[s.name, attributes(s), s.events, s.status.description] for part in spans.values() for s in part])
    assert SECRET not in everything
    assert TEXT not in everything
    assert "1893" not in everything
    assert attributes(spans["retrieve library"][0])[SpanAttributes.INPUT_VALUE] == "__REDACTED__"
    assert "retrieval.documents.0.document.score" in attributes(spans["retrieve balanced"][0])


@pytest.mark.parametrize(
    ("error", "is_shown"), [(ServiceUnavailableError("it burns"), True), (ValueError(SECRET), False)]
)
def test_only_errors_of_ragstack_are_recorded_with_their_message(
    heard: Spans, error: Exception, is_shown: bool
) -> None:
    with pytest.raises(type(error)):
        asyncio.run(Library(error=error).search(SearchRequest(SECRET)))

    (span,) = heard.by_name()["retrieve library"]
    assert span.status.status_code is trace.StatusCode.ERROR
    assert type(error).__name__ in str(span.status.description)
    assert (str(error) in str(span.status.description)) == is_shown
    assert [event.name for event in span.events] == ["exception"]
    assert ("exception.message" in (span.events[0].attributes or {})) == is_shown


def test_a_missing_part_is_an_event_and_its_span_has_the_error(heard: Spans) -> None:
    burning = Library(error=ServiceUnavailableError("it burns"))

    spans = spans_of(heard, FederatedBackend({"au": Library(), "nz": burning}))

    (event,) = spans["retrieve federated"][0].events
    assert (event.name, dict(event.attributes or {})) == ("part missing", {"backend": "nz", "status": "failed"})
    assert not attributes(spans["retrieve federated"][0])["complete"]
    assert sorted(s.status.status_code.name for s in spans["retrieve library"]) == ["ERROR", "UNSET"]


@pytest.mark.parametrize(
    ("env", "inputs", "outputs"),
    [
        ({}, False, False),
        ({"RAGSTACK_TRACE_CONTENT": "true"}, True, True),
        ({"OPENINFERENCE_HIDE_INPUTS": "false"}, False, False),
        ({"RAGSTACK_TRACE_CONTENT": "true", "OPENINFERENCE_HIDE_INPUTS": "true"}, False, True),
        ({"RAGSTACK_TRACE_CONTENT": "1", "OPENINFERENCE_HIDE_OUTPUTS": "True"}, True, False),
    ],
)
def test_content_is_shown_if_one_variable_allows_it_and_none_hides_it(
    env: dict[str, str], inputs: bool, outputs: bool
) -> None:
    settings = TracingSettings.from_env(env)

    assert (settings.inputs, settings.outputs) == (inputs, outputs)


def test_the_query_function_takes_the_setting_from_its_environment(heard: Spans) -> None:
    engine = {"RETRIEVAL_ENGINE": "bedrock", "KNOWLEDGE_BASE_ID": "ABCDEFGHIJ", "AWS_REGION": "eu-west-1"}
    service = QueryService.from_env({**engine, "RAGSTACK_TRACE_CONTENT": "true"})

    shown = attributes(spans_of(heard, Library())["retrieve library"][0])

    service.close()
    assert shown[SpanAttributes.INPUT_VALUE] == SECRET


SEARCHING = """
import asyncio, sys
from ragstack_common.search import RetrievalBackend, RetrievedChunk, SearchRequest
from ragstack_common.search.wrappers.reranked import RerankedBackend

class Store(RetrievalBackend):
    async def retrieve(self, query, top_k=5, min_score=None, filters=None):
        return [RetrievedChunk(content="heron", score=0.5, source="a", chunk_id="1")]

def search():
    return asyncio.run(RerankedBackend(Store()).search(SearchRequest("heron"))).chunks
search()
print([name for name in sys.modules if name.startswith("opentelemetry")])
import opentelemetry.trace
search()
print(type(opentelemetry.trace.get_tracer_provider()).__name__)
"""


def test_a_search_without_a_provider_imports_and_makes_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", SEARCHING], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.split() == ["[]", "ProxyTracerProvider"]
