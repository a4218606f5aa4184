"""Paragraphs whose characters are on, above or below the line."""

import re
from dataclasses import dataclass, field
from typing import Final

from ragstack_common.reading import markdown

_SPACES: Final = re.compile(r"[ \t\u00a0]+")


@dataclass
class Paragraph:
    """The text of a paragraph in parts that are on the line (0), above (1) or below it (2)."""

    _parts: list[tuple[list[str], int]] = field(default_factory=list)

    def add(self, text: str, place: int = 0) -> None:
        """Add text."""
        if not text:
            return
        if not self._parts or self._parts[-1][1] != place:
            self._parts.append(([], place))
        self._parts[-1][0].append(text)

    def __str__(self) -> str:
        written = ""
        for pieces, place in self._parts:
            text = "".join(pieces)
            written += (text, markdown.raised(text, written), markdown.lowered(text))[place]
        return "\n".join(_SPACES.sub(" ", line).strip() for line in written.split("\n")).strip("\n")
