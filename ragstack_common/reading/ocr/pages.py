"""Read image files and PDF files with the text that is recognized in their pictures.

A local engine recognizes in the process that reads the file (:func:`read_with_recognition`). A service is called by
another process, which has the network: this one yields the pages (:func:`pages`), that one recognizes the pictures
among them (``textract.recognize``, then :func:`fuller`), and :func:`composed` puts the text together in either.
"""

from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Final, NamedTuple

from ragstack_common.reading import formats, markdown
from ragstack_common.reading.conversion import ReadText, convert, explained
from ragstack_common.reading.formats import MAX_TEXT_CHARACTERS, UnreadableDocument, too_much_text
from ragstack_common.reading.ocr import images
from ragstack_common.reading.ocr.engines import Setting, how_to_install
from ragstack_common.reading.ocr.layout import recognized_page
from ragstack_common.reading.ocr.recognizer import Recognizer
from ragstack_common.reading.ocr.textract import MAX_BYTES
from ragstack_common.reading.ocr.words import RecognizedPage
from ragstack_common.reading.pdf.document import PdfDocument
from ragstack_common.text.numbered_parts import NumberedPart
from ragstack_common.text.words import detect_language

if TYPE_CHECKING:
    from PIL.Image import Image

DPI: Final = 200
"""Resolution in which pages of PDF files are drawn. Source: benchmarks/ocr.py."""

COVERED: Final = 0.8
"""Share of a page from which on a picture covers it, as a scanned page does."""

FEW_WORDS: Final = 15
"""Words of a page below which a picture that covers it is what people read: scanners add a line of their own."""

LEAST_UNREAD: Final = 0.05
"""Share of a page's characters whose font has no Unicode map, from which on recognition loses less."""

LEAST_WORDS: Final = 20
"""Recognized words that show the language of the next pages."""

NO_TEXT: Final = "No text was recognized in the .{} file."
PICTURES: Final = "A picture: its text needs recognition (OCR): {}."


class PageText(NamedTuple):
    """A page of a PDF with its text."""

    number: int
    text: str


class PagePicture(NamedTuple):
    """A page whose text is to be recognized; *text* is the little that it has of its own."""

    number: int
    image: "Image"
    text: str = ""

    def encoded(self) -> bytes:
        """Return it as Textract takes it: in PNG, or in JPEG if that would be too large."""
        written = BytesIO()
        self.image.save(written, "PNG", compress_level=1)
        if written.tell() > MAX_BYTES:
            written = BytesIO()
            self.image.save(written, "JPEG", quality=90)
        return written.getvalue()


def read_with_recognition(data: bytes, file_format: str, recognizer: Recognizer | None, setting: Setting) -> ReadText:
    """Read an image file or a PDF, whose pages without text are recognized.

    Args:
        data: The file.
        file_format: ``pdf``, or one of ``formats.IMAGES``.
        recognizer: That of ``engines.recognizer(setting)``; None if there is none.
        setting: Explains why there is none.

    Returns:
        Markdown with a heading for each page; for a PDF of which no page needs recognition, the text as
        ``conversion.convert`` returns it.

    Raises:
        UnreadableDocument: The file is damaged, has no text, or there is no recognizer for its pictures.
    """
    if recognizer is None:
        if file_format in formats.IMAGES:
            raise UnreadableDocument(PICTURES.format(how_to_install(setting)))
        return convert(data, file_format)
    try:
        return composed(file_format, _recognized(pages(data, file_format), recognizer))
    except (UnreadableDocument, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - a damaged file can raise any
        raise UnreadableDocument(explained(error, file_format)) from None


def _recognized(found: Iterable[PageText | PagePicture], recognizer: Recognizer) -> Iterator[PageText | RecognizedPage]:
    """Yield pages with recognized text, each in the language of those before it."""
    language: str | None = None
    for page in found:
        read: PageText | RecognizedPage = PageText(page.number, page.text)
        if isinstance(page, PagePicture):
            image = images.enlarged(page.image)
            recognition = recognizer.recognize(image, language)
            recognized = recognized_page(page.number, recognition.lines, image.size, recognition.engine)
            read = fuller(PageText(page.number, page.text), recognized)
        yield read
        if len(read.text.split()) >= LEAST_WORDS:
            language = detect_language(read.text)


def fuller(own: PageText, recognized: RecognizedPage) -> PageText | RecognizedPage:
    """Return a recognized page, or its own text if recognition found less of it, as in a script without a model."""
    return own if len(own.text.split()) > len(recognized.words) else recognized


def pages(data: bytes, file_format: str) -> Iterator[PageText | PagePicture]:
    """Yield the pages of an image file or a PDF: those with text first, so that they tell the language.

    Raises:
        UnreadableDocument: The file is damaged.
    """
    if file_format in formats.IMAGES:
        opened = images.ImageFile(data, file_format)
        yield from (PagePicture(number, opened.page(number)) for number in range(1, len(opened) + 1))
        return
    with PdfDocument(data) as document:
        without_text: dict[int, str] = {}
        characters = 0
        for number in range(1, len(document) + 1):
            text = document.text(number)
            characters += len(text)
            if characters > MAX_TEXT_CHARACTERS:
                raise UnreadableDocument(too_much_text(file_format))
            if needs_recognition(document, number, text):
                without_text[number] = text
            else:
                yield PageText(number, text)
        for number, text in without_text.items():
            yield PagePicture(number, document.image(number, DPI, images.MAX_PIXELS), text)


def needs_recognition(document: PdfDocument, number: int, text: str) -> bool:
    """Whether people see text on a page that is not in its text."""
    if any(unread.page == number and unread.share >= LEAST_UNREAD for unread in document.unread):
        return True
    words = len(text.split())
    if words >= FEW_WORDS:
        return False
    drawn = document.drawn(number)
    return drawn.images >= COVERED or (not words and (drawn.images > 0 or drawn.has_paths))


def composed(file_format: str, found: Iterable[PageText | RecognizedPage]) -> ReadText:
    """Return the text of a document from its pages, in any order.

    Raises:
        UnreadableDocument: An image file of which no text was recognized.
    """
    ordered: Sequence[PageText | RecognizedPage] = sorted(found, key=lambda page: page.number)
    recognized = tuple(page for page in ordered if isinstance(page, RecognizedPage))
    if not recognized:
        return ReadText("".join(f"{page.text}\f" for page in ordered))
    if file_format in formats.IMAGES and not any(page.words for page in recognized):
        raise UnreadableDocument(NO_TEXT.format(file_format))
    blocks = markdown.Blocks()
    for page in ordered:
        if text := page.text.strip():
            is_recognized = isinstance(page, RecognizedPage)
            blocks.written(NumberedPart("Page", page.number, is_recognized=is_recognized).markdown)
            blocks.written(markdown.escaped(text))
    text = str(blocks)
    if len(text) > MAX_TEXT_CHARACTERS:
        raise UnreadableDocument(too_much_text(file_format))
    return ReadText(text, recognized=recognized)
