"""Compare the words of a file with those of the index.

Both texts were read in different ways, so that order and white space may differ: a word counts as found next to one of
its neighbours, or within letters that are together there. Case, punctuation and forms of characters do not count.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from ragstack_common.text.characters import DENSE_RANGES

_WORD: Final = re.compile(rf"[{DENSE_RANGES}]|[^\W_{DENSE_RANGES}]+")
_LONG_ENOUGH: Final = 4
"""Letters that do not stand together by chance, in a document."""

_NUMBER: Final = re.compile(r"\d(?:[\d.,'\u2019\u00a0\u202f ]*\d)?")
_NO_DIGIT: Final = re.compile(r"\D")


def words_of(text: str) -> list[str]:
    """Return the words of a text, in one form; characters of scripts without spaces are words of their own."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


class IndexedText:
    """The text that the index has of a document, as far as it was read."""

    def __init__(self) -> None:
        self._chunks: set[str] = set()
        self._words: set[str] = set()
        self._pairs: set[tuple[str, str]] = set()
        self._letters: list[str] = []
        self._digits: set[str] = set()

    def __len__(self) -> int:
        """Return the number of chunks."""
        return len(self._chunks)

    @property
    def has_words(self) -> bool:
        """Whether there is any word."""
        return bool(self._words)

    def add(self, chunks: Iterable[str]) -> bool:
        """Add chunks; returns whether one was new."""
        before = len(self._chunks)
        for chunk in chunks:
            if chunk not in self._chunks:
                self._chunks.add(chunk)
                words = words_of(chunk)
                self._words.update(words)
                self._pairs.update(pairwise(words))
                self._letters.append("".join(words))
                for found in _NUMBER.findall(chunk):
                    self._digits.update(_digits(each) for each in (found, *found.split()))
        return len(self._chunks) > before

    def missing(self, words: Sequence[str]) -> list[int]:
        """Return the places of the words of a paragraph that the index does not have."""
        if len(words) == 1:
            return [] if words[0] in self._words or self._has_letters(words[0]) else [0]
        joined = [pair in self._pairs for pair in pairwise(words)]
        lost = [
            place
            for place in range(len(words))
            if not (place and joined[place - 1]) and not (place < len(joined) and joined[place])
        ]
        return [place for run in _runs(lost) if not self._has_run(words, run) for place in run]

    def has_number(self, forms: Iterable[str]) -> bool:
        """Whether a number is there, in one of the forms of its digits."""
        return any(form in self._digits for form in forms)

    def _has_run(self, words: Sequence[str], run: Sequence[int]) -> bool:
        """Whether the words are written together or apart there, or between other ones in short paragraphs."""
        own = [words[place] for place in run]
        if self._has_letters("".join(own)):
            return True
        return len(run) == 1 and own[0] in self._words

    def _has_letters(self, letters: str) -> bool:
        return len(letters) >= _LONG_ENOUGH and any(letters in chunk for chunk in self._letters)


def _digits(number: str) -> str:
    return _NO_DIGIT.sub("", number).lstrip("0") or "0"


def _runs(places: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs
