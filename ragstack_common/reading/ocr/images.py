"""Open pictures of hostile files: their pages, as people see them, in a size that can be read."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.reading.formats import DAMAGED, UnreadableDocument

if TYPE_CHECKING:
    from PIL.Image import Image

_PILLOW: Final = {
    "png": ("PNG",),
    "jpg": ("JPEG", "MPO"),
    "tiff": ("TIFF",),
    "webp": ("WEBP",),
    "gif": ("GIF",),
}
"""Names of Pillow's readers by format. Others can start programs. MPO is what some cameras write as .jpg."""

MAX_FILE_PIXELS: Final = 72_000_000
"""Pixels of a picture that is opened: an A3 page at 600 dpi. A file of some kilobytes can claim any number."""

MAX_PIXELS: Final = 12_000_000
"""Pixels of a picture that is recognized: an A4 page at 360 dpi."""

SMALL_SIDE: Final = 1000
"""Pixels of the longer side of a picture that is enlarged, at most: screenshots have letters of ten pixels."""

_NEW_SUBFILE_TYPE: Final = 254
_REDUCED_OR_MASK: Final = 0b101
"""Bits of a picture in a TIFF file that is not a page: a preview, or a mask. Source: TIFF 6.0, NewSubfileType."""

TOO_LARGE: Final = "The .{} file has a picture of {:,} by {:,} pixels; at most {:,} pixels are read: save it smaller."


class ImageFile:
    """An image file. Only TIFF files have several pages: of animations the first picture is read.

    Raises:
        UnreadableDocument: The file is damaged; :meth:`page` raises it for a damaged or too large page.
    """

    def __init__(self, data: bytes, file_format: str) -> None:
        self._data, self._format = data, file_format
        with self._opened() as opened:
            count = getattr(opened, "n_frames", 1) if file_format == "tiff" else 1
            self._frames = [frame for frame in range(count) if count == 1 or _is_page(opened, frame)]

    def __len__(self) -> int:
        return len(self._frames)

    def page(self, number: int) -> "Image":
        """Return a page, from 1, in RGB, turned as the file says, with ``MAX_PIXELS`` at most."""
        from PIL import ImageOps  # noqa: PLC0415 - images are opened by few processes

        with self._opened() as opened:
            opened.seek(self._frames[number - 1])
            if opened.width * opened.height > MAX_FILE_PIXELS:
                raise UnreadableDocument(TOO_LARGE.format(self._format, *opened.size, MAX_FILE_PIXELS))
            # The picture in its full size is left before it is turned: it may take half of the memory.
            small = _in_rgb(_shrunk(opened))
        return ImageOps.exif_transpose(small)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open the file, and report what a damaged one raises; Pillow's warning of many pixels has no reader here."""
        from PIL import Image  # noqa: PLC0415 - as above

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with Image.open(BytesIO(self._data), formats=_PILLOW[self._format]) as opened:
                    yield opened
            except (UnreadableDocument, MemoryError):
                raise
            except Exception as error:  # noqa: BLE001 - a damaged file can raise any
                message = f"{type(error).__name__}: {error}".splitlines()[0]
                raise UnreadableDocument(DAMAGED.format(self._format, message[:120])) from None


def _is_page(opened: Any, frame: int) -> bool:
    opened.seek(frame)
    return not opened.tag_v2.get(_NEW_SUBFILE_TYPE, 0) & _REDUCED_OR_MASK


def enlarged(image: "Image") -> "Image":
    """Return a picture in which small letters are as large as those that engines know."""
    from PIL import Image  # noqa: PLC0415 - as above

    if max(image.size) > SMALL_SIDE:
        return image
    return image.resize((2 * image.width, 2 * image.height), Image.Resampling.BICUBIC)


def _shrunk(image: "Image") -> "Image":
    """Return a picture with ``MAX_PIXELS`` at most, and one with a palette in its colours."""
    from PIL import Image  # noqa: PLC0415 - as above

    if image.mode == "P":
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    share = math.sqrt(MAX_PIXELS / (image.width * image.height))
    if share >= 1:
        return image
    if image.mode == "1":
        image = image.convert("L")
    size = max(1, int(image.width * share)), max(1, int(image.height * share))
    return image.resize(size, Image.Resampling.BOX if share < 1 / 2 else Image.Resampling.BICUBIC)


def _in_rgb(image: "Image") -> "Image":
    """Return a picture in RGB, on white where it is transparent, with all shades of grey if it has more than 256."""
    from PIL import Image  # noqa: PLC0415 - as above

    if image.mode == "F" or image.mode.startswith("I"):
        shades = image.convert("F")
        extrema: Any = shades.getextrema()
        low, high = extrema
        factor = 255 / max(1, high - low)
        image = shades.point(lambda value: value * factor - low * factor).convert("L")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        ground = Image.new("RGBA", image.size, "white")
        ground.alpha_composite(image)
        image = ground
    return image.convert("RGB")
