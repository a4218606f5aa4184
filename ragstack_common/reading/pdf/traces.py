"""Doubtful texts of a page: whether the page looks different without them."""

from collections.abc import Sequence
from ctypes import string_at
from math import ceil, inf, sqrt
from typing import Any, Final, NamedTuple

from ragstack_common.reading.pdf.drawing import Text
from ragstack_common.reading.pdf.geometry import drawn_at
from ragstack_common.reading.places import Box

SCALE: Final = 1.5
"""Pixels for a point: letters of four points leave a trace."""

MAX_PIXELS: Final = 4_000_000
"""Pixels of a large page, which is then drawn smaller."""

LEAST_DIFFERENCE: Final = 6
"""Difference of 255, in red, green or blue, that a reader may see."""


def without_trace(raw: Any, page: Any, texts: Sequence[Text]) -> list[Text]:
    """Return the texts without which the page looks the same. All of them are inactive afterwards.

    Text that is not painted leaves no trace, but scans have their recognized text in this form: it stays if the page
    shows anything in its place.
    """
    width, height = page.get_size()
    if not (0 < width < inf and 0 < height < inf):
        return []
    scale = min(SCALE, sqrt(MAX_PIXELS / width / height))
    places = [drawn_at(raw, page, text.box) for text in texts]
    part = _around(places, 2 / scale / min(width, height))
    with_texts = _Pixels.drawn(page, part, scale) if any(text.is_painted for text in texts) else None
    for text in texts:
        raw.FPDFPageObj_SetIsActive(text.handle, False)  # noqa: FBT003 - takes no names
    without = _Pixels.drawn(page, part, scale)
    unseen = []
    for text, place in zip(texts, places, strict=True):
        is_seen = without.has_ink(place)
        if text.is_painted and with_texts:
            is_seen = with_texts.differs(without, place)
        if not is_seen:
            unseen.append(text)
    return unseen


def _around(places: Sequence[Box], edge: float) -> Box:
    """Return the smallest part of a page around others, with an edge if there is room."""
    left = max(0.0, min(place.left for place in places) - edge)
    top = max(0.0, min(place.top for place in places) - edge)
    right = min(1.0, max(place.left + place.width for place in places) + edge)
    bottom = min(1.0, max(place.top + place.height for place in places) + edge)
    return Box(left, top, right - left, bottom - top)


class _Pixels(NamedTuple):
    """The picture of a part of a page, with four bytes for each pixel."""

    part: Box
    data: bytes
    width: int
    height: int
    row_bytes: int

    @classmethod
    def drawn(cls, page: Any, part: Box, scale: float) -> "_Pixels":
        width, height = page.get_size()
        right, bottom = 1 - part.left - part.width, 1 - part.top - part.height
        crop = part.left * width, bottom * height, right * width, part.top * height
        bitmap = page.render(scale=scale, crop=crop, may_draw_forms=False, prefer_bgrx=True)
        data = string_at(bitmap.buffer, bitmap.stride * bitmap.height)
        return cls(part, data, bitmap.width, bitmap.height, bitmap.stride)

    def differs(self, other: "_Pixels", place: Box) -> bool:
        """Whether a reader sees a difference there."""
        for one, two in zip(self.rows(place), other.rows(place), strict=True):
            if one != two and max(abs(a - b) for a, b in zip(one, two, strict=True)) >= LEAST_DIFFERENCE:
                return True
        return False

    def has_ink(self, place: Box) -> bool:
        """Whether not all pixels there have the same colour."""
        rows = self.rows(place)
        paper = rows[0][:4] if rows else b""
        plain = paper * (len(rows[0]) // 4) if rows else b""
        return any(
            max(abs(value - paper[index % 4]) for index, value in enumerate(row)) >= LEAST_DIFFERENCE
            for row in rows
            if row != plain
        )

    def rows(self, place: Box) -> list[bytes]:
        """Return the pixels there."""
        across, down = self.width / self.part.width, self.height / self.part.height
        left = int((place.left - self.part.left) * across)
        right = max(left + 1, ceil((place.left + place.width - self.part.left) * across))
        top = int((place.top - self.part.top) * down)
        bottom = max(top + 1, ceil((place.top + place.height - self.part.top) * down))
        starts = range(top * self.row_bytes, min(bottom, self.height) * self.row_bytes, self.row_bytes)
        return [self.data[start + 4 * left : start + 4 * min(right, self.width)] for start in starts]
