"""Find quotations in a text, and find quoted words in the passages that a model received."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self

from ragstack_common.answering.answer import CitedText
from ragstack_common.answering.models import Passage

LONGEST_QUOTATION: Final = 1000
"""Characters; an opening mark that is not closed by then is no quotation."""

LEAST_WORDS: Final = 4
LEAST_CHARACTERS: Final = 20
LEAST_DENSE_CHARACTERS: Final = 10
"""Of a script without spaces, such as Japanese. A shorter text in quotation marks may be a term, a title or irony: it
supports nothing, and is never missing."""

MOST_OCCURRENCES: Final = 50
"""Occurrences within words that are tried, so that no source makes the search slow."""

_STRAIGHT: Final = re.compile(r'(?<=\S)"(?!\w)')
_CLOSING: Final = {
    '"': _STRAIGHT,
    "'": re.compile(r"(?<=\S)'(?!\w)"),
    "“": re.compile("”"),
    "”": re.compile("”"),
    "„": re.compile("[“”]"),
    "«": re.compile("»"),
    "»": re.compile("«"),
    "‹": re.compile("›"),  # noqa: RUF001
    "「": re.compile("」"),
    "『": re.compile("』"),
    "‘": re.compile(r"’(?!\w)"),  # noqa: RUF001
    "‚": re.compile("[‘’]"),  # noqa: RUF001
}
_OPENING: Final = re.compile(r'(?<!\w)"(?=\S)|[“„«»‹「『]|(?<!\w)[”‘‚\'](?=\w)')  # noqa: RUF001
CLOSING_MARKS: Final = "\"'”“’‘»«›」』"  # noqa: RUF001
"""Marks that may follow the end of a sentence."""

_OMISSION: Final = re.compile(r"\s*(?:\[\s*(?:\.{3}|…)\s*\]|\(\s*(?:\.{3}|…)\s*\)|\.{3,}|…)\s*")
_EDGES: Final = " \t\n.,;:!?。，；：！？"  # noqa: RUF001
_IGNORED: Final = re.compile(
    r"""[\s*_\\\u00ad\u200b-\u200f\ufeff"'“”„«»‹›「」『』‘’‚`´′″]+"""  # noqa: RUF001
)
"""White space, invisible characters, emphasis, and quotation marks, which change inside other ones."""

_UNSPACED: Final = r"\u0e00-\u1aff\u3040-\uabff\uf900-\ufaff"
_DENSE: Final = re.compile(f"[{_UNSPACED}]")
_LETTER: Final = rf"[^\W_{_UNSPACED}]"
"""A letter or digit of a script that separates words by spaces."""

_HYPHEN: Final = "[-\u2010\u2011]"
_IN_NUMBER: Final = r"\d[.,:]\d"
_WORD_BEFORE: Final = re.compile(rf"(?:{_LETTER}{_HYPHEN}?{_LETTER}|{_IN_NUMBER})\Z")
_WORD_AFTER: Final = re.compile(rf"{_LETTER}(?:{_HYPHEN}|['’])?{_LETTER}|{_IN_NUMBER}")  # noqa: RUF001

_EQUAL: Final = str.maketrans(dict.fromkeys("‐‑‒–—―−", "-") | {"[": "(", "]": ")"})  # noqa: RUF001


def quotations_in(text: str, *, complete: bool = True) -> tuple[list[tuple[int, int]], int]:
    """Find the quotations in a line.

    Args:
        text: The line.
        complete: Whether the line ends with the text; otherwise a quotation may be closed later.

    Returns:
        The spans of the quotations with their marks; and where the part begins that the next piece may change.
    """
    spans: list[tuple[int, int]] = []
    searched: dict[str, int] = {}
    at = 0
    while opening := _OPENING.search(text, at):
        begin = opening.end()
        if not complete and begin == len(text):
            return spans, opening.start()
        # An earlier opening mark found none up to here: 100 kB of unclosed ones take 0.5 s, and took 4.6.
        start = max(begin, searched.get(opening[0], 0))
        closing = _CLOSING[opening[0]].search(text, start, begin + LONGEST_QUOTATION)
        if closing is None:
            searched[opening[0]] = begin + LONGEST_QUOTATION
        undecided = closing.end() == len(text) if closing else len(text) - begin < LONGEST_QUOTATION
        if undecided and not complete:
            return spans, opening.start()
        if closing:
            spans.append((opening.start(), closing.end()))
        at = closing.end() if closing else begin
    return spans, len(text)


