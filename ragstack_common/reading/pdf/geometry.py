"""Places on the page of a PDF and on its picture."""

import math
from collections.abc import Iterable
from ctypes import byref, c_double, c_int
from typing import Any, Final, NamedTuple

_UNITS: Final = 1_000_000
"""Width and height of the device to which places on a page are converted: PDFium rounds to its pixels."""


class Box(NamedTuple):
    """A rectangle, as fractions of the width and height of a page as it is shown."""

    left: float
    top: float
    width: float
    height: float


class Rectangle(NamedTuple):
    """A rectangle on a page, in points from its bottom left corner."""

    left: float
    bottom: float
    right: float
    top: float

    def has(self, other: "Rectangle") -> bool:
        """Whether all of the other one is within this one."""
        return (
            self.left <= other.left
            and self.bottom <= other.bottom
            and other.right <= self.right
            and other.top <= self.top
        )

    def has_centre(self, other: "Rectangle") -> bool:
        """Whether the centre of the other one is within this one."""
        x, y = (other.left + other.right) / 2, (other.bottom + other.top) / 2
        return self.left <= x <= self.right and self.bottom <= y <= self.top

    def meets(self, other: "Rectangle") -> bool:
        """Whether the two have a point in common."""
        return (
            self.left <= other.right
            and other.left <= self.right
            and self.bottom <= other.top
            and other.bottom <= self.top
        )

    def meeting(self, other: "Rectangle") -> "Rectangle":
        """Return the part that the two have in common; its left is right of its right if they have none."""
        return Rectangle(
            max(self.left, other.left),
            max(self.bottom, other.bottom),
            min(self.right, other.right),
            min(self.top, other.top),
        )

    def height(self) -> float:
        """Return the height, in points."""
        return self.top - self.bottom

    def is_level_with(self, other: "Rectangle") -> bool:
        """Whether a quarter of the lower one is at the height of the other one, as PDFium has it for one line."""
        common = min(self.top, other.top) - max(self.bottom, other.bottom)
        return common > min(self.top - self.bottom, other.top - other.bottom) / 4

    def area(self) -> float:
        """Return width times height, in square points; 0 for none."""
        return max(0.0, self.right - self.left) * max(0.0, self.top - self.bottom)

    def joined(self, other: "Rectangle") -> "Rectangle":
        """Return the smallest rectangle around both."""
        return Rectangle(
            min(self.left, other.left),
            min(self.bottom, other.bottom),
            max(self.right, other.right),
            max(self.top, other.top),
        )

    @classmethod
    def around(cls, points: Iterable[tuple[float, float]]) -> "Rectangle":
        """Return the smallest rectangle around points."""
        across, up = zip(*points, strict=True)
        return cls(min(across), min(up), max(across), max(up))

    def is_beside(self, other: "Rectangle") -> bool:
        """Whether the next character continues the line: it is about as high, or as far to the right in turned text."""
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        width = min(self.right, other.right) - max(self.left, other.left)
        return height > min(self.top - self.bottom, other.top - other.bottom) / 2 or (
            width > min(self.right - self.left, other.right - other.left) / 2
        )


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


def rectangles(raw: Any, characters: Any, index: int) -> tuple["Rectangle", "Rectangle"]:
    """Return what a character's ink covers, and the whole space of the character in its font."""
    left, right, bottom, top = c_double(), c_double(), c_double(), c_double()
    raw.FPDFText_GetCharBox(characters, index, byref(left), byref(right), byref(bottom), byref(top))
    loose = raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(characters, index, byref(loose))
    body = Rectangle(loose.left, loose.bottom, loose.right, loose.top)
    ink = Rectangle(left.value, bottom.value, right.value, top.value)
    return ink if ink.left < ink.right and ink.bottom < ink.top else body, body
