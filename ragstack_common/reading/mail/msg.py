"""Mails of Outlook (msg), which become mails of the internet and are read as those.

Sources: MS-OXMSG (storages and streams), MS-OXPROPS (numbers of properties), MS-OXCMSG (attachments).
"""

import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.encoders import encode_base64
from email.message import Message
from email.mime.base import MIMEBase
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.parser import BytesParser
from email.utils import format_datetime
from functools import cached_property
from typing import Final

from ragstack_common.reading import formats, markdown, rtf
from ragstack_common.reading.encodings import decoded, known
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.html.pages import declared_charset
from ragstack_common.reading.mail import eml, outlook_rtf
from ragstack_common.reading.mail.message import Mail
from ragstack_common.reading.ole import CompoundFile

_CLASS: Final = 0x001A
_SUBJECT: Final = 0x0037
_BODY: Final = 0x1000
_HTML: Final = 0x1013
_RTF: Final = 0x1009
_SENDER: Final = ((0x0042, (0x5D02, 0x0065)), (0x0C1A, (0x5D01, 0x0C1F)))
"""Name and addresses of the one for whom a mail was sent, and of the one who sent it."""

_RECIPIENTS: Final = {"To": (1, 0x0E04), "Cc": (2, 0x0E03), "Bcc": (3, 0x0E02)}
"""The kind of recipients of a header, and the property that has all of them in one text."""

_KIND: Final = 0x0C15
_NAME: Final = 0x3001
_ADDRESSES: Final = (0x39FE, 0x3003)
_TIMES: Final = (0x0039, 0x0E06)
_INTERNET_HEADERS: Final = 0x007D
_CODE_PAGE: Final = 0x3FFD
_CODE_PAGE_OF_BODY: Final = 0x3FDE
_FILE_NAMES: Final = (0x3707, 0x3704, 0x3001)
_FILE_DATA: Final = 0x3701
_FILE_TYPE: Final = 0x370E
_FILE_IDENTIFIER: Final = 0x3712
_UNICODE: Final = "001F"
_OF_CODE_PAGE: Final = "001E"
_BINARY: Final = "0102"
_STORAGE: Final = "000D"
_PROPERTIES: Final = "__properties_version1.0"
_EPOCH: Final = datetime(1601, 1, 1, tzinfo=UTC)
_UTF_8: Final = 65001
_MAX_LEVELS: Final = 20


def read(data: bytes) -> Mail:
    """Read a mail.

    Raises:
        UnreadableDocument: It is encrypted or damaged.
    """
    try:
        return eml.to_mail(to_message(CompoundFile(data)))
    except ValueError as error:
        raise UnreadableDocument(formats.DAMAGED.format("msg", error)) from None


def to_message(file: CompoundFile, *storages: str) -> Message:
    """Return a mail in a file, or in a storage of it.

    Raises:
        RecursionError: Mails are nested too deeply.
        UnreadableDocument: It is encrypted.
    """
    if len(storages) > 2 * _MAX_LEVELS:
        raise RecursionError
    own = _Properties(file, storages, 24 if storages else 32)
    files = [*_files(file, storages, own.code_page)]
    if any(_name(each).lower().endswith(".rpmsg") for each in files):
        raise UnreadableDocument(eml.ENCRYPTED.format("rights management"))
    if files and own.text(_CLASS).lower().startswith("ipm.note.smime"):
        written = _signed(files[0])
    else:
        written = MIMEMultipart("mixed")
        written.attach(_body(own))
        for each in files:
            written.attach(each)
    for name, value in _headers(file, storages, own):
        del written[name]
        if value:
            written[name] = markdown.one_line(value)
    return written


