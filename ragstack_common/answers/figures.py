"""The figures that quotations state, and whether documents contradict each other in them."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ragstack_common.answers.kinds import Expected, is_number_word
from ragstack_common.text.languages import ENGLISH
from ragstack_common.text.numeric import NUMBER_WORDS, readings
from ragstack_common.text.words import terms, words


def _alternatives(least: int, end: int) -> str:
    return "|".join(word for word, value in NUMBER_WORDS.items() if least <= value < end)


_CURRENCY: Final = (
    r"(?:[$€£¥₹₽]|\b(?:eur|usd|gbp|chf|inr|euros?|dollars?|pounds?|francs?|franken|yen|pfund|reais|рубл\w*)\b)"
)
_SIGNS: Final = {"€": "euro", "eur": "euro", "$": "dollar", "usd": "dollar", "£": "pound", "gbp": "pound", "¥": "yen"}
_RUN: Final = r"\d(?:[-\u2010-\u2015\u2212.,:/'\u2019 \u00a0\u2007\u2009\u202f]?\d)*+"
"""Digits with marks between them: a number, a range, or several numbers in a row."""

_NUMBERS: Final = re.compile(_RUN)
_AMOUNT: Final = re.compile(
    rf"(?P<before>{_CURRENCY})\s?(?P<number>{_RUN})|(?P<counted>{_RUN})\s?(?P<after>{_CURRENCY})", re.IGNORECASE
)
_WORD_BEFORE: Final = re.compile(
    r"(\w+)[^\w.;:!?]+(?:(?:and|to|or|und|bis|oder|et|à|ou|y|o|a|e|en|of|tot|и|до|или)\s+)?\Z", re.IGNORECASE
)
"""The last word of a text, or the one before a word that joins two numbers."""

_REACH: Final = 60
"""Characters before a number that are read to know whether it is a part of a longer one."""

_IN_WORDS: Final = re.compile(rf"(?:{_alternatives(20, 91)})[\s-](?:{_alternatives(1, 10)})\b|\w+", re.IGNORECASE)
_NEXT_WORD: Final = re.compile(r"[\s-]?(\w+)")
_SCALE: Final = re.compile(r"k|m|bn|mn|mio|mrd|mln|tsd|тыс|млн|млрд", re.IGNORECASE)


@dataclass(frozen=True)
class Figure:
    """A number with its unit.

    Attributes:
        text: As the document writes it.
        values: What the number may mean, as digits: 1.250 is 1250 or 1.25. Words are known in English only.
        unit: The stem of the unit, of what is counted, or of the currency.
    """

    text: str
    values: frozenset[str]
    unit: str


def figure_in(expected: Expected | None, text: str) -> Figure | None:
    """Return the figure that answers a question; None if a text has none, several, or one that is not understood."""
    if expected is None or expected.kind not in ("duration", "number", "money"):
        return None
    found = [*(_amounts if expected.kind == "money" else _counts)(expected, text)]
    different = {(figure.values, figure.unit): figure for figure in found}
    figure = next(iter(different.values()), None)
    return figure if figure and figure.values and len(different) == 1 else None


def contradicting(figures: Sequence[tuple[Figure | None, str]]) -> list[int]:
    """Return the positions of figures that contradict each other: one for each value of the most frequent unit.

    Args:
        figures: Figures, each with what identifies its document.
    """
    by_unit: dict[str, list[tuple[frozenset[str], int, str]]] = defaultdict(list)
    for position, (figure, document) in enumerate(figures):
        if figure is not None and all(values.isdisjoint(figure.values) for values, _, _ in by_unit[figure.unit]):
            by_unit[figure.unit].append((figure.values, position, document))
    for different in by_unit.values():
        if len({document for _, _, document in different}) > 1:
            return [position for _, position, _ in different]
    return []


def _counts(expected: Expected, text: str) -> Iterator[Figure]:
    """Yield what the numbers of a text count; without values if a number is not understood."""
    runs = {place: run for run in _NUMBERS.finditer(text) for place in range(*run.span())}
    read = 0
    for start, end in expected.counts_in(text):
        run = runs.get(start)
        number = run or _IN_WORDS.match(text, start)
        said = words(number[0]) if number else []
        if not number or start < read or not (run or is_number_word(said[0], expected.language)):
            continue  # the second part of a number, or words such as "a week"
        read = number.end()
        rest = words(text[read:end])
        values = _values(run[0], -1) if run else _value_of_words(said, expected.language)
        if _is_part(text[max(0, number.start() - _REACH) : number.start()], rest, expected.language):
            values = frozenset()
        yield Figure(text[number.start() : end].strip(), values, "".join(terms(rest[-1:], expected.language)[:1]))


def _value_of_words(found: Sequence[str], language: str) -> frozenset[str]:
    values = [NUMBER_WORDS[word] for word in found if word in NUMBER_WORDS]
    return frozenset([str(sum(values))]) if language == ENGLISH and len(values) == len(found) else frozenset()


def _amounts(expected: Expected, text: str) -> Iterator[Figure]:
    """Yield the amounts of money in a text; without values if a number is not understood."""
    for amount in _AMOUNT.finditer(text):
        unit = (amount["before"] or amount["after"]).lower().rstrip("s")
        values = _values(amount["number"], 0) if amount["before"] else _values(amount["counted"], -1)
        following = _NEXT_WORD.match(text, amount.end()) if amount["before"] else None
        rest = [following[1]] if following else []
        if _is_part(text[max(0, amount.start() - _REACH) : amount.start()], rest, expected.language):
            values = frozenset()
        yield Figure(amount[0].strip(), values, _SIGNS.get(unit, unit))


def _values(run: str, adjacent: int) -> frozenset[str]:
    """Return what digits may mean together, or, of several numbers, the one next to the unit."""
    return readings(run) | readings(words(run)[adjacent])


def _is_part(before: str, after: Sequence[str], language: str) -> bool:
    """Whether a number is one of several, or a part of a longer one, such as in "five hundred and 20"."""
    previous = _WORD_BEFORE.search(before)
    near = [*after, *([previous[1].lower()] if previous else ())]
    return any(is_number_word(word, language) or _SCALE.fullmatch(word) for word in near)
