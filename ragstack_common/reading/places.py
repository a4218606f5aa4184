"""Places on a page and on its picture."""

from collections.abc import Iterable
from typing import NamedTuple


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

    def grown(self, by: float) -> "Rectangle":
        """Return it with a margin."""
        return Rectangle(self.left - by, self.bottom - by, self.right + by, self.top + by)

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


class Box(NamedTuple):
    """A rectangle, as fractions of the width and height of a page as it is shown."""

    left: float
    top: float
    width: float
    height: float

    def on_page(self, shape: float) -> Rectangle:
        """Return it in widths of the page, from its bottom left corner; the page is *shape* of them high."""
        return Rectangle(
            self.left, shape * (1 - self.top - self.height), self.left + self.width, shape * (1 - self.top)
        )

    @classmethod
    def of(cls, place: Rectangle, shape: float) -> "Box":
        """Return the opposite of :meth:`on_page`."""
        return cls(place.left, 1 - place.top / shape, place.right - place.left, place.height() / shape)

    def within(self, part: "Box") -> "Box":
        """Return where it is on the picture of a part of the page."""
        return Box(
            (self.left - part.left) / part.width,
            (self.top - part.top) / part.height,
            self.width / part.width,
            self.height / part.height,
        )
