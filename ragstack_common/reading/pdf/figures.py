"""The figures of a page: images, charts, tables with rules, and other drawings, each as one place; and its texts."""

from collections.abc import Iterable, Iterator
from ctypes import byref, c_int, c_uint
from itertools import islice
from typing import Any, Final

from ragstack_common.reading.pdf.drawing import LIGHT, MOST_DEPTH, PageObjects
from ragstack_common.reading.pdf.geometry import Matrix, drawn_at
from ragstack_common.reading.pictures import Layout
from ragstack_common.reading.places import Box, Rectangle

MOST_OBJECTS: Final = 50_000
"""Objects of a page that are looked at; they take 0.2 seconds."""

GROUND: Final = 0.8
"""Share of the page above which an object is its background, or the picture of a scanned page."""

CELLS: Final = 50
"""Cells in the width of a page: what has its centre in the same one belongs together, as the dots of a chart do."""

MOST_CELLS: Final = 4_000

CLOSE: Final = 0.02
"""Distance of the parts of one figure, at most, as a share of the page's width: 12 points."""

THIN: Final = 0.008
"""Height of a rule, at most, and least height and width of a figure, as shares of the page's width."""

LEAST: Final = 0.03
SAME_ENDS: Final = 0.01
"""Distance of the ends of two rules of one table, at most, as a share of the page's width."""

MOST_BETWEEN_RULES: Final = 0.35
"""Distance of two rules of one table, at most, as a share of the page's width."""


def layout(raw: Any, page: Any) -> Layout:
    """Return the places of figures and texts on a page."""
    width, height = page.get_size()
    found = _Found(raw, page)
    parts = [drawn_at(raw, page, each).on_page(height / width) for each in found.parts(width)]
    figures = [
        Box.of(each, height / width)
        for each in _joined(_tables(_joined(parts)))
        if each.right - each.left >= LEAST and each.height() >= LEAST
    ]
    return Layout(figures, [drawn_at(raw, page, each) for each in found.texts.values()])


class _Found(PageObjects):
    """The objects of a page.

    Attributes:
        texts: The places of texts, in points. Those between the same heights are one, whatever is between them.
    """

    def __init__(self, raw: Any, page: Any) -> None:
        super().__init__(raw)
        self._page = page
        self._box_of_page = Rectangle(*page.get_bbox())
        self._left = MOST_OBJECTS
        self._parts = [c_uint() for _ in range(4)]
        self.texts: dict[tuple[int, int], Rectangle] = {}

    def parts(self, width: float) -> list[Rectangle]:
        """Return the places of drawings, joined where their centres are close to each other, in points; find texts."""
        raw, page = self._raw, self._page
        objects = (raw.FPDFPage_GetObject(page.raw, index) for index in range(raw.FPDFPage_CountObjects(page)))
        size = max(width / CELLS, (self._box_of_page.area() / MOST_CELLS) ** 0.5)
        cells: dict[tuple[int, int, bool], Rectangle] = {}
        for box in self._boxes(objects, None, self._box_of_page):
            # A frame is not joined to what is at its centre, which may be far from its sides.
            is_small = max(box.right - box.left, box.height()) < 2 * size
            cell = int((box.left + box.right) / 2 // size), int((box.bottom + box.top) / 2 // size), is_small
            cells[cell] = cells[cell].joined(box) if cell in cells else box
        return list(cells.values())

    def _boxes(
        self, objects: Iterator[Any], within: Matrix | None, region: Rectangle, depth: int = 0
    ) -> Iterator[Rectangle]:
        raw = self._raw
        for handle in islice(objects, self._left):
            self._left -= 1
            kind = raw.FPDFPageObj_GetType(handle)
            if kind == raw.FPDF_PAGEOBJ_FORM:
                if depth < MOST_DEPTH:
                    count = raw.FPDFFormObj_CountObjects(handle)
                    inner = (raw.FPDFFormObj_GetObject(handle, index) for index in range(count))
                    clipped = self._clipped(handle, within, region)
                    yield from self._boxes(inner, self._matrix(handle, within), clipped, depth + 1)
                continue
            if kind == raw.FPDF_PAGEOBJ_PATH and self._is_unseen(handle):
                continue
            box = self._clipped(handle, within, region).meeting(self._box(handle, within))
            if box.left > box.right or box.bottom > box.top:
                continue
            if kind == raw.FPDF_PAGEOBJ_TEXT:
                heights = round(box.bottom), round(box.top)
                self.texts[heights] = self.texts[heights].joined(box) if heights in self.texts else box
            elif box.area() < GROUND * self._box_of_page.area():
                yield box

    def _is_unseen(self, handle: Any) -> bool:
        """Whether a path draws nothing, or only white."""
        raw, fills, strokes = self._raw, c_int(), c_int()
        raw.FPDFPath_GetDrawMode(handle, byref(fills), byref(strokes))
        if strokes.value:
            return False
        raw.FPDFPageObj_GetFillColor(handle, *map(byref, self._parts))
        red, green, blue, opacity = (part.value for part in self._parts)
        return not fills.value or opacity == 0 or min(red, green, blue) > (LIGHT + 0xFF) // 2


def _joined(parts: Iterable[Rectangle]) -> list[Rectangle]:
    """Join what is close to each other."""
    found: list[Rectangle] = []
    for part in parts:
        joined, has_grown = part, True
        while has_grown:
            around, apart = joined.grown(CLOSE), []
            for each in found:
                if around.meets(each):
                    joined = joined.joined(each)
                else:
                    apart.append(each)
            has_grown, found = len(apart) < len(found), apart
        found.append(joined)
    return found


def _tables(parts: Iterable[Rectangle]) -> list[Rectangle]:
    """Join the rules of each table that has no vertical ones."""
    found: list[Rectangle] = []
    for part in sorted(parts, key=lambda each: -each.top):
        above = next((each for each in found if _is_below(part, each)), None)
        if above is not None:
            found.remove(above)
        found.append(part if above is None else part.joined(above))
    return found


def _is_below(rule: Rectangle, table: Rectangle) -> bool:
    """Whether a rule is the next one of a table."""
    return (
        rule.height() <= THIN
        and rule.right - rule.left >= LEAST
        and abs(rule.left - table.left) <= SAME_ENDS
        and abs(rule.right - table.right) <= SAME_ENDS
        and table.bottom - rule.top <= MOST_BETWEEN_RULES
    )
