"""The part of a page around quoted words: whole paragraphs, and the figures and captions next to them.

Lengths are in widths of the page.
"""

import re
from collections.abc import Sequence
from functools import reduce
from statistics import median
from typing import Final

from ragstack_common.reading.pictures import Layout
from ragstack_common.reading.places import Box, Rectangle

CAPTION: Final = re.compile(
    r"\s*(?:fig(?:ure|ura|\.)?|table|tab\.?|chart|exhibit|scheme|plate|abb(?:ildung|\.)?|tabelle|diagramm|grafik|tableau"
    r"|graphique|tabla|cuadro|gr[áa]fico|figuur|tabel|quadro|рис(?:унок|\.)?|табл(?:ица|\.)?|图|圖|表|図|그림|표)"
    r"\s*\d",
    re.IGNORECASE,
)
"""The beginning of a caption, such as "Figure 3"."""

NEAR_LINES: Final = 4.0
"""Distance of a figure from the paragraph next to it, at most, in heights of the quoted line: two empty lines."""

MARGIN_LINES: Final = 1.0
MIN_WIDTH_LINES: Final = 40.0
"""Least width, in heights of the quoted line: half of a page in the size of a book."""

MIN_SHAPE: Final = 0.4
MAX_SHAPE: Final = 0.8
"""Height of a region divided by its width, at least and at most, as far as the page and the words allow: programs can
reserve the space of its picture before they have it."""

MAX_PARAGRAPH_LINES: Final = 36.0
"""Greatest height of the paragraphs, in heights of the quoted line: 20 lines, which have spaces between them."""

MAX_HEIGHT_LINES: Final = 64.0
"""Greatest height with figures, in the same: half of a page in the size of a book, and a paragraph."""

MAX_HEIGHT: Final = 1.0


def region_around(
    marks: Sequence[Box],
    paragraphs: Sequence[Sequence[Box]],
    captions: Sequence[Sequence[Box]],
    layout: Layout,
    shape: float,
) -> Box:
    """Return the part of a page to show.

    Args:
        marks: The lines of the quoted words, at least one.
        paragraphs: The lines of each paragraph that has some of them.
        captions: The lines of each caption of the page.
        layout: All figures and texts of the page.
        shape: The height of the page, divided by its width.

    Returns:
        A part that has all marks, and of the rest what fits.
    """
    line = median(min(each.width, each.height * shape) for each in marks)
    (quoted,) = _around([marks], shape)
    found = _widened(quoted, _around(paragraphs, shape), min(MAX_HEIGHT, MAX_PARAGRAPH_LINES * line))
    around = found.grown(NEAR_LINES * line)
    figures = [figure.on_page(shape) for figure in layout.figures]
    groups = _with_captions(figures, _around(captions, shape), NEAR_LINES * line)
    near = [each for each in groups if around.meets(each)]
    found = _widened(found, near, min(MAX_HEIGHT, MAX_HEIGHT_LINES * line)).grown(MARGIN_LINES * line)
    width = max(found.right - found.left, MIN_WIDTH_LINES * line, found.height() / MAX_SHAPE)
    left, right = _at_least(found.left, found.right, width, 1.0)
    bottom, top = _at_least(found.bottom, found.top, MIN_SHAPE * (right - left), shape)
    part = Rectangle(left, bottom, right, top)
    texts = [text.on_page(shape) for text in layout.texts]
    return Box.of(_with_whole_lines(part, [text for text in texts if text.height() < NEAR_LINES * line], shape), shape)


def _around(lines: Sequence[Sequence[Box]], shape: float) -> list[Rectangle]:
    """Return the rectangles around lines that belong together; those without a known place have none."""
    return [reduce(Rectangle.joined, (line.on_page(shape) for line in each)) for each in lines if each]


def _widened(region: Rectangle, others: Sequence[Rectangle], most: float) -> Rectangle:
    """Return a region with those of the others that make it at most *most* high, beginning with the nearest.

    Of those that are too high, it has the whole width if it is in them: all of a line, or all of a row.
    """
    middle = (region.bottom + region.top) / 2
    for other in sorted(others, key=lambda each: abs((each.bottom + each.top) / 2 - middle)):
        joined = region.joined(other)
        if joined.height() <= max(most, region.height()):
            region = joined
        elif region.meets(other):
            region = joined._replace(bottom=region.bottom, top=region.top)
    return region


def _with_whole_lines(part: Rectangle, lines: Sequence[Rectangle], shape: float) -> Rectangle:
    """Return a part of the page with the lines that it cuts off at its top and bottom."""
    cut = [each for each in lines if each.left < part.right and part.left < each.right]
    bottom = min(
        (each.bottom - each.height() / 10 for each in cut if each.bottom < part.bottom < each.top), default=part.bottom
    )
    top = max((each.top + each.height() / 10 for each in cut if each.bottom < part.top < each.top), default=part.top)
    return part._replace(bottom=max(0.0, bottom), top=min(shape, top))


def _with_captions(figures: Sequence[Rectangle], captions: Sequence[Rectangle], near: float) -> list[Rectangle]:
    """Return each figure with its captions: those that are near, and not nearer to another figure."""
    found = [*figures]
    for caption in captions:
        distances = [_distance(figure, caption) for figure in figures]
        closest = min(range(len(figures)), key=distances.__getitem__, default=None)
        if closest is not None and distances[closest] <= near:
            found[closest] = found[closest].joined(caption)
    return found


def _distance(one: Rectangle, other: Rectangle) -> float:
    """Return how far two rectangles are from each other, across or up, whichever is more."""
    return max(one.left - other.right, other.left - one.right, one.bottom - other.top, other.bottom - one.top, 0.0)


def _at_least(first: float, last: float, least: float, end: float) -> tuple[float, float]:
    """Return an interval around another that is long enough, within 0 and the end."""
    more = max(0.0, least - (last - first)) / 2
    first, last = first - more, last + more
    first, last = first - max(0.0, last - end), last - min(0.0, first)
    return max(0.0, first), min(end, last)
