"""Find quoted words in the passages that a model received.

A quotation is verified if its words, numbers, punctuation and symbols are a run of those of one passage: see
docs/adr/0017.
"""

# ruff: noqa: RUF001, SIM905 - words and punctuation of many languages

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from ragstack_common.answers.answer import CitedText
from ragstack_common.answers.models import Passage
from ragstack_common.answers.tokens import Tokens
from ragstack_common.answers.visible import literal, readings
from ragstack_common.text.characters import SYMBOL, is_dense

LEAST_WORDS: Final = 4
LEAST_CHARACTERS: Final = 20
LEAST_DENSE_CHARACTERS: Final = 10
"""LEAST_DENSE_CHARACTERS is for scripts without spaces, such as Japanese. A shorter text in quotation marks may be a
term, a title or irony: it supports nothing, and is never missing. One with a number is always checked."""

MAX_PARTS: Final = 10
"""Parts of a quotation with omissions; one with more is not found."""

MAX_CONTINUATIONS: Final = 5
"""Places that are tried for a part after an omission."""

_OMISSION: Final = re.compile(r"\[\s{0,3}(?:\.{3}|…)\s{0,3}\]|\(\s{0,3}(?:\.{3}|…)\s{0,3}\)|\.{3,}|…")
_EDGES: Final = frozenset(".,;:…。，；：、،؛।|-")
"""Punctuation at the beginning and end that a writer may add or leave out. Question marks are not in it."""

_CHANGED_CASE: Final = re.compile(r"\[([^\W\d_])\](?=[^\W\d_])")
_SUBSTITUTE: Final = re.compile(r"\[([^\W\d_]+(?:[ -][^\W\d_]+){0,4})\]")
_PRONOUNS: Final = frozenset(
    (
        "it its he him his she her they them their theirs this that these those we us our you your i me my"
        " er sie es ihn ihm ihr ihre ihren ihrer dies diese dieser dieses das wir uns unser ich"
        " il elle ils elles ce cela ceci lui leur leurs nous vous on él ella ello ellos ellas esto esta este eso"
        " ele ela eles elas isto isso lei loro questo questa он она оно они его её их им это эта этот эти"
    ).split()
)
"""Words that a substitution in brackets may stand for."""


def is_checked(quotation: str) -> bool:
    """Whether a text in quotation marks is taken for a quotation: it is long enough, or has a number."""
    words = quotation.split()
    least = LEAST_DENSE_CHARACTERS if len(words) == 1 and any(map(is_dense, quotation)) else LEAST_CHARACTERS
    return len(words) >= LEAST_WORDS or len(quotation) >= least or any(map(str.isdigit, quotation))


class _Part(NamedTuple):
    """A part of a quotation without omissions.

    Attributes:
        joined: Its tokens, as :class:`Tokens` joins them.
        texts: The different tokens.
    """

    joined: str
    texts: frozenset[str]


class _Searchable:
    """A text in which quotations are looked up, in each of its readings."""

    def __init__(self, original: str) -> None:
        self.original = original
        self._readings = [Tokens.of(reading) for reading in readings(original)]

    def find(self, quotation: str) -> list[CitedText] | None:
        """Return where a quotation occurs; None if it doesn't."""
        ways = _ways(quotation)
        for tokens in self._readings:
            for parts in ways:
                if all(part.texts <= tokens.vocabulary for part in parts) and (
                    runs := _runs(tokens, parts, self.original)
                ):
                    return [CitedText(start=tokens.starts[begin], end=tokens.ends[end - 1]) for begin, end in runs]
        return None

    def pronouns(self) -> list[str]:
        """Return the pronouns that occur."""
        words = {word for tokens in self._readings for word in tokens.vocabulary}
        return sorted(word for word in words if word.casefold() in _PRONOUNS)


