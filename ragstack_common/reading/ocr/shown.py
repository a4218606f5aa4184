"""Documents with recognized pages as they are shown: where words are on a page is known from their recognition."""

from collections.abc import Sequence

from ragstack_common.reading.ocr.images import ImageFile
from ragstack_common.reading.ocr.words import RecognizedPage
from ragstack_common.reading.pdf.document import PdfDocument
from ragstack_common.reading.pictures import Layout, PagedDocument, Picture, scale_of, scale_of_part, written
from ragstack_common.reading.places import Box


def opened(data: bytes, file_format: str, recognized: Sequence[RecognizedPage]) -> PagedDocument:
    """Open an image file or a PDF; raises UnreadableDocument."""
    if file_format != "pdf":
        return ImagePages(data, file_format, recognized)
    return RecognizedPdf(data, recognized) if recognized else PdfDocument(data)


class ImagePages:
    """The pages of an image file; without their recognized words they have no text."""

    def __init__(self, data: bytes, file_format: str, recognized: Sequence[RecognizedPage]) -> None:
        self._file = ImageFile(data, file_format)
        self._recognized = {page.number: page for page in recognized}

    def __len__(self) -> int:
        return len(self._file)

    def text(self, number: int) -> str:
        """Return the text of a page."""
        return self._recognized[number].text if number in self._recognized else ""

    def boxes(self, number: int, spans: Sequence[tuple[int, int]]) -> list[list[Box]]:
        """Return the places of parts of a page's text."""
        return self._recognized[number].boxes(spans) if number in self._recognized else [[] for _ in spans]

    def layout(self, number: int) -> Layout:
        """Return the lines of text; figures are not recognized."""
        return Layout([], _lines(self, number))

    def shape(self, number: int) -> float:
        """Return the height of a page, divided by its width."""
        image = self._file.page(number)
        return image.height / image.width

    def picture(self, number: int, part: Box | None = None) -> Picture:
        """Return a page or a part of it, in the size in which pages are shown; small ones are not enlarged."""
        image = self._file.page(number)
        width, height = image.size
        place = (0.0, 0.0, float(width), float(height))
        scale = scale_of(width, height)
        if part is not None:
            right, bottom = part.left + part.width, part.top + part.height
            place = (part.left * width, part.top * height, right * width, bottom * height)
            scale = scale_of_part(width, height, part)
        scale = min(1.0, scale)
        size = max(1, round((place[2] - place[0]) * scale)), max(1, round((place[3] - place[1]) * scale))
        return written(image.resize(size, box=place), is_part=part is not None)


class RecognizedPdf(PdfDocument):
    """A PDF of which some pages were recognized."""

    def __init__(self, data: bytes, recognized: Sequence[RecognizedPage]) -> None:
        super().__init__(data)
        self._recognized = {page.number: page for page in recognized}

    def text(self, number: int) -> str:
        """Return the text of a page: the recognized one, if there is one."""
        return self._recognized[number].text if number in self._recognized else super().text(number)

    def boxes(self, number: int, spans: Sequence[tuple[int, int]]) -> list[list[Box]]:
        """Return the places of parts of a page's text."""
        return self._recognized[number].boxes(spans) if number in self._recognized else super().boxes(number, spans)

    def layout(self, number: int) -> Layout:
        """Return the places of figures, and of lines of recognized text, on a page."""
        found = super().layout(number)
        return found._replace(texts=_lines(self, number)) if number in self._recognized else found


def _lines(document: PagedDocument, number: int) -> list[Box]:
    (lines,) = document.boxes(number, [(0, len(document.text(number)))])
    return lines
