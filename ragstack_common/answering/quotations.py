"""Find quotations in a text, and find quoted words in the passages that a model received."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ragstack_common.answering.answer import CitedText
from ragstack_common.answering.models import Passage

LONGEST_QUOTATION: Final = 1000
"""Characters; an opening mark that is not closed by then is no quotation."""

LEAST_WORDS: Final = 4
LEAST_CHARACTERS: Final = 20
"""A shorter text in quotation marks may be a term, a title or irony: it supports nothing, and is never missing."""

_STRAIGHT: Final = re.compile(r'(?<=\S)"(?!\w)')
_CLOSING: Final = {
    '"': _STRAIGHT,
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
_OPENING: Final = re.compile(r'(?<!\w)"(?=\S)|[“„«»‹「『]|(?<!\w)[”‘‚](?=\w)')  # noqa: RUF001
CLOSING_MARKS: Final = '"”“’‘»«›」』'  # noqa: RUF001
"""Marks that may follow the end of a sentence."""

_OMISSION: Final = re.compile(r"\s*(?:\[\s*(?:\.{3}|…)\s*\]|\(\s*(?:\.{3}|…)\s*\)|\.{3,}|…)\s*")
_EDGES: Final = " \t\n.,;:!?。，；：！？"  # noqa: RUF001
_IGNORED: Final = re.compile(
    r"""[\s*_\\\u00ad\u200b-\u200f\ufeff"'“”„«»‹›「」『』‘’‚`´′″]+"""  # noqa: RUF001
)
"""White space, invisible characters, emphasis, and quotation marks, which change inside other ones."""

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
    at = 0
    while opening := _OPENING.search(text, at):
        begin = opening.end()
        if not complete and begin == len(text):
            return spans, opening.start()
        closing = _CLOSING[opening[0]].search(text, begin, begin + LONGEST_QUOTATION)
        undecided = closing.end() == len(text) if closing else len(text) - begin < LONGEST_QUOTATION
        if undecided and not complete:
            return spans, opening.start()
        if closing:
            spans.append((opening.start(), closing.end()))
        at = closing.end() if closing else begin
    return spans, len(text)


def is_checked(quotation: str) -> bool:
    """Whether a text in quotation marks is long enough to be taken for a quotation."""
    return len(quotation.split()) >= LEAST_WORDS or len(quotation) >= LEAST_CHARACTERS


@dataclass(frozen=True)
class _Searchable:
    """A text as it is compared: without white space, emphasis and quotation marks, with one kind of dashes.

    Attributes:
        offsets: For each character, its offset in the original text.
    """

    text: str
    offsets: Sequence[int]


class Haystack:
    """The passages in which quotations are looked up."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = {passage.number: passage.chunk for passage in passages}

    def find(self, quotation: str, cited: Iterable[int]) -> tuple[int, list[CitedText]] | None:
        """Find a quotation in one passage, preferably a cited one.

        An omission (...) divides it into parts, which must occur in this order.

        Returns:
            The passage's number, and the characters; none if only the headings above the passage contain it.
        """
        order = dict.fromkeys([*cited, *self._passages])
        for parts in _compared_parts(quotation):
            for number in order:
                found = _occurrence(parts, self._contents[number])
                if found is not None:
                    return number, found
            for number in order:
                context = self._passages[number].context
                if context and _occurrence(parts, _searchable(context)) is not None:
                    return number, []
        return None

    @cached_property
    def _contents(self) -> Mapping[int, _Searchable]:
        return {number: _searchable(chunk.content) for number, chunk in self._passages.items()}


def _compared_parts(quotation: str) -> Iterator[list[str]]:
    """Yield the parts of a quotation, first as they are, then without punctuation that the writer may have added."""
    written = _OMISSION.split(quotation)
    for parts in (written, [part.strip(_EDGES) for part in written]):
        if wanted := [part for part in map(compared, parts) if part]:
            yield wanted


def compared(text: str) -> str:
    """Return a text as quotations are compared."""
    return _IGNORED.sub("", unicodedata.normalize("NFKC", text).translate(_EQUAL))


def _occurrence(parts: Sequence[str], searched: _Searchable) -> list[CitedText] | None:
    spans, at = [], 0
    for part in parts:
        start = searched.text.find(part, at)
        if start < 0:
            return None
        at = start + len(part)
        spans.append(CitedText(start=searched.offsets[start], end=searched.offsets[at - 1] + 1))
    return spans


def _searchable(text: str) -> _Searchable:
    characters: list[str] = []
    offsets: list[int] = []
    for start, cluster in _clusters(text):
        for character in compared(cluster):
            characters.append(character)
            offsets.append(start + len(cluster) - 1)
    return _Searchable("".join(characters), offsets)


def _clusters(text: str) -> Iterator[tuple[int, str]]:
    """Yield each character with the combining characters after it, which are normalised together."""
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or not unicodedata.combining(text[end]):
            yield start, text[start:end]
            start = end
