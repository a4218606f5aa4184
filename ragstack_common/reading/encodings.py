"""Decode text files: as they say, as UTF-8, or in the encoding that is most likely for their language.

A byte order mark decides, then the charset that the object in S3 names, then UTF-8. A file of UTF-8 with a few wrong
bytes stays UTF-8, and each wrong place becomes one replacement character. For the rest, chardet's models decide;
benchmarks/charsets.py compares it with other detectors.
"""

import codecs
import re
from typing import Final

from ragstack_common.reading.detection import encoding_of_nulls
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.text.characters import is_dense

_DETECTED_ON: Final = 64 * 1024
"""Bytes from which an encoding is guessed."""

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SEVEN_BITS: Final = re.compile(rb"\x1b[$(]|~\{|\+[A-Za-z0-9/]{2,}-")
_LEGACY: Final = frozenset({
    "ascii", "big5hkscs", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257",
    "cp1258", "cp437", "cp720", "cp850", "cp852", "cp855", "cp857", "cp862", "cp866", "cp874", "cp932", "cp949",
    "euc_jis_2004", "euc_kr", "gb18030", "hz", "iso2022_jp_2", "iso2022_jp_2004", "iso2022_jp_ext",
    "iso2022_kr", "iso8859-2", "iso8859-5", "iso8859-6", "iso8859-7", "iso8859-8", "iso8859-9", "iso8859-13",
    "iso8859-15", "johab", "koi8-r", "koi8-u", "mac-cyrillic", "mac-greek", "mac-latin2", "mac-roman",
    "mac-turkish", "shift_jis_2004", "tis-620", "utf-7", "utf-8", "utf-16-be", "utf-16-le", "utf-32-be",
    "utf-32-le",
})  # fmt: skip
MIN_CONFIDENCE: Final = 0.05
"""Confidence of chardet below which a text is refused, unless it is Chinese, Japanese or Korean.

Of 247 texts of 20 bytes in legacy encodings, it refuses 7 that would be read right, and 5 of 19 that would be read
wrong; of 363 with 200 bytes, one and two of 5.
"""

_OF_PYTHON: Final = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape"})
"""Codecs that no file names, and that would read something else than it shows."""

_MAX_CONTROLS: Final = 0.02
_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)


def charset_of(content_type: str | None) -> str | None:
    """Return the charset of a media type such as ``text/plain; charset=iso-8859-1``; None without one or if unknown."""
    found = _CHARSET.search(content_type or "")
    return known(found[1]) if found else None


def known(charset: str) -> str | None:
    """Return Python's name of a charset; ISO 8859-1 is read as Windows-1252, as browsers do. None if it is unknown."""
    try:
        name = codecs.lookup(charset.strip()).name
        "".encode(name)
    except (LookupError, ValueError):  # base64 is a codec of Python, but not of text
        return None
    if name in _OF_PYTHON:
        return None
    return {"iso8859-1": "cp1252", "ascii": "cp1252", "shift_jis": "cp932", "gb2312": "gb18030", "gbk": "gb18030"}.get(
        name, name
    )


def decoded(data: bytes, charset: str | None = None) -> str:
    """Decode a text file.

    Args:
        data: The file.
        charset: What the object says of its encoding, as :func:`charset_of` returns it.

    Raises:
        UnreadableDocument: It is not text, or in an encoding that is not certain enough.
    """
    text = _decoded(data, charset).removeprefix("\ufeff")
    sample = text[: 4 * _DETECTED_ON]
    controls = sum(1 for character in sample if character < " " and character not in "\t\n\r\f\v\x1b")
    if controls > _MAX_CONTROLS * len(sample):
        raise UnreadableDocument("The file's content is not text: check its extension.")
    return text


def _decoded(data: bytes, charset: str | None) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if wide := encoding_of_nulls(data):
        return data.decode(wide, "replace")
    # S3 clients write charset=utf-8 for any text: it is believed if it is true.
    if charset and charset != "utf-8":
        return data.decode(charset, "replace")
    if not data.isascii() or not _SEVEN_BITS.search(data):
        text = _utf_8(data)
        if text is not None:
            return text
    return _detected(data)


def _utf_8(data: bytes) -> str | None:
    """Decode UTF-8 with at most a few wrong bytes; None if it is something else."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
    wrong = text.count("\ufffd") - data.count("\ufffd".encode())
    right = sum(1 for character in text if character > "\x7f") - wrong
    return text if right >= max(2, 4 * wrong) else None


def _detected(data: bytes) -> str:
    import chardet  # noqa: PLC0415 - rarely needed

    # Its supersets are none for ISO 8859-2, -5 and -7, whose letters have other places in the code pages of Windows.
    found = chardet.detect(
        data[:_DETECTED_ON],
        prefer_superset=False,
        compat_names=False,
        include_encodings=_LEGACY,
        no_match_encoding="utf-8",
    )
    text = data.decode(known(found["encoding"] or "") or "utf-8", "replace")
    if found["confidence"] < MIN_CONFIDENCE and not any(map(is_dense, text[:_DETECTED_ON])):
        raise UnreadableDocument("The encoding of the file is unknown: save it as UTF-8.")
    return text
