"""Among equally relevant versions of one document, the newest one first, if the question names none."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ragstack_common.search.models import Note, RetrievedChunk, SearchOutcome

VERSION_KEYS: Final = ("version", "year", "date")
"""Attributes that order the versions of a document, the first that all of them have and that differs."""

NEARLY: Final = 0.9
"""Share of the older version's score that the newest must have."""

_NUMBER: Final = re.compile(r"\d+")
_NAMES_VERSION: Final = re.compile(
    r"\b(?:19|20)\d\d\b|\b(?:v|version|release)\W?\d"
    r"|\b(?:old(?:er|est)?|previous|former(?:ly)?|earlier|last year|until|was|were|did)\b",
    re.IGNORECASE,
)
"""A year, a version, or words that ask about the past."""


def newest_first(outcome: SearchOutcome, query: str) -> SearchOutcome:
    """Move the newest version of a document to the place of an older one that is at most a tenth better.

    Versions are results whose sources differ in their digits only, such as ``leave-2025.md`` and ``leave-2026.md``, and
    that have different values of an attribute that orders them. A question about a year, a version or the past changes
    nothing.
    """
    if _NAMES_VERSION.search(query):
        return outcome
    chunks, notes = list(outcome.chunks), []
    for versions in _versions(chunks):
        best, newest = versions[0], max(versions, key=lambda chunk: _order(chunk, _key(versions)))
        if newest is best or newest.score < NEARLY * best.score:
            continue
        ranking = newest.ranked_by.scaled(best.ranked_by.score / newest.ranked_by.score if newest.score else 1.0)
        reason = f"The newest version, before {best.source.rpartition('/')[2]}"
        chunks.remove(newest)
        chunks.insert(chunks.index(best), newest.ranked(replace(ranking, reason=reason)))
        notes.append(Note("version", f"{newest.source} is newer than {best.source}, and is shown first"))
    return replace(outcome, chunks=chunks, notes=(*outcome.notes, *notes)) if notes else outcome


def _versions(chunks: Sequence[RetrievedChunk]) -> list[list[RetrievedChunk]]:
    """Return the groups of versions, each in the order of the results."""
    families: dict[str, list[RetrievedChunk]] = defaultdict(list)
    for chunk in chunks:
        if chunk.public_source is not None:
            families[_NUMBER.sub("#", chunk.source)].append(chunk)
    return [found for found in families.values() if len({chunk.source for chunk in found}) > 1 and _key(found)]


def _key(versions: Sequence[RetrievedChunk]) -> str:
    """Return the attribute that orders versions; empty if there is none."""
    return next((key for key in VERSION_KEYS if len({_order(chunk, key) for chunk in versions} - {()}) > 1), "")


def _order(chunk: RetrievedChunk, key: str) -> tuple[int, ...]:
    value: Any = chunk.metadata.get(key)
    return () if isinstance(value, bool | Mapping) else tuple(map(int, _NUMBER.findall(str(value))))
