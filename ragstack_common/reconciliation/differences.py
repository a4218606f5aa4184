"""The kinds of differences; and what is told of each kind of anything: how many, and a few examples."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final

SAMPLES_PER_KIND: Final = 20

SAMPLE_BYTES: Final = 100_000
"""Of all samples together: an object's name may have a thousand bytes, and a job must fit into an item of 400 KB."""


class Difference(StrEnum):
    """In what way bucket, registry and knowledge base do not agree about a document.

    A document on its way is none of them, nor is one whose failure the registry tells and the knowledge base has
    nothing searchable of.
    """

    NOT_IN_REGISTRY = "not_in_registry"
    """It lies in the bucket, and the registry does not know it, or holds it for deleted."""
    CONTENT = "content"
    """Document or sidecar in the bucket are not those that the registry knows."""
    NOT_IN_BUCKET = "not_in_bucket"
    """The registry knows it, and the bucket does not have it."""
    UNKNOWN_IN_KNOWLEDGE_BASE = "unknown_in_knowledge_base"
    """The knowledge base has it, and neither the bucket nor the registry."""
    NOT_SEARCHABLE = "not_searchable"
    """The registry says that it is searchable; the knowledge base does not have it, or says that it failed."""
    SEARCHABLE = "searchable"
    """The registry says FAILED or DELETED, and the knowledge base INDEXED. No failure makes this right: what failed
    is not to be found, and a version before it would answer with what is no longer true."""
    STUCK = "stuck"
    """It is on its way, and nobody brings it further."""
    UNREADABLE = "unreadable"
    """It lies in the bucket under a name that no document can have, and the registry does not say so; or its record
    cannot be read, see repairs.py."""


FORCED: Final = frozenset(
    {
        Difference.UNKNOWN_IN_KNOWLEDGE_BASE,
        Difference.NOT_SEARCHABLE,
        Difference.SEARCHABLE,
        Difference.STUCK,
        Difference.UNREADABLE,
    }
)
"""Kinds of which registry and bucket alone do not tell whether there is still something to do."""


class Reach(StrEnum):
    """What no call about a document can put right."""

    OUT_OF_REACH = "out_of_reach"
    """The knowledge base has it from a synchronisation, under a URI that direct calls do not take: only another
    synchronisation, after the object is deleted, removes it."""


class Tally:
    """Counts exactly, and keeps a few examples of each kind."""

    def __init__(self, kinds: type[StrEnum]) -> None:
        """Begin with none of any kind."""
        self._kinds = kinds
        self._counts: Counter[str] = Counter()
        self._samples: dict[str, list[str]] = {}
        self._bytes = 0

    def add(self, kind: StrEnum, names: Iterable[str]) -> None:
        """Take in what is of a kind, by what is to be said of each: of a document its URI, or else its id."""
        samples = self._samples.setdefault(kind, [])
        for name in names:
            self._counts[kind] += 1
            size = len(name.encode("utf-8", "surrogatepass"))
            if len(samples) < SAMPLES_PER_KIND and self._bytes + size <= SAMPLE_BYTES:
                samples.append(name)
                self._bytes += size

    @property
    def total(self) -> int:
        """How many there are."""
        return self._counts.total()

    def report(self) -> dict[str, Any]:
        """List the kinds that there are, each with its count and samples."""
        return {
            kind: {"count": self._counts[kind], "samples": sorted(self._samples[kind])}
            for kind in self._kinds
            if self._counts[kind]
        }
