"""Places on the page of a PDF and on its picture."""

from ctypes import byref, c_double
from typing import Any, NamedTuple


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

    def joined(self, other: "Rectangle") -> "Rectangle":
        """Return the smallest rectangle around both."""
        return Rectangle(
            min(self.left, other.left),
            min(self.bottom, other.bottom),
            max(self.right, other.right),
            max(self.top, other.top),
        )

    def is_beside(self, other: "Rectangle") -> bool:
        """Whether the next character continues the line: it is about as high, or as far to the right in turned text."""
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        width = min(self.right, other.right) - max(self.left, other.left)
        return height > min(self.top - self.bottom, other.top - other.bottom) / 2 or (
            width > min(self.right - self.left, other.right - other.left) / 2
        )


def rectangles(raw: Any, characters: Any, index: int) -> tuple["Rectangle", "Rectangle"]:
    """Return what a character's ink covers, and the whole space of the character in its font."""
    left, right, bottom, top = c_double(), c_double(), c_double(), c_double()
    raw.FPDFText_GetCharBox(characters, index, byref(left), byref(right), byref(bottom), byref(top))
    loose = raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(characters, index, byref(loose))
    body = Rectangle(loose.left, loose.bottom, loose.right, loose.top)
    ink = Rectangle(left.value, bottom.value, right.value, top.value)
    return ink if ink.left < ink.right and ink.bottom < ink.top else body, body
