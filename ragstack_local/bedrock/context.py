"""Contextual headers: what a chunk belongs to, indexed with it and not returned."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

LONGEST_HEADER: Final = 400
_HEADING: Final = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_FENCED: Final = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Outline:
    """The headings of a document: where each begins, and the path of headings there."""

    starts: tuple[int, ...]
    paths: tuple[tuple[str, ...], ...]

    def path_at(self, offset: int) -> tuple[str, ...]:
        """Return the headings over an offset, outermost first."""
        position = bisect_right(self.starts, offset)
        return self.paths[position - 1] if position else ()


def outline(text: str) -> Outline:
    """Find the Markdown headings of a text, code blocks apart."""
    fences = [(match.start(), match.end()) for match in _FENCED.finditer(text)]
    starts, paths = [], []
    open_headings: list[tuple[int, str]] = []
    for match in _HEADING.finditer(text):
        if any(start <= match.start() < end for start, end in fences):
            continue
        level = len(match[1])
        open_headings = [heading for heading in open_headings if heading[0] < level] + [(level, match[2].strip())]
        starts.append(match.start())
        paths.append(tuple(title for _, title in open_headings))
    return Outline(tuple(starts), tuple(paths))


def header(name: str, title: str | None, path: tuple[str, ...], attributes: tuple[str, ...] = ()) -> str:
    """Compose the header of a chunk.

    Args:
        name: S3 URI or custom id; the last part of it, without its extension, is used.
        title: The document's title, where it has one.
        path: The headings over the chunk.
        attributes: ``key: value`` of the attributes that were chosen for embedding.
    """
    stem = PurePosixPath(name.rstrip("/")).stem.replace("_", " ").replace("-", " ")
    above = [heading for heading in path if heading != title]
    lines = [*dict.fromkeys(line for line in (stem, title or "", " > ".join(above)) if line), *attributes]
    return "\n".join(lines)[:LONGEST_HEADER]
