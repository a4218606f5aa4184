"""Read PDF files: the visible text of each page, where its characters are, and its picture.

Text that nobody sees is left out: outside of the part of a page or the clipping path that is shown, in a hidden layer,
without a size, covered, or in the colour of what is below it. Scans have their recognized text in a form that is not
painted, which stays. Stamps and other text that lies on text follow the rest of the page. What forms and notes show on
the page belongs to its text and its picture.
"""

import math
import re
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from ragstack_common.reading.formats import DAMAGED, PROTECTED, UnreadableDocument
from ragstack_common.reading.pdf.drawing import Drawing
from ragstack_common.reading.pdf.figures import layout
from ragstack_common.reading.pdf.glyphs import Glyphs
from ragstack_common.reading.pdf.layers import layers
from ragstack_common.reading.pdf.order import as_read
from ragstack_common.reading.pdf.text import cleaned, paragraphs
from ragstack_common.reading.pdf.visible import Visible, visible
from ragstack_common.reading.pictures import SEPARATOR, Layout, Picture, scale_of, scale_of_part, written
from ragstack_common.reading.places import Box

if TYPE_CHECKING:
    from PIL.Image import Image

_LAYERS: Final = b"/OCProperties"
_COMPRESSED: Final = re.compile(rb"obj\s*<<([^>]{0,200}/ObjStm\b[^>]{0,200})>>\s*stream\r?\n")
_LENGTH: Final = re.compile(rb"/Length\s+(\d+)(?!\s+\d+\s+R)")
_MAX_COMPRESSED_BYTES: Final = 1024**2
_FORM_IN_LAYER: Final = re.compile(rb"/OC\s+\d")
"""Entry of a form that belongs to a layer; dictionaries of forms are not compressed."""

NO_UNICODE: Final = "the font has no Unicode map"
NO_UNICODE_IN_PART: Final = "the font of {} characters has no Unicode map"
NOTHING_READ: Final = (
    "No text of the .pdf file can be read ({}). Print the pages to images and recognize their text (OCR)."
)
MOST_NAMED: Final = 5
"""Pages that a message names."""

MOST_DEPTH: Final = 3
"""Forms within forms that are looked into for images."""

POINTS_PER_INCH: Final = 72

NO_AREA: Final = (
    "Page {} of the .pdf file has no area: its crop box is outside of its media box, or has no width or height. Print"
    " the file to a new PDF file."
)


class Unread(NamedTuple):
    """A page of which a text was not read, and why; *share* is that text's share of the page's characters."""

    page: int
    reason: str
    share: float


class Drawn(NamedTuple):
    """What a page shows besides text.

    Attributes:
        images: Share of the page that images cover; more than 1 if they lie on each other.
        has_paths: Whether it has drawings, which may be letters.
    """

    images: float
    has_paths: bool


