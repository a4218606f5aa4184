"""Pictures of all kinds, as they are opened for recognition."""

import struct
import zlib
from io import BytesIO

import pytest
from PIL import Image, TiffImagePlugin

from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.ocr.images import MAX_PIXELS, SMALL_SIDE, ImageFile, enlarged
from tests.support.scans import saved
from tests.support.soak import part

PILLOW = {"png": "PNG", "jpg": "JPEG", "tiff": "TIFF", "webp": "WEBP", "gif": "GIF"}


def half_black(mode: str, size: tuple[int, int] = (40, 20)) -> Image.Image:
    """A white picture whose left half is black."""
    image = Image.new("L", size, 255)
    image.paste(0, (0, 0, size[0] // 2, size[1]))
    if mode == "I;16":
        return image.convert("I").point(lambda value: value * 257).convert("I;16")
    return image.convert("RGB").convert(mode) if mode == "CMYK" else image.convert(mode)


def shades(image: Image.Image) -> tuple[int, int]:
    """The brightness in the middle of both halves."""
    grey = image.convert("L")
    height = grey.height // 2
    values = [grey.getpixel((grey.width // 4, height)), grey.getpixel((3 * grey.width // 4, height))]
    assert all(isinstance(value, int) for value in values)
    return values[0], values[1]  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("file_format", "mode"),
    [
        *((file_format, "RGB") for file_format in PILLOW if file_format != "gif"),
        *(("png", mode) for mode in ("1", "L", "LA", "P", "RGBA", "I;16")),
        *(("tiff", mode) for mode in ("1", "CMYK", "I;16", "F")),
        ("jpg", "CMYK"),
        ("gif", "P"),
    ],
)
def test_pictures_of_every_mode_are_read_in_rgb(file_format: str, mode: str) -> None:
    opened = ImageFile(saved(half_black(mode), PILLOW[file_format]), file_format)

    image = opened.page(1)

    assert (image.mode, image.size) == ("RGB", (40, 20))
    dark, light = shades(image)
    assert dark < 12
    assert light > 243


def test_transparent_parts_are_white() -> None:
    image = Image.new("RGBA", (40, 20), (0, 0, 0, 0))
    image.paste((0, 0, 0, 255), (0, 0, 20, 20))

    assert shades(ImageFile(saved(image, "PNG"), "png").page(1)) == (0, 255)


def test_the_orientation_of_the_camera_is_respected() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise by a quarter

    image = ImageFile(saved(half_black("RGB"), "JPEG", exif=exif), "jpg").page(1)

    assert image.size == (20, 40)
    assert image.convert("L").getpixel((10, 5)) < 12  # type: ignore[operator]
    assert image.convert("L").getpixel((10, 35)) > 243  # type: ignore[operator]


def test_a_tiff_has_pages_and_its_previews_are_none() -> None:
    written = BytesIO()
    with TiffImagePlugin.AppendingTiffWriter(written, new=True) as pages:
        for size, kind in (((40, 20), 0), ((8, 4), 1), ((60, 30), 0)):
            half_black("L", size).save(pages, "TIFF", tiffinfo={254: kind})
            pages.newFrame()

    opened = ImageFile(written.getvalue(), "tiff")

    assert [opened.page(number).size for number in range(1, len(opened) + 1)] == [(40, 20), (60, 30)]


@pytest.mark.parametrize("file_format", ["gif", "webp", "png"])
def test_of_an_animation_the_first_picture_is_read(file_format: str) -> None:
    data = saved(half_black("L"), PILLOW[file_format], save_all=True, append_images=[Image.new("L", (40, 20), 99)])

    opened = ImageFile(data, file_format)

    assert len(opened) == 1
    assert shades(opened.page(1))[1] > 243


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def bomb(width: int, height: int) -> bytes:
    """A PNG that claims a size, of which it has nothing but the beginning."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(10_000_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [10_000, 60_000, 2_000_000_000])
def test_an_image_bomb_is_refused(side: int) -> None:
    with pytest.raises(UnreadableDocument, match="pixels"):
        ImageFile(bomb(side, side), "png").page(1)


@pytest.mark.parametrize("file_format", PILLOW)
def test_a_file_that_ends_early_is_damaged(file_format: str) -> None:
    data = saved(Image.effect_noise((300, 300), 90).convert("L"), PILLOW[file_format])

    with pytest.raises(UnreadableDocument, match=rf"\.{file_format} file is damaged"):
        ImageFile(data[: len(data) // 2], file_format).page(1)


def test_a_file_of_another_format_is_not_opened() -> None:
    """Other readers of Pillow start programs."""
    with pytest.raises(UnreadableDocument, match="damaged"):
        ImageFile(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "png")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "CMYK", "I;16"])
@pytest.mark.parametrize("orientation", part([6, 1], 2))
def test_a_picture_of_many_pixels_becomes_smaller_in_the_same_shape(mode: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    file_format = "tiff" if mode == "CMYK" else "png"

    found = ImageFile(saved(half_black(mode, (6000, 4000)), PILLOW[file_format], exif=exif), file_format).page(1)

    assert 0.99 * MAX_PIXELS < found.width * found.height <= MAX_PIXELS
    assert found.width / found.height == pytest.approx(1.5 if orientation == 1 else 2 / 3, rel=0.01)
    upright = found if orientation == 1 else found.rotate(90, expand=True)
    dark, light = shades(upright)
    assert (dark < 12, light > 243) == (True, True)


@pytest.mark.parametrize("size", [(1, 1), (1, 7000), (7000, 1), (999, 20)])
def test_every_shape_is_enlarged_if_it_is_small(size: tuple[int, int]) -> None:
    found = enlarged(Image.new("RGB", size))

    assert found.width / size[0] == found.height / size[1] == (1 if max(size) > SMALL_SIDE else 2)


def test_a_file_of_nothing_is_damaged() -> None:
    with pytest.raises(UnreadableDocument):
        ImageFile(BytesIO(b"\x89PNG\r\n\x1a\n").getvalue(), "png")
