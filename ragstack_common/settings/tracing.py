"""The settings of traces."""

from typing import Annotated, Final

from pydantic import Field

from ragstack_common.settings.base import (
    Allowed,
    Settings,
)

OtlpEndpoint = Annotated[
    str, Field(pattern=r"^https?://[^/\s]+(/\S*)?$"), Allowed("a URL, to which /v1/traces is added")
]

OTLP_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""The variable with which deployed functions export spans."""


class TraceSettings(Settings):
    """Where deployed functions send spans, and what spans contain."""

    otel_exporter_otlp_endpoint: OtlpEndpoint | None = Field(
        None,
        validation_alias=OTLP_ENDPOINT,
        repr=False,  # a URL may have a password
        description="collector to which `query` and `answers` send spans, by OTLP over HTTP",
    )
    otel_exporter_otlp_headers: str | None = Field(
        None, repr=False, description="headers for that collector, such as `authorization=Bearer%20...`"
    )
    ragstack_trace_content: bool = Field(
        False, description="spans contain queries, answers, and texts and attributes of chunks"
    )
    openinference_hide_inputs: bool = Field(False, description="hides queries and questions anyway")
    openinference_hide_outputs: bool = Field(False, description="hides answers, texts and attributes anyway")
