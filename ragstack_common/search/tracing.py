"""Spans of searches, rerankings and answers, if the process has a tracer provider of OpenTelemetry.

They follow OpenInference's conventions, which Phoenix and others display, and carry the attributes of specification
002. Without a tracer provider nothing is imported, created or measured. Queries, texts and attributes are private:
spans include them only if the settings allow it.
"""

import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.core.errors import RagStackError, needs_extra
from ragstack_common.filters import required_values
from ragstack_common.settings.names import ALL_CORPORA, CORPUS_KEY
from ragstack_common.settings.tracing import TraceSettings

if TYPE_CHECKING:
    from ragstack_common.search.models import RetrievedChunk, SearchOutcome, SearchRequest

REDACTED: Final = "__REDACTED__"
"""Replaces a hidden text. Source: OpenInference, specification of the configuration."""

MAX_DOCUMENTS: Final = 15
"""Maximum number of documents in a span; a reranking has two lists of half the length.

The SDK keeps 128 attributes of a span and drops the oldest of more (OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT).
"""

__all__ = ["TracingSettings", "configure_tracing", "export_spans"]

TRACER_NAME: Final = "ragstack"
UNKNOWN: Final = "unknown"
"""The pooling of an embedding that does not state it, such as a service."""

Attributes = Mapping[str, str | int | float | bool | Sequence[str]]


class TracingSettings(TraceSettings):
    """What spans may include."""

    @property
    def inputs(self) -> bool:
        """Whether spans include queries."""
        return self.ragstack_trace_content and not self.openinference_hide_inputs

    @property
    def outputs(self) -> bool:
        """Whether spans include texts and attributes of chunks."""
        return self.ragstack_trace_content and not self.openinference_hide_outputs


_settings = TracingSettings()

_running: Final[ContextVar["_Running | None"]] = ContextVar("running", default=None)
"""The innermost retrieval with a span; threads that it starts have it too."""


def configure_tracing(settings: TracingSettings) -> None:
    """Set what the spans of this process may include from now on."""
    global _settings  # noqa: PLW0603 - one frozen value is swapped for another
    _settings = settings


@dataclass(frozen=True)
class RetrievalSpan:
    """The span of a retrieval; without a tracer provider its methods do nothing."""

    span: Any = None

    def found(self, chunks: "Sequence[RetrievedChunk]") -> None:
        """Show the chunks that the retrieval returns."""
        if self.span is not None:
            _documents(self.span, "retrieval.documents", chunks, MAX_DOCUMENTS)
            self.span.set_attribute("results", len(chunks))

    def ended(self, outcome: "SearchOutcome") -> None:
        """Show how a search went."""
        if self.span is None:
            return
        self.found(outcome.chunks)
        self.span.set_attribute("complete", outcome.complete)
        for corpus in outcome.corpora:
            self.span.set_attribute(f"corpus.{corpus.name}.candidates", corpus.candidates)
            self.span.set_attribute(f"corpus.{corpus.name}.results", corpus.results)
        if outcome.notes:
            self.span.set_attribute("notes", [note.text for note in outcome.notes])
        if outcome.age_seconds is not None:
            self.span.set_attribute("age_seconds", outcome.age_seconds)
        for part in outcome.parts:
            if part.status != "ok":
                place = {"backend": part.backend, "corpus": part.corpus, "slice": part.slice}
                known = {name: value for name, value in place.items() if value is not None}
                self.span.add_event("part missing", {**known, "status": part.status})


@dataclass
class _Running:
    """A retrieval with a span; *search_k* is the number of results that the caller of the outermost one wants."""

    span: Any
    search_k: int
    corpus: str
    outer: "_Running | None"
    poolings: frozenset[str] = frozenset()

    def describe(self, attributes: Attributes) -> None:
        """Add attributes to the span; a pooling also to the spans around it."""
        if self.span.is_recording():  # an abandoned call may outlive its span
            self.span.set_attributes(attributes)
        self.corpus = str(attributes.get("corpus_filter", self.corpus))
        if (pooling := attributes.get("pooling")) is not None:
            self.pool(frozenset((str(pooling),)))

    def pool(self, poolings: frozenset[str]) -> None:
        """Add poolings to the span, and to the spans around it."""
        self.poolings |= poolings
        if self.span.is_recording():
            self.span.set_attribute("pooling", ", ".join(sorted(self.poolings)))
        if self.outer is not None:
            self.outer.pool(self.poolings)


