"""What a chunking strategy takes and makes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]
"""Turns texts into an array of shape (texts, dimension), the rows of unit length."""


@dataclass(frozen=True)
class Chunk:
    """A piece of the text, and where it starts in it.

    Attributes:
        parent: Position among the parents; None where there are none.
    """

    text: str
    start: int
    parent: int | None = None


@dataclass(frozen=True)
class Pieces:
    """A text cut: what is embedded and searched, and the larger pieces that are returned in their place."""

    chunks: tuple[Chunk, ...]
    parents: tuple[Chunk, ...] = ()


class Strategy(Protocol):
    """Cuts texts so that every word is in at least one chunk, and no chunk is blank."""

    def cut(self, text: str, embed: Embed) -> Pieces:
        """Cut a text.

        Args:
            text: Any text; a blank one has no chunks.
            embed: Tells how similar texts are, for the strategy that asks.
        """
        ...


def trimmed(text: str, spans: Iterable[tuple[int, int]], parent: int | None = None) -> list[Chunk]:
    """Return the chunks between these offsets, without the space around them; what is blank is left out."""
    found = []
    for start, end in spans:
        piece = text[start:end]
        stripped = piece.strip()
        if stripped:
            found.append(Chunk(stripped, start + len(piece) - len(piece.lstrip()), parent))
    return found
