"""Maps of places on the page of a PDF, to the page and to its picture."""

import math
from ctypes import byref, c_double, c_int
from typing import Any, Final, NamedTuple

from ragstack_common.reading.places import Box, Rectangle

_UNITS: Final = 1_000_000
"""Width and height of the device to which places on a page are converted: PDFium rounds to its pixels."""


class Matrix(NamedTuple):
    """A linear map of the plane, as PDF writes it: x' = ax + cy + e, y' = bx + dy + f."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float

    def then(self, outer: "Matrix") -> "Matrix":
        """Return this map, followed by the other one."""
        return Matrix(
            self.a * outer.a + self.b * outer.c,
            self.a * outer.b + self.b * outer.d,
            self.c * outer.a + self.d * outer.c,
            self.c * outer.b + self.d * outer.d,
            self.e * outer.a + self.f * outer.c + outer.e,
            self.e * outer.b + self.f * outer.d + outer.f,
        )

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point is mapped to."""
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f

    def rectangle(self, box: Rectangle) -> Rectangle:
        """Return the smallest rectangle around the image of a rectangle."""
        return Rectangle.around(self.point(x, y) for x in (box.left, box.right) for y in (box.bottom, box.top))

    def scales(self) -> tuple[float, float]:
        """Return the factors of the lengths of the two axes."""
        return math.hypot(self.a, self.b), math.hypot(self.c, self.d)


def drawn_at(raw: Any, page: Any, rectangle: Rectangle) -> Box:
    """Return a rectangle of a page as a part of its picture, which can be turned and cut."""
    x, y = c_int(), c_int()
    corners = []
    for corner in ((rectangle.left, rectangle.bottom), (rectangle.right, rectangle.top)):
        raw.FPDF_PageToDevice(page, 0, 0, _UNITS, _UNITS, 0, *corner, byref(x), byref(y))
        corners.append([min(max(each.value / _UNITS, 0.0), 1.0) for each in (x, y)])
    (left, right), (top, bottom) = map(sorted, zip(*corners, strict=True))
    return Box(left, top, right - left, bottom - top)


def rectangles(raw: Any, characters: Any, index: int) -> tuple[Rectangle, Rectangle]:
    """Return what a character's ink covers, and the whole space of the character in its font."""
    left, right, bottom, top = c_double(), c_double(), c_double(), c_double()
    raw.FPDFText_GetCharBox(characters, index, byref(left), byref(right), byref(bottom), byref(top))
    loose = raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(characters, index, byref(loose))
    body = Rectangle(loose.left, loose.bottom, loose.right, loose.top)
    ink = Rectangle(left.value, bottom.value, right.value, top.value)
    return ink if ink.left < ink.right and ink.bottom < ink.top else body, body
