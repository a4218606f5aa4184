"""Recognize the format of a file by its content.

The name's extension is a hint: it decides between kinds of text that look alike, such as Markdown and plain text. No
more than the beginning of a file and the lists of its parts are read.

Sources of signatures: the specifications of the formats, and RFC 5322 for mails.
"""

import csv
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Final

from ragstack_common.reading.ole import SIGNATURE, CompoundFile

_BEGINNING_BYTES: Final = 64 * 1024
_MAX_JSON_BYTES: Final = 1 << 20
"""Bytes of a file that is parsed to see whether it is JSON; of a larger one, the first and last characters decide."""

_MAX_DIRECTORY_BYTES: Final = 8 << 20
"""Bytes of the list of files in an archive: about 100,000 files. Office files have hundreds."""

_MAX_CONTROLS: Final = 0.02
_SAMPLED_ROWS: Final = 50
_TEXT_HINTS: Final = frozenset({"md", "csv", "rst", "org", "tsv", "srt"})
"""Formats that only the extension tells from other text."""

_ZIPS: Final = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_BIFF: Final = (b"\x09\x08", b"\x09\x04\x06\x00", b"\x09\x02\x06\x00", b"\x09\x00\x04\x00")
"""Workbooks before Excel 5, and those without a compound file around them."""

_SIGNATURES: Final[Mapping[bytes, str]] = {
    b"\x89PNG\r\n\x1a\n": "png",
    b"\xff\xd8\xff": "jpg",
    b"GIF87a": "gif",
    b"GIF89a": "gif",
    b"II*\x00": "tiff",
    b"MM\x00*": "tiff",
    b"II+\x00": "tiff",
    b"MM\x00+": "tiff",
}
_OTHERS: Final[Mapping[bytes, str]] = {
    b"\x1f\x8b": "an archive (gzip)",
    b"7z\xbc\xaf\x27\x1c": "an archive (7z)",
    b"Rar!\x1a\x07": "an archive (rar)",
    b"BZh": "an archive (bzip2)",
    b"\xfd7zXZ\x00": "an archive (xz)",
    b"\x28\xb5\x2f\xfd": "an archive (zstd)",
    b"MSCF": "an archive (cab)",
    b"\x1aE\xdf\xa3": "a video",
    b"FLV\x01": "a video",
    b"\x00\x00\x01\xba": "a video",
    b"\x00\x00\x01\xb3": "a video",
    b"0&\xb2u\x8e\x66\xcf\x11": "a video",
    b"ID3": "a sound file",
    b"\xff\xfb": "a sound file",
    b"\xff\xf3": "a sound file",
    b"\xff\xf1": "a sound file",
    b"OggS": "a sound file",
    b"fLaC": "a sound file",
    b"MThd": "a sound file",
    b"#!AMR": "a sound file",
    b"8BPS": "a Photoshop image",
    b"BM": "a bitmap image",
    b"\x00\x00\x01\x00": "an icon",
    b"\x00\x00\x00\x0cjP  ": "a JPEG 2000 image",
    b"AT&TFORM": "a DjVu document",
    b"%!PS": "a PostScript file",
    b"\xc5\xd0\xd3\xc6": "a PostScript file",
    b"MZ": "a program",
    b"\x7fELF": "a program",
    b"\xca\xfe\xba\xbe": "a program",
    b"\xcf\xfa\xed\xfe": "a program",
    b"\x00asm": "a program",
    b"SQLite format 3\x00": "a database",
    b"\x00\x01\x00\x00Standard ": "a database",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"\x89HDF\r\n\x1a\n": "an HDF file",
    b"\x00\x01\x00\x00\x00": "a font",
    b"OTTO": "a font",
    b"wOFF": "a font",
    b"wOF2": "a font",
    b"!BDN": "an Outlook data file",
    b"\x78\x9f\x3e\x22": "a winmail.dat file of Outlook",
    b"\xffWPC": "a WordPerfect document",
    b"\xe4\x52\x5c\x7b\x8c\xd8\xa7\x4d": "a OneNote file",
    b"\xdb\xa5": "a document of Word 2 or earlier",
    b"ITSF": "a compiled help file",
    b"AC10": "a drawing (dwg)",
}
_OF_BRANDS: Final = {"heic": "a HEIC image", "heix": "a HEIC image", "mif1": "a HEIC image", "avif": "an AVIF image",
                     "M4A ": "a sound file"}  # fmt: skip
