"""Texts that lie on others, such as stamps and watermarks: they are read after the rest of the page.

PDFium sorts what a page draws at about the same height from left to right, and so mixes the words of a stamp into the
line below it.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import addressof
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import Any, Final

from ragstack_common.reading.pdf.drawing import Drawing, Text
from ragstack_common.reading.pdf.geometry import rectangles
from ragstack_common.reading.places import Rectangle

LARGER: Final = 1.6
"""Height of a text that may be a stamp, as a multiple of the usual height on the page. Turned text is high, too."""

SAME_FONT: Final = 0.1
"""Relative difference of the sizes and directions of two parts of a stamp, at most."""

LEAST_LENGTH: Final = 0.8
"""Width that two texts on the same line have in common if one lies on the other, at least, as a multiple of their
height."""

LEAST_COVERED: Final = 0.15
"""Share of the smaller of two letters that they have in common, at least, if one lies on the other."""

LEAST_LETTERS: Final = 2
"""Letters of a stamp that lie on others, at least: an accent is one."""

TWIN: Final = 0.15
"""Distance of two copies of a text that make it look bold, at most, as a share of its height. PDFium reads one."""

Letters = Mapping[int, Sequence[Rectangle]]
"""The rectangles of the letters of texts, by the addresses of these."""


_TURNS: Final[Mapping[int, Callable[[Rectangle], Rectangle]]] = {
    90: lambda box: Rectangle(box.bottom, -box.right, box.top, -box.left),
    180: lambda box: Rectangle(-box.right, -box.top, -box.left, -box.bottom),
    270: lambda box: Rectangle(-box.top, box.left, -box.bottom, box.right),
}
"""Rectangles of pages that are shown turned to the right by some degrees, as they are shown."""


def overlays(drawing: Drawing, texts: Sequence[Text], letters: Callable[[], Letters]) -> list[list[Any]]:
    """Return PDFium's objects of texts that lie on others, those of each stamp together.

    Args:
        drawing: The page.
        texts: Its visible texts.
        letters: Finds the letters of the page, if there may be such a text.
    """
    written = [text for text in texts if text.box.left < text.box.right and text.box.bottom < text.box.top]
    if not written:
        return []
    turn = _TURNS.get(drawing.rotation)
    if turn:
        written = [replace(text, box=turn(text.box)) for text in written]
    usual = median(text.box.height() for text in written)
    high = [number for number, text in enumerate(written) if text.box.height() > LARGER * usual]
    usual_ones = [text for text in written if text.box.height() <= LARGER * usual]
    doubtful = [*_on_lines(usual_ones), *(_high(drawing, written, high) if high else ())]
    if not doubtful:
        return []
    found = letters()
    if turn:
        found = {address: [turn(box) for box in boxes] for address, boxes in found.items()}
    return [[text.handle for text in above] for above, below in doubtful if _lies_on(found, above, below)]


def letters_of(raw: Any, characters: Any) -> Letters:
    """Return the rectangles of the letters in PDFium's list of characters."""
    found: dict[int, list[Rectangle]] = {}
    for index in range(raw.FPDFText_CountChars(characters)):
        drawn = raw.FPDFText_GetTextObject(characters, index)
        if drawn and not chr(raw.FPDFText_GetUnicode(characters, index)).isspace():
            found.setdefault(addressof(drawn.contents), []).append(rectangles(raw, characters, index)[0])
    return found


_Pair = tuple[Sequence[Text], Sequence[Text]]
"""Texts that may lie on others, and these."""


def _on_lines(written: Sequence[Text]) -> Iterator[_Pair]:
    """Find texts that may lie on others of about the same height, on the same line."""
    parts: list[list[Text]] = []
    around: Rectangle | None = None
    end = 0.0
    for text in written:
        left, bottom, right, top = box = text.box
        # Most texts continue a line, and this is faster than to ask for each.
        is_within = around is not None and around.bottom <= bottom and top <= around.top
        if around is None or not (is_within or around.is_level_with(box)):
            if len(parts) > 1:
                yield from _of_one_line(parts)
            parts, around = [[]], box
        elif left < end:
            parts.append([])
        if not is_within:
            around = around.joined(box)
        parts[-1].append(text)
        end = right
    if len(parts) > 1:
        yield from _of_one_line(parts)


def _of_one_line(parts: list[list[Text]]) -> Iterator[_Pair]:
    """Find parts of a line that may lie on the longest one. Each goes from left to right."""
    parts.sort(key=lambda texts: sum(text.box.right - text.box.left for text in texts))
    *others, longest = parts
    left, right = longest[0].box.left, longest[-1].box.right
    starts = [text.box.left for text in longest]
    for texts in others:
        if texts[-1].box.right <= left or right <= texts[0].box.left:
            continue
        height = max(text.box.height() for text in texts)
        if sum(_common_width(text.box, longest, starts) for text in texts) > LEAST_LENGTH * height:
            yield texts, longest


def _common_width(box: Rectangle, line: Sequence[Text], starts: Sequence[float]) -> float:
    """Return the width that a text has in common with a line; 0 if it is a copy of a part of it."""
    near = TWIN * box.height()
    width = 0.0
    for number in range(max(0, bisect_left(starts, box.left) - 1), bisect_right(starts, box.right)):
        other = line[number].box
        if all(abs(one - two) <= near for one, two in zip(box, other, strict=True)):
            return 0.0
        if other.is_level_with(box):
            width += max(0.0, min(box.right, other.right) - max(box.left, other.left))
    return width


def _high(drawing: Drawing, written: Sequence[Text], high: Sequence[int]) -> Iterator[_Pair]:
    """Find larger or turned texts that may lie on others."""
    by_height = sorted((text.box.bottom + text.box.top, number) for number, text in enumerate(written))
    fonts = {number: drawing.font(written[number]) for number in high}
    groups = [[high[0]]]
    for before, after in pairwise(high):
        continues = after == before + 1 and math.dist(fonts[before], fonts[after]) <= SAME_FONT * math.hypot(
            *fonts[before]
        )
        if continues:
            groups[-1].append(after)
        else:
            groups.append([after])
    for group in groups:
        below = set()
        for number in group:
            box = written[number].box
            begin = bisect_left(by_height, (2 * box.bottom, -1))
            end = bisect_right(by_height, (2 * box.top, len(written)))
            below |= {other for _, other in by_height[begin:end] if box.meets(written[other].box)}
        below -= set(group)
        if below:
            yield [written[number] for number in group], [written[number] for number in sorted(below)]


def _lies_on(letters: Letters, above: Sequence[Text], below: Sequence[Text]) -> bool:
    """Whether letters lie on others."""
    others = sorted((box.bottom, box) for text in below for box in letters.get(addressof(text.handle.contents), ()))
    highest = max((box.height() for _, box in others), default=0.0)
    lying = 0
    for text in above:
        for box in letters.get(addressof(text.handle.contents), ()):
            begin = bisect_left(others, (box.bottom - highest,))
            end = bisect_right(others, (box.top, box))
            near = (other for _, other in others[begin:end] if box.meets(other))
            lying += any(box.meeting(other).area() > LEAST_COVERED * min(box.area(), other.area()) for other in near)
            if lying == LEAST_LETTERS:
                return True
    return False
