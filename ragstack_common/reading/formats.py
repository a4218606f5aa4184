"""The formats that are read, and how to recognise them."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ragstack_common.settings.limits import MAX_DOCUMENT_BYTES

if TYPE_CHECKING:
    from _csv import Reader

MAX_PLAIN_BYTES: Final = 64 * 1024
"""Bytes of a text that is embedded together with others: about 40 chunks of 300 tokens."""

MAX_LIGHT_BYTES: Final = 1024 * 1024
"""Bytes of a document that can be processed within seconds."""

LIGHT_SECONDS: Final = 1.0
"""Maximum processor time to convert a light document. The sample files take less than 0.5 seconds each."""

SLOW: Final = 0
LIGHT: Final = 1
PLAIN: Final = 2
"""How quickly a document is processed: it may take long, it is small, or it is short and needs no conversion."""


class Format(NamedTuple):
    """A kind of file that is read.

    Attributes:
        title: What people call such files, in the plural.
        suffixes: Endings of their names, the usual one first.
    """

    name: str
    title: str
    media_type: str
    suffixes: tuple[str, ...]


_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
_OPEN: Final = "application/vnd.oasis.opendocument."

FORMATS: Final[Mapping[str, Format]] = {
    each.name: each
    for each in (
        Format("txt", "Text files", "text/plain", (".txt",)),
        Format("md", "Markdown files", "text/markdown", (".md",)),
        Format("html", "Web pages", "text/html", (".html", ".htm")),
        Format("doc", "Word 97-2003 documents", "application/msword", (".doc",)),
        Format("docx", "Word documents", f"{_OFFICE}wordprocessingml.document", (".docx", ".docm")),
        Format("csv", "CSV files", "text/csv", (".csv",)),
        Format("xls", "Excel 97-2003 workbooks", "application/vnd.ms-excel", (".xls",)),
        Format("xlsx", "Excel workbooks", f"{_OFFICE}spreadsheetml.sheet", (".xlsx", ".xlsm")),
        Format("pdf", "PDF files", "application/pdf", (".pdf",)),
        Format(
            "pptx", "PowerPoint presentations", f"{_OFFICE}presentationml.presentation", (".pptx", ".pptm", ".ppsx")
        ),
        Format("ppt", "PowerPoint 97-2003 presentations", "application/vnd.ms-powerpoint", (".ppt",)),
        Format("xlsb", "Binary Excel workbooks", "application/vnd.ms-excel.sheet.binary.macroenabled.12", (".xlsb",)),
        Format("odt", "OpenDocument texts", f"{_OPEN}text", (".odt",)),
        Format("odp", "OpenDocument presentations", f"{_OPEN}presentation", (".odp",)),
        Format("ods", "OpenDocument spreadsheets", f"{_OPEN}spreadsheet", (".ods",)),
        Format("rtf", "Rich text documents", "application/rtf", (".rtf",)),
        Format("epub", "E-books", "application/epub+zip", (".epub",)),
        Format("eml", "Mails", "message/rfc822", (".eml",)),
        Format("msg", "Outlook mails", "application/vnd.ms-outlook", (".msg",)),
        Format("mht", "Archives of web pages", "multipart/related", (".mht", ".mhtml")),
        Format("ipynb", "Jupyter notebooks", "application/x-ipynb+json", (".ipynb",)),
        Format("xml", "XML files", "application/xml", (".xml",)),
        Format("json", "JSON files", "application/json", (".json",)),
        Format("jsonl", "JSON Lines files", "application/jsonl", (".jsonl", ".ndjson")),
        Format("tsv", "Tab-separated files", "text/tab-separated-values", (".tsv",)),
        Format("rst", "reStructuredText files", "text/x-rst", (".rst",)),
        Format("org", "Org files", "text/x-org", (".org",)),
        Format("vtt", "WebVTT subtitles", "text/vtt", (".vtt",)),
        Format("srt", "SubRip subtitles", "application/x-subrip", (".srt",)),
        Format("png", "PNG images", "image/png", (".png",)),
        Format("jpg", "JPEG images", "image/jpeg", (".jpg", ".jpeg")),
        Format("tiff", "TIFF images", "image/tiff", (".tiff", ".tif")),
        Format("webp", "WebP images", "image/webp", (".webp",)),
        Format("gif", "GIF images", "image/gif", (".gif",)),
    )
}
"""Every format, in the order in which lists show them."""

_OF_SUFFIX: Final = {suffix: each for each in FORMATS.values() for suffix in each.suffixes}
MEDIA_TYPES: Final[Mapping[str, str]] = {suffix: each.media_type for suffix, each in _OF_SUFFIX.items()}

BEDROCK_SUFFIXES: Final = (".txt", ".md", ".html", ".htm", ".doc", ".docx", ".csv", ".xls", ".xlsx", ".pdf")
"""What Bedrock's default parser reads; files with other endings are converted to Markdown first.