_OF_RIFF: Final = {b"AVI ": "a video", b"WAVE": "a sound file"}
_OF_STREAMS: Final = {
    "encryptedpackage": "", "__properties_version1.0": "msg", "powerpoint document": "ppt", "workbook": "xls",
    "book": "xls", "worddocument": "doc",
}  # fmt: skip
"""Formats by a stream in the root of their compound files. An encrypted file has no format."""

_OF_CONTENT_TYPES: Final = (
    (rb"(?:wordprocessingml\.(?:document|template)|ms-word\.\w+\.macroenabled\w*)\.main", "docx"),
    (rb"ms-excel\.sheet\.binary\.macroenabled\.main", "xlsb"),
    (rb"(?:spreadsheetml\.(?:sheet|template)|ms-excel\.\w+\.macroenabled)\.main", "xlsx"),
    (rb"(?:presentationml\.(?:presentation|slideshow|template)|ms-powerpoint\.\w+\.macroenabled)\.main", "pptx"),
)
_OF_FOLDERS: Final = (("word/", "docx"), ("xl/workbook.bin", "xlsb"), ("xl/", "xlsx"), ("ppt/", "pptx"))
_OF_MIMETYPES: Final = (
    (b"application/epub+zip", "epub"),
    (b"oasis.opendocument.text", "odt"),
    (b"oasis.opendocument.presentation", "odp"),
    (b"oasis.opendocument.spreadsheet", "ods"),
)
_PACKAGES: Final = frozenset({"docx", "xlsx", "xlsb", "pptx", "odt", "odp", "ods", "epub"})
_OLD_OFFICE: Final = frozenset({"doc", "xls", "ppt", "msg"})
_ZIP_ERRORS: Final = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, NotImplementedError, OSError)

_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_HEADER: Final = re.compile(r"([A-Za-z][\w-]{0,70}):(?:[ \t]|$)")
_MAIL_HEADERS: Final = frozenset({
    "from", "to", "cc", "subject", "date", "message-id", "received", "mime-version", "return-path", "delivered-to",
    "reply-to", "sender", "content-type", "content-transfer-encoding", "x-mailer", "dkim-signature", "arc-seal",
    "x-received", "snapshot-content-location",
})  # fmt: skip
_CERTAIN_HEADERS: Final = frozenset(
    {"message-id", "received", "mime-version", "return-path", "delivered-to", "dkim-signature", "x-received"}
)
_MIN_HEADERS: Final = 2
_ARCHIVE: Final = re.compile(r"^content-type:\s*multipart/related", re.IGNORECASE | re.MULTILINE)
_SAVED_PAGE: Final = re.compile(
    r"^(?:from:\s*[\"<]*saved by|snapshot-content-location:|x-mimeole:.*mimeole)", re.IGNORECASE | re.MULTILINE
)
_COMMENTS: Final = re.compile(r"(?:\s+|<!--.*?-->|<\?.*?\?>)*", re.DOTALL)
_PAGE: Final = re.compile(r"<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_PART_OF_PAGE: Final = re.compile(
    r"<(?:head|body|title|meta|style|script|table|div|center|font|h[1-6]|p|ul|ol|frameset)\b", re.IGNORECASE
)
_ELEMENT: Final = re.compile(r"<(?:[A-Za-z_][\w.:-]*[\s/>]|!DOCTYPE\s+[\w.:-]+)")
_CUE: Final = re.compile(r"\s*\d+[ \t]*\r?\n\d{1,3}:\d\d:\d\d[,.]\d{1,3}[ \t]+-->")
_SUBTITLES: Final = re.compile(r"WEBVTT(?:[ \t\r\n]|$)")
_JSON: Final = re.compile(r'\s*(?:\{\s*["}]|\[\s*(?:["{\[\]\d-]|true|false|null))')


class UnrecognizedError(ValueError):
    """The content of the file is not read; the message says what it is, such as ``a video``."""


class EncryptedError(ValueError):
    """The file is an office document that is protected by a password."""