@contextmanager
def retrieval_span(
    name: str, request: "SearchRequest", attributes: Callable[[], Attributes] = dict, *, queries: Sequence[str] = ()
) -> Iterator[RetrievalSpan]:
    """Open the span of a retrieval, if the process has a tracer provider; errors are recorded too.

    Every such span has the attributes of specification 002: ``search_type``, ``search_k`` (chunks that the caller
    wants), ``large_retrieval_size`` (candidates from which they are chosen), ``pooling`` and ``corpus_filter``. Code
    under the span that knows better says so with :func:`describe_span`. A span within another has its ``search_k``,
    and its ``corpus_filter`` unless the request is narrowed to one corpus. *queries* are all queries of a batch; the
    request has the first of them.
    """
    tracer = _tracer()
    if tracer is None:
        yield RetrievalSpan()
        return
    outer = _running.get()
    with _opened(tracer, f"retrieve {name}") as span:
        corpus = _corpus(request) or (ALL_CORPORA if outer is None else outer.corpus)
        running = _Running(span, request.top_k if outer is None else outer.search_k, corpus, outer)
        usual = {
            "openinference.span.kind": "RETRIEVER",
            "search_type": name,
            "search_k": running.search_k,
            "large_retrieval_size": request.top_k,
            "corpus_filter": running.corpus,
        }
        span.set_attributes({**usual, "pooling": UNKNOWN})
        running.describe(attributes())
        if queries:
            span.set_attributes({"queries": len(queries), "input.mime_type": "application/json"})
        text = json.dumps([*queries], ensure_ascii=False) if queries else request.query
        span.set_attribute("input.value", shown_input(text))
        token = _running.set(running)
        try:
            yield RetrievalSpan(span)
        finally:
            _running.reset(token)


async def traced_search(
    name: str,
    attributes: Callable[[], Attributes],
    request: "SearchRequest",
    search: "Callable[[SearchRequest], Awaitable[SearchOutcome]]",
) -> "SearchOutcome":
    """Search under a span (:func:`retrieval_span`)."""
    with retrieval_span(name, request, attributes) as span:
        outcome = await search(request)
        span.ended(outcome)
    return outcome


