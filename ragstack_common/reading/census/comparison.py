"""Compare the words of a file with those of the index.

Both texts were read in different ways, so that order and white space may differ: a word counts as found next to one of
its neighbours, or within letters that are together there. Case, punctuation and forms of characters do not count.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ragstack_common.reading.census.parts import Census, Part
from ragstack_common.text.characters import DENSE_RANGES

_WORD: Final = re.compile(rf"[{DENSE_RANGES}]|[^\W_{DENSE_RANGES}]+")
_LONG_ENOUGH: Final = 4
"""Letters that do not stand together by chance, in a document."""

_FEW: Final = 3
_MARK: Final = ".{1,9}"
"""Letters between two words: the number of a note, or of a page."""

_RAISED: Final = re.compile(r"[\u00b2\u00b3\u00b9\u2070-\u209f]+")
"""Characters above or below the line: a part of the word before them, the number of a note, or apart."""

MAX_FRUITLESS: Final = 2000
"""Fruitless searches, of 2 ms in 4,000 chunks: a document of which so much is missing is incomplete anyway."""

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
        self.fruitless = 0
        """Searches through all chunks that found nothing since it was set to 0."""

    def __len__(self) -> int:
        """Return the number of chunks that have words."""
        return len(self._letters)

    def add(self, chunks: Iterable[str]) -> bool:
        """Add chunks; returns whether one was new."""
        before = len(self._chunks)
        for chunk in chunks:
            if chunk not in self._chunks:
                self._chunks.add(chunk)
                words = words_of(chunk)
                self._add_words(words)
                if words:
                    self._letters.append("".join(words))
                if _RAISED.search(chunk):
                    self._add_words(words_of(_RAISED.sub("", chunk)))
                    self._add_words(words_of(_RAISED.sub(r" \g<0> ", chunk)))
                for found in _NUMBER.findall(chunk):
                    self._digits.update(_digits(each) for each in (found, *found.split()))
        return len(self._chunks) > before

    def _add_words(self, words: Sequence[str]) -> None:
        self._words.update(words)
        self._pairs.update(pairwise(words))

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
        letters = "".join(own)
        if self._has_letters(letters):
            return True
        if len(run) == 1:
            return own[0] in self._words
        if len(run) > _FEW or len(letters) < _LONG_ENOUGH * len(run):
            return False
        nearby = re.compile(_MARK.join(own))
        return self._some_chunk(nearby.search)

    def _has_letters(self, letters: str) -> bool:
        return len(letters) >= _LONG_ENOUGH and self._some_chunk(lambda chunk: letters in chunk)

    def _some_chunk(self, matches: Callable[[str], object]) -> bool:
        """Whether the letters of a chunk match; after many fruitless searches no more are made."""
        if self.fruitless >= MAX_FRUITLESS:
            return False
        found = any(map(matches, self._letters))
        self.fruitless += not found
        return found


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


WINDOW_WORDS: Final = 120
"""Words that are looked for together, about half of a chunk: their vector is near that of the chunk that has them."""

WINDOW_CHARACTERS: Final = 8 * WINDOW_WORDS

TEXT_LETTERS: Final = 4
"""Letters of a text that is missed even in a long part, if nothing of it is in the index; shorter ones differ by
chance."""


@dataclass
class PartFound:
    """What of a part is in the index.

    Attributes:
        words: Its words and numbers that were looked for.
        read: Those that are in the index.
        lost_paragraphs: Texts and numbers of which nothing is in the index.
        lost_texts: Texts and numbers of which something is missing.
        example: The first text of which something is missing.
    """

    part: Part
    words: int = 0
    read: int = 0
    lost_paragraphs: int = 0
    lost_texts: int = 0
    example: str | None = None

    def is_read(self, least_share: float) -> bool:
        """Whether enough of it is in the index."""
        return self.read >= least_share * self.words and not self.lost_paragraphs


@dataclass
class _Window:
    """Some neighbouring texts of a part."""

    part: int
    begin: int
    end: int
    words: int


class Comparison:
    """Compares a file with what lookups in the index find, window by window, spread over the file.

    A lookup finds the chunks that are most like its text. What is not in the chunks that were found so far is looked
    for once by its own text, and then missing.
    """

    def __init__(self, census: Census) -> None:
        self.census = census
        self.index = IndexedText()
        self._parts = [[piece for text in part.texts for piece in _pieces(text)] for part in census.parts]
        self._windows = [window for place, texts in enumerate(self._parts) for window in _windows(place, texts)]
        self._order = iter(_spread(len(self._windows)))
        self._looked: list[_Window] = []

    @property
    def words(self) -> int:
        """Number of words and numbers in the file."""
        return sum(window.words for window in self._windows) + sum(len(part.numbers) for part in self.census.parts)

    @property
    def first_text(self) -> str:
        """The beginning of the file's text in one line; empty if it has none."""
        return " ".join(" ".join(self._texts(self._windows[0])).split()) if self._windows else ""

    def add(self, chunks: Iterable[str]) -> bool:
        """Add the chunks of the last lookup; returns whether one was new."""
        return self.index.add(chunks)

    def next_query(self, max_characters: int) -> str | None:
        """Return a text to look for, or None if there is nothing more."""
        for place in self._order:
            window = self._windows[place]
            self._looked.append(window)
            texts = self._texts(window)
            if any(self.index.missing(words) for words in map(words_of, texts) if words):
                return " ".join(" ".join(texts).split())[:max_characters]
        return None

    def leave_last(self) -> None:
        """Do not look for the last query, whose text then counts as not compared."""
        self._looked.pop()

    def found(self) -> list[PartFound]:
        """Return what of each part is in the index, as far as it was looked for."""
        self.index.fruitless = 0
        found = [PartFound(part) for part in self.census.parts]
        for window in sorted(self._looked, key=lambda each: (each.part, each.begin)):
            of_part = found[window.part]
            for text in self._texts(window):
                words = words_of(text)
                lost = len(self.index.missing(words)) if words else 0
                of_part.words += len(words)
                of_part.read += len(words) - lost
                of_part.lost_texts += lost > 0
                of_part.lost_paragraphs += lost == len(words) and sum(map(len, words)) >= TEXT_LETTERS
                if lost and of_part.example is None:
                    of_part.example = text
        for of_part in found:
            lost_numbers = [forms for forms in of_part.part.numbers if not self.index.has_number(forms)]
            of_part.words += len(of_part.part.numbers)
            of_part.read += len(of_part.part.numbers) - len(lost_numbers)
            of_part.lost_texts += len(lost_numbers)
            of_part.lost_paragraphs += sum(len(min(forms, key=len)) >= TEXT_LETTERS for forms in lost_numbers)
            if lost_numbers and of_part.example is None:
                of_part.example = min(lost_numbers[0], key=len)
        return found

    def _texts(self, window: _Window) -> list[str]:
        return self._parts[window.part][window.begin : window.end]


def _pieces(text: str) -> Iterator[str]:
    """Divide a text that is longer than a window: a file can be one paragraph, whose parts are in many chunks."""
    if len(text) <= WINDOW_CHARACTERS:
        yield text
        return
    begin = 0
    while begin < len(text):
        end = begin + WINDOW_CHARACTERS
        if end < len(text):
            space = max(text.rfind(" ", begin, end), text.rfind("\n", begin, end))
            end = space + 1 if space > begin else end
        yield text[begin:end]
        begin = end


def _windows(place: int, texts: Sequence[str]) -> Iterator[_Window]:
    begin = words = 0
    for number, text in enumerate(texts):
        own = len(words_of(text))
        if words and words + own > WINDOW_WORDS:
            yield _Window(place, begin, number, words)
            begin, words = number, 0
        words += own
    if words:
        yield _Window(place, begin, len(texts), words)


def _spread(count: int) -> Iterator[int]:
    """Yield the numbers below a count so that the first ones are far apart."""
    step = 1 << max(0, count - 1).bit_length()
    seen: set[int] = set()
    while step:
        for number in range(0, count, step):
            if number not in seen:
                seen.add(number)
                yield number
        step >>= 1
