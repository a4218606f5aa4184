"""Find quoted words in the passages that a model received.

A quotation is verified if its words, numbers, punctuation and symbols are a run of those of one passage: see
docs/adr/0017.
"""

# ruff: noqa: RUF001, SIM905 - words and punctuation of many languages

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from ragstack_common.answers.answer import CitedText
from ragstack_common.answers.models.protocol import NumberedPassage
from ragstack_common.answers.verify.tokens import Tokens
from ragstack_common.answers.verify.visible import literal, readings
from ragstack_common.core.uris import file_name
from ragstack_common.text.characters import SYMBOL, is_dense

MIN_WORDS: Final = 4
MIN_CHARACTERS: Final = 20
MIN_DENSE_CHARACTERS: Final = 10
"""The last is for scripts without spaces, such as Japanese. A shorter text in quotation marks may be a term or a title:
it supports nothing, and is missing only if no source mentions it. A text with a number is always checked."""

MAX_PARTS: Final = 10
"""Parts between omissions in a quotation that can be found."""

MAX_CONTINUATIONS: Final = 5
"""Places that are tried for a part after an omission."""

_OMISSION: Final = re.compile(r"\[\s{0,3}(?:\.{3}|…)\s{0,3}\]|\(\s{0,3}(?:\.{3}|…)\s{0,3}\)|\.{3,}|…")
_EDGES: Final = frozenset(".,;:…。，；：、،؛।|-")
"""Punctuation at the beginning and end that a writer may add or leave out. Question marks are not in it."""

_SIGNED: Final = re.compile(r"\s*[-+>#]\s*\d")
"""A sign before a number, as opposed to the mark of a list, a block quotation or a heading."""

_LAST_SENTENCE: Final = re.compile(r"[^.!?。！？।؟\n]+[.!?。！？।؟\n]+\s*[^.!?。！？।؟\n]*\Z")
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
    least = MIN_DENSE_CHARACTERS if len(words) == 1 and any(map(is_dense, quotation)) else MIN_CHARACTERS
    return len(words) >= MIN_WORDS or len(quotation) >= least or any(map(str.isdigit, quotation))


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
                    runs := _runs(tokens, parts, self.original, across="\n" in quotation)
                ):
                    return [CitedText(start=tokens.starts[begin], end=tokens.ends[end - 1]) for begin, end in runs]
        return None

    def mentions(self, phrase: str) -> bool:
        """Whether a few words occur, and no negation is next to them."""
        return any(
            tokens.is_whole(*run)
            for tokens in self._readings
            for parts in _ways(phrase)
            if len(parts) == 1
            for run in tokens.runs(parts[0].joined)
        )

    def pronouns(self) -> list[str]:
        """Return the pronouns that occur."""
        words = {word for tokens in self._readings for word in tokens.vocabulary}
        return sorted(word for word in words if word.casefold() in _PRONOUNS)


class PassageIndex:
    """The passages in which quotations are looked up."""

    def __init__(self, passages: Sequence[NumberedPassage]) -> None:
        self._passages = {passage.number: passage.chunk for passage in passages}
        self._contents: dict[int, _Searchable] = {}
        self._contexts: dict[int, _Searchable] = {}

    def find(self, quotation: str, cited: Iterable[int]) -> tuple[int, list[CitedText]] | None:
        """Find a quotation in one passage, preferably a cited one.

        Returns:
            The passage's number, and the characters; none if only the headings above the passage contain it.
        """
        order = dict.fromkeys([*cited, *self._passages])
        # "[t]he fee" quotes "The fee".
        written = list(dict.fromkeys([quotation, _CHANGED_CASE.sub(lambda found: found[1].swapcase(), quotation)]))
        for number in order:
            for variant in written:
                if (found := self._content(number).find(variant)) is not None:
                    return number, found
        for number in order:
            if any(self._context(number).find(variant) is not None for variant in written):
                return number, []
        if substitute := _substitute(quotation):
            for number in order:
                if found := self._substituted(number, quotation, substitute):
                    return number, found
        return None

    def is_name(self, phrase: str) -> bool:
        """Whether a text is the name of a document."""
        names = {file_name(chunk.source).casefold() for chunk in self._passages.values()}
        return phrase.casefold() in names | {name.rpartition(".")[0] for name in names}

    def mentions(self, phrase: str) -> bool:
        """Whether a passage or the headings above it have a few words, in any case."""
        written = dict.fromkeys([phrase, phrase[:1].swapcase() + phrase[1:], phrase.lower(), phrase.title()])
        return any(
            text(number).mentions(variant)
            for text in (self._content, self._context)
            for number in self._passages
            for variant in written
        )

    def _substituted(self, number: int, quotation: str, substitute: re.Match[str]) -> list[CitedText] | None:
        """Find a quotation with words in brackets for a pronoun; its sentence or the one before must have them."""
        content, context = self._content(number), self._context(number).original
        for pronoun in content.pronouns():
            replaced = quotation[: substitute.start()] + pronoun + quotation[substitute.end() :]
            found = content.find(replaced)
            if not found:
                continue
            before = _LAST_SENTENCE.search(content.original, 0, found[0].start)
            begin = before.start() if before else 0
            near = f"{context}\n{content.original[begin : found[0].end]}"
            if re.search(rf"(?<!\w){re.escape(substitute[1])}(?!\w)", near, re.IGNORECASE):
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


def _runs(tokens: Tokens, parts: Sequence[_Part], original: str, *, across: bool) -> list[tuple[int, int]] | None:
    """Return where the parts of a quotation occur one after the other, each as its text means it."""
    first, *rest = parts
    for run in tokens.runs(first.joined, across=across):
        if not tokens.is_quotable(*run):
            continue
        found = [run]
        for part in rest:
            later = islice(tokens.runs(part.joined, found[-1][1], across=across), MAX_CONTINUATIONS)
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
    if tokens.are_clauses(*one) and tokens.are_clauses(*other) and tokens.are_sentences(one, other):
        return not tokens.negates(one[1], other[0])
    return tokens.are_rows(original, one, other)


@lru_cache(64)
def _ways(quotation: str) -> list[list[_Part]]:
    """Return the ways in which a quotation can be read: as written or rendered, with or without omissions.

    Punctuation at its ends may be the writer's own.
    """
    found: dict[tuple[str, ...], list[_Part]] = {}
    for reading in [literal(quotation)] if _SIGNED.match(quotation) else readings(quotation):
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
    while strip and begin < end and _is_edge(tokens, begin):
        begin += 1
    return _Part(tokens.joined(begin, end), frozenset(tokens.texts[begin:end]))


def _is_edge(tokens: Tokens, place: int) -> bool:
    """Whether a quotation may begin after a token: not between a sign or decimal point and its number."""
    if tokens.texts[place] not in _EDGES or tokens.kinds[place] == SYMBOL:
        return False
    is_before_number = tokens.kinds[place + 1 : place + 2] in ("D", "c")
    return not is_before_number or (tokens.texts[place] != "-" and bool(tokens.spaces[place + 1]))


def _substitute(quotation: str) -> re.Match[str] | None:
    """Return the words in brackets of a quotation, if it has one such place."""
    found = list(islice(_SUBSTITUTE.finditer(quotation), 2))
    return found[0] if len(found) == 1 else None
