"""Spans of searches and rerankings, if the process has a tracer provider of OpenTelemetry.

They follow OpenInference's conventions, which Phoenix and others display, and carry the attributes of specification
002. Without a tracer provider nothing is imported, created or measured. Queries, texts and attributes are private:
spans include them only if the settings allow it.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.config import TraceSettings
from ragstack_common.errors import RagStackError, needs_extra

if TYPE_CHECKING:
    from ragstack_common.retrieval.base import ReportingBackend
    from ragstack_common.retrieval.models import RetrievedChunk, SearchOutcome, SearchRequest

REDACTED: Final = "__REDACTED__"
"""Replaces a hidden text. Source: OpenInference, specification of the configuration."""

MAX_DOCUMENTS: Final = 15
"""Maximum number of documents in a span; a reranking has two lists of half the length.

The SDK keeps 128 attributes of a span and drops the oldest of more (OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT).
"""

TRACER_NAME: Final = "ragstack"
PROJECT_ATTRIBUTE: Final = "openinference.project.name"
"""The project under which Phoenix shows the spans. Source: OpenInference, resource attributes."""

Value = str | int | float | bool | Sequence[str]


@dataclass(frozen=True)
class TracingSettings:
    """What spans may include.

    Attributes:
        inputs: The query.
        outputs: Texts and attributes of chunks.
    """

    inputs: bool = False
    outputs: bool = False

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "TracingSettings":
        """Read the settings: RAGSTACK_TRACE_CONTENT allows contents, and OpenInference's variables hide them.

        Raises:
            ConfigurationError: A variable is neither true nor false; the message names it.
        """
        settings = TraceSettings.from_env(env)
        return cls(
            inputs=settings.ragstack_trace_content and not settings.openinference_hide_inputs,
            outputs=settings.ragstack_trace_content and not settings.openinference_hide_outputs,
        )


_settings = TracingSettings()
_known: tuple[Any, Any] | None = None


def configure_tracing(settings: TracingSettings) -> None:
    """Set what the spans of this process may include from now on."""
    global _settings  # noqa: PLW0603 - one frozen value is swapped for another
    _settings = settings


class Span:
    """Records a search or a reranking; this one does nothing."""

    def describe(self, attributes: Mapping[str, Value]) -> None:
        """Add attributes that are known only later."""

    def record(self, outcome: "SearchOutcome") -> None:
        """Record the outcome of a search."""

    def record_order(self, chunks: "Sequence[RetrievedChunk]") -> None:
        """Record the order of a reranking."""

    def fail(self, error: BaseException) -> None:
        """Record why there is no outcome."""


class _OpenSpan(Span):
    def __init__(self, span: Any, settings: TracingSettings) -> None:
        self._span = span
        self._settings = settings

    def describe(self, attributes: Mapping[str, Value]) -> None:
        self._span.set_attributes(dict(attributes))

    def query(self, name: str, query: str) -> None:
        self._span.set_attribute(name, query if self._settings.inputs else REDACTED)

    def documents(self, prefix: str, chunks: "Sequence[RetrievedChunk]", most: int) -> None:
        for number, chunk in enumerate(chunks[:most]):
            name = f"{prefix}.{number}.document"
            self._span.set_attributes({f"{name}.id": chunk.chunk_id or chunk.source, f"{name}.score": chunk.score})
            if self._settings.outputs:
                metadata = json.dumps({**chunk.metadata, "source": chunk.source}, default=str)
                self._span.set_attributes({f"{name}.content": chunk.content, f"{name}.metadata": metadata})

    def record(self, outcome: "SearchOutcome") -> None:
        self.documents("retrieval.documents", outcome.chunks, MAX_DOCUMENTS)
        self.describe({"results": len(outcome.chunks), "complete": outcome.complete})
        for corpus in outcome.corpora:
            prefix = f"corpus.{corpus.name}"
            self.describe({f"{prefix}.candidates": corpus.candidates, f"{prefix}.results": corpus.results})
        if outcome.notes:
            self.describe({"notes": outcome.notes})
        if outcome.age_seconds is not None:
            self.describe({"age_seconds": outcome.age_seconds})
        for part in outcome.parts:
            if part.status != "ok":
                self._span.add_event("part missing", {"part": part.name, "status": part.status})

    def record_order(self, chunks: "Sequence[RetrievedChunk]") -> None:
        self.documents("reranker.output_documents", chunks, MAX_DOCUMENTS // 2)

    def fail(self, error: BaseException) -> None:
        """Record an error without its traceback; only messages of RAGStack are sure not to quote the query."""
        kind = type(error).__name__
        told = isinstance(error, RagStackError) or self._settings.inputs
        self._span.add_event(
            "exception", {"exception.type": kind, **({"exception.message": str(error)} if told else {})}
        )
        status = sys.modules["opentelemetry.trace"]
        self._span.set_status(status.Status(status.StatusCode.ERROR, f"{kind}: {error}" if told else kind))


@contextmanager
def traced(backend: "ReportingBackend", request: "SearchRequest") -> Iterator[Span]:
    """Open a span for one search; its error is recorded too."""
    with _opened(f"retrieve {backend.name}") as span:
        if isinstance(span, _OpenSpan):
            span.describe({"openinference.span.kind": "RETRIEVER", "search_k": request.top_k})
            span.describe(backend.span_attributes())
            span.query("input.value", request.query)
        yield span


@contextmanager
def traced_reranking(name: str, query: str, chunks: "Sequence[RetrievedChunk]") -> Iterator[Span]:
    """Open a span for one reranking; its error is recorded too."""
    with _opened(f"rerank {name}") as span:
        if isinstance(span, _OpenSpan):
            span.documents("reranker.input_documents", chunks, MAX_DOCUMENTS // 2)
            span.describe(
                {
                    "openinference.span.kind": "RERANKER",
                    "reranker.model_name": name,
                    "candidates": len(chunks),
                }
            )
            span.query("reranker.query", query)
        yield span


@contextmanager
def _opened(name: str) -> Iterator[Span]:
    tracer = _tracer()
    if tracer is None:
        yield Span()
        return
    with tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False) as span:
        opened = _OpenSpan(span, _settings) if span.is_recording() else Span()
        try:
            yield opened
        except BaseException as error:
            opened.fail(error)
            raise


def _tracer() -> Any:
    """Return the tracer of the process's provider, or None; this imports nothing."""
    global _known  # noqa: PLW0603 - one pair is swapped for another
    api = sys.modules.get("opentelemetry.trace")
    provider_of = getattr(api, "get_tracer_provider", None)
    if provider_of is None:
        return None
    provider = provider_of()
    if type(provider).__name__ == "ProxyTracerProvider":
        return None
    if _known is None or _known[0] is not provider:
        _known = (provider, provider.get_tracer(TRACER_NAME))
    return _known[1]


def export_spans(
    settings: TracingSettings, endpoint: str | None = None, *, service_name: str = TRACER_NAME
) -> Callable[[], None]:
    """Create the process's tracer provider, which sends spans in batches from a background thread.

    A program that has a provider already needs only :func:`configure_tracing`.

    Args:
        settings: What spans may include.
        endpoint: Such as ``http://localhost:6006/v1/traces``; by default what the standard variables say
            (OTEL_EXPORTER_OTLP_ENDPOINT and its like).
        service_name: Name of the service and of the project in Phoenix.

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
    resource = Resource.create({"service.name": service_name, PROJECT_ATTRIBUTE: service_name})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint)))
    trace.set_tracer_provider(provider)
    configure_tracing(settings)
    return provider.shutdown
