"""The formats of Bedrock's default parser, and how to recognise them."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

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

MEDIA_TYPES: Final[Mapping[str, str]] = {
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".doc": "application/msword",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".csv": "text/csv",
    ".xls": "application/vnd.ms-excel",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pdf": "application/pdf",
}
"""The supported file types. Source: user guide of Knowledge Bases, formats of the default parser."""

_OTHER_EXTENSIONS: Final = {"htm": "html"}
_FORMATS: Final = tuple(each for suffix in MEDIA_TYPES if (each := suffix[1:]) not in _OTHER_EXTENSIONS)

READ_DIRECTLY: Final = ("txt", "md", "csv")
UNREADABLE_HERE: Final = ("doc",)
CONVERTED: Final = tuple(each for each in _FORMATS if each not in (*READ_DIRECTLY, *UNREADABLE_HERE))
WITH_HEADINGS: Final = ("md", "txt", "html", "docx")
"""Formats whose text has Markdown headings; in a PDF, a line that begins with # is not one."""

WITH_SHEETS: Final = ("xls", "xlsx")
"""Formats whose text has the name of each sheet as a heading."""

DAMAGED: Final = "The .{} file is damaged or incomplete and could not be read ({})."
PROTECTED: Final = "The .{} file is protected by a password: remove the protection and upload it again."

_ZIP: Final = b"PK"
_OLE: Final = b"\xd0\xcf\x11\xe0"
_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")
"""Name of the stream with the content of an encrypted file. Source: MS-OFFCRYPTO, section 2.1."""

_BEGINNINGS: Final = {"pdf": (b"%PDF",), "docx": (_ZIP,), "xlsx": (_ZIP,)}


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


def is_supported(name: str) -> bool:
    """Whether a file name has the extension of a supported format."""
    return PurePosixPath(name).suffix.lower() in MEDIA_TYPES


def media_type(name: str) -> str:
    """Return the media type of a supported file."""
    return MEDIA_TYPES[PurePosixPath(name).suffix.lower()]


def of_name(name: str) -> str:
    """Return the format by a file name's extension.

    Raises:
        UnreadableDocument: The format is not supported.
    """
    extension = PurePosixPath(name).suffix.lower().lstrip(".")
    extension = _OTHER_EXTENSIONS.get(extension, extension)
    if extension not in _FORMATS:
        shown = f"The file type .{extension}" if extension else "A file without an extension"
        raise UnreadableDocument(f"{shown} is not supported: use one of {', '.join(sorted(_FORMATS))}.")
    return extension


def of_mime_type(mime_type: str) -> str:
    """Return the format by a MIME type.

    Raises:
        UnreadableDocument: The format is not supported.
    """
    wanted = mime_type.split(";", maxsplit=1)[0].strip().lower()
    for suffix, known in MEDIA_TYPES.items():
        if known == wanted:
            return of_name(f"document{suffix}")
    supported = ", ".join(dict.fromkeys(MEDIA_TYPES.values()))
    raise UnreadableDocument(f"The MIME type {mime_type} is not supported: use one of {supported}.")


def of_request(request: Mapping[str, Any]) -> str:
    """Return the format of a submitted document: as given, by its MIME type, or by the extension of its URI.

    Raises:
        UnreadableDocument: The format is not supported.
    """
    if "format" in request:
        return str(request["format"])
    return of_mime_type(request["mimeType"]) if request.get("mimeType") else of_name(request["uri"])


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
    if file_format in UNREADABLE_HERE:
        raise UnreadableDocument(
            "The local Bedrock does not support Word 97-2003 files (.doc), unlike Amazon Bedrock: save it as .docx."
        )
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
