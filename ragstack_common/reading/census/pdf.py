"""What a PDF has: the text of each page as PDFium lists it, without what the reader finds to be hidden.

What a page hides can be told by its drawing alone, which the reader does; so the receipt counts such passages.
"""

import re
from collections.abc import Mapping, Sequence
from ctypes import POINTER, c_ushort, cast, create_string_buffer
from typing import Any, Final

from ragstack_common.reading.census.comparison import IndexedText, words_of
from ragstack_common.reading.census.parts import COMMENTS_LEFT_OUT, NOT_RECOGNIZED, UPLOAD_APART, Census, Part
from ragstack_common.reading.census.pictures import recognized_part
from ragstack_common.reading.ocr.words import RecognizedPage
from ragstack_common.reading.pdf.document import PdfDocument

PICTURE: Final = "a picture without a text layer; it needs text recognition (OCR) first"
DRAWN: Final = "drawings without text; letters that are drawn as shapes cannot be read"
ALMOST_A_PICTURE: Final = "a picture covers the page; it needs text recognition (OCR) first"

COVERED: Final = 0.8
"""Share of a page from which on a picture covers it, as a scanned page does."""

FEW_WORDS: Final = 15
"""Words of a page below which a picture that covers it is what people read: scanners add a line of their own."""

_PICTURES: Final = "pictures"
_COMMENTS: Final = "comments"
_HIDDEN: Final = "hidden passages"
_ATTACHMENTS: Final = "attachments"
_LEFT_OUT: Final = {
    _PICTURES: NOT_RECOGNIZED,
    _COMMENTS: COMMENTS_LEFT_OUT,
    _HIDDEN: "they are not visible on the page",
    _ATTACHMENTS: UPLOAD_APART,
}
_HYPHEN: Final = "\ufffe"
_RIGHT_TO_LEFT: Final = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")


def count(data: bytes, recognized: Sequence[RecognizedPage] = ()) -> Census:
    """List the lines of a PDF by page, and those that were recognized on other pages; raises UnreadableDocument."""
    census = Census([], "pages")
    with PdfDocument(data) as reader:
        counting = _Counting(data)
        for number in range(1, len(reader) + 1):
            census.parts.append(counting.page(number, reader))
        for unread in reader.unread:
            part = census.parts[unread.page - 1]
            part.unread = part.unread or unread.reason
        counting.close()
    for page in recognized:
        if page.number <= len(census.parts):
            census.parts[page.number - 1] = recognized_part(page)
    for what, why in _LEFT_OUT.items():
        census.left_out(what, counting.left_out[what], why)
    return census


class _Counting:
    """Lists the text of pages, and counts what is left out."""

    def __init__(self, data: bytes) -> None:
        import pypdfium2  # noqa: PLC0415 - takes a tenth of a second to load

        self._raw = pypdfium2.raw
        self._document = pypdfium2.PdfDocument(data)
        self._document.init_forms()
        self.left_out = dict.fromkeys(_LEFT_OUT, 0)
        self.left_out[_ATTACHMENTS] = self._document.count_attachments()

    def close(self) -> None:
        self._document.close()

    def page(self, number: int, reader: PdfDocument) -> Part:
        """List the lines of a page, without those that the reader found to be hidden."""
        seen = IndexedText()
        seen.add([text := reader.text(number)])
        spelled = {"".join(sorted(word)): word for word in words_of(text)} if _RIGHT_TO_LEFT.search(text) else {}
        page = self._document[number - 1]
        characters = page.get_textpage()
        lines = [line for line in _joined(characters.get_text_range()).splitlines() if line.strip()]
        characters.close()
        part = Part(f"page {number}")
        for line in [*lines, *self._written(page)]:
            texts = _forwards(line, seen, spelled) if _RIGHT_TO_LEFT.search(line) else [line]
            words = [words_of(text) for text in texts]
            if sum(len(seen.missing(each)) for each in words if each) > sum(map(len, words)) / 2:
                self.left_out[_HIDDEN] += 1
            else:
                part.texts += texts
        part.unread = self._unread(page, part)
        page.close()
        return part

    def _unread(self, page: Any, part: Part) -> str:
        """Return why the text of a page is not read, if it shows some; and count its pictures."""
        raw = self._raw
        covered, drawn = 0.0, False
        for each in page.get_objects(max_depth=3):
            if each.type == raw.FPDF_PAGEOBJ_IMAGE:
                left, bottom, right, top = each.get_bounds()
                covered += max(0.0, right - left) * max(0.0, top - bottom)
                self.left_out[_PICTURES] += 1
            drawn = drawn or each.type in (raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_SHADING)
        width, height = page.get_size()
        words = sum(len(text.split()) for text in part.texts)
        if words == 0:
            return PICTURE if covered else DRAWN if drawn else ""
        is_covered = covered >= COVERED * width * height > 0
        return ALMOST_A_PICTURE if is_covered and words < FEW_WORDS else ""

    def _written(self, page: Any) -> list[str]:
        """Return the values of the fields of a form, and what was written on the page; comments are counted."""
        raw, form = self._raw, self._document.formenv
        texts = []
        for index in range(raw.FPDFPage_GetAnnotCount(page)):
            annotation = raw.FPDFPage_GetAnnot(page, index)
            kind = raw.FPDFAnnot_GetSubtype(annotation)
            hidden = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
            if not raw.FPDFAnnot_GetFlags(annotation) & hidden:
                if kind == raw.FPDF_ANNOT_WIDGET and form:
                    field = raw.FPDFAnnot_GetFormFieldType(form, annotation)
                    if field in (raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX):
                        texts.append(_string(raw.FPDFAnnot_GetFormFieldValue, form, annotation))
                elif kind == raw.FPDF_ANNOT_FREETEXT:
                    texts.append(_string(raw.FPDFAnnot_GetStringValue, annotation, b"Contents"))
                self.left_out[_COMMENTS] += kind == raw.FPDF_ANNOT_TEXT
            raw.FPDFPage_CloseAnnot(annotation)
        return [line for text in texts for line in text.splitlines() if line.strip()]


def _forwards(line: str, seen: IndexedText, spelled: Mapping[str, str]) -> list[str]:
    """Return the words of a line with text from right to left, of which PDFium lists some from left to right.

    Args:
        line: As PDFium lists it.
        seen: What the reader reads of the page.
        spelled: Its words by their letters in order of the alphabet: PDFium does not turn ligatures around.
    """
    words = [spelled.get("".join(sorted(word)), word) for word in words_of(line)]
    lines = [line, " ".join(words), " ".join(reversed(words))]
    best = min(lines, key=lambda each: len(seen.missing(words_of(each))))
    return [best] if not seen.missing(words_of(best)) else words


def _joined(text: str) -> str:
    """Join lines that end with a hyphen as in any text: what follows is the rest of a word."""
    return text.replace(f"{_HYPHEN}\r\n", "").replace(_HYPHEN, "")


def _string(read: Any, *arguments: Any) -> str:
    """Return a text of PDFium's, which writes UTF-16 into a buffer of the length that it names first."""
    length = read(*arguments, None, 0)
    buffer = create_string_buffer(length)
    read(*arguments, cast(buffer, POINTER(c_ushort)), length)
    return buffer.raw[: max(0, length - 2)].decode("utf-16-le", "replace")
