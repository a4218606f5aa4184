"""What a page draws, object by object: its texts, the part of the page in which each shows, and areas of one colour."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from ctypes import byref, c_float, c_int, c_uint, c_ulong, c_ushort, sizeof
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from ragstack_common.reading.pdf.geometry import Matrix
from ragstack_common.reading.places import Rectangle

LEAST_SIZE: Final = 0.1
"""Points that a visible character is high and wide at least, on pages of the usual size: a quarter of a pixel of the
picture."""

LEAST_AREA: Final = 3.0
"""Points that an area which hides text is high and wide, at least; lines of tables are smaller."""

LEAST_OPACITY: Final = 0x10
"""Opacity of 255 below which a text may not be seen."""

LIGHT: Final = 0xE0
"""Least of red, green and blue of a colour that may not be seen on white."""

CONTRAST: Final = 0x20
"""Difference of two colours, in red, green or blue, that certainly can be seen."""

MOST_DEPTH: Final = 12
"""Forms in forms; PDFium itself does not draw more."""

MOST_AREAS: Final = 200
"""Areas below a text that are looked at; if there are more, it is doubtful."""

MOST_COMPARISONS: Final = 1_000_000
"""Texts that are compared with what is drawn over them: on drawings with more, texts count as not covered."""

MOST_SEGMENTS: Final = 500
"""Lines and curves of a clipping path: a longer one counts as the whole page."""

Colour = tuple[int, int, int]


@dataclass(eq=False, slots=True)
class Text:
    """A text that a page draws at once: a line, a word or a letter.

    Attributes:
        handle: PDFium's object.
        whole: Its place on the page.
        box: The part of it that is not clipped; the same object if that is all.
        within: From the space of its form to that of the page; None if it is in no form.
        is_painted: False for recognized text over a scan.
        is_doubtful: Whether it may leave no trace on the page, because of its colour, a layer, or what covers it.
    """

    handle: Any
    whole: Rectangle
    box: Rectangle
    within: Matrix | None
    is_painted: bool
    is_doubtful: bool


@dataclass(eq=False, slots=True)
class _Area:
    """An opaque area; its colour is None for pictures and gradients."""

    box: Rectangle
    colour: Colour | None


class PageObjects:
    """Where the objects of pages are.

    Args:
        raw: PDFium.
    """

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._sides = [c_float() for _ in range(4)]
        self._side_refs = [byref(side) for side in self._sides]

    def _box(self, handle: Any, within: Matrix | None) -> Rectangle:
        self._raw.FPDFPageObj_GetBounds(handle, *self._side_refs)
        left, bottom, right, top = self._sides
        box = Rectangle(left.value, bottom.value, right.value, top.value)
        return within.rectangle(box) if within else box

    def _matrix(self, handle: Any, within: Matrix | None) -> Matrix:
        """Return the matrix from the space of an object to that of the page."""
        own = self._raw.FS_MATRIX()
        self._raw.FPDFPageObj_GetMatrix(handle, byref(own))
        matrix = Matrix(own.a, own.b, own.c, own.d, own.e, own.f)
        return matrix.then(within) if within else matrix

    def _clipped(self, handle: Any, within: Matrix | None, region: Rectangle) -> Rectangle:
        """Return the part of a region that is in the clipping path of an object, or in the rectangle around it."""
        raw = self._raw
        path = raw.FPDFPageObj_GetClipPath(handle)
        for number in range(raw.FPDFClipPath_CountPaths(path)):
            x, y, *_ = self._sides
            points = []
            segments = raw.FPDFClipPath_CountPathSegments(path, number)
            for index in range(segments if segments <= MOST_SEGMENTS else 0):
                segment = raw.FPDFClipPath_GetPathSegment(path, number, index)
                raw.FPDFPathSegment_GetPoint(segment, *self._side_refs[:2])
                points.append((x.value, y.value))
            if points:
                box = Rectangle.around(points)
                region = region.meeting(within.rectangle(box) if within else box)
        return region


class Drawing(PageObjects):
    """The texts of a page in the order in which it draws them, without those outside of the part that is shown.

    Args:
        raw: PDFium.
        page: The page.
        has_layers: Whether the file may have optional content.
        has_hidden_forms: Whether it may hide whole forms.

    Attributes:
        texts: Those that may be seen.
        outside: Those that are outside of the page or of their clipping path, or have no size.
        rotation: Degrees by which the page is shown turned to the right.
    """

    def __init__(self, raw: Any, page: Any, *, has_layers: bool, has_hidden_forms: bool) -> None:
        super().__init__(raw)
        self._has_layers, self._has_hidden_forms = has_layers, has_hidden_forms
        self.texts: list[Text] = []
        self.outside: list[Any] = []
        self._parts = [c_uint() for _ in range(4)]
        self._part_refs = [byref(part) for part in self._parts]
        self._unpainted = (raw.FPDF_TEXTRENDERMODE_INVISIBLE, raw.FPDF_TEXTRENDERMODE_CLIP)
        self._areas: list[_Area] = []
        self._comparisons = 0
        self.rotation = page.get_rotation()
        self._colours: set[Colour] = set()
        self._by_height: list[tuple[float, int]] = []
        box = Rectangle(*page.get_bbox())
        page_size = box.area()
        self._least = min(LEAST_SIZE, (box.right - box.left) * LEAST_SIZE / 595)
        objects = (raw.FPDFPage_GetObject(page.raw, index) for index in range(raw.FPDFPage_CountObjects(page)))
        self._pictures: list[tuple[Rectangle, int]] = []
        self._add(objects, None, box, is_doubtful=False)
        # Some programs put recognized text below the picture of the page.
        is_scan = sum(picture.area() for picture, _ in self._pictures) > page_size / 2
        for picture, count in self._pictures:
            self._cover(picture, count, is_scan=is_scan)

    def _add(
        self, objects: Iterator[Any], within: Matrix | None, region: Rectangle, depth: int = 0, *, is_doubtful: bool
    ) -> None:
        raw = self._raw
        for handle in objects:
            kind = raw.FPDFPageObj_GetType(handle)
            if kind == raw.FPDF_PAGEOBJ_TEXT:
                self._add_text(handle, within, region, is_doubtful=is_doubtful)
            elif kind == raw.FPDF_PAGEOBJ_FORM:
                self._add_form(handle, within, region, depth, is_doubtful=is_doubtful)
            else:
                self._add_area(handle, kind, within)

    def _add_form(
        self, handle: Any, within: Matrix | None, region: Rectangle, depth: int, *, is_doubtful: bool
    ) -> None:
        raw = self._raw
        if depth == MOST_DEPTH:
            return
        matrix = self._matrix(handle, within)
        objects = (raw.FPDFFormObj_GetObject(handle, index) for index in range(raw.FPDFFormObj_CountObjects(handle)))
        doubt = is_doubtful or self._has_hidden_forms or (self._has_layers and self._has_layer(handle))
        self._add(objects, matrix, self._clipped(handle, within, region), depth + 1, is_doubtful=doubt)

    def _add_text(self, handle: Any, within: Matrix | None, region: Rectangle, *, is_doubtful: bool) -> None:
        raw = self._raw
        whole = self._box(handle, within)
        region = self._clipped(handle, within, region)
        is_small = whole.right - whole.left < self._least or whole.top - whole.bottom < self._least
        box = whole if region.has(whole) else region.meeting(whole)
        if box.left > box.right or box.bottom > box.top or (is_small and self._has_no_size(handle, within)):
            self.outside.append(handle)
            return
        is_painted = raw.FPDFTextObj_GetTextRenderMode(handle) not in self._unpainted
        is_doubtful = (
            is_doubtful
            or self._may_be_unseen(handle, box, is_painted=is_painted)
            or (self._has_layers and self._has_layer(handle))
        ) and box.area() > 0
        self.texts.append(Text(handle, whole, box, within, is_painted, is_doubtful))

    def _add_area(self, handle: Any, kind: int, within: Matrix | None) -> None:
        raw = self._raw
        box = self._box(handle, within)
        if box.right - box.left < LEAST_AREA or box.top - box.bottom < LEAST_AREA:
            return
        colour = None
        if kind == raw.FPDF_PAGEOBJ_PATH:
            fills, strokes = c_int(), c_int()
            raw.FPDFPath_GetDrawMode(handle, byref(fills), byref(strokes))
            if not fills.value:
                return
            colour, _ = self._colour(handle)
        if raw.FPDFPageObj_HasTransparency(handle):
            return
        self._areas.append(_Area(box, colour))
        if colour:
            self._colours.add(colour)
        if kind == raw.FPDF_PAGEOBJ_IMAGE:
            self._pictures.append((box, len(self.texts)))
        else:
            self._cover(box, len(self.texts), is_scan=False)

    def _cover(self, box: Rectangle, count: int, *, is_scan: bool) -> None:
        """Doubt those of the first texts that are below an area."""
        for number in range(len(self._by_height), len(self.texts)):
            insort(self._by_height, (self.texts[number].box.bottom + self.texts[number].box.top, number))
        begin = bisect_left(self._by_height, (2 * box.bottom, -1))
        end = bisect_right(self._by_height, (2 * box.top, count))
        self._comparisons += end - begin
        if self._comparisons > MOST_COMPARISONS:
            return
        for _, number in self._by_height[begin:end]:
            text = self.texts[number]
            if number < count and box.has_centre(text.box):
                text.is_doubtful = text.is_doubtful and text.is_painted if is_scan else True

    def _may_be_unseen(self, handle: Any, box: Rectangle, *, is_painted: bool) -> bool:
        if not is_painted:
            areas = islice(reversed(self._areas), MOST_AREAS)
            return not any(area.colour is None and area.box.has_centre(box) for area in areas)
        colour, opacity = self._colour(handle)
        if opacity < LEAST_OPACITY:
            return True
        is_light = min(colour) >= LIGHT
        if not is_light and colour not in self._colours:
            return False
        areas = islice(reversed(self._areas), MOST_AREAS)
        ground = next((area for area in areas if area.box.has_centre(box)), None)
        if ground is None or ground.colour is None:
            return is_light
        return max(abs(one - other) for one, other in zip(colour, ground.colour, strict=True)) < CONTRAST

    def _has_layer(self, handle: Any) -> bool:
        """Whether an object is part of optional content, which the file may hide."""
        raw = self._raw
        for index in range(raw.FPDFPageObj_CountMarks(handle)):
            name, length = (c_ushort * 3)(), c_ulong()
            mark = raw.FPDFPageObj_GetMark(handle, index)
            raw.FPDFPageObjMark_GetName(mark, name, sizeof(name), byref(length))
            if (*name,) == (ord("O"), ord("C"), 0):
                return True
        return False

    def _colour(self, handle: Any) -> tuple[Colour, int]:
        self._raw.FPDFPageObj_GetFillColor(handle, *self._part_refs)
        red, green, blue, opacity = self._parts
        return (red.value, green.value, blue.value), opacity.value

    def font(self, text: Text) -> tuple[float, float]:
        """Return how far one em of a text goes to the right and up, in points."""
        matrix = self._matrix(text.handle, text.within)
        size = self._font_size(text.handle)
        return size * matrix.a, size * matrix.b

    def _font_size(self, handle: Any) -> float:
        self._raw.FPDFTextObj_GetFontSize(handle, self._side_refs[0])
        return self._sides[0].value

    def _has_no_size(self, handle: Any, within: Matrix | None) -> bool:
        return self._font_size(handle) * min(self._matrix(handle, within).scales()) < self._least
