"""Sends spans to Phoenix, or to whatever else takes OpenTelemetry's protocol over HTTP."""

from collections.abc import Callable
from typing import Final

from ragstack_common.errors import needs_extra
from ragstack_common.retrieval.tracing import TracingSettings, configure_tracing

SERVICE_NAME: Final = "ragstack"
PROJECT_ATTRIBUTE: Final = "openinference.project.name"
"""The project under which Phoenix shows the spans. Source: OpenInference, resource attributes."""


def export_spans(
    settings: TracingSettings, endpoint: str | None = None, *, service_name: str = SERVICE_NAME
) -> Callable[[], None]:
    """Make the process's tracer provider, which sends spans in batches from a thread of its own.

    A program that has a provider already needs only
    :func:`~ragstack_common.retrieval.tracing.configure_tracing`.

    Args:
        settings: What spans may tell.
        endpoint: Such as ``http://localhost:6006/v1/traces``; by default what the standard variables say
            (OTEL_EXPORTER_OTLP_ENDPOINT and its like).
        service_name: What the spans are shown under.

    Returns:
        What sends the last spans and ends the thread.

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
