"""Pictures of pages with text, as scanners make them, in the font that Pillow brings."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from tests.support.pdf_files import pdf

PARAGRAPH = (
    "The contract may be ended by either party",
    "with a notice of three months to the end",
    "of a year. Fees of 1,250.00 are due on the",
    "first working day of each month.",
)
NOTICE = (
    "Travel costs are paid within thirty",
    "days of the receipt of the form.",
    "Ask the office early in the year.",
)


def scan(
    *blocks: tuple[tuple[int, int], Sequence[str]], size: tuple[int, int] = (1000, 700), points: int = 32
) -> Image.Image:
    """A page with blocks of lines at places of their upper left corners, in pixels."""
    page = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(page)
    font = ImageFont.load_default(points)
    for (left, top), lines in blocks:
        for number, line in enumerate(lines):
            draw.text((left, top + number * points * 1.4), line, font=font, fill="black")
    return page


def saved(image: Image.Image, file_format: str, **options: Any) -> bytes:
    written = BytesIO()
    image.save(written, file_format, **options)
    return written.getvalue()


def scanned_pdf(*pages: Image.Image | bytes) -> bytes:
    """A PDF of pages that show a picture, or draw these contents with the font F."""
    first = 4
    kids = b" ".join(b"%d 0 R" % (first + 3 * number) for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] /MediaBox [0 0 595 842] >>" % (len(pages), kids),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, page in enumerate(pages):
        at = first + 3 * number
        content, picture, width, height = page, b"", 1, 1
        if isinstance(page, Image.Image):
            content, picture = b"595 0 0 842 0 0 cm /I Do", saved(page, "JPEG", quality=95)
            width, height = page.size
        resources = b"/Font << /F 3 0 R >> /XObject << /I %d 0 R >>" % (at + 2)
        objects.append(b"<< /Type /Page /Parent 2 0 R /Contents %d 0 R /Resources << %s >> >>" % (at + 1, resources))
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))  # type: ignore[arg-type]
        image = b"/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceRGB" % (width, height)
        entries = image + b" /BitsPerComponent 8 /Filter /DCTDecode /Length %d" % len(picture)
        objects.append(b"<< %s >>\nstream\n%s\nendstream" % (entries, picture))
    return pdf(*objects)