def is_checked(quotation: str) -> bool:
    """Whether a text in quotation marks is long enough to be taken for a quotation."""
    words = quotation.split()
    least = LEAST_DENSE_CHARACTERS if len(words) == 1 and _DENSE.search(quotation) else LEAST_CHARACTERS
    return len(words) >= LEAST_WORDS or len(quotation) >= least


@dataclass(frozen=True)
class _Searchable:
    """A text in which quotations are looked up.

    Attributes:
        original: The text.
        text: As it is compared: without white space, emphasis and quotation marks, with one kind of dashes.
        spans: For each character of *text*, where it begins and ends in the original.
    """

    original: str
    text: str
    spans: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, original: str) -> Self:
        """Prepare a text."""
        compared_to = [
            (character, span) for span in _clusters(original) for character in _compared(original[slice(*span)])
        ]
        return cls(original, "".join(character for character, _ in compared_to), [span for _, span in compared_to])

    def find(self, parts: Sequence[str]) -> list[CitedText] | None:
        """Return where the parts occur, one after the other, as whole words; None if they don't."""
        found, at = [], 0
        for part in parts:
            start = at - 1
            for _ in range(MOST_OCCURRENCES):
                start = self.text.find(part, start + 1)
                if start < 0 or self._are_words(start, start + len(part)):
                    break
            else:
                return None
            if start < 0:
                return None
            at = start + len(part)
            found.append(CitedText(start=self.spans[start][0], end=self.spans[at - 1][1]))
        return found

    def _are_words(self, start: int, end: int) -> bool:
        """Whether no word or number continues: "we can" is not in "we can't", nor "at most 1" in "at most 1,500"."""
        begin, stop = self.spans[start][0], self.spans[end - 1][1]
        return not (
            _WORD_BEFORE.search(self.original, max(0, begin - 2), begin + 1)
            or _WORD_AFTER.match(self.original, stop - 1)
        )


class Haystack:
    """The passages in which quotations are looked up."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = {passage.number: passage.chunk for passage in passages}
        self._contents: dict[int, _Searchable] = {}
        self._contexts: dict[int, _Searchable] = {}

    def find(self, quotation: str, cited: Iterable[int]) -> tuple[int, list[CitedText]] | None:
        """Find a quotation in one passage, preferably a cited one.

        An omission (...) divides it into parts, which must occur in this order.

        Returns:
            The passage's number, and the characters; none if only the headings above the passage contain it.
        """
        ways = list(_compared_parts(quotation))
        order = dict.fromkeys([*cited, *self._passages])
        for number in order:
            for parts in ways:
                found = self._content(number).find(parts)
                if found is not None:
                    return number, found
        for number in order:
            if any(self._context(number).find(parts) is not None for parts in ways):
                return number, []
        return None

    def _content(self, number: int) -> _Searchable:
        # Only when needed: the median of an answer on the guides of AWS is 36 ms, and was 68 with every passage.
        if number not in self._contents:
            self._contents[number] = _Searchable.of(self._passages[number].content)
        return self._contents[number]

    def _context(self, number: int) -> _Searchable:
        if number not in self._contexts:
            self._contexts[number] = _Searchable.of(self._passages[number].context or "")
        return self._contexts[number]


def _compared_parts(quotation: str) -> Iterator[list[str]]:
    """Yield the parts of a quotation, first as they are, then without punctuation that the writer may have added."""
    written = _OMISSION.split(quotation)
    for parts in (written, [part.strip(_EDGES) for part in written]):
        if wanted := [part for part in map(compared, parts) if part]:
            yield wanted


def compared(text: str) -> str:
    """Return a text as quotations are compared."""
    return _IGNORED.sub("", unicodedata.normalize("NFKC", text).translate(_EQUAL))


_compared: Final = lru_cache(4096)(compared)
"""For single characters, most of which come again."""


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """Yield the span of each character with the combining characters after it, which are normalised together."""
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or not unicodedata.combining(text[end]):
            yield start, end
            start = end
