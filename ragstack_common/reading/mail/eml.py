"""Mails in the format of the internet (eml).

The headers are decoded here: ``email.policy.default`` needs 1.6 seconds for 5,000 recipients and four times as much for
twice as many, and raises errors for some damaged headers.

Sources: RFC 5322 (messages), RFC 2045 to 2047 (parts and encoded words), RFC 2231 (parameters), RFC 5652 (signatures).
"""

import binascii
import email
import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from email.utils import collapse_rfc2231_value
from typing import Any, Final
from urllib.parse import unquote

from ragstack_common.reading import formats
from ragstack_common.reading.detection import encoding_of_nulls
from ragstack_common.reading.encodings import decoded, known
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.mail import message
from ragstack_common.reading.mail.message import Mail

ENCRYPTED: Final = "The mail is encrypted ({}): save it decrypted in your mail program, and upload it again."
_PGP: Final = "-----BEGIN PGP MESSAGE-----"
_SIGNED_TEXT: Final = re.compile(
    r"-----BEGIN PGP SIGNED MESSAGE-----\s*\n(?:[\w-]+:.*\n)*\s*\n(.*?)\n-----BEGIN PGP SIGNATURE-----"
    r".*?-----END PGP SIGNATURE-----",
    re.DOTALL,
)
_MARK: Final = b"\xef\xbb\xbf"
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")
_ENCODED_WORD: Final = re.compile(r"=\?([^?\s*]+)(?:\*[^?\s]*)?\?([bBqQ])\?([^?]*)\?=")
_BETWEEN_WORDS: Final = re.compile(r"(?<=\?=)\s+(?==\?[^?\s]+\?[bBqQ]\?)")
_NO_BASE64: Final = re.compile(rb"[^A-Za-z0-9+/]")
_FOLD: Final = re.compile(r"\r?\n[ \t]*|\r")
_CID: Final = re.compile(r"\bcid:([^\"'\s<>)]+)", re.IGNORECASE)
_SIGNATURES: Final = frozenset(
    {"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"}
)
_ENVELOPES: Final = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime"})
_SIGNED_DATA: Final = bytes.fromhex("06092a864886f70d010702")
_DATA: Final = bytes.fromhex("06092a864886f70d010701")
"""Object identifiers of signed data, and of the data in it. Source: RFC 5652, sections 4 and 5.1."""

_SPOKEN_REPORTS: Final = frozenset({"message/delivery-status", "message/disposition-notification"})
_TEXTS: Final = frozenset({"text/plain", "text/html", "text/markdown", "text/enriched", "text/richtext"})
_TAG_OF_ENRICHED: Final = re.compile(r"<param>.*?</param>|</?[A-Za-z-]{1,60}>", re.DOTALL | re.IGNORECASE)
_ENCODINGS: Final = ("base64", "quoted-printable")
_MAX_LEVELS: Final = 100


def read(data: bytes) -> Mail:
    """Read a mail.

    Raises:
        UnreadableDocument: It is encrypted.
    """
    wide = "utf-16" if data.startswith(_WIDE) else encoding_of_nulls(data)
    if wide:
        data = data.decode(wide, "replace").encode()
    is_utf_8 = wide is not None or data.startswith(_MARK)
    return to_mail(email.message_from_bytes(data.removeprefix(_MARK).lstrip(b"\r\n")), is_utf_8=is_utf_8)


def to_mail(parsed: Message, *, is_utf_8: bool = False) -> Mail:
    """Return a parsed mail as people see it.

    Args:
        parsed: The mail.
        is_utf_8: Whether all of it is UTF-8, whatever it says of its parts.
    """
    contents = _Contents(is_utf_8)
    body = contents.read(parsed)
    headers = {name: message.people(header(parsed, name)) for name in message.SHOWN_HEADERS}
    headers["Date"] = message.date(header(parsed, "Date"))
    files = message.named(contents.attached())
    return Mail(header(parsed, "Subject"), headers, body, tuple(files))


def header(parsed: Message, name: str) -> str:
    """Return a header in one line, with its encoded words decoded; several of one name with commas between them."""
    found = [str(value) for own, value in parsed.raw_items() if own.lower() == name.lower()]
    return ", ".join(filter(None, map(decoded_header, found)))