class PdfDocument:
    """An open PDF file, for one thread. Pages are numbered from 1.

    Attributes:
        unread: The pages of which a text was not read, among those whose text was requested.

    Raises:
        UnreadableDocument: The file is damaged or protected; the methods raise it for a damaged page.
    """

    def __init__(self, data: bytes) -> None:
        # The library takes a tenth of a second to load.
        import pypdfium2  # noqa: PLC0415

        self._pdfium = pypdfium2
        self.unread: list[Unread] = []
        self._has_layers = _has_layers(data)
        self._has_hidden_forms = self._has_layers and _FORM_IN_LAYER.search(data) is not None
        try:
            self._document = pypdfium2.PdfDocument(data)
            self._document.init_forms()  # draws fields that the file has without their appearance
        except pypdfium2.PdfiumError as error:
            if error.err_code in (pypdfium2.raw.FPDF_ERR_PASSWORD, pypdfium2.raw.FPDF_ERR_SECURITY):
                raise UnreadableDocument(PROTECTED.format("pdf")) from None
            raise UnreadableDocument(DAMAGED.format("pdf", "no PDF structure was found")) from None

    def __len__(self) -> int:
        return len(self._document)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._document.close()

    def text(self, number: int) -> str:
        """Return the text of a page, with an empty line between paragraphs."""
        with self._page(number) as page:
            layers = list(self._layers(page, number))
        unread = sum(shown.unread for _, shown, _ in layers)
        self.unread = [each for each in self.unread if each.page != number]
        text = SEPARATOR.join(text for *_, text in layers if text)
        if unread:
            share = unread / (unread + sum(not character.isspace() for character in text))
            self.unread.append(Unread(number, NO_UNICODE if not text else NO_UNICODE_IN_PART.format(unread), share))
        return text

    def refuse_unread(self) -> None:
        """Raise an UnreadableDocument that names the pages of which a text was not read, if there are any."""
        if self.unread:
            named = "; ".join(f"page {page}: {reason}" for page, reason, _ in self.unread[:MOST_NAMED])
            others = len(self.unread) - MOST_NAMED
            raise UnreadableDocument(NOTHING_READ.format(named + (f"; {others} other pages" if others > 0 else "")))

    def boxes(self, number: int, spans: Sequence[tuple[int, int]]) -> list[list[Box]]:
        """Return the places of parts of a page's text, one box for each line.

        Args:
            number: The page.
            spans: Offsets in its text.

        Returns:
            Boxes for each part; none if PDFium does not say which characters of the page they are.
        """
        found: list[list[Box]] = [[] for _ in spans]
        uncertain = set()
        begin = 0
        with self._page(number) as page:
            for characters, shown, text in self._layers(page, number):
                if not text:
                    continue
                glyphs = Glyphs(self._pdfium.raw, page, characters, shown)
                places = [offset for offset, character in enumerate(text) if not character.isspace()]
                for index, span in enumerate(spans):
                    first, last = (bisect_left(places, offset - begin) for offset in span)
                    if first == last:
                        continue
                    boxes = glyphs.boxes(first, last, "".join(text[offset] for offset in places[first:last]))
                    if len(places) != len(glyphs.all) or not boxes:
                        uncertain.add(index)
                    found[index] += boxes
                begin += len(text) + len(SEPARATOR)
        return [[] if index in uncertain else boxes for index, boxes in enumerate(found)]

    def drawn(self, number: int) -> Drawn:
        """Return what a page shows besides text."""
        raw = self._pdfium.raw
        covered, has_paths = 0.0, False
        with self._page(number) as page:
            for each in page.get_objects(max_depth=MOST_DEPTH):
                if each.type == raw.FPDF_PAGEOBJ_IMAGE:
                    left, bottom, right, top = each.get_bounds()
                    covered += max(0.0, right - left) * max(0.0, top - bottom)
                has_paths = has_paths or each.type in (raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_SHADING)
            width, height = _size(page, number)
        return Drawn(covered / (width * height), has_paths)

    def image(self, number: int, dpi: int, max_pixels: int) -> "Image":
        """Draw a page in a resolution, or in a lower one if it is large; raises as :meth:`picture` does."""
        with self._page(number) as page:
            width, height = _size(page, number)
            scale = min(dpi / POINTS_PER_INCH, math.sqrt(max_pixels / width / height))
            image: Image = page.render(scale=scale, may_draw_forms=False).to_pil()
        return image.convert("RGB")

    def layout(self, number: int) -> Layout:
        """Return the places of figures and texts on a page."""
        with self._page(number) as page:
            return layout(self._pdfium.raw, page)

    def shape(self, number: int) -> float:
        """Return the height of a page, divided by its width."""
        with self._page(number) as page:
            width, height = _size(page, number)
        return height / width

    def picture(self, number: int, part: Box | None = None) -> Picture:
        """Draw a page, or a part of it.

        Raises:
            UnreadableDocument: The page shows nothing, because it has no area.
        """
        with self._page(number) as page:
            width, height = _size(page, number)
            scale, cut = scale_of(width, height), (0.0,) * 4
            if part is not None:
                scale = scale_of_part(width, height, part)
                left, bottom = part.left * width, (1 - part.top - part.height) * height
                # The library rounds up what it cuts off, and refuses to cut off everything.
                right = (1 - part.left - part.width) * width - 2 / scale
                top = part.top * height - 2 / scale
                cut = (left, max(0.0, bottom), max(0.0, right), max(0.0, top))
            image: Image = page.render(scale=scale, crop=cut, may_draw_forms=False).to_pil()
        return written(image, is_part=part is not None)

    def _layers(self, page: Any, number: int) -> Iterator[tuple[Any, Visible, str]]:
        """Yield PDFium's characters of a page and their text: first without what lies on other text, then that."""
        raw = self._pdfium.raw
        drawing = Drawing(raw, page, has_layers=self._has_layers, has_hidden_forms=self._has_hidden_forms)
        for cut in layers(raw, page, drawing):
            try:
                characters = page.get_textpage()
            except self._pdfium.PdfiumError:
                raise UnreadableDocument(DAMAGED.format("pdf", f"page {number}")) from None
            with closing(characters):
                # The functions of PDFium take its own handle faster.
                handle = characters.raw
                shown = as_read(raw, handle, visible(raw, handle, characters.get_text_range(), cut))
                yield handle, shown, cleaned(paragraphs(raw, handle, shown))

    @contextmanager
    def _page(self, number: int) -> Iterator[Any]:
        try:
            page = self._document[number - 1]
            if self._has_written_annotations(page):
                # Annotations become part of the page: PDFium extracts no text of theirs. It cuts a page whose size is
                # that of all pages to the size of a letter.
                self._pdfium.raw.FPDFPage_SetMediaBox(page, *page.get_bbox())
                self._pdfium.raw.FPDFPage_Flatten(page, self._pdfium.raw.FLAT_NORMALDISPLAY)
                page.close()
                page = self._document[number - 1]
        except self._pdfium.PdfiumError:
            raise UnreadableDocument(DAMAGED.format("pdf", f"page {number}")) from None
        try:
            yield page
        finally:
            page.close()

    def _has_written_annotations(self, page: Any) -> bool:
        """Whether a page has fields of a form, or text that was written on it."""
        raw = self._pdfium.raw
        written = {raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_STAMP}
        for index in range(raw.FPDFPage_GetAnnotCount(page)):
            annotation = raw.FPDFPage_GetAnnot(page, index)
            kind = raw.FPDFAnnot_GetSubtype(annotation)
            raw.FPDFPage_CloseAnnot(annotation)
            if kind in written:
                return True
        return False


def _has_layers(data: bytes) -> bool:
    """Whether a file may have optional content. Its catalogue says so, which newer files compress."""
    if _LAYERS in data:
        return True
    for found in _COMPRESSED.finditer(data):
        length = _LENGTH.search(found[1])
        end = found.end() + (int(length[1]) if length else _MAX_COMPRESSED_BYTES)
        try:
            if _LAYERS in zlib.decompressobj().decompress(data[found.end() : end], 16 * _MAX_COMPRESSED_BYTES):
                return True
        except zlib.error:  # encrypted
            return True
    return False


def _size(page: Any, number: int) -> tuple[float, float]:
    """Return the width and height of a page, in points."""
    width, height = page.get_size()
    if not (0 < width < math.inf and 0 < height < math.inf):
        raise UnreadableDocument(NO_AREA.format(number))
    return width, height
