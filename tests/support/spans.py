"""The spans of a test, in memory."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ragstack_common.search.tracing import TracingSettings, configure_tracing

FIVE = ("search_type", "search_k", "large_retrieval_size", "pooling", "corpus_filter")
"""Source: specification 002, telemetry."""


class _Listener(SimpleSpanProcessor):
    """Hears the spans of the tests that record them, and of no others."""

    listens = False

    def on_end(self, span: ReadableSpan) -> None:
        if self.listens:
            super().on_end(span)


class Spans:
    """The spans that have ended."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def clear(self) -> None:
        self._exporter.clear()

    def by_name(self) -> dict[str, list[ReadableSpan]]:
        spans: dict[str, list[ReadableSpan]] = {}
        for span in self._exporter.get_finished_spans():
            spans.setdefault(span.name, []).append(span)
        return spans

    def five(self, name: str) -> tuple[Any, ...]:
        """The five attributes of the spans of a name, which must be the same."""
        (values,) = {tuple(attributes(span).get(key) for key in FIVE) for span in self.by_name()[name]}
        return values


def attributes(span: ReadableSpan) -> Mapping[str, Any]:
    return dict(span.attributes or {})


@cache
def _listener() -> tuple[_Listener, InMemorySpanExporter]:
    """The process has one provider for good; this one is added to whatever another test has made."""
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    exporter = InMemorySpanExporter()
    listener = _Listener(exporter)
    provider.add_span_processor(listener)
    return listener, exporter


@contextmanager
def recorded() -> Iterator[Spans]:
    """Record spans, with the default settings afterwards."""
    listener, exporter = _listener()
    listener.listens = True
    exporter.clear()
    yield Spans(exporter)
    listener.listens = False
    configure_tracing(TracingSettings())
