"""Chunks that end where the text turns to something else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from local_bedrock.chunking.fixed_size import packed
from local_bedrock.chunking.pieces import Embed, Pieces, trimmed
from local_bedrock.chunking.sentences import Unit, units
from local_bedrock.reading.formats import UnreadableDocument

LARGEST_TEXT: Final = 1_000_000
"""Characters. Source: the failure reason "File body text exceeds size limit of 1000000 for semantic chunking"."""


@dataclass(frozen=True)
class Semantic:
    """Neighbouring sentences stay together unless they are among the least similar.

    Attributes:
        max_tokens: Of a chunk; what is similar for longer is cut where sentences end.
        buffer_size: Sentences on either side that are embedded with each: 0 or 1.
        percentile: Pairs of neighbours further apart than this share of the pairs are divided, 50 to 99.
    """

    max_tokens: int
    buffer_size: int
    percentile: int

    def cut(self, text: str, embed: Embed) -> Pieces:
        """As :class:`Strategy`.

        Raises:
            UnreadableDocument: The text is longer than this strategy takes.
        """
        if len(text) > LARGEST_TEXT:
            raise UnreadableDocument(
                f"The file's text has {len(text):,} characters; semantic chunking takes at most {LARGEST_TEXT:,}:"
                " split the file, or choose another chunking strategy."
            )
        parts = _without_blanks(text, units(text, self.max_tokens))
        spans = [
            (group[first].start, group[last].end)
            for group in self._groups(text, parts, embed)
            for first, last in packed(group, self.max_tokens, 0)
        ]
        return Pieces(tuple(trimmed(text, spans)))

    def _groups(self, text: str, parts: Sequence[Unit], embed: Embed) -> Iterator[Sequence[Unit]]:
        if not parts:
            return
        vectors = embed(list(self._surroundings(text, parts)))
        distances = 1.0 - np.einsum("ij,ij->i", vectors[:-1], vectors[1:])
        limit = np.percentile(distances, self.percentile) if len(distances) else 0.0
        begin = 0
        for position in np.flatnonzero(distances > limit).tolist():
            yield parts[begin : position + 1]
            begin = position + 1
        yield parts[begin:]

    def _surroundings(self, text: str, parts: Sequence[Unit]) -> Iterator[str]:
        """Yield each unit together with its neighbours."""
        for position in range(len(parts)):
            first = max(0, position - self.buffer_size)
            last = min(len(parts) - 1, position + self.buffer_size)
            yield text[parts[first].start : parts[last].end]


def _without_blanks(text: str, parts: Sequence[Unit]) -> list[Unit]:
    """Add what is only space to the unit before it: it is like nothing."""
    kept: list[Unit] = []
    for part in parts:
        if kept and not text[part.start : part.end].strip():
            kept[-1] = Unit(kept[-1].start, part.end, kept[-1].tokens)
        else:
            kept.append(part)
    return kept
