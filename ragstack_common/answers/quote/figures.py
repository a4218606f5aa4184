"""The figures that quotations state, and whether documents contradict each other in them."""

# ruff: noqa: RUF001 - words of several scripts

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import Final

from ragstack_common.answers.quote.kinds import Expected, is_number_word
from ragstack_common.answers.quote.questions import names_in
from ragstack_common.text.languages import ENGLISH
from ragstack_common.text.numeric import NUMBER_WORDS, readings
from ragstack_common.text.words import is_stop_word, terms, words


def _alternatives(least: int, end: int) -> str:
    return "|".join(word for word, value in NUMBER_WORDS.items() if least <= value < end)


_CURRENCY: Final = (
    r"(?:[$€£¥₹₽]|\b(?:eur|usd|gbp|chf|inr|euros?|dollars?|pounds?|francs?|franken|yen|pfund|reais|рубл\w{0,4})\b)"
)
_CURRENCY_BEFORE: Final = re.compile(rf"({_CURRENCY})\s?\Z", re.IGNORECASE)
_CURRENCY_AFTER: Final = re.compile(rf"\s?({_CURRENCY})", re.IGNORECASE)
_SIGNS: Final = {"€": "euro", "eur": "euro", "$": "dollar", "usd": "dollar", "£": "pound", "gbp": "pound", "¥": "yen"}
_RUN: Final = re.compile(r"\d(?:[-\u2010-\u2015\u2212.,:/'\u2019 \u00a0\u2007\u2009\u202f]?\d)*+")
"""Digits with marks between them: a number, a range, or several numbers in a row."""

_JOINS: Final = r"(?:and|to|or|und|bis|oder|et|à|ou|y|o|a|e|en|of|tot|и|до|или)"
_WORD_BEFORE: Final = re.compile(rf"(\w+)[^\w.;:!?]+(?:{_JOINS}\s+)?\Z", re.IGNORECASE)
"""The last word of a text, or the one before a word that joins two numbers."""

_WORD_JOINED: Final = re.compile(
    rf"[\s,]{{1,3}}{_JOINS}\s+(?:(?:an?|eine?[nmrs]?|une?|una|uno|uma?|een)\s+)?(\w+)", re.IGNORECASE
)
"""The rest of "three months and a half" and "one year and six months"."""

_REACH: Final = 60
"""Characters before a number that decide whether it is a part of a longer one."""

_MAX_NUMBERS: Final = 20
"""A text with as many numbers is a list."""

_MAX_GROUPS: Final = 8
"""Groups of digits that are read next to a unit."""

_IN_WORDS: Final = re.compile(rf"(?:{_alternatives(20, 91)})[\s-](?:{_alternatives(1, 10)})\b|\w+", re.IGNORECASE)
_NEXT_WORD: Final = re.compile(r"[\s-]?(\w+)")
_SCALE: Final = re.compile(
    r"k|m|bn|mn|mio|mrd|mln|tsd|тыс|млн|млрд|x"
    r"|another|additional|extra|further|more|fewer|less|plus|minus|weitere[nr]?|zusätzliche[nr]?|mehr|weniger|autres?"
    r"|supplémentaires?|moins|más|menos|otr[oa]s|adicionales|mais|outr[oa]s|adicionais|altr[ie]|meno|meer|minder|nog|ещ[её]"
    r"|дополнительн\w+|больше|меньше",
    re.IGNORECASE,
)
"""Words next to a factor or a difference."""

_LOWER: Final = (
    "at least|(?:(?:no|not) (?:less|fewer)|more) than|over|above|exceed(?:s|ing)|minimum(?: of)?|mindestens"
    "|wenigstens|(?:nicht weniger|mehr) als|über|au moins|plus de|minimum de"
    "|al menos|por lo menos|más de|mínimo(?: de)?|pelo menos|mais de|almeno|più di|oltre|minimo(?: di)?"
    "|minstens|ten minste|tenminste|meer dan|minimaal|не менее|более|свыше|больше|минимум|от"
)
_UPPER: Final = (
    "at most|up to|(?:less|fewer|(?:no|not) more) than|under|below|maximum(?: of)?|höchstens|maximal|bis zu"
    "|(?:nicht mehr|weniger) als|unter|au plus|(?:pas plus|moins|maximum) de|jusqu['’]à|como máximo|(?:no más|menos) de"
    "|hasta|máximo(?: de)?|no máximo|até|al massimo|meno di|fino a|massimo(?: di)?|hoogstens|maximaal"
    "|(?:niet meer|minder) dan|tot|не более|менее|меньше|до|максимум"
)
_LIMIT: Final = re.compile(rf"\b(?:(?P<upper>{_UPPER})|(?P<lower>{_LOWER}))\W{{1,3}}\Z", re.IGNORECASE)
"""Words before a limit, in eight languages; at worst, a word of another language hides a contradiction."""

