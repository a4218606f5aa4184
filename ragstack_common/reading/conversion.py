"""Read files as text: Markdown, or plain text with a form feed after each page of a PDF."""

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final, NamedTuple

from ragstack_common.reading import formats
from ragstack_common.reading.encodings import decoded
from ragstack_common.reading.formats import MAX_TEXT_CHARACTERS, UnreadableDocument, too_much_text

if TYPE_CHECKING:
    from ragstack_common.reading.mail.message import Mail
    from ragstack_common.reading.ocr.words import RecognizedPage

_FRONT_MATTER: Final = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?\n)?(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_TITLE: Final = re.compile(r"^title[ \t]*[:=][ \t]*(.+?)[ \t]*$", re.MULTILINE)
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_NOT_SHOWN: Final = re.compile(r"<!--.*?-->|<(script|style|template)\b[^>]*>.*?</\1\s*>", re.DOTALL | re.IGNORECASE)


class Attachment(NamedTuple):
    """A file within a mail; the name has no folders, and may be empty."""

    name: str
    data: bytes


class ReadText(NamedTuple):
    """The text of a file.

    Attributes:
        text: Markdown; of a PDF plain text, with a form feed after each page.
        title: None if the file names none.
        attachments: Of a mail, in its order.
        recognized: Its pages whose text was recognized in their pictures.
    """

    text: str
    title: str | None = None
    attachments: tuple[Attachment, ...] = ()
    recognized: "tuple[RecognizedPage, ...]" = ()


def read_directly(data: bytes, file_format: str, charset: str | None = None) -> ReadText:
    """Read a file that is text already, with one form of line ends.

    Raises:
        UnreadableDocument: It is not text.
    """
    text = decoded(data, charset).replace("\r\n", "\n").replace("\r", "\n")
    return _markdown(text) if file_format == "md" else ReadText(text)


def convert(
    data: bytes, file_format: str, charset: str | None = None, limits: AbstractContextManager[None] | None = None
) -> ReadText:
    """Read a file of a format that needs a reader.

    Args:
        data: The file.
        file_format: Its format.
        charset: The charset that the object in S3 names; for HTML.
        limits: Entered once the libraries are loaded, while they read the file.

    Raises:
        MemoryError: The limits do not allow the memory that the file needs.
        UnreadableDocument: The file is damaged, protected or hostile.
    """
    if file_format in formats.IMAGES:
        raise UnreadableDocument("It is a picture, whose text is read by recognition (OCR) alone.")
    read = _READERS[file_format]()
    try:
        with limits or nullcontext():
            found = read(data, charset)
    except (UnreadableDocument, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - a damaged file can raise any
        raise UnreadableDocument(explained(error, file_format)) from None
    if len(found.text) > MAX_TEXT_CHARACTERS:
        raise UnreadableDocument(too_much_text(file_format))
    return found._replace(text=_whole(found.text), title=_whole(found.title) if found.title else None)


_Reader = Callable[[bytes, str | None], ReadText]


def _pdf() -> _Reader:
    import pypdfium2  # noqa: F401, PLC0415

    from ragstack_common.reading.pdf.document import PdfDocument  # noqa: PLC0415

    def read(data: bytes, _: str | None) -> ReadText:
        pages: list[str] = []
        characters = 0
        with PdfDocument(data) as document:
            for number in range(1, len(document) + 1):
                pages.append(f"{document.text(number)}\f")
                characters += len(pages[-1])
                if characters > MAX_TEXT_CHARACTERS:
                    break
            if not any(page.strip() for page in pages):
                document.refuse_unread()
        return ReadText("".join(pages))

    return read


def _html() -> _Reader:
    from ragstack_common.reading.html import pages  # noqa: PLC0415

    return lambda data, charset: ReadText(*pages.read(data, charset))


def _doc() -> _Reader:
    from ragstack_common.reading.word import word97  # noqa: PLC0415

    return lambda data, _: ReadText(word97.read(data))


def _docx() -> _Reader:
    from ragstack_common.reading.word import document  # noqa: PLC0415

    return lambda data, _: ReadText(document.read(data))


def _odp() -> _Reader:
    from ragstack_common.reading.opendocument import presentations  # noqa: PLC0415

    return lambda data, _: ReadText(presentations.read(data))


def _ods() -> _Reader:
    from ragstack_common.reading.opendocument import spreadsheets  # noqa: PLC0415
    from ragstack_common.reading.sheets import sheet  # noqa: PLC0415

    return lambda data, _: ReadText(sheet.text(spreadsheets.OpenSpreadsheet(data).sheets()))


def _odt() -> _Reader:
    from ragstack_common.reading.opendocument import documents  # noqa: PLC0415

    return lambda data, _: ReadText(documents.read(data))


def _ppt() -> _Reader:
    from ragstack_common.reading.slides import powerpoint97  # noqa: PLC0415

    return lambda data, _: ReadText(powerpoint97.read(data))


def _pptx() -> _Reader:
    from ragstack_common.reading.slides import powerpoint  # noqa: PLC0415

    return lambda data, _: ReadText(powerpoint.read(data))


def _xlsx() -> _Reader:
    from ragstack_common.reading.sheets import sheet, workbooks  # noqa: PLC0415

    return lambda data, _: ReadText(sheet.text(workbooks.XlsxWorkbook(data).sheets()))


def _xlsb() -> _Reader:
    from ragstack_common.reading.sheets import binary, sheet  # noqa: PLC0415

    return lambda data, _: ReadText(sheet.text(binary.XlsbWorkbook(data).sheets()))


def _xls() -> _Reader:
    from ragstack_common.reading.sheets import sheet, workbooks  # noqa: PLC0415

    return lambda data, _: ReadText(sheet.text(workbooks.XlsWorkbook(data).sheets()))


def _eml() -> _Reader:
    from ragstack_common.reading.mail import eml  # noqa: PLC0415

    return lambda data, _: _of_mail(eml.read(data))


def _msg() -> _Reader:
    from ragstack_common.reading.mail import msg  # noqa: PLC0415

    return lambda data, _: _of_mail(msg.read(data))


def _rtf() -> _Reader:
    from ragstack_common.reading import rtf  # noqa: PLC0415

    return lambda data, _: ReadText(rtf.read(data))


def _epub() -> _Reader:
    from ragstack_common.reading.html import books  # noqa: PLC0415

    return lambda data, _: ReadText(*books.read(data))


def _mht() -> _Reader:
    from ragstack_common.reading.mail import archives  # noqa: PLC0415

    return lambda data, _: ReadText(*archives.read(data))


def _json() -> _Reader:
    from ragstack_common.reading.plain import json_files  # noqa: PLC0415

    return lambda data, charset: ReadText(json_files.read(data, charset))


def _ipynb() -> _Reader:
    from ragstack_common.reading.plain import notebooks  # noqa: PLC0415

    return lambda data, charset: ReadText(*notebooks.read(data, charset))


def _xml() -> _Reader:
    from ragstack_common.reading.plain import markup  # noqa: PLC0415

    return lambda data, charset: ReadText(markup.read(data, charset))


def _tsv() -> _Reader:
    from ragstack_common.reading.plain import separated  # noqa: PLC0415

    return lambda data, charset: ReadText(separated.read(data, charset))


def _subtitles() -> _Reader:
    from ragstack_common.reading.plain import subtitles  # noqa: PLC0415

    return lambda data, charset: ReadText(subtitles.read(data, charset))


def _rst() -> _Reader:
    from ragstack_common.reading.plain import restructured  # noqa: PLC0415

    return lambda data, charset: ReadText(restructured.read(data, charset))


def _org() -> _Reader:
    from ragstack_common.reading.plain import org  # noqa: PLC0415

    return lambda data, charset: ReadText(*org.read(data, charset))


def _of_mail(mail: "Mail") -> ReadText:
    return ReadText(mail.text, mail.subject or None, tuple(Attachment(each.name, each.data) for each in mail.files))


_READERS: Final[Mapping[str, Callable[[], _Reader]]] = {
    "doc": _doc,
    "docx": _docx,
    "eml": _eml,
    "epub": _epub,
    "html": _html,
    "ipynb": _ipynb,
    "json": _json,
    "jsonl": _json,
    "mht": _mht,
    "msg": _msg,
    "odp": _odp,
    "ods": _ods,
    "odt": _odt,
    "org": _org,
    "pdf": _pdf,
    "ppt": _ppt,
    "pptx": _pptx,
    "rst": _rst,
    "rtf": _rtf,
    "srt": _subtitles,
    "tsv": _tsv,
    "vtt": _subtitles,
    "xls": _xls,
    "xlsb": _xlsb,
    "xlsx": _xlsx,
    "xml": _xml,
}
"""Load the reader of a format with its libraries, before time and memory are limited."""


def _markdown(text: str) -> ReadText:
    """Leave out what a rendered Markdown file does not show: its front matter, whose title is kept, and comments."""
    title = None
    if front := _FRONT_MATTER.match(text):
        found = _FRONT_TITLE.search(front[2] or "")
        title = found[1].strip("\"'") if found else None
        text = text[front.end() :].lstrip("\n")
    if "<" in text:
        text = "".join(_NOT_SHOWN.sub("", part) if not is_code else part for part, is_code in _parts(text))
    return ReadText(text, title)


def _parts(text: str) -> list[tuple[str, bool]]:
    """Divide a text at its code blocks."""
    parts, begin, fence = [], 0, ""
    for found in _FENCE.finditer(text):
        if not fence:
            parts.append((text[begin : found.start()], False))
            begin, fence = found.start(), found[1]
        elif found[1].startswith(fence):
            parts.append((text[begin : found.end()], True))
            begin, fence = found.end(), ""
    parts.append((text[begin:], bool(fence)))
    return parts


def _whole(text: str) -> str:
    """Combine pairs of surrogates, and replace single ones."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def explained(error: Exception, file_format: str) -> str:
    """Return the reason why a file was not read that raised an error."""
    if isinstance(error, RecursionError):
        return f"The .{file_format} file is nested too deeply: save it again in a simpler form."
    message = f"{type(error).__name__}: {error}".splitlines()[0]
    if "encrypted" in message.lower():
        return formats.PROTECTED.format(file_format)
    return formats.DAMAGED.format(file_format, message[:120])
