"""Find texts that were quoted from a passage in the document that the passage is from.

White space is the only difference that always counts as none: passages have the characters of the document, but another
parser may have divided its lines differently.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ragstack_common.text.characters import is_dense

Span = tuple[int, int]
"""Where something begins and ends in a text."""

_HYPHENATION: Final = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\s*\n\s*(?=[^\W\d_])")
_LIGATURES: Final = str.maketrans(
    {"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb05": "st", "\ufb06": "st"}
)
_BEFORE: Final = re.compile(r"\w[.,:/'\u2019-]?\Z")
_AFTER: Final = re.compile(r"[.,:/'\u2019-]?\w")


def locate(
    document: str,
    texts: Sequence[str],
    passage: str | None = None,
    starts: Sequence[int] | None = None,
    near: Span | None = None,
    *,
    only_inside: bool = False,
) -> list[Span | None]:
    """Find each text in a document, or None if it is not there, or if it is not certain which occurrence is meant.

    Args:
        document: Its text.
        texts: The characters to find.
        passage: The passage that they are from.
        starts: Offsets of the texts in the passage.
        near: The part of the document that the passage is in, at least partly.
        only_inside: Whether a text that is not inside of the passage is not there, because the rest of the document
            was not read.
    """
    passages = _occurrences(document, passage) if passage else []
    if near:
        passages = [span for span in passages if _overlaps(span, near)] or passages
    inside = passages[0] if passages else None
    found: list[Span | None] = []
    for position, text in enumerate(texts):
        spans = _occurrences(document, text, inside) if inside else []
        if spans and starts:
            found.append(spans[min(_earlier(passage or "", text, starts[position]), len(spans) - 1)])
            continue
        if spans:
            verbatim = [span for span in spans if document[slice(*span)] == text]
            found.append((verbatim or spans)[0])
            continue
        spans = [] if only_inside else _occurrences(document, text)
        if len(spans) > 1 and near:
            spans = [span for span in spans if _overlaps(span, near)]
        found.append(spans[0] if len(spans) == 1 else None)
    return found


def _earlier(passage: str, text: str, start: int) -> int:
    """Return how many occurrences in the passage begin before an offset."""
    return sum(span[0] < start for span in _occurrences(passage, text))


def _occurrences(document: str, text: str, inside: Span | None = None) -> list[Span]:
    """Return where a text occurs as whole words, or else within words."""
    for written in dict.fromkeys((text, _HYPHENATION.sub("", text).translate(_LIGATURES))):
        spans = list(_matches(document, written, inside))
        if spans:
            return [span for span in spans if _is_whole(document, span)] or spans
    return []


def _matches(document: str, text: str, inside: Span | None) -> Iterator[Span]:
    words = text.split()
    if words:
        pattern = re.compile(r"\s+".join(map(re.escape, words)))
        for match in pattern.finditer(document, *(inside or (0, len(document)))):
            yield match.span()


def _is_whole(document: str, span: Span) -> bool:
    """Whether an occurrence begins and ends between words or numbers."""
    begin, end = span
    first, last = document[begin], document[end - 1]
    continues = first.isalnum() and not is_dense(first) and _BEFORE.search(document, max(0, begin - 2), begin)
    continued = last.isalnum() and not is_dense(last) and _AFTER.match(document, end)
    return not (continues or continued)


def _overlaps(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]
