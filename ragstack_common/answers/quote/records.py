"""Paragraphs whose lines are not prose: keys with values, items with prices, and columns without borders.

They are in receipts, invoices and forms, mostly converted from PDF.
"""

# ruff: noqa: RUF001 - punctuation of other scripts

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

MAX_LINE: Final = 120
"""Characters of a line in such a paragraph."""

MAX_LINE_WITHOUT_NUMBER: Final = 60
MAX_KEY: Final = 6
"""Words of a key; a colon after more words belongs to a sentence."""

MIN_COLUMNS: Final = 4
"""Words of a line below a heading that names columns."""

_CURRENCY: Final = r"[$€£¥₹₽₩฿₫]|[A-Z]{3}"
_AMOUNT: Final = rf"[-+(]*(?:(?:{_CURRENCY})\s?)?[-+]?\d[\d.,'\u00a0\u202f]*(?:\s?(?:%|{_CURRENCY}|kr|zł))?\)?"
_PAIR: Final = re.compile(r"[*_`\s]*([^\W\d_][^:：\n]*?)[*_`\s]*[:：][*_`]*(?:\s+|(?<=：))[*_`]*(?=\S)")
_PRICED: Final = re.compile(rf"\s*([^\W\d_][^\d\n]*?(?:\([^()\n]*\))?)[\s.·…_]*(?<![\w.,]){_AMOUNT}\s*")
_BARE_AMOUNT: Final = re.compile(rf"\s*{_AMOUNT}\s*")
_SENTENCE: Final = re.compile(r"[.!?。！？।؟]\s+[^\W\d_]|[,;、،]\s*$")
_PERIOD: Final = re.compile(r"\b(?:[QH][1-4][ /])?(?:19|20)\d\d\b")
_NUMBER: Final = re.compile(r"\d")


def key_of(line: str) -> str:
    """Return the key of a line such as ``Returns: within 30 days`` or ``GRAND TOTAL 5,738``; empty for others."""
    if len(line) > MAX_LINE or _SENTENCE.search(line):
        return ""
    found = _PAIR.match(line) or _PRICED.fullmatch(line)
    if found is None:
        return ""
    key = found[1].strip()
    return key if len(key.split()) <= MAX_KEY else ""


def is_record(lines: Sequence[str]) -> bool:
    """Whether the lines of a paragraph are read one by one, not as prose."""
    keys = sum(bool(key_of(line)) for line in lines)
    if len(lines) == 1:
        return keys == 1
    if any(len(line) > MAX_LINE or _SENTENCE.search(line) for line in lines):
        return False
    are_short = max(map(len, lines)) <= MAX_LINE_WITHOUT_NUMBER
    if 2 * keys >= len(lines) or (are_short and any(map(_BARE_AMOUNT.fullmatch, lines))):
        return True
    numbers = sum(_NUMBER.search(line) is not None for line in lines)
    are_short = are_short or 2 * numbers >= len(lines)
    # Lines of prose seldom begin with a capital letter, or without a letter.
    begin = all(line[:1].isupper() or not line[:1].isalpha() for line in map(str.lstrip, lines))
    return len(lines) > 2 and are_short and begin  # noqa: PLR2004 - two lines may be a wrapped one


def titles(lines: Sequence[str]) -> int:
    """Return how many lines are above the values: a heading, the names of columns, or both."""
    if any(map(_BARE_AMOUNT.fullmatch, lines)):  # the first line names an item
        return 0
    bare = list(takewhile(lambda line: _names_periods(line) or not (_NUMBER.search(line) or key_of(line)), lines))
    if not bare or len(bare) == len(lines):
        return min(1, len(bare))
    return 2 if len(bare) > 1 and len(bare[1].split()) >= MIN_COLUMNS else 1


def _names_periods(line: str) -> bool:
    """Whether the only numbers of a line are several years or quarters, which name columns."""
    rest, periods = _PERIOD.subn("", line)
    return periods > 1 and not _NUMBER.search(rest)


def entries(lines: Sequence[str]) -> Iterator[range]:
    """Yield which lines belong together: an amount in a line of its own belongs to the lines before it."""
    amounts = [number for number, line in enumerate(lines) if _BARE_AMOUNT.fullmatch(line)]
    start = 0
    for amount in amounts:
        yield range(start, amount + 1)
        start = amount + 1
    yield from (range(number, number + 1) for number in range(start, len(lines)))