class PassageIndex:
    """The passages in which quotations are looked up."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = {passage.number: passage.chunk for passage in passages}
        self._contents: dict[int, _Searchable] = {}
        self._contexts: dict[int, _Searchable] = {}

    def find(self, quotation: str, cited: Iterable[int]) -> tuple[int, list[CitedText]] | None:
        """Find a quotation in one passage, preferably a cited one.

        Returns:
            The passage's number, and the characters; none if only the headings above the passage contain it.
        """
        order = dict.fromkeys([*cited, *self._passages])
        written = list(dict.fromkeys([quotation, *_cases(quotation)]))
        for number in order:
            for variant in written:
                if (found := self._content(number).find(variant)) is not None:
                    return number, found
        for number in order:
            if any(self._context(number).find(variant) is not None for variant in written):
                return number, []
        for number in order if _substitute(quotation) else ():
            if found := self._substituted(number, quotation):
                return number, found
        return None

    def _substituted(self, number: int, quotation: str) -> list[CitedText] | None:
        """Find a quotation with words in brackets in the place of a pronoun; they must occur before it."""
        substitute = _substitute(quotation)
        assert substitute is not None
        content, context = self._content(number), self._context(number).original
        for pronoun in content.pronouns():
            replaced = quotation[: substitute.start()] + pronoun + quotation[substitute.end() :]
            found = content.find(replaced)
            if found and _mentions(f"{context}\n{content.original[: found[0].end]}", substitute[1]):
                return found
        return None

    def _content(self, number: int) -> _Searchable:
        # Only when needed: most quotations are in the passage that is cited.
        if number not in self._contents:
            self._contents[number] = _Searchable(self._passages[number].content)
        return self._contents[number]

    def _context(self, number: int) -> _Searchable:
        if number not in self._contexts:
            self._contexts[number] = _Searchable(self._passages[number].context or "")
        return self._contexts[number]


def _runs(tokens: Tokens, parts: Sequence[_Part], original: str) -> list[tuple[int, int]] | None:
    """Return where the parts of a quotation occur one after the other, each as its text means it."""
    first, *rest = parts
    for run in tokens.runs(first.joined):
        if not tokens.is_quotable(*run):
            continue
        found = [run]
        for part in rest:
            later = islice(tokens.runs(part.joined, found[-1][1]), MAX_CONTINUATIONS)
            following = (one for one in later if _may_follow(tokens, found[-1], one, original))
            if (continuation := next(following, None)) is None:
                break
            found.append(continuation)
        else:
            return found
    return None


def _may_follow(tokens: Tokens, one: tuple[int, int], other: tuple[int, int], original: str) -> bool:
    """Whether what is between two runs may be left out."""
    if not tokens.is_quotable(*other):
        return False
    if tokens.are_clauses(*one) and tokens.are_clauses(*other) and not tokens.negates(one[1], other[0]):
        return True
    return tokens.are_rows(original, one, other)


@lru_cache(64)
def _ways(quotation: str) -> list[list[_Part]]:
    """Return the ways in which a quotation can be read: as written or rendered, with or without omissions.

    Punctuation at its ends may be the writer's own.
    """
    found: dict[tuple[str, ...], list[_Part]] = {}
    for reading in readings(quotation):
        for texts in ([reading.text], _OMISSION.split(reading.text)):
            tokens = [one for one in (Tokens.of(literal(text)) for text in texts) if one.kinds]
            for strip in (False, True):
                parts = [part for one in tokens if (part := _part(one, strip=strip)).joined]
                if 0 < len(parts) <= MAX_PARTS:
                    found.setdefault(tuple(part.joined for part in parts), parts)
    return list(found.values())


def _part(tokens: Tokens, *, strip: bool) -> _Part:
    begin, end = 0, len(tokens.texts)
    while strip and end > begin and tokens.texts[end - 1] in _EDGES:
        end -= 1
    while strip and begin < end and tokens.texts[begin] in _EDGES and tokens.kinds[begin] != SYMBOL:
        begin += 1
    return _Part(tokens.joined(begin, end), frozenset(tokens.texts[begin:end]))


def _cases(quotation: str) -> Iterator[str]:
    """Yield a quotation in which letters in brackets have the other case: "[t]he fee" quotes "The fee"."""
    if _CHANGED_CASE.search(quotation):
        yield _CHANGED_CASE.sub(lambda found: found[1].swapcase(), quotation)


def _substitute(quotation: str) -> re.Match[str] | None:
    """Return the words in brackets of a quotation, if it has one such place."""
    found = list(islice(_SUBSTITUTE.finditer(quotation), 2))
    return found[0] if len(found) == 1 else None


def _mentions(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None
