"""What a PDF has: the text of each page as PDFium lists it, and what is no text."""

from ctypes import POINTER, c_ushort, cast, create_string_buffer
from typing import Any, Final

from ragstack_common.reading.census.parts import (
    COMMENTS_LEFT_OUT,
    HIDDEN_LEFT_OUT,
    NOT_RECOGNIZED,
    UPLOAD_APART,
    Census,
    Part,
)

PICTURE: Final = "it is a picture without a text layer, and text in pictures is not recognized"
DRAWN: Final = "it has drawings and no text: its letters may be drawn"
NO_UNICODE: Final = "its fonts do not say which characters they show"
ALMOST_A_PICTURE: Final = "a picture covers it, and text in pictures is not recognized"

COVERED: Final = 0.8
"""Share of a page from which on a picture covers it, as a scanned page does."""

FEW_WORDS: Final = 15
"""Words of a page below which a picture that covers it is what people read: scanners add a line of their own."""

_OUTSIDE: Final = "passages outside of a page"
_HYPHEN: Final = "\ufffe"


def count(data: bytes) -> Census:
    """List the lines of a PDF by page; raises the errors of PDFium."""
    import pypdfium2  # noqa: PLC0415 - takes a tenth of a second to load

    raw = pypdfium2.raw
    census = Census([], "pages")
    numbers = {"pictures": 0, "comments": 0, _OUTSIDE: 0}
    with pypdfium2.PdfDocument(data) as document:
        document.init_forms()
        for index in range(len(document)):
            page = document[index]
            census.parts.append(_page(raw, document, page, index + 1, numbers))
            page.close()
        attached = document.count_attachments()
    census.left_out("pictures", numbers["pictures"], NOT_RECOGNIZED)
    census.left_out("comments", numbers["comments"], COMMENTS_LEFT_OUT)
    census.left_out(_OUTSIDE, numbers[_OUTSIDE], HIDDEN_LEFT_OUT)
    census.left_out("attachments", attached, UPLOAD_APART)
    return census


def _page(raw: Any, document: Any, page: Any, number: int, numbers: dict[str, int]) -> Part:
    characters = page.get_textpage()
    text, within = (
        _joined(each) for each in (characters.get_text_range(), characters.get_text_bounded(*page.get_bbox()))
    )
    if len(within.split()) < len(text.split()):
        numbers[_OUTSIDE] += 1
        text = within
    characters.close()
    part = Part(f"page {number}", [line for line in text.splitlines() if line.strip()])
    part.texts += _written(raw, document, page, numbers)
    covered, drawn = 0.0, False
    width, height = page.get_size()
    for each in page.get_objects(max_depth=3):
        if each.type == raw.FPDF_PAGEOBJ_IMAGE:
            left, bottom, right, top = each.get_bounds()
            covered += max(0.0, right - left) * max(0.0, top - bottom)
            numbers["pictures"] += 1
        drawn = drawn or each.type in (raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_SHADING)
    letters = "".join("".join(part.texts).split())
    unknown = sum(1 for each in letters if each < " " or each == "\ufffd" or "\ue000" <= each <= "\uf8ff")
    is_covered = covered >= COVERED * width * height > 0
    if letters and unknown > len(letters) / 2:
        part.unread = NO_UNICODE
    elif is_covered and len(text.split()) < FEW_WORDS:
        part.unread = ALMOST_A_PICTURE if letters else PICTURE
    elif not letters and (covered or drawn):
        part.unread = PICTURE if covered else DRAWN
    return part


def _joined(text: str) -> str:
    """Join lines that end with a hyphen as in any text: what follows is the rest of a word."""
    return text.replace(f"{_HYPHEN}\r\n", "").replace(_HYPHEN, "")


def _written(raw: Any, document: Any, page: Any, numbers: dict[str, int]) -> list[str]:
    """Return the values of the fields of a form, and what was written on the page; comments are counted."""
    texts = []
    for index in range(raw.FPDFPage_GetAnnotCount(page)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        is_hidden = raw.FPDFAnnot_GetFlags(annotation) & (raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW)
        if is_hidden:
            pass
        elif kind == raw.FPDF_ANNOT_WIDGET:
            form = raw.FPDFAnnot_GetFormFieldType(document.formenv, annotation) if document.formenv else -1
            if form in (raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX):
                texts.append(_string(raw.FPDFAnnot_GetFormFieldValue, document.formenv, annotation))
        elif kind == raw.FPDF_ANNOT_FREETEXT:
            texts.append(_string(raw.FPDFAnnot_GetStringValue, annotation, b"Contents"))
        elif kind == raw.FPDF_ANNOT_TEXT:
            numbers["comments"] += 1
        raw.FPDFPage_CloseAnnot(annotation)
    return [line for text in texts for line in text.splitlines() if line.strip()]


def _string(read: Any, *arguments: Any) -> str:
    """Return a text of PDFium's, which writes UTF-16 into a buffer of the length that it names first."""
    length = read(*arguments, None, 0)
    buffer = create_string_buffer(length)
    read(*arguments, cast(buffer, POINTER(c_ushort)), length)
    return buffer.raw[: max(0, length - 2)].decode("utf-16-le", "replace")
