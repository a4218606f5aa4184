"""The figures that quotations state, and whether documents contradict each other in them."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ragstack_common.answers.kinds import Expected
from ragstack_common.text.languages import ENGLISH
from ragstack_common.text.spelling import with_ascii_digits
from ragstack_common.text.words import terms, words

_WORDS: Final = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
            "twenty",
        ]
    )
} | {
    word: 10 * value
    for value, word in enumerate(["thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], start=3)
}

_CURRENCY: Final = (
    r"[$€£¥₹₽]|\b(?:eur|usd|gbp|chf|inr|euros?|dollars?|pounds?|francs?|franken|yen|pfund|reais|рубл\w*)\b"
)
_SIGNS: Final = {"€": "euro", "eur": "euro", "$": "dollar", "usd": "dollar", "£": "pound", "gbp": "pound", "¥": "yen"}
_AMOUNT: Final = re.compile(
    rf"(?P<before>{_CURRENCY})?\s?(?P<number>\d[\d.,'\u00a0\u202f]*)\s?(?P<after>{_CURRENCY})?", re.IGNORECASE
)
_GROUPED: Final = re.compile(r"(?<=\d)[,'\u00a0\u202f ](?=\d{3}(?!\d))")


@dataclass(frozen=True)
class Figure:
    """A number with its unit.

    Attributes:
        text: As the document writes it.
        value: Digits without separators of thousands. Words are known in English only.
        unit: The stem of the unit, of what is counted, or of the currency.
    """

    text: str
    value: str
    unit: str


def figure_in(expected: Expected | None, text: str) -> Figure | None:
    """Return the figure that answers a question; None if a text has none, or several."""
    if expected is None or expected.kind not in ("duration", "number", "money"):
        return None
    found = _amounts(text) if expected.kind == "money" else _counts(expected, text)
    different = {(figure.value, figure.unit): figure for figure in found}
    return next(iter(different.values())) if len(different) == 1 else None


def contradicting(figures: Sequence[tuple[Figure | None, str]]) -> list[int]:
    """Return the positions of figures that contradict each other: one for each value of the most frequent unit.

    Args:
        figures: Figures, each with what identifies its document.
    """
    by_unit: dict[str, dict[str, tuple[int, str]]] = defaultdict(dict)
    for position, (figure, document) in enumerate(figures):
        if figure is not None:
            by_unit[figure.unit].setdefault(figure.value, (position, document))
    for values in by_unit.values():
        if len(values) > 1 and len({document for _, document in values.values()}) > 1:
            return [position for position, _ in values.values()]
    return []


def _counts(expected: Expected, text: str) -> list[Figure]:
    found = []
    for counted in expected.counts_in(text):
        number, *rest = words(counted) or [""]
        value = _value(number, expected.language)
        if rest and value[:1].isdigit():
            found.append(Figure(counted, value, terms(rest[-1:], expected.language)[0]))
    return found


def _amounts(text: str) -> list[Figure]:
    found = []
    for amount in _AMOUNT.finditer(text):
        currency = amount["before"] or amount["after"]
        if currency:
            number = amount["number"].rstrip(".,'")
            unit = currency.lower().rstrip("s")
            found.append(Figure(amount[0].strip(" .,"), _value(number, ""), _SIGNS.get(unit, unit)))
    return found


def _value(number: str, language: str) -> str:
    number = with_ascii_digits(number)
    if language == ENGLISH and number in _WORDS:
        return str(_WORDS[number])
    plain = _GROUPED.sub("", number)
    return plain.rstrip("0").rstrip(".") if "." in plain else plain
