"""Contextual headers: the document and section of a chunk, indexed with its text.

A knowledge base on AWS embeds and returns one text, so the header is prepended in a form that `split` recognizes::

    [ragstack context]
    > leave policy 2026
    > Annual leave > Carrying leave over

    Up to five days of unused annual leave ...
"""

import re
from pathlib import PurePosixPath
from typing import Final

MAX_HEADER: Final = 400
"""Characters. About a hundred tokens, which fit next to a chunk of Bedrock's default size in any embedding model."""

MARK: Final = "[ragstack context]\n"

_LINE: Final = "> "
_MARKED: Final = re.compile(rf"{re.escape(MARK)}((?:{_LINE}[^\n]*\n)+)\n")


def compose(name: str, title: str | None, path: tuple[str, ...], attributes: tuple[str, ...] = ()) -> str:
    """Compose the header of a chunk: a few lines, or an empty text.

    Args:
        name: S3 URI or custom id; the last part without its extension is used.
        title: The document's title, if any.
        path: The headings of the chunk, outermost first.
        attributes: ``key: value`` of the attributes to embed.
    """
    stem = PurePosixPath(name.rstrip("/")).stem.replace("_", " ").replace("-", " ")
    above = " > ".join(heading for heading in path if heading != title)
    lines = [" ".join(line.split()) for line in (stem, title or "", above, *attributes)]
    return "\n".join(dict.fromkeys(line for line in lines if line))[:MAX_HEADER].rstrip()


def prepend(header: str, text: str) -> str:
    """Prepend a header to a text. `split` separates any two again."""
    quoted = "".join(f"{_LINE}{line}\n" for line in header.split("\n"))
    return f"{MARK}{quoted}\n{text}"


def split(text: str) -> tuple[str | None, str]:
    """Return the header of a text, or None, and the rest of the text."""
    marked = _MARKED.match(text)
    if marked is None:
        return None, text
    lines = marked[1].removesuffix("\n").split("\n")
    return "\n".join(line.removeprefix(_LINE) for line in lines), text[marked.end() :]
