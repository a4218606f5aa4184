"""From the order in which a line with Arabic or Hebrew is written on the page to the order in which it is read.

The Unicode Bidirectional Algorithm (UAX #9) turns the second into the first; this is the way back. Where two texts look
the same, it takes the usual one.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

RIGHT_TO_LEFT: Final = re.compile("[\u0590-\u065f\u066a-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
"""Letters of scripts that are written from right to left, and signs of their numbers."""

_BRACKETS: Final = {"(": ")", "[": "]", "{": "}", "<": ">", "«": "»"}
_MIRRORED: Final = _BRACKETS | {closing: opening for opening, closing in _BRACKETS.items()}
MIRRORED: Final = frozenset(_MIRRORED)
"""Characters that look like another one in text from right to left."""

COLUMN: Final = "\t"
"""Between columns: what is on both sides has nothing in common."""

GAP: Final = "\x1c"
"""Between words that are not apart by a space: they may be of two columns, and are no phrase."""

_COLUMN_CLASS: Final = unicodedata.bidirectional(COLUMN)
_APART: Final = frozenset({_COLUMN_CLASS, unicodedata.bidirectional(GAP)})
_STRONG: Final = frozenset({"L", "R", "AL"})
_NUMBERS: Final = frozenset({"EN", "AN"})
_FROM_RIGHT: Final = frozenset({"R", "AL"})


def is_from_right(text: str) -> bool:
    """Whether most letters of a text are written from right to left."""
    classes = [unicodedata.bidirectional(character) for character in text]
    return sum(each in _FROM_RIGHT for each in classes) > classes.count("L")


def reading_order(line: Sequence[str], *, of_page_from_right: bool) -> list[int]:
    """Return the places of the characters of a line in the order in which they are read.

    Args:
        line: Its characters as they are on the page, from left to right; with ``COLUMN`` and ``GAP``.
        of_page_from_right: Whether most of the page is written from right to left.
    """
    classes = [unicodedata.bidirectional(character[0]) for character in line]
    letters = [each for each in classes if each in _STRONG]
    is_framed = letters and letters[0] == letters[-1] == "L"
    if is_from_right("".join(line)) or (of_page_from_right and not is_framed):
        return _from_right(line, classes, 0, len(line))
    order: list[int] = []
    for begin, end in _runs(classes):
        if classes[begin] in _FROM_RIGHT:
            order += _from_right(line, classes, begin, end)
        else:
            order += range(begin, end)
    return order


def mirrored(text: str) -> str:
    """Return a line with its brackets the other way round if they do not match otherwise."""
    brackets = [character for character in text if character in MIRRORED]
    if len(brackets) < 2 or _match(brackets):  # noqa: PLR2004 - a pair
        return text
    turned = [_MIRRORED[each] for each in brackets]
    if not _match(turned):
        turned = [*_alternating(brackets)]
    rest = iter(turned)
    return "".join(next(rest) if character in MIRRORED else character for character in text)


def _runs(classes: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Divide a line from left to right: parts from right to left begin and end with a letter of theirs."""
    begin = place = 0
    while place < len(classes):
        if classes[place] not in _FROM_RIGHT:
            place += 1
            continue
        ends = ("L", _COLUMN_CLASS)
        end = next((after for after in range(place, len(classes)) if classes[after] in ends), len(classes))
        while classes[end - 1] not in _FROM_RIGHT:
            end -= 1
        yield from ((begin, place), (place, end)) if begin < place else ((place, end),)
        begin = place = end
    if begin < len(classes):
        yield begin, len(classes)


def _from_right(line: Sequence[str], classes: Sequence[str], begin: int, end: int) -> list[int]:
    order: list[int] = []
    for first, last in reversed([*_from_left(line, classes, begin, end)]):
        order += range(first, last)
    return order


def _from_left(line: Sequence[str], classes: Sequence[str], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Divide a part into words and numbers that are written from left to right, and single characters."""
    place = begin
    while place < end:
        if classes[place] != "L" and classes[place] not in _NUMBERS and not _is_unit(classes, place, end):
            yield place, place + 1
            place += 1
            continue
        last = _end_of_run(classes, place, end)
        brackets = sum(each in MIRRORED for each in line[place:last])
        if brackets % 2 and last < end and line[last] in MIRRORED:
            last += 1
        yield place, last
        place = last


def _is_unit(classes: Sequence[str], place: int, end: int) -> bool:
    """Whether a sign such as that of a currency belongs to the number after it."""
    if classes[place] != "ET" or place + 1 == end or classes[place + 1] != "EN":
        return False
    return not _follows_arabic(classes, place, end)


def _follows_arabic(classes: Sequence[str], place: int, end: int) -> bool:
    """Whether the letter before a number is Arabic: percent signs and hyphens are not part of the number then."""
    before = (each for each in classes[place:end] if each in _STRONG or each == _COLUMN_CLASS)
    return next(before, None) == "AL"


def _end_of_run(classes: Sequence[str], begin: int, end: int) -> int:
    has_letters = False
    last = begin
    while last < end:
        if classes[last] == "L" or classes[last] in _NUMBERS or (last == begin and classes[last] == "ET"):
            has_letters = has_letters or classes[last] == "L"
            last += 1
            continue
        after = next((at for at in range(last, end) if classes[at] in _STRONG or classes[at] in _NUMBERS), end)
        is_arabic = not has_letters and _follows_arabic(classes, last, end)
        between = classes[last:after]
        if after < end and classes[after] not in _FROM_RIGHT and _APART.isdisjoint(between):
            is_number = len(between) == 1 and (between[0] == "CS" or (between[0] == "ES" and not is_arabic))
            if has_letters or classes[after] == "L" or is_number:
                last = after
                continue
        while last < end and classes[last] == "ET" and not is_arabic:
            last += 1
        break
    return last


def _match(brackets: Sequence[str]) -> bool:
    waiting: list[str] = []
    for each in brackets:
        if each in _BRACKETS:
            waiting.append(_BRACKETS[each])
        elif not waiting or waiting.pop() != each:
            return False
    return not waiting


def _alternating(brackets: Sequence[str]) -> Iterator[str]:
    """Yield brackets of which each second one of its kind is closing."""
    is_open: set[str] = set()
    for each in brackets:
        opening = each if each in _BRACKETS else _MIRRORED[each]
        is_open ^= {opening}
        yield opening if opening in is_open else _BRACKETS[opening]