_PERIOD: Final = re.compile(
    r"\W{0,3}(?:(?:per|a|an|each|every|pro|je|im|par|por|al|à|в|за)\s+|/\s?|all['’]\s?)([^\W\d_]+)", re.IGNORECASE
)
_PIECE: Final = re.compile(r"\w(?:[-'’]?\w)*+['’]?|[^\w\s]")


@dataclass(frozen=True)
class Figure:
    """A number with its unit.

    Attributes:
        text: As the document writes it.
        values: What the number may mean, as digits: 1.250 is 1250 or 1.25. Words are known in English only.
        unit: The stem of the unit, of what is counted, or of the currency.
        limit: "lower" or "upper" if the number is only a limit; otherwise empty.
        about: What it is about: the other numbers of its text, such as a year; names; the period, as in "a month";
            words that the question lacks, such as "annual" before "leave".
    """

    text: str
    values: frozenset[str]
    unit: str
    limit: str = ""
    about: tuple[frozenset[str], ...] = ()

    def contradicts(self, other: "Figure") -> bool:
        """Whether another figure excludes this one, and is not about another year, name, period or thing."""
        is_about_other = any(own - others and others - own for own, others in zip(self.about, other.about, strict=True))
        return self.unit == other.unit and self._excludes(other) and not is_about_other

    def _excludes(self, other: "Figure") -> bool:
        """Whether the values differ, or one is beyond the limit that the other states."""
        if self.limit == other.limit:
            return self.values.isdisjoint(other.values)
        # A lower limit may be below a value, and that below an upper limit.
        low, high = sorted((self, other), key=lambda figure: ("lower", "", "upper").index(figure.limit))
        return all(float(one) > float(two) for one, two in product(low.values, high.values))


@dataclass(frozen=True)
class _Number:
    span: tuple[int, int]
    values: frozenset[str]
    unit: str
    limit: str


def figure_in(expected: Expected | None, text: str) -> Figure | None:
    """Return the figure that answers a question; None if a text has none, several, or one that can't be parsed."""
    if expected is None or expected.kind not in ("duration", "number", "money"):
        return None
    numbers = (_amounts if expected.kind == "money" else _counts)(expected, text)
    found = [*islice(numbers, _MAX_NUMBERS)]
    is_one = len({(number.values, number.unit, number.limit) for number in found}) == 1 and len(found) < _MAX_NUMBERS
    if not is_one or not found[0].values:
        return None
    number = found[-1]
    start, end = number.span
    outside, period = f"{text[:start]} {text[end:]}", _PERIOD.match(text, end)
    about = (
        frozenset(word for word in words(outside) if word[0].isdecimal()),
        names_in(outside, expected.language),
        frozenset(terms([period[1].lower()], expected.language) if period else ()),
        _modifiers(expected, text),
    )
    return Figure(text[start:end].strip(), number.values, number.unit, number.limit, about)


def contradicting(figures: Sequence[tuple[Figure | None, str]]) -> list[int]:
    """Return the positions of figures that contradict each other, one for each value of the first unit.

    Each figure is given with what identifies its document.
    """
    known = [(place, figure, document) for place, (figure, document) in enumerate(figures) if figure is not None]
    found: dict[int, Figure] = {}
    for (place, one, document), (other_place, other, other_document) in combinations(known, 2):
        is_first_unit = not found or one.unit == next(iter(found.values())).unit
        if document != other_document and is_first_unit and one.contradicts(other):
            found |= {place: one, other_place: other}
    chosen: list[int] = []
    for place in sorted(found):
        if all(found[place].values.isdisjoint(found[other].values) for other in chosen):
            chosen.append(place)
    return chosen