Source: user guide of Knowledge Bases, formats of the default parser.
"""

MANAGED_SUFFIXES: Final = (*BEDROCK_SUFFIXES, ".ppt", ".pptx")
"""What managed knowledge bases read of the formats here, without pictures. Source: Amazon Bedrock User Guide,
kb-managed-connect-ds."""

READ_DIRECTLY: Final = ("txt", "md", "csv")
CONVERTED: Final = tuple(each for each in FORMATS if each not in READ_DIRECTLY)
IMAGES: Final = ("png", "jpg", "tiff", "webp", "gif")

WITH_PAGES: Final = ("pdf", *IMAGES)
"""Formats of which pages are shown as pictures."""

WITH_SHEETS: Final = ("xls", "xlsx", "xlsb", "ods")
"""Formats whose text has the name of each sheet as a heading."""

WITHOUT_HEADINGS: Final = ("pdf", "csv", "tsv", *WITH_SHEETS)
"""Formats whose text has no Markdown headings of sections; in a PDF, a line that begins with # is not one."""

MAX_TEXT_CHARACTERS: Final = 64 * 1024**2
"""Characters of the text of a file."""

DAMAGED: Final = "The .{} file is damaged or incomplete and could not be read ({})."
PROTECTED: Final = "The .{} file is protected by a password: remove the protection and upload it again."

_ZIP: Final = b"PK"
_OLE: Final = b"\xd0\xcf\x11\xe0"
_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")
"""Name of the stream with the content of an encrypted file. Source: MS-OFFCRYPTO, section 2.1."""

_BEGINNINGS: Final = {
    "pdf": (b"%PDF",),
    **dict.fromkeys(("docx", "xlsx", "pptx", "xlsb", "odt", "odp", "ods"), (_ZIP,)),
    "ppt": (_OLE,),
}


class UnreadableDocument(Exception):  # noqa: N818 - named as it is reported
    """The document cannot be indexed; the message is its status reason."""


class NotLight(Exception):  # noqa: N818 - not an error
    """Ingesting the document takes longer than was expected of it."""


def csv_reader(
    lines: Iterable[str], *, delimiter: str = ",", strict: bool = False, skipinitialspace: bool = False
) -> "Reader":
    """Return a reader of CSV whose cells may be as long as a document."""
    # Python's own limit is 131,072 characters, and any code of this process may set it.
    csv.field_size_limit(MAX_DOCUMENT_BYTES)
    return csv.reader(lines, delimiter=delimiter, strict=strict, skipinitialspace=skipinitialspace)


def _format_of(name: str) -> Format | None:
    """Return the format by a file name's extension; None if it is not supported."""
    return _OF_SUFFIX.get(_suffix(name))


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def is_supported(name: str) -> bool:
    """Whether a file name has the extension of a supported format."""
    return _format_of(name) is not None


def may_be_read(name: str) -> bool:
    """Whether a file may have a supported format: it has the extension of one, or none, so that its content decides."""
    return is_supported(name) or not _suffix(name)


def is_read_by_bedrock(name: str) -> bool:
    """Whether Bedrock's default parser takes files with such a name; others are converted first."""
    return _suffix(name) in BEDROCK_SUFFIXES


def is_image(name: str) -> bool:
    """Whether a file is a picture, by its extension."""
    found = _format_of(name)
    return found is not None and found.name in IMAGES


def has_sheets(name: str) -> bool:
    """Whether a file is a workbook, by its extension."""
    found = _format_of(name)
    return found is not None and found.name in WITH_SHEETS


def media_type(name: str) -> str:
    """Return the media type of a file with a supported extension, or without one."""
    return MEDIA_TYPES.get(_suffix(name), "application/octet-stream")


def of_name(name: str) -> str:
    """Return the format by a file name's extension.

    Raises:
        UnreadableDocument: The format is not supported.
    """
    return _of_suffix(_suffix(name), MEDIA_TYPES)