def decoded_header(value: str) -> str:
    """Return the value of a header as people see it."""
    text = _FOLD.sub(" ", _in_unicode(value))
    pieces: list[tuple[str | None, bytes]] = []
    written, place = "", 0
    text = _BETWEEN_WORDS.sub("", text)
    for found in (*_ENCODED_WORD.finditer(text), None):
        between = text[place : found.start() if found else len(text)]
        if pieces and (between or found is None or found[1].lower() != pieces[-1][0]):
            # A character may be divided between two words.
            written += _text(b"".join(piece for _, piece in pieces), pieces[0][0])
            pieces = []
        written += between
        if found:
            pieces.append((found[1].lower(), _bytes_of_word(found[2].lower(), found[3])))
            place = found.end()
    return " ".join(written.split())


def _bytes_of_word(kind: str, content: str) -> bytes:
    raw = content.encode("utf-8", "replace")
    if kind == "q":
        return quopri.decodestring(raw, header=True)
    return _base64(raw)


def _base64(data: bytes) -> bytes:
    """Decode base64 as far as it goes, with or without the signs at its end."""
    letters = _NO_BASE64.sub(b"", data)
    return binascii.a2b_base64(letters[: len(letters) - (len(letters) % 4 == 1)] + b"==")


def _in_unicode(value: str) -> str:
    """Return a header in which bytes were kept, which mail programs write in any encoding."""
    try:
        return _text(value.encode("ascii", "surrogateescape"), None)
    except UnicodeEncodeError:
        return value


def _text(data: bytes, charset: str | None) -> str:
    """Decode what should be in a charset; if it is unknown or wrong, in the most likely one."""
    name = known(charset) if charset and charset.lower() not in ("us-ascii", "ascii", "utf-8") else None
    if name:
        return data.decode(name, "replace")
    try:
        return decoded(data)
    except UnreadableDocument:
        return data.decode("utf-8" if charset == "utf-8" else "cp1252", "replace")


@dataclass
class _Contents:
    """The parts of a mail."""

    is_utf_8: bool = False
    pages: list[str] = field(default_factory=list)
    """Source of the pages in the body, which refer to pictures."""

    files: list[tuple[str, Message]] = field(default_factory=list)
    messages: dict[int, bytes] = field(default_factory=dict)

    def read(self, part: Message, depth: int = 0) -> str:
        """Return the Markdown of a part of the body, and collect the attached files."""
        if depth > _MAX_LEVELS:
            raise RecursionError
        kind = part.get_content_type()
        if kind in _ENVELOPES and not (depth and _is_attached(part)):
            return self.read(email.message_from_bytes(opened_signature(_content(part))), depth + 1)
        if kind == "multipart/encrypted":
            raise UnreadableDocument(ENCRYPTED.format("PGP"))
        if part.is_multipart() and kind.startswith("multipart/"):
            return self._read_parts(part, kind, depth)
        if kind in _SPOKEN_REPORTS and part.is_multipart():
            lines = [
                f"{name}: {decoded_header(str(value))}" for each in _parts(part) for name, value in each.raw_items()
            ]
            return message.plain_text("\n".join(lines))
        if depth and (kind not in _TEXTS or _is_attached(part)):
            if kind not in _SIGNATURES:
                self.files.append((kind, part))
            return ""
        return self._text(part, kind)

    def _read_parts(self, part: Message, kind: str, depth: int) -> str:
        parts = _parts(part)
        if kind == "multipart/alternative":
            return self._best_of(parts, depth)
        if kind == "multipart/related" and (start := part.get_param("start")):
            parts.sort(key=lambda each: _identifier(each) != str(start).strip("<> "))
        return "\n\n".join(filter(None, (self.read(each, depth + 1) for each in parts)))

    def _best_of(self, parts: list[Message], depth: int) -> str:
        """Return the page of alternatives, or the text if it says more; the others are left out."""
        page = text = ""
        for each in parts:
            kind = each.get_content_type()
            if kind.startswith("multipart/") or kind in _TEXTS:
                pages_before = len(self.pages)
                found = self.read(each, depth + 1)
                if len(self.pages) > pages_before:
                    page = found
                else:
                    text = text or found
            elif _is_attached(each) or kind == "text/calendar":
                self.files.append((kind, each))
        return message.page_or_text(page, text)

    def _text(self, part: Message, kind: str) -> str:
        data = _content(part)
        charset = str(part.get_content_charset("") or "")
        if self.is_utf_8 and header(part, "Content-Transfer-Encoding").lower() not in _ENCODINGS:
            charset = "utf-8"
        if kind == "text/html":
            name = None if charset in ("", "us-ascii") else known(charset)
            self.pages.append(_text(data, name))
            return message.page_text(data, name)
        text = _text(data, charset)
        if text.lstrip().startswith(_PGP):
            raise UnreadableDocument(ENCRYPTED.format("PGP"))
        text = _SIGNED_TEXT.sub(lambda found: re.sub("^- ", "", found[1], flags=re.MULTILINE), text)
        if kind == "text/markdown":
            return text
        if kind != "text/plain":
            text = _TAG_OF_ENRICHED.sub("", text)
        return message.plain_text(
            text,
            flowed=_parameter(part, "format") == "flowed",
            without_spaces=_parameter(part, "delsp") == "yes",
        )

    def attached(self) -> Iterator[tuple[str, str, bytes]]:
        """Yield the name, media type and content of each attached file; pictures within a page are none."""
        shown = {unquote(name) for page in self.pages for name in _CID.findall(page)}
        for kind, part in self.files:
            if kind.startswith("image/") and _identifier(part) in shown:
                continue
            if kind == "message/rfc822":
                inner = _attached_message(part)
                subject = header(email.message_from_bytes(inner), "Subject")
                yield message.attached_message_name(subject), kind, inner
            elif data := _content(part):
                yield _file_name(part), kind, data


