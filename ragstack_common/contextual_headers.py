"""Contextual headers: what a chunk belongs to, put before its text so that it is found by it.

The local Bedrock and the function that transforms chunks on AWS compose the same header. The local Bedrock keeps it
beside the text. On AWS there is one text, which is embedded and returned, so the header stands in it in a form that
`split` recognises::

    [ragstack context]
    > leave policy 2026
    > Annual leave > Carrying leave over

    Up to five days of unused annual leave ...
"""

import re
from pathlib import PurePosixPath
from typing import Final

LONGEST_HEADER: Final = 400
"""Characters. About a hundred tokens, which a chunk of Bedrock's default size leaves in any embedding model."""

MARK: Final = "[ragstack context]\n"

_LINE: Final = "> "
_MARKED: Final = re.compile(rf"{re.escape(MARK)}((?:{_LINE}[^\n]*\n)+)\n")


def compose(name: str, title: str | None, path: tuple[str, ...], attributes: tuple[str, ...] = ()) -> str:
    """Compose the header of a chunk: a few lines, or an empty text where nothing is known.

    Args:
        name: S3 URI or custom id; the last part of it, without its extension, is used.
        title: The document's title, where it has one.
        path: The headings over the chunk, outermost first.
        attributes: ``key: value`` of the attributes that were chosen for embedding.
    """
    stem = PurePosixPath(name.rstrip("/")).stem.replace("_", " ").replace("-", " ")
    above = " > ".join(heading for heading in path if heading != title)
    lines = [" ".join(line.split()) for line in (stem, title or "", above, *attributes)]
    return "\n".join(dict.fromkeys(line for line in lines if line))[:LONGEST_HEADER].rstrip()


def prepend(header: str, text: str) -> str:
    """Put a header before a text. `split` takes the two apart again, whatever is in them."""
    quoted = "".join(f"{_LINE}{line}\n" for line in header.split("\n"))
    return f"{MARK}{quoted}\n{text}"


def split(text: str) -> tuple[str | None, str]:
    """Take a header off a text: the header, or None where there is none, and the text after it."""
    marked = _MARKED.match(text)
    if marked is None:
        return None, text
    lines = marked[1].removesuffix("\n").split("\n")
    return "\n".join(line.removeprefix(_LINE) for line in lines), text[marked.end() :]
