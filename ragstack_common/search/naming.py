"""Which values of an attribute a question names, by rules and without a model."""

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from ragstack_common.filters.tree import Scalar
from ragstack_common.text.languages import ENGLISH, STOP_WORDS
from ragstack_common.text.spelling import without_accents

MAX_PHRASE_WORDS: Final = 8
"""Words of a question that may name one value together."""

MIN_COVERAGE: Final = 0.6
"""Share of a value's words, weighted by their rarity, that names it without the whole phrase."""

MIN_LETTERS: Final = 3
"""A shorter word of a longer value does not name it."""

LOOSE_WORDS: Final = 2
"""Other words of a question between words that name a value together."""

MAX_PREFIX: Final = 8
"""Maximum letters of each part of a blended abbreviation; the second part may also be a whole word."""

MAX_SHARED: Final = 200
"""A word, or the first letters of two words, of more values than this point to none of them; it bounds the time."""

MAX_VALUE_WORDS: Final = 20
"""A longer value is a text: only the whole phrase names it."""

MAX_PLACES: Final = 5
"""Places of one word in a question that count."""

ADDED_PREFIXES: Final = ("x-amz-", "ragstack_", "_")
"""Prefixes of the attributes that services and this product add."""

_WORD: Final = re.compile(r"\d+(?:\.\d+)+|[^\W_]+(?:&[^\W_]+)*|&")
_YEAR: Final = re.compile(
    r"\b(?:FY|CY)\s?'?(?P<marked>\d{4}|\d{2})(?:\s?[QH][1-4])?\b"
    r"|\b[QH][1-4]\s?(?:of\s|FY|CY)*'?(?P<quarter>\d{4}|\d{2})\b"
    r"|(?<![\d(-])\b(?P<plain>(?:19|20)\d{2})(?:\s?[QH][1-4])?\b(?!\))",
    re.IGNORECASE,
)
_SINCE: Final = re.compile(r"\b(?:since|before|after|until|founded in|established in)\s$", re.IGNORECASE)


