"""The numbers of sources that a model was asked to write, taken out of its answer."""

import re
from collections.abc import Iterator
from typing import Final

from local_bedrock.generation.types import Given, Sources, Text

_NUMBERS: Final = r"\[\s*\d{1,3}(?:\s*[,;]\s*\d{1,3})*\s*\]"
_MARKED: Final = re.compile(rf"[ \t]*((?:{_NUMBERS}\s*)*{_NUMBERS})([.!?。]*)")
_NEXT_PERHAPS_BEGUN: Final = re.compile(r"\s*(?:\[[\d\s,;]{0,60})?\Z")
_PERHAPS_BEGUN: Final = re.compile(r"[ \t]*(?:\[[\d\s,;\[\]]{0,60})?\Z")


def without_numbers(given: Iterator[Given], passages: int) -> Iterator[Given]:
    """Replace each "[1]" by the sources that it names; numbers of no passage are dropped.

    An end mark after a number belongs to the sentence before it: "It stands [1]." is "It stands." from the first.

    Args:
        given: The answer with numbers in it, cut anywhere.
        passages: How many there are.
    """
    text = ""
    for piece in given:
        if isinstance(piece, Text):
            text += piece.text
            divided, text = _divided(text, passages, last=False)
            yield from divided
        else:
            divided, text = _divided(text, passages, last=True)
            yield from divided
            yield piece


def _divided(text: str, passages: int, *, last: bool) -> tuple[list[Given], str]:
    """Divide a text at its numbers, and return what it ends with if more of it may change how it is read."""
    given: list[Given] = []
    start = 0
    for match in _MARKED.finditer(text):
        goes_on = match.end() == len(text) or (not match[2] and _NEXT_PERHAPS_BEGUN.match(text, match.end()))
        if goes_on and not last:
            return given, text[start:]
        given += _said(text[start : match.start()] + match[2])
        numbers = dict.fromkeys(int(number) - 1 for number in re.findall(r"\d+", match[1]))
        known = tuple(index for index in numbers if 0 <= index < passages)
        given += [Sources(known)] if known else []
        start = match.end()
    begun = None if last else _PERHAPS_BEGUN.search(text, start)
    end = begun.start() if begun else len(text)
    return [*given, *_said(text[start:end])], text[end:]


def _said(text: str) -> list[Given]:
    return [Text(text)] if text else []
