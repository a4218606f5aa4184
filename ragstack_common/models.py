"""Values that cross layers, frozen."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Result: TypeAlias = dict[str, Any]
"""One hit: score, content, location, metadata as the specification has them, and what explains the score.

``content_type`` is TEXT, IMAGE, ROW, AUDIO or VIDEO; for all but TEXT, ``content_details`` holds what the service sent.
``context`` is there for a chunk that was indexed with a contextual header, which ``content`` is then without.
``ranking`` holds ``base_score`` (the service's), ``boost`` (its factor) and ``slices`` (the names of those that found
the document).
"""

DeduplicateBy: TypeAlias = Literal["document", "chunk"]
SliceStatus: TypeAlias = Literal["ok", "failed", "timeout"]


class Shortage(str):
    """A note that fewer documents came back than wanted although the store may hold more.

    Code that merges several searches drops the note if the merged list is long enough.
    """

    __slots__ = ()

    @classmethod
    def of(cls, found: int, wanted: int, why: str) -> "Shortage":
        """Write the note; *why* ends the sentence, such as "before the deadline"."""
        return cls(f"Found {found} of the {wanted} documents wanted {why}; the store may hold more")


@dataclass(frozen=True)
class SliceReport:
    """What became of one slice of a search.

    Attributes:
        name: filtered or unfiltered.
        status: ok, failed, or timeout when the deadline came first.
        milliseconds: Time until the slice ended, or the deadline.
        hits: Results that it brought, before merging.
        error: Why it failed, in one line.
    """

    name: str
    status: SliceStatus
    milliseconds: float
    hits: int = 0
    error: str | None = None


@dataclass(frozen=True)
class RetrievalOutcome:
    """Results, and whether they are all there is.

    Attributes:
        results: Best first, at most as many as asked for.
        slices: One report each, in the order in which they were started.
        milliseconds: Time of the whole search.
        notes: What else a caller should know, such as a :class:`Shortage`.
    """

    results: list[Result]
    slices: tuple[SliceReport, ...]
    milliseconds: float
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every slice answered in time."""
        return all(report.status == "ok" for report in self.slices)
