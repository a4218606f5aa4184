"""Spans of searches, for whoever has OpenTelemetry installed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragstack_common.retrieval.base import ReportingBackend
    from ragstack_common.retrieval.models import SearchOutcome, SearchRequest


class Span:
    """Takes what a search brought."""

    def record(self, outcome: "SearchOutcome") -> None:
        """Write the outcome down."""


@contextmanager
def traced(backend: "ReportingBackend", request: "SearchRequest") -> Iterator[Span]:
    """Open a span for one search; its error is recorded too."""
    yield Span()