class _Properties:
    """The properties of a storage: of the mail, of a recipient or of an attached file."""

    def __init__(self, file: CompoundFile, storages: tuple[str, ...], header_bytes: int, code_page: int = 0) -> None:
        self._file, self._storages, self._header_bytes = file, storages, header_bytes
        self.code_page = code_page or self.number(_CODE_PAGE)

    @cached_property
    def _numbers(self) -> dict[int, int]:
        data = self._file.stream(_PROPERTIES, *self._storages) or b""
        entries = (struct.unpack_from("<HHIQ", data, place) for place in range(self._header_bytes, len(data) - 15, 16))
        return {own: value for _, own, _, value in entries}

    def number(self, own: int, default: int = 0) -> int:
        """Return a whole number of 32 bits."""
        return self._numbers.get(own, default) & 0xFFFFFFFF

    def moment(self, own: int) -> datetime | None:
        """Return a time in UTC; None if there is none."""
        try:
            ticks = self._numbers.get(own, 0)
            return _EPOCH + timedelta(microseconds=ticks // 10) if ticks else None
        except OverflowError:
            return None

    def text(self, own: int) -> str:
        """Return a text; empty if there is none."""
        if (data := self._stream(own, _UNICODE)) is not None:
            return data.decode("utf-16-le", "replace").rstrip("\0")
        if (data := self._stream(own, _OF_CODE_PAGE)) is not None:
            return _in_code_page(data, self.code_page).rstrip("\0")
        return ""

    def binary(self, own: int) -> bytes:
        """Return bytes; none if there are none."""
        return self._stream(own, _BINARY) or b""

    def _stream(self, own: int, kind: str) -> bytes | None:
        return self._file.stream(f"__substg1.0_{own:04X}{kind}", *self._storages)


def _charset(page: int) -> str | None:
    return "utf-8" if page == _UTF_8 else known(f"cp{page}")


def _in_code_page(data: bytes, page: int) -> str:
    """Decode text in a code page of Windows; if it is unknown or wrong, in the most likely encoding."""
    name = _charset(page)
    try:
        return data.decode(name) if name else decoded(data)
    except (UnicodeDecodeError, UnreadableDocument):
        return data.decode(name or "cp1252", "replace")


def _headers(file: CompoundFile, storages: tuple[str, ...], own: _Properties) -> Iterator[tuple[str, str]]:
    yield "Subject", own.text(_SUBJECT)
    senders = (_person(own.text(name), map(own.text, addresses)) for name, addresses in _SENDER)
    yield "From", next(filter(None, senders), "")
    recipients = [
        _Properties(file, each, 8, own.code_page) for each in _storages(file, storages, "__recip_version1.0_")
    ]
    for header, (kind, shown) in _RECIPIENTS.items():
        listed = [
            _person(each.text(_NAME), map(each.text, _ADDRESSES))
            for each in recipients
            if each.number(_KIND, 1) == kind
        ]
        yield header, ", ".join(filter(None, listed)) or own.text(shown)
    # The date as its sender wrote it has the sender's time zone.
    said = eml.header(BytesParser().parsebytes(own.text(_INTERNET_HEADERS).encode()), "Date")
    moments = filter(None, map(own.moment, _TIMES))
    yield "Date", said or next(map(format_datetime, moments), "")


def _person(name: str, addresses: Iterator[str]) -> str:
    """Return a name with the first address of the internet; an address of Exchange says nothing to people."""
    address = next((each for each in addresses if "@" in each), "")
    name = name.strip("'\" ")
    if not address or address.casefold() in name.casefold():
        return name or address
    return f"{name} <{address}>" if name else address


def _body(own: _Properties) -> Message:
    """Return the body, as a page and as plain text if it has both."""
    both = MIMEMultipart("alternative")
    if plain := own.text(_BODY):
        both.attach(MIMEText(plain, "plain", "utf-8"))
    page = own.text(_HTML)
    if data := own.binary(_HTML):
        page = decoded(data, _charset(own.number(_CODE_PAGE_OF_BODY)) or declared_charset(data))
    if not page and (packed := own.binary(_RTF)):
        rich = outlook_rtf.unpacked(packed)
        page = outlook_rtf.page_in(rich) or ""
        if not page:
            both.attach(MIMEText(rtf.read(rich), "markdown", "utf-8"))
    if page:
        both.attach(MIMEText(page, "html", "utf-8"))
    return both


def _files(file: CompoundFile, storages: tuple[str, ...], code_page: int) -> Iterator[Message]:
    for storage in _storages(file, storages, "__attach_version1.0_"):
        own = _Properties(file, storage, 8, code_page)
        within = f"__substg1.0_{_FILE_DATA:04X}{_STORAGE}"
        if _PROPERTIES in file.names(*storage, within):
            yield MIMEMessage(to_message(file, *storage, within))
        elif data := own.binary(_FILE_DATA):
            kind, _, subtype = own.text(_FILE_TYPE).lower().partition("/")
            written = MIMEBase(kind, subtype) if kind and subtype else MIMEBase("application", "octet-stream")
            written.set_payload(data)
            encode_base64(written)
            name = next(filter(None, map(own.text, _FILE_NAMES)), "")
            written.add_header("Content-Disposition", "attachment", filename=("utf-8", "", name))
            if identifier := own.text(_FILE_IDENTIFIER):
                written["Content-ID"] = f"<{identifier.strip('<> ')}>"
            yield written


def _name(part: Message) -> str:
    return str(part.get_filename(""))


def _signed(part: Message) -> Message:
    """Return the mail that Outlook stores as an attached file because it is signed or encrypted (S/MIME)."""
    data = part.get_payload(decode=True)
    if isinstance(data, bytes) and data.lstrip()[:8].lower() == b"content-":
        return BytesParser().parsebytes(data.lstrip())
    part.set_type("application/pkcs7-mime")
    del part["Content-Disposition"]
    return part


def _storages(file: CompoundFile, storages: tuple[str, ...], kind: str) -> Iterator[tuple[str, ...]]:
    for name in sorted(file.names(*storages)):
        if name.lower().startswith(kind):
            yield (*storages, name)