def recognized(data: bytes, hint: str = "") -> str:
    """Return the format of a file that is not empty.

    Args:
        data: The file.
        hint: The format that its name's extension says; empty if there is none.

    Raises:
        UnrecognizedError: The file is binary, and of a format that is not read.
        EncryptedError: It is an encrypted office document.
    """
    found = _by_signature(data, hint)
    if found:
        return found
    text = _beginning(data)
    if text is None:
        raise UnrecognizedError(_described(data) or "binary, in an unknown format")
    return _of_text(data, text, hint)


def encoding_of_nulls(data: bytes) -> str | None:
    """Return the encoding of a text in UTF-16 without a byte order mark; None if it is something else.

    Every second byte of such a text is null wherever it is in Latin letters.
    """
    sample = data[:4096]
    for first, encoding in ((0, "utf-16-be"), (1, "utf-16-le")):
        zeros, others = sample[first::2], sample[1 - first :: 2]
        if len(zeros) > 1 and zeros.count(0) > len(zeros) / 2 and others.count(0) * 20 < len(others):
            return encoding
    return None


def _by_signature(data: bytes, hint: str) -> str:
    """Return the format by the first bytes; empty if they say nothing."""
    if data.startswith(_ZIPS):
        return _of_archive(data, hint)
    if data.startswith(SIGNATURE[:4]):
        return _of_compound_file(data, hint)
    for mark, name in _SIGNATURES.items():
        if data.startswith(mark):
            return name
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    begin = data[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()
    if begin.startswith(b"{\\rtf"):
        return "rtf"
    if begin.startswith(b"%PDF-") or (b"%PDF-" in begin and b"startxref" in data[-2048:]):
        return "pdf"
    return "xls" if data.startswith(_BIFF) else ""


def _described(data: bytes) -> str:
    """Return what a binary file is that is not read; empty if it is unknown."""
    if data[4:8] == b"ftyp":
        return _OF_BRANDS.get(data[8:12].decode("latin-1"), "a video")
    if data[:4] == b"RIFF":
        return _OF_RIFF.get(data[8:12], "")
    if data[257:262] == b"ustar":
        return "an archive (tar)"
    if data[60:68] in (b"BOOKMOBI", b"TEXtREAd"):
        return "an e-book for Kindle"
    return next((what for mark, what in _OTHERS.items() if data.startswith(mark)), "")


def _of_archive(data: bytes, hint: str) -> str:
    end = data.rfind(b"PK\x05\x06", -65_557)
    directory = struct.unpack_from("<I", data, end + 12)[0] if 0 <= end <= len(data) - 16 else 0
    if directory > _MAX_DIRECTORY_BYTES:
        raise UnrecognizedError("an archive (zip)")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = {each.replace("\\", "/").lower(): each for each in archive.namelist()}
            found = _of_parts(archive, names)
    except _ZIP_ERRORS:
        # Its reader explains how it is damaged.
        found = next((name for part, name in _OF_FOLDERS if b"PK\x03\x04" in data and part.encode() in data), "")
        found = found or next((name for mark, name in _OF_MIMETYPES if mark in data[:200]), "")
        found = found or (hint if hint in _PACKAGES else "")
        names = {}
    if found:
        return found
    if any(name.endswith((".iwa", "index.apxl")) for name in names):
        raise UnrecognizedError("a document of Pages, Numbers or Keynote (save it as .docx, .xlsx, .pptx or .pdf)")
    raise UnrecognizedError("an archive (zip)")


def _of_parts(archive: zipfile.ZipFile, names: Mapping[str, str]) -> str:
    """Return the format of a package by what it says of its parts; empty if it says nothing."""

    def part(name: str) -> bytes:
        with archive.open(names[name]) as opened:
            return opened.read(_BEGINNING_BYTES)

    if "[content_types].xml" in names:
        types = part("[content_types].xml").replace(b"\0", b"")
        found = next((name for pattern, name in _OF_CONTENT_TYPES if re.search(pattern, types, re.IGNORECASE)), "")
        if found:
            return found
    for source in ("mimetype", "meta-inf/manifest.xml"):
        if source in names:
            said = part(source)
            if found := next((name for mark, name in _OF_MIMETYPES if mark in said), ""):
                return found
            if b"oasis.opendocument" in said:
                raise UnrecognizedError("a drawing or formula of LibreOffice")
    if "meta-inf/container.xml" in names:
        return "epub"
    return next((name for folder, name in _OF_FOLDERS if any(each.startswith(folder) for each in names)), "")


def _of_compound_file(data: bytes, hint: str) -> str:
    try:
        streams = {name.lower() for name in CompoundFile(data).names()}
    except (ValueError, struct.error):
        streams = set()
    if not streams:
        streams = {name for name in _OF_STREAMS if re.search(name.encode("utf-16-le"), data, re.IGNORECASE)}
    for stream, name in _OF_STREAMS.items():
        if stream in streams:
            if not name:
                raise EncryptedError
            return name
    if hint in _OLD_OFFICE:
        return hint  # its reader explains how it is damaged
    raise UnrecognizedError("a compound file of another program than Word, Excel, PowerPoint and Outlook")


def _beginning(data: bytes) -> str | None:
    """Return the beginning of a text, in which at least the letters of ASCII are right; None if it is binary."""
    sample = data[:_BEGINNING_BYTES]
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return sample[len(mark) :].decode(encoding, "replace")
    wide = encoding_of_nulls(sample)
    text = sample.decode(wide or "latin-1", "replace")
    controls = sum(1 for each in text if each < " " and each not in "\t\n\r\f\v\x1b\x1a")
    return text if controls <= _MAX_CONTROLS * len(text) else None


def _of_text(data: bytes, text: str, hint: str) -> str:
    if _SUBTITLES.match(text):
        return "vtt"
    if _CUE.match(text):
        return "srt"
    headers = _headers(text)
    needed = 1 if hint in ("eml", "mht") else _MIN_HEADERS
    if len(headers) >= needed and (headers & _CERTAIN_HEADERS or hint not in _TEXT_HINTS):
        head = re.split(r"\r?\n\r?\n", text, maxsplit=1)[0]
        is_archive = _ARCHIVE.search(head) and (hint == "mht" or _SAVED_PAGE.search(head))
        return "mht" if is_archive else "eml"
    begins_at = _COMMENTS.match(text)
    begin = text[begins_at.end() if begins_at else 0 :][:200]
    if _PAGE.match(begin):
        return "html"
    if hint in _TEXT_HINTS and not text.lstrip().startswith("<?xml"):
        return hint
    if text.lstrip().startswith("<?xml") or (hint == "xml" and begin.startswith("<")):
        return "xml"
    if _PART_OF_PAGE.match(begin) and hint != "txt":
        return "html"
    if _ELEMENT.match(begin) and data[-200:].replace(b"\0", b"").rstrip().endswith(b">"):
        return "xml"
    return _of_json(data, text) or _of_separators(text, hint) or "txt"


def _headers(text: str) -> set[str]:
    """Return the headers of mails with which a text begins, in lower case; none if it begins with other lines."""
    found: set[str] = set()
    for place, line in enumerate(text.lstrip("\r\n").splitlines()):
        if not line.strip():
            break
        header = _HEADER.match(line)
        if header:
            found.add(header[1].lower())
        elif not (place and line[0] in " \t") and not (place == 0 and line.startswith("From ")):
            return set()
    return found & _MAIL_HEADERS


def _of_json(data: bytes, text: str) -> str:
    if not _JSON.match(text):
        return ""
    plain = data.replace(b"\0", b"").rstrip()
    line, _, rest = text.lstrip().partition("\n")
    if rest.strip() and _is_json(line) and rest.lstrip()[:1] in "{[":
        return "jsonl"
    if plain[-1:] not in (b"}", b"]") or (len(data) <= _MAX_JSON_BYTES and not _is_json(data)):
        return ""
    return "ipynb" if b'"nbformat"' in data and b'"cells"' in data else "json"


def _is_json(text: str | bytes) -> bool:
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _of_separators(text: str, hint: str) -> str:
    """Return tsv or csv if all lines have the same number of cells."""
    if hint == "txt":
        return ""
    lines = text.splitlines()[:_SAMPLED_ROWS]
    if len(text) == _BEGINNING_BYTES:
        lines = lines[:-1]
    for delimiter, name in (("\t", "tsv"), (",", "csv"), (";", "csv")):
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            continue
        # Lines of prose have as many commas by chance.
        needed = 2 if delimiter == "\t" or hint in ("xls", "xlsx") else 3
        if len(widths) >= needed and min(widths) > 1 and len(set(widths)) == 1:
            return name
    return ""