@dataclass(frozen=True)
class QuestionTerms:
    """A question, split once for every attribute."""

    text: str

    @cached_property
    def words(self) -> list[str]:
        """The words as written; an ampersand is a word."""
        return _WORD.findall(self.text)

    @cached_property
    def folded(self) -> list[str]:
        """The words without case and accents."""
        return [fold(word) for word in self.words]

    @cached_property
    def phrases(self) -> dict[str, tuple[int, int]]:
        """Every phrase of up to :data:`MAX_PHRASE_WORDS` words, joined, with its first and its end position."""
        count = len(self.folded)
        return {
            "".join(self.folded[start:end]): (start, end)
            for start in range(count)
            for end in range(start + 1, min(start + MAX_PHRASE_WORDS, count) + 1)
        }

    @cached_property
    def acronyms(self) -> dict[str, int]:
        """The words with several capitals, folded, with their first positions: initials, or a blend of prefixes."""
        found: dict[str, int] = {}
        for position, word in enumerate(self.words):
            if sum(letter.isupper() for letter in word) > 1:
                found.setdefault(self.folded[position], position)
        return found

    @cached_property
    def blends(self) -> set[tuple[str, str]]:
        """The first two letters of the two prefixes that may make up an acronym."""
        return {
            (word[:2], word[cut : cut + 2])
            for word in self.acronyms
            for cut in range(2, min(len(word) - 2, MAX_PREFIX) + 1)
        }

    @cached_property
    def proper(self) -> dict[str, int]:
        """The words with a capital, folded, with their first positions."""
        found: dict[str, int] = {}
        for position, word in enumerate(self.words):
            if len(word) >= MIN_LETTERS and any(letter.isupper() for letter in word):
                found.setdefault(self.folded[position], position)
        return found

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The first positions of each word."""
        found: dict[str, list[int]] = defaultdict(list)
        for place, word in enumerate(self.folded):
            if len(found[word]) < MAX_PLACES:
                found[word].append(place)
        return found

    @cached_property
    def years(self) -> frozenset[int]:
        """The years named, such as FY18, FY2018, Q2 2023 or 2018; not "(1978)" or "since 1979"."""
        return frozenset(year for year, _ in self._years)

    @cached_property
    def marked_years(self) -> frozenset[int]:
        """The years named as the year of a period, such as FY18 or Q2 2023."""
        return frozenset(year for year, is_marked in self._years if is_marked)

    @cached_property
    def _years(self) -> set[tuple[int, bool]]:
        found = set()
        for match in _YEAR.finditer(self.text):
            year = match["marked"] or match["quarter"] or match["plain"]
            since = match.start() - len("established in ")  # the longest of them
            if match["plain"] and _SINCE.search(self.text, since, match.start()):
                continue
            found.add((int(f"20{year}"[-4:]), not match["plain"]))
        return found


@dataclass(frozen=True)
class Name:
    """The words of a question that name a value.

    Attributes:
        words: As written, or folded where they are not all of the value's; for years the year.
        places: Their positions among the question's words; empty for years.
        is_whole: Whether they are the whole value, or its initials.
    """

    words: str
    places: frozenset[int] = frozenset()
    is_whole: bool = True


def fold(text: str) -> str:
    """Return a word without case, accents and compatibility forms, and with "and" for an ampersand."""
    text = text.replace("&", "and")
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return without_accents("".join(letter for letter in decomposed if not unicodedata.combining(letter)))


def as_text(value: Scalar) -> str:
    """Return a value as text; whole numbers without a decimal point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def attributes(metadata: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the attributes that documents were given, each with its texts and numbers as text, members of lists too."""
    for name, value in metadata.items():
        if not name.startswith(ADDED_PREFIXES):
            members = value if isinstance(value, list | tuple | set) else (value,)
            plain = [each for each in members if isinstance(each, str | int | float) and not isinstance(each, bool)]
            if plain:
                yield name, tuple(map(as_text, plain))


class Values:
    """The values of one attribute, indexed by the ways in which a question can name them.

    A lookup takes time in proportion to the shorter of the question and the values, and to the values that share words
    with it.
    """

    def __init__(self, values: Iterable[Scalar]) -> None:
        self._values = list(dict.fromkeys(values))
        self.are_years = bool(self._values) and all(_is_year(value) for value in self._values)
        self._joined: dict[str, list[int]] = defaultdict(list)
        self._initials: dict[str, list[int]] = defaultdict(list)
        self._prefixes: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._holders: dict[str, list[int]] = defaultdict(list)
        self._words: list[list[str]] = []
        for number, value in enumerate(self._values):
            words = [fold(word) for word in _WORD.findall(as_text(value))]
            self._words.append(words)
            self._joined["".join(words)].append(number)
            for word in {*words} - STOP_WORDS[ENGLISH]:
                self._holders[word].append(number)
            main = [word for word in words if word != "and"]
            if len(main) > 1:
                for joint in ("", "n", "and"):
                    initials = "".join(joint if word == "and" else word[0] for word in words)
                    self._initials[initials].append(number)
                self._prefixes[main[0][:2], main[1][:2]].append(number)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Scalar]:
        return iter(self._values)

    def named_in(self, question: QuestionTerms) -> dict[Scalar, Name]:
        """Return the values that a question names. The shorter of two overlapping names does not count."""
        if self.are_years:
            return {v: Name(as_text(v)) for v in self._values if int(float(v)) in question.years}
        found: dict[int, tuple[int, int]] = {}
        for phrase in (self._joined.keys() & question.phrases.keys()) - STOP_WORDS[ENGLISH]:
            found.update(dict.fromkeys(self._joined[phrase], question.phrases[phrase]))
        whole = {*found}
        for number, position, is_whole in sorted(self._meant(question), key=lambda meant: (meant[1], not meant[2])):
            if number not in found:
                found[number] = position, position + 1
                whole |= {number} if is_whole else set()
        longest = _longest({*found.values()})
        named = {
            number: Name(" ".join(question.words[start:end]), frozenset(range(start, end)), number in whole)
            for number, (start, end) in found.items()
            if (start, end) in longest
        }
        if not named:
            named = dict(self._covered(question))
        return {self._values[number]: name for number, name in sorted(named.items())}

    def _meant(self, question: QuestionTerms) -> Iterator[tuple[int, int, bool]]:
        """Yield the values that one word names, with its position, and whether it names the value as a whole.

        Initials and blends of prefixes do; a word that no other value has does not.
        """
        acronyms = question.acronyms
        for word in self._initials.keys() & acronyms.keys():
            yield from ((number, acronyms[word], True) for number in self._initials[word])
        for prefixes in self._prefixes.keys() & question.blends:
            numbers = self._prefixes[prefixes]
            for number in numbers if len(numbers) <= MAX_SHARED else ():
                yield from ((number, acronyms[word], True) for word in self._blends(number) if word in acronyms)
        for word in self._holders.keys() & question.proper.keys():
            if len(self._holders[word]) == 1:
                yield self._holders[word][0], question.proper[word], False

    def _blends(self, number: int) -> Iterator[str]:
        """Yield the words that prefixes of a value's first two words make up."""
        first, second, *_ = (word for word in self._words[number] if word != "and")
        ends = {second, *(second[:length] for length in range(2, MAX_PREFIX + 1))}
        for length in range(2, min(len(first), MAX_PREFIX) + 1):
            yield from (first[:length] + end for end in ends)

    def _covered(self, question: QuestionTerms) -> Iterator[tuple[int, Name]]:
        """Yield the values of several words whose rare words the question has close together."""
        words = {
            word for word in self._holders.keys() & question.places.keys() if len(self._holders[word]) <= MAX_SHARED
        }
        for number in {number for word in words for number in self._holders[word]}:
            if len(self._words[number]) <= MAX_VALUE_WORDS and (name := self._covering(number, words, question)):
                yield number, name

    def _covering(self, number: int, words: AbstractSet[str], question: QuestionTerms) -> Name | None:
        """Return the first words of the question close together that cover enough of a value."""
        rarity = {word: self._rarity(word) for word in self._words[number] if word in self._holders}
        needed = MIN_COVERAGE * math.fsum(rarity.values())
        if math.fsum(rarity[word] for word in rarity if word in words) < needed:
            return None
        own = sorted(place for word in rarity.keys() & words for place in question.places[word])
        reach = len(self._words[number]) + LOOSE_WORDS
        for start, first in enumerate(own):
            near = (place for place in own[start : start + reach] if place < first + reach)
            matched = {question.folded[place]: place for place in near}
            if len(matched) > 1 and math.fsum(rarity[word] for word in matched) >= needed:
                return Name(" ".join(matched), frozenset(matched.values()), is_whole=False)
        return None

    def _rarity(self, word: str) -> float:
        return math.log(1 + len(self._values) / len(self._holders[word]))


def _longest(spans: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the spans that no other span contains."""
    longest, reached = set(), 0
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end > reached:
            longest.add((start, end))
            reached = end
    return longest


def _is_year(value: Scalar) -> bool:
    return not isinstance(value, bool) and re.fullmatch(r"(19|20)\d\d(\.0)?", str(value)) is not None