def of_content(data: bytes, name: str = "") -> str:
    """Return the format of a file by its content; the name's extension decides between kinds of text.

    Raises:
        UnreadableDocument: The file is empty, encrypted, or binary and of a format that is not read.
    """
    from ragstack_common.reading import detection  # noqa: PLC0415 - searches read names alone

    if not data.strip():
        raise UnreadableDocument("The file is empty.")
    hint = _format_of(name)
    try:
        return detection.recognized(data, hint.name if hint else "")
    except detection.EncryptedError:
        raise UnreadableDocument(PROTECTED.format(hint.name if hint else "docx")) from None
    except detection.UnrecognizedError as error:
        supported = ", ".join(FORMATS)
        raise UnreadableDocument(
            f"The file's content is {error}, which is not supported: use one of {supported}."
        ) from None


def is_read_by_managed(name: str) -> bool:
    """Whether managed knowledge bases read files with such a name."""
    return _suffix(name) in MANAGED_SUFFIXES


def of_bedrock(name: str) -> str:
    """Return the format by a file name's extension, if it is one of Bedrock's default parser.

    Raises:
        UnreadableDocument: Bedrock does not read such files.
    """
    return _of_suffix(_suffix(name), BEDROCK_SUFFIXES)


def _of_suffix(suffix: str, known: Iterable[str]) -> str:
    if suffix in known:
        return _OF_SUFFIX[suffix].name
    shown = f"The file type {suffix}" if suffix else "A file without an extension"
    supported = ", ".join(sorted({_OF_SUFFIX[each].name for each in known}))
    raise UnreadableDocument(f"{shown} is not supported: use one of {supported}.")


def of_mime_type(mime_type: str) -> str:
    """Return the format of Bedrock's default parser by a MIME type.

    Raises:
        UnreadableDocument: The format is not supported.
    """
    wanted = mime_type.split(";", maxsplit=1)[0].strip().lower()
    for suffix in BEDROCK_SUFFIXES:
        if MEDIA_TYPES[suffix] == wanted:
            return of_bedrock(f"document{suffix}")
    supported = ", ".join(dict.fromkeys(MEDIA_TYPES[suffix] for suffix in BEDROCK_SUFFIXES))
    raise UnreadableDocument(f"The MIME type {mime_type} is not supported: use one of {supported}.")


def of_request(request: Mapping[str, Any]) -> str:
    """Return the format of a submitted document: as given, by its MIME type, or by the extension of its URI.

    Raises:
        UnreadableDocument: The format is not supported.
    """
    if "format" in request:
        return str(request["format"])
    return of_mime_type(request["mimeType"]) if request.get("mimeType") else of_bedrock(request["uri"])


def speed(request: Mapping[str, Any], size: int) -> int:
    """Return how quickly a submitted document is likely to be processed: SLOW, LIGHT or PLAIN.

    Args:
        request: As :func:`of_request` takes it.
        size: Bytes; 0 if it is unknown.
    """
    if size > MAX_LIGHT_BYTES:
        return SLOW
    try:
        return LIGHT if of_request(request) in CONVERTED or size > MAX_PLAIN_BYTES else PLAIN
    except UnreadableDocument:  # fails at once
        return PLAIN


def check(data: bytes, file_format: str) -> None:
    """Check size and first bytes.

    Raises:
        UnreadableDocument: The file is empty, too large, or not what its extension says.
    """
    if len(data) > MAX_DOCUMENT_BYTES:
        raise UnreadableDocument(too_large(len(data)))
    if not data.strip():
        raise UnreadableDocument("The file is empty.")
    beginnings = _BEGINNINGS.get(file_format)
    if beginnings and not any(mark in data[:1024] for mark in beginnings):
        if data.startswith(_OLE):
            if _ENCRYPTED in data:
                raise UnreadableDocument(PROTECTED.format(file_format))
            raise UnreadableDocument(
                f"The file is in an older format, not a .{file_format} file: save it in the current format."
            )
        raise UnreadableDocument(f"The file's content is not that of a .{file_format} file: check its extension.")


def too_large(size: int) -> str:
    """Return the message for a document that is too large."""
    return f"The file has {size:,} bytes; the maximum is {MAX_DOCUMENT_BYTES:,} ({MAX_DOCUMENT_BYTES // 1024**2} MB)."


def too_much_text(file_format: str) -> str:
    """Return the reason why a file with more than ``MAX_TEXT_CHARACTERS`` is not read."""
    return f"The .{file_format} file has more than {MAX_TEXT_CHARACTERS:,} characters of text: split it."
