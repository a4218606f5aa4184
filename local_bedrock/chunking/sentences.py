"""Sentences of a text, and their length in tokens."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

CHARACTERS_PER_TOKEN: Final = 6
"""Longest piece of a word that counts as one token; English prose then has about 1.3 tokens a word."""

WINDOW: Final = 128 * 1024
"""Characters searched in one go: meanwhile no other thread of the server runs."""

WINDOW_OVERLAP: Final = 4096
"""Characters searched again, so that an end of a sentence is found whole."""

_TOKEN: Final = re.compile(r"[^\W_]+|[^\w\s]|_")
_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?…])[\"')\]]*\s+|(?<=[\u3002\uff01\uff1f])|\n\s*\n|\n(?=\s*(?:#{1,6} |[-*|>] |\d+[.)] ))"
)
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")


@dataclass(frozen=True)
class Unit:
    """A stretch of the text that is not divided any more."""

    start: int
    end: int
    tokens: int


def count_tokens(text: str) -> int:
    """Estimate how many tokens an embedding model would see."""
    return sum(_tokens_of(match[0]) for match in _TOKEN.finditer(text))


def units(text: str, max_tokens: int) -> list[Unit]:
    """Divide a text into its sentences, those of more than ``max_tokens`` into parts."""
    return [part for sentence in _sentences(text) for part in _fitting(text, sentence, max_tokens)]


def _tokens_of(word: str) -> int:
    if _UNSPACED.search(word):
        return len(word)
    return -(-len(word) // CHARACTERS_PER_TOKEN)


def _sentences(text: str) -> Iterator[Unit]:
    start = 0
    for end in _ends(text):
        if end > start:
            yield Unit(start, end, count_tokens(text[start:end]))
            start = end
    if start < len(text):
        yield Unit(start, len(text), count_tokens(text[start:]))


def _ends(text: str) -> Iterator[int]:
    position = 0
    while position < len(text):
        limit = min(len(text), position + WINDOW)
        for match in _SENTENCE_END.finditer(text, position, limit):
            position = match.end()
            yield position
        position = max(position, limit - WINDOW_OVERLAP if limit < len(text) else limit)


def _fitting(text: str, unit: Unit, max_tokens: int) -> Iterator[Unit]:
    """Cut a sentence that is longer than a chunk between its words, and a word that is longer still within it."""
    if unit.tokens <= max_tokens:
        yield unit
        return
    start, tokens = unit.start, 0
    for match in _TOKEN.finditer(text, unit.start, unit.end):
        cost = _tokens_of(match[0])
        if tokens and tokens + cost > max_tokens:
            yield Unit(start, match.start(), tokens)
            start, tokens = match.start(), 0
        if cost > max_tokens:
            step = max_tokens * (1 if _UNSPACED.search(match[0]) else CHARACTERS_PER_TOKEN)
            *whole, rest = range(match.start(), match.end(), step)
            for begin in whole:
                yield Unit(start, begin + step, max_tokens)
                start = begin + step
            cost -= max_tokens * len(whole)
            assert start == rest
        tokens += cost
    yield Unit(start, unit.end, tokens)