def _counts(expected: Expected, text: str) -> Iterator[_Number]:
    """Yield what the numbers of a text count; without values if a number can't be parsed."""
    runs = {place: run for run in _RUN.finditer(text) for place in range(*run.span())}
    read = 0
    for start, end in expected.counts_in(text):
        run = runs.get(start)
        number = run or _IN_WORDS.match(text, start)
        written = words(number[0]) if number else []
        if not number or start < read or not (run or is_number_word(written[0], expected.language)):
            continue  # the second part of a number, or words such as "a week"
        read = number.end()
        rest = words(text[read:end])
        if run:
            values = _values(run[0], -1)
        else:
            known = [NUMBER_WORDS[word] for word in written if word in NUMBER_WORDS]
            is_known = expected.language == ENGLISH and len(known) == len(written)
            values = frozenset([str(sum(known))] if is_known else [])
        unit = "".join(terms(rest[-1:], expected.language)[:1])
        yield _number(expected, text, (number.start(), end), values, unit, rest)


def _amounts(expected: Expected, text: str) -> Iterator[_Number]:
    """Yield the amounts of money in a text; without values if a number can't be parsed."""
    read = 0
    for run in _RUN.finditer(text):
        start, end = run.span()
        before = _CURRENCY_BEFORE.search(text, max(read, start - 12), start)
        after = None if before else _CURRENCY_AFTER.match(text, end)
        if not (currency := before or after):
            continue
        following = _NEXT_WORD.match(text, end) if before else None
        start, read = min(start, currency.start()), max(end, currency.end())
        values, unit = _values(run[0], 0 if before else -1), currency[1].lower().rstrip("s")
        rest = [following[1]] if following else []
        yield _number(expected, text, (start, read), values, _SIGNS.get(unit, unit), rest)


def _number(
    expected: Expected, text: str, span: tuple[int, int], values: frozenset[str], unit: str, rest: Sequence[str]
) -> _Number:
    before, joined = text[max(0, span[0] - _REACH) : span[0]], _WORD_JOINED.match(text, span[1])
    near = [*rest, *(joined.groups() if joined else ())]
    if before.endswith((".", ",")) or _is_part(before, near, expected.language):
        values = frozenset()
    limit = _LIMIT.search(before)
    return _Number(span, values, unit, (limit.lastgroup or "") if limit else "")


def _modifiers(expected: Expected, text: str) -> frozenset[str]:
    """Return the single words before words of the question, such as "annual" before "leave"."""
    language = expected.language
    if language not in (ENGLISH, "de", "nl"):  # in others, the word before a noun is often a verb
        return frozenset()
    found, before = set[str](), list[str]()
    asked = frozenset(terms(sorted(expected.asked), language))
    for piece in _PIECE.findall(text):
        (stem, *_) = [*terms(piece, language), ""]
        is_number = is_number_word(stem, language) or is_number_word(piece.partition("-")[0], language)
        if not stem or is_number or is_stop_word(piece.lower(), language):
            before = []
        elif stem in asked:
            found.update(before if len(before) == 1 else ())
            before = []
        else:
            before.append(stem)
    return frozenset(found)


def _values(run: str, adjacent: int) -> frozenset[str]:
    """Return what digits may mean together; of several numbers, what those next to the unit may mean."""
    if len(run) > 40:  # noqa: PLR2004 - a list of numbers
        return frozenset()
    groups = run.split(" ")
    groups = groups[:_MAX_GROUPS] if adjacent == 0 else groups[-_MAX_GROUPS:]
    near = (groups[: place + 1] if adjacent == 0 else groups[place:] for place in range(len(groups)))
    return readings(words(run)[adjacent]).union(*(readings(" ".join(each)) for each in near))


def _is_part(before: str, near: Sequence[str], language: str) -> bool:
    """Whether a number is one of several, or a part of a longer one, such as in "five hundred and 20"."""
    previous = _WORD_BEFORE.search(before)
    return any(
        is_number_word(word, language) or _SCALE.fullmatch(word) or any(map(str.isnumeric, word))
        for word in [*near, *([previous[1].lower()] if previous else ())]
    )