def _parts(part: Message) -> list[Message]:
    payload: Any = part.get_payload()
    return [each for each in payload if isinstance(each, Message)] if isinstance(payload, list) else []


def _content(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    if isinstance(payload, bytes):
        return payload
    return b"\n".join(bytes(each) for each in _parts(part))


def _is_attached(part: Message) -> bool:
    return part.get_content_disposition() == "attachment" or bool(_file_name(part))


def _identifier(part: Message) -> str:
    return header(part, "Content-ID").strip("<> ")


def _parameter(part: Message, name: str) -> str:
    value = part.get_param(name)
    return str(value).lower() if isinstance(value, str) else ""


def _file_name(part: Message) -> str:
    for own, parameter in (("content-disposition", "filename"), ("content-type", "name")):
        whole = Message()
        whole[own] = _in_unicode(next((str(value) for name, value in part.raw_items() if name.lower() == own), ""))
        if value := whole.get_param(parameter, None, own):
            return decoded_header(collapse_rfc2231_value(value))
    return ""


def _attached_message(part: Message) -> bytes:
    """Return an attached mail, which some programs encode although they must not."""
    inner = next(iter(_parts(part)), None)
    if inner is None:
        return _content(part)
    data = bytes(inner)
    encoding = header(part, "Content-Transfer-Encoding").lower()
    if encoding == "base64":
        return _base64(data)
    return quopri.decodestring(data) if encoding == "quoted-printable" else data


def opened_signature(data: bytes) -> bytes:
    """Return the mail within signed data (S/MIME).

    Raises:
        UnreadableDocument: The data is encrypted, or damaged.
    """
    signed = data.find(_SIGNED_DATA, 0, 64)
    content = data.find(_DATA, signed + 1) if signed >= 0 else -1
    if content < 0:
        raise UnreadableDocument(ENCRYPTED.format("S/MIME"))
    try:
        _, begin, _ = _element(data, content + len(_DATA))
        return b"".join(_octets(data, begin)).lstrip(b"\r\n")
    except IndexError:
        raise UnreadableDocument(formats.DAMAGED.format("eml", "its signature ends early")) from None


def _element(data: bytes, place: int) -> tuple[int, int, int | None]:
    """Return the tag of an element of ASN.1, and where its content begins and ends; None if its parts say that."""
    tag, length = data[place], data[place + 1]
    begin = place + 2
    if length == 0x80:  # noqa: PLR2004 - of unknown length
        return tag, begin, None
    if length > 0x80:  # noqa: PLR2004 - the length of the length
        size = length & 0x7F
        length, begin = int.from_bytes(data[begin : begin + size], "big"), begin + size
    return tag, begin, begin + length


def _octets(data: bytes, place: int) -> Iterator[bytes]:
    """Yield the parts of a string of bytes."""
    tag, begin, end = _element(data, place)
    if not tag & 0x20:
        yield data[begin:end]
        return
    while (end is None or begin < end) and begin < len(data) - 1 and data[begin] & 0x1F == 0x04:  # noqa: PLR2004 - bytes
        _, inner, inner_end = _element(data, begin)
        if inner_end is None:
            return
        yield data[inner:inner_end]
        begin = inner_end