async def traced_reranking(
    name: str,
    query: str,
    chunks: "Sequence[RetrievedChunk]",
    rerank: "Callable[[str, Sequence[RetrievedChunk]], Awaitable[list[RetrievedChunk]]]",
) -> "list[RetrievedChunk]":
    """Rerank under a span, if the process has a tracer provider; errors are recorded too."""
    tracer = _tracer()
    if tracer is None:
        return await rerank(query, chunks)
    with _opened(tracer, f"rerank {name}") as span:
        attributes = {"openinference.span.kind": "RERANKER", "reranker.model_name": name, "candidates": len(chunks)}
        span.set_attributes(attributes)
        span.set_attribute("reranker.query", shown_input(query))
        _documents(span, "reranker.input_documents", chunks, MAX_DOCUMENTS // 2)
        reranked = await rerank(query, chunks)
        _documents(span, "reranker.output_documents", reranked, MAX_DOCUMENTS // 2)
    return reranked


def describe_span(attributes: Attributes) -> None:
    """Add attributes to the span of the running retrieval, if there is one."""
    running = _running.get()
    if running is not None:
        running.describe(attributes)


def _corpus(request: "SearchRequest") -> str | None:
    """Return the corpus that the request names, or one that a filter requires; None for all of them."""
    corpus = request.corpus_filter
    if corpus is None or corpus == ALL_CORPORA:
        return next(map(str, required_values(request.restriction, CORPUS_KEY)), None)
    return corpus


def _documents(span: Any, prefix: str, chunks: "Sequence[RetrievedChunk]", maximum: int) -> None:
    for number, chunk in enumerate(chunks[:maximum]):
        name = f"{prefix}.{number}.document"
        span.set_attributes({f"{name}.id": chunk.chunk_id or chunk.source, f"{name}.score": chunk.score})
        if _settings.outputs:
            metadata = json.dumps({**chunk.metadata, "source": chunk.source}, default=str)
            span.set_attributes({f"{name}.content": chunk.content, f"{name}.metadata": metadata})


def shown_input(text: str) -> str:
    """Return a query or question as spans may show it."""
    return text if _settings.inputs else REDACTED


def shown_output(text: str) -> str:
    """Return an answer as spans may show it."""
    return text if _settings.outputs else REDACTED


def started(name: str, attributes: Attributes) -> Any:
    """Start a span without making it the current one, or return None; :func:`finished` ends it."""
    tracer = _tracer()
    return None if tracer is None else tracer.start_span(name, attributes=attributes)


@contextmanager
def parent(span: Any) -> Iterator[None]:
    """Make a span of :func:`started` the parent of the spans of a block."""
    if span is None:
        yield
        return
    api = sys.modules["opentelemetry.trace"]
    with api.use_span(span, record_exception=False, set_status_on_exception=False):
        yield


def finished(span: Any, error: BaseException | None = None, *, cancelled: bool = False) -> None:
    """End a span of :func:`started`, unless it has ended."""
    if span is None or not span.is_recording():
        return
    if error is not None:
        _record(span, error)
    if cancelled:
        span.set_attribute("cancelled", value=True)
    span.end()


@contextmanager
def _opened(tracer: Any, name: str) -> Iterator[Any]:
    """Open a span that records an error without its traceback."""
    with tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False) as span:
        try:
            yield span
        except BaseException as error:
            _record(span, error)
            raise


def _record(span: Any, error: BaseException) -> None:
    """Record an error; only messages of RAGStack are sure not to quote the query."""
    kind = type(error).__name__
    is_shown = isinstance(error, RagStackError) or _settings.inputs
    attributes = {"exception.type": kind, **({"exception.message": str(error)} if is_shown else {})}
    span.add_event("exception", attributes)
    api = sys.modules["opentelemetry.trace"]
    span.set_status(api.Status(api.StatusCode.ERROR, f"{kind}: {error}" if is_shown else kind))


def _tracer() -> Any:
    """Return the tracer of the process's provider, or None; this imports nothing."""
    api = sys.modules.get("opentelemetry.trace")
    get_provider = getattr(api, "get_tracer_provider", None)
    provider = None if get_provider is None else get_provider()
    if provider is None or type(provider).__name__ == "ProxyTracerProvider":
        return None
    return provider.get_tracer(TRACER_NAME)


def export_spans(
    settings: TracingSettings,
    endpoint: str | None = None,
    *,
    service_name: str = TRACER_NAME,
    project: str | None = None,
    timeout_seconds: float | None = None,
) -> Callable[[], None]:
    """Create the process's tracer provider, which sends spans in batches from a background thread.

    A program that has a provider already needs only :func:`configure_tracing`.

    Args:
        settings: What spans may include.
        endpoint: Such as ``http://localhost:6006/v1/traces``; by default what the standard variables say
            (OTEL_EXPORTER_OTLP_ENDPOINT and its like).
        service_name: Name of the service.
        project: Name of the project in Phoenix; by default the name of the service.
        timeout_seconds: Deadline of sending a batch, over 0; by default OTEL_EXPORTER_OTLP_TIMEOUT, or 10.

    Returns:
        A function that sends the last spans and stops the thread.

    Raises:
        MissingPackageError: The extra ``telemetry`` is not installed.
    """
    with needs_extra("telemetry", "The export of spans"):
        from opentelemetry import trace  # noqa: PLC0415 - an extra
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    # Phoenix shows spans by project. Source: OpenInference, resource attributes.
    resource = Resource.create({"service.name": service_name, "openinference.project.name": project or service_name})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint, timeout=timeout_seconds)))
    trace.set_tracer_provider(provider)
    configure_tracing(settings)
    return provider.shutdown
