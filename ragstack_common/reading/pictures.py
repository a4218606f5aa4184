"""Pictures of pages, and what a document must offer to have them shown."""

import math
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ragstack_common.reading.places import Box

if TYPE_CHECKING:
    from PIL.Image import Image

IMAGE_WIDTH: Final = 1400
"""Pixels of the picture of a page: enough to read it on a wide screen."""

MAX_PIXELS: Final = 4_000_000
"""Pixels of a long page, which is then narrower."""

MAX_IMAGE_HEIGHT: Final = 10_000
"""Pixels of the picture of a page that is much higher than wide. WebP has at most 16,383."""

MAX_PNG_BYTES: Final = 1_000_000
"""Bytes of a picture without loss. Photographs take more, and are compressed."""

PART_WIDTH: Final = 1000
"""Pixels of the picture of a part of a page: as wide as answers are shown, on a screen of high density."""

MAX_PART_PIXELS: Final = 1_000_000
MAX_ENLARGEMENT: Final = 4.0
"""How much larger the picture of a part is than in the picture of the page, at most: very small print stays small."""

MAX_PART_PNG_BYTES: Final = 150_000
MAX_PART_BYTES: Final = 300_000
"""Bytes of the picture of a part. What takes more even with loss, as noise does, is drawn smaller."""


SEPARATOR: Final = "\n\n"
"""Between the paragraphs of a page, and between its text and the text that lies on it."""


class Picture(NamedTuple):
    """The picture of a page, or of a part of it."""

    data: bytes
    media_type: str
    width: int
    height: int


class Layout(NamedTuple):
    """What is where on a page.

    Attributes:
        figures: The places of images, charts, tables with rules and other drawings.
        texts: The places of texts: lines or parts of them.
    """

    figures: Sequence[Box]
    texts: Sequence[Box]


class PagedDocument(Protocol):
    """An open document of which pages can be shown as pictures. Pages are numbered from 1.

    All methods raise UnreadableDocument for a damaged page.
    """

    def __len__(self) -> int:
        """Return the number of pages."""
        ...

    def text(self, number: int) -> str:
        """Return the text of a page, with an empty line between paragraphs."""
        ...

    def boxes(self, number: int, spans: Sequence[tuple[int, int]]) -> list[list[Box]]:
        """Return the places of parts of a page's text, one box for each line; none if they are not known."""
        ...

    def layout(self, number: int) -> Layout:
        """Return what is where on a page."""
        ...

    def shape(self, number: int) -> float:
        """Return the height of a page, divided by its width."""
        ...

    def picture(self, number: int, part: Box | None = None) -> Picture:
        """Draw a page, or a part of it."""
        ...


def scale_of(width: float, height: float) -> float:
    """Return how much larger the picture of a page is, in pixels, than a page of this size."""
    return min(IMAGE_WIDTH / width, MAX_IMAGE_HEIGHT / height, math.sqrt(MAX_PIXELS / width / height))


def scale_of_part(width: float, height: float, part: Box) -> float:
    """Return the same for the picture of a part of such a page."""
    width, height, whole = width * part.width, height * part.height, scale_of(width, height)
    bounds = PART_WIDTH / width, MAX_IMAGE_HEIGHT / height, math.sqrt(MAX_PART_PIXELS / width / height)
    return min(*bounds, MAX_ENLARGEMENT * whole)


def written(image: "Image", *, is_part: bool = False) -> Picture:
    """Return a picture without loss, or in WebP with loss if that is much smaller.

    Colours that it does not have take no bytes. The picture of a part, which results show unasked, is in WebP also
    without loss. On parts of 15 files, that takes 19 kB instead of 44 (medians) and 9 ms more of the processor. Noise,
    with which it would take 280 ms, is too large as PNG, and is written with loss.
    """
    image = _without_colours(image)
    data = _saved(image, "PNG", compress_level=1)
    if len(data) <= (MAX_PART_PNG_BYTES if is_part else MAX_PNG_BYTES):
        if not is_part:
            return Picture(data, "image/png", *image.size)
        return Picture(_saved(image, "WEBP", lossless=True, method=4, quality=75), "image/webp", *image.size)
    data = _saved(image, "WEBP", quality=75, method=0)
    while is_part and len(data) > MAX_PART_BYTES:
        image = image.resize((max(1, image.width // 2), max(1, image.height // 2)))
        data = _saved(image, "WEBP", quality=75, method=0)
    return Picture(data, "image/webp", *image.size)


def _saved(image: "Image", file_format: str, **options: int) -> bytes:
    data = BytesIO()
    image.save(data, file_format, **options)
    return data.getvalue()


def _without_colours(image: "Image") -> "Image":
    """Return a page in shades of grey if it has no colours, which takes a third of the bytes."""
    from PIL import ImageChops  # noqa: PLC0415 - pages are drawn by one function only

    if image.mode != "RGB":
        return image
    red, green, blue = image.split()
    grey = not ImageChops.difference(red, green).getbbox() and not ImageChops.difference(green, blue).getbbox()
    return red if grey else image
