"""Spans of searches: what they show and hide, whose children they are, and that nobody pays for them unread."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pytest
from openinference.semconv.trace import (
    DocumentAttributes,
    OpenInferenceSpanKindValues,
    RerankerAttributes,
    SpanAttributes,
)
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ragstack_common.api.search import QueryService
from ragstack_common.errors import ServiceUnavailableError
from ragstack_common.filters import Filter
from ragstack_common.retrieval import RetrievedChunk, SearchRequest
from ragstack_common.retrieval.balanced import BalancedBackend
from ragstack_common.retrieval.engine import Engine
from ragstack_common.retrieval.federated import FederatedBackend
from ragstack_common.retrieval.tracing import TracingSettings, configure_tracing

SECRET = "appeal of John Smith"
TEXT = "The tribunal heard the appeal."
EVERYTHING = TracingSettings.from_env({"RAGSTACK_TRACE_CONTENT": "true"})

_exporter = InMemorySpanExporter()


class _Listener(SimpleSpanProcessor):
    """Hears the spans of the tests of this module, and of no others."""

    listens = False

    def on_end(self, span: ReadableSpan) -> None:
        if self.listens:
            super().on_end(span)


@cache
def _listener() -> _Listener:
    """The process has one provider for good; this one is added to whatever another test has made."""
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    listener = _Listener(_exporter)
    provider.add_span_processor(listener)
    return listener


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    listener = _listener()
    listener.listens = True
    _exporter.clear()
    yield
    listener.listens = False
    configure_tracing(TracingSettings())


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
        return await self.in_thread(work)


def spans_of(backend: Any, corpus_filter: str | None = None, **request: Any) -> dict[str, list[ReadableSpan]]:
    asyncio.run(backend.search(SearchRequest(SECRET, corpus_filter=corpus_filter, **request)))
    return finished()


def finished() -> dict[str, list[ReadableSpan]]:
    spans: dict[str, list[ReadableSpan]] = {}
    for span in _exporter.get_finished_spans():
        spans.setdefault(span.name, []).append(span)
    return spans


def attributes(span: ReadableSpan) -> Mapping[str, Any]:
    return dict(span.attributes or {})


def documents(span: ReadableSpan, prefix: str) -> Sequence[str]:
    return sorted({name.split(".")[2] for name in attributes(span) if name.startswith(f"{prefix}.")}, key=int)


def test_a_search_is_a_retriever_span_as_openinference_has_it() -> None:
    configure_tracing(EVERYTHING)

    shown = attributes(spans_of(Library(), top_k=3)["retrieve library"][0])

    first = f"{SpanAttributes.RETRIEVAL_DOCUMENTS}.0."
    assert shown[SpanAttributes.OPENINFERENCE_SPAN_KIND] == OpenInferenceSpanKindValues.RETRIEVER.value
    assert shown[SpanAttributes.INPUT_VALUE] == SECRET
    assert shown[first + DocumentAttributes.DOCUMENT_ID] == "None0"
    assert shown[first + DocumentAttributes.DOCUMENT_CONTENT].startswith(TEXT)
    assert shown[first + DocumentAttributes.DOCUMENT_SCORE] == 0.5
    metadata = json.loads(shown[first + DocumentAttributes.DOCUMENT_METADATA])
    assert metadata == {"corpus": "nz", "year": 1893, "source": "s3://b/0"}
    assert (shown["search_k"], shown["results"], shown["complete"]) == (3, 2, True)


def test_a_balanced_search_shows_the_attributes_that_the_specification_names() -> None:
    backend = BalancedBackend(Library(found=4), ["au", "nz"], per_corpus=3, pooling="mean+max")

    shown = attributes(spans_of(backend, top_k=2)["retrieve balanced"][0])

    assert {
        "search_type": "balanced",
        "search_k": 2,
        "large_retrieval_size": 3,
        "pooling": "mean+max",
        "corpus_filter": "all",
        "corpus.au.candidates": 3,
        "corpus.nz.candidates": 3,
    }.items() <= shown.items()
    assert shown["corpus.au.results"] + shown["corpus.nz.results"] == 2


def test_the_searches_of_the_corpora_and_what_they_do_in_threads_are_children_of_the_balanced_one() -> None:
    spans = spans_of(BalancedBackend(Library(), ["au", "nz"]))

    (balanced,), corpora, threads = spans["retrieve balanced"], spans["retrieve library"], spans["in the thread"]
    assert balanced.parent is None
    assert [span.parent.span_id for span in corpora if span.parent] == [balanced.context.span_id] * 2
    assert {s.parent.span_id for s in threads if s.parent} == {s.context.span_id for s in corpora}
    assert [span.parent.span_id for span in spans["rerank lexical"] if span.parent] == [balanced.context.span_id]


def test_a_reranking_is_a_reranker_span() -> None:
    configure_tracing(EVERYTHING)

    shown = attributes(spans_of(BalancedBackend(Library(), ["au", "nz"]))["rerank lexical"][0])

    assert shown[SpanAttributes.OPENINFERENCE_SPAN_KIND] == OpenInferenceSpanKindValues.RERANKER.value
    assert shown[RerankerAttributes.RERANKER_QUERY] == SECRET
    assert shown[RerankerAttributes.RERANKER_MODEL_NAME] == "lexical"
    assert f"{RerankerAttributes.RERANKER_INPUT_DOCUMENTS}.3.document.content" in shown
    assert f"{RerankerAttributes.RERANKER_OUTPUT_DOCUMENTS}.3.document.score" in shown


def test_neither_query_nor_text_nor_attributes_are_told_unless_the_settings_say_so() -> None:
    spans = spans_of(BalancedBackend(Library(), ["au", "nz"]))

    everything = str([[s.name, attributes(s), s.events, s.status.description] for part in spans.values() for s in part])
    assert SECRET not in everything
    assert TEXT not in everything
    assert "1893" not in everything
    assert attributes(spans["retrieve library"][0])[SpanAttributes.INPUT_VALUE] == "__REDACTED__"
    assert "retrieval.documents.0.document.score" in attributes(spans["retrieve balanced"][0])


@pytest.mark.parametrize(("error", "told"), [(ServiceUnavailableError("it burns"), True), (ValueError(SECRET), False)])
def test_an_error_is_recorded_with_its_message_only_where_that_is_ours(error: Exception, told: bool) -> None:
    with pytest.raises(type(error)):
        asyncio.run(Library(error=error).search(SearchRequest(SECRET)))

    (span,) = finished()["retrieve library"]
    assert span.status.status_code is trace.StatusCode.ERROR
    assert type(error).__name__ in str(span.status.description)
    assert (str(error) in str(span.status.description)) == told
    assert [event.name for event in span.events] == ["exception"]
    assert ("exception.message" in (span.events[0].attributes or {})) == told


def test_a_part_that_is_missing_is_an_event_and_its_own_span_has_the_error() -> None:
    burning = Library(error=ServiceUnavailableError("it burns"))

    spans = spans_of(FederatedBackend({"au": Library(), "nz": burning}))

    (event,) = spans["retrieve federated"][0].events
    assert (event.name, dict(event.attributes or {})) == ("part missing", {"part": "nz", "status": "failed"})
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
def test_content_is_told_where_one_variable_says_so_and_none_hides_it(
    env: dict[str, str], inputs: bool, outputs: bool
) -> None:
    settings = TracingSettings.from_env(env)

    assert (settings.inputs, settings.outputs) == (inputs, outputs)


def test_the_query_function_takes_the_setting_from_its_environment() -> None:
    engine = {"RETRIEVAL_ENGINE": "bedrock", "KNOWLEDGE_BASE_ID": "ABCDEFGHIJ", "AWS_REGION": "eu-west-1"}
    service = QueryService.from_env({**engine, "RAGSTACK_TRACE_CONTENT": "true"})

    shown = attributes(spans_of(Library())["retrieve library"][0])

    service.close()
    assert shown[SpanAttributes.INPUT_VALUE] == SECRET


def run_python(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


SEARCHING = """
import asyncio, sys
from ragstack_common.retrieval import RetrievalBackend, RetrievedChunk, SearchRequest
from ragstack_common.retrieval.reranked import RerankedBackend

class Store(RetrievalBackend):
    async def retrieve(self, query, top_k=5, min_score=None, filters=None):
        return [RetrievedChunk(content="heron", score=0.5, source="a", chunk_id="1")]

def search():
    return asyncio.run(RerankedBackend(Store()).search(SearchRequest("heron"))).chunks
"""


def test_nothing_of_opentelemetry_is_imported_for_a_search() -> None:
    found = run_python(SEARCHING + "search(); print([m for m in sys.modules if m.startswith('opentelemetry')])")

    assert found == "[]"


def test_where_no_provider_is_set_no_span_is_made() -> None:
    program = SEARCHING + "import opentelemetry.trace as t; search(); print(type(t.get_tracer_provider()).__name__)"

    assert run_python(program) == "ProxyTracerProvider"
