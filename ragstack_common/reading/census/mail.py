"""What mails have: their headers and the texts of their body, found by the lines that divide their parts."""

import binascii
import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.header import decode_header
from email.utils import parsedate
from typing import Final
from urllib.parse import unquote

from ragstack_common.reading import rtf
from ragstack_common.reading.census import pages
from ragstack_common.reading.census.parts import ATTACHED, Census, Part
from ragstack_common.reading.detection import encoding_of_nulls
from ragstack_common.reading.encodings import decoded, known
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.mail import eml, message, outlook_rtf
from ragstack_common.reading.ole import CompoundFile

_BLANK_LINE: Final = re.compile(rb"\r?\n\r?\n|\A\r?\n")
_HEADER: Final = re.compile(rb"^([!-9;-~]+):[ \t]*((?:.*)(?:\r?\n[ \t].*)*)", re.MULTILINE)
_CID: Final = re.compile(r"\bcid:([^\"'\s<>)]+)", re.IGNORECASE)
_NAMED: Final = re.compile(r"\b(?:file)?name\*?(?:0\*?)?\s*=\s*\"?[^;\s\"]")
_SHOWN_TYPES: Final = ("text/plain", "text/html", "text/markdown", "text/enriched", "text/richtext")
_HTML_TYPE: Final = "text/html"
_SHOWN: Final = ("subject", "from", "to", "cc", "bcc")
_SIGNATURES: Final = ("pgp-signature", "pkcs7-signature")
_SIGNED: Final = ("application/pkcs7-mime", "application/x-pkcs7-mime")
_MAX_LEVELS: Final = 100


def count_eml(data: bytes) -> Census:
    """List the headers and the lines of the body of a mail; raises UnreadableDocument."""
    wide = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else encoding_of_nulls(data)
    if wide:
        data = data.decode(wide, "replace").encode()
    mail = _Mail()
    whole = _Entity.of(data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n"))
    texts = mail.texts(whole)
    shown = [text for name in _SHOWN for text in whole.shown(name)]
    shown += [text for text in whole.shown("date") if parsedate(text) is None]
    return mail.census(shown, texts)


@dataclass
class _Entity:
    """A part of a mail: its headers, by their names, and its body."""

    headers: dict[str, list[bytes]] = field(repr=False)
    body: bytes

    @classmethod
    def of(cls, data: bytes) -> "_Entity":
        head, _, body = data, b"", b""
        if found := _BLANK_LINE.search(data):
            head, body = data[: found.start()], data[found.end() :]
        headers: dict[str, list[bytes]] = {}
        for each in _HEADER.finditer(head):
            headers.setdefault(each[1].decode().lower(), []).append(re.sub(rb"\r?\n[ \t]+", b" ", each[2]))
        return cls(headers, body)

    def shown(self, name: str) -> Iterator[str]:
        for value in self.headers.get(name, []):
            pieces = decode_header(decoded(value) if value.strip() else "")
            yield "".join(
                piece if isinstance(piece, str) else _decoded(piece, charset) for piece, charset in pieces
            ).strip()

    def first(self, name: str) -> str:
        return self.headers.get(name, [b""])[0].decode("latin-1")

    @property
    def kind(self) -> str:
        return self.first("content-type").partition(";")[0].strip().lower() or "text/plain"

    @property
    def is_attached(self) -> bool:
        said = self.first("content-disposition")
        named = re.search(
            r"\bname\*?(?:0\*?)?\s*=\s*[^;\s]", f"{said};{self.first('content-type')}".replace("file", "")
        )
        return said.strip().lower().startswith("attachment") or named is not None

    @property
    def content(self) -> bytes:
        encoding = self.first("content-transfer-encoding").strip().lower()
        if encoding == "base64":
            letters = re.sub(rb"[^A-Za-z0-9+/]", b"", self.body)
            return binascii.a2b_base64(letters[: len(letters) - (len(letters) % 4 == 1)] + b"==")
        return quopri.decodestring(self.body) if encoding == "quoted-printable" else self.body

    @property
    def charset(self) -> str | None:
        found = re.search(r"charset\*?\s*=\s*(?:[\w-]*''|\")?([\w.:+-]+)", self.first("content-type"), re.IGNORECASE)
        return None if found is None or "ascii" in found[1].lower() else known(found[1])

    def parts(self) -> list["_Entity"]:
        found = re.search(r"boundary\s*=\s*(?:\"([^\"]+)\"|([^\s;]+))", self.first("content-type"), re.IGNORECASE)
        if found is None:
            return []
        line = re.escape((found[1] or found[2]).rstrip().encode("latin-1"))
        pieces = re.split(rb"(?:\A|\r?\n)--" + line + rb"(--)?[ \t]*(?=\r?\n|\Z)", self.body)
        inner = []
        for ends, piece in zip([None, *pieces[1::2]], pieces[0::2], strict=True):
            if ends:
                break
            inner.append(piece)
        return [self.of(re.sub(rb"\A\r?\n", b"", piece)) for piece in inner[1:]]


@dataclass
class _Mail:
    pages: list[str] = field(default_factory=list)
    files: list[tuple[str, str]] = field(default_factory=list)
    """The media type and the identifier of each part that is not shown."""

    asides: Census = field(default_factory=lambda: Census([], "parts"))

    def census(self, headers: list[str], texts: list[str]) -> Census:
        shown = {unquote(name) for page in self.pages for name in _CID.findall(page)}
        attached = [each for each in self.files if not (each[0].startswith("image/") and each[1] in shown)]
        parts = [Part("headers", [text for text in headers if text]), Part("main text", texts)]
        census = Census([part for part in parts if part.texts], "parts", self.asides.asides)
        census.left_out("attached files", len(attached), ATTACHED)
        return census

    def texts(self, part: _Entity, depth: int = 0) -> list[str]:
        """Return the lines of a part of the body."""
        if depth > _MAX_LEVELS:
            raise RecursionError
        kind = part.kind
        if kind.startswith("multipart/"):
            inner = part.parts()
            if kind == "multipart/digest":
                self.files += [("message/rfc822", "") for _ in inner]
                return []
            if kind == "multipart/alternative":
                return self._alternative(inner, depth)
            return [text for each in inner for text in self.texts(each, depth + 1)]
        if kind in ("message/delivery-status", "message/disposition-notification"):
            return [line for line in decoded(part.content).splitlines() if line.strip()]
        if kind in _SIGNED and not (depth and part.is_attached):
            return self.texts(_Entity.of(eml.opened_signature(part.content)), depth + 1)
        if depth and (part.is_attached or kind not in _SHOWN_TYPES):
            if not kind.endswith(_SIGNATURES):
                self.files.append((kind, part.first("content-id").strip("<> ")))
            return []
        return self.of_page(part.content, part.charset) if kind == _HTML_TYPE else _lines(part)

    def of_page(self, data: bytes, charset: str | None) -> list[str]:
        """Return the texts of a page, and count what it leaves out."""
        self.pages.append(_decoded(data, charset))
        counted = pages.count_html(data, charset)
        for aside in counted.asides:
            self.asides.left_out(aside.what, aside.number, aside.why)
        return [text for each in counted.parts for text in each.texts]

    def _alternative(self, parts: list[_Entity], depth: int) -> list[str]:
        page: list[str] = []
        text: list[str] = []
        before = [*self.asides.asides]
        for each in parts:
            count = len(self.pages)
            found = self.texts(each, depth + 1)
            if len(self.pages) > count:
                page = found
            else:
                text = text or found
        if message.page_or_text("\n".join(page), "\n".join(text)) == "\n".join(page):
            return page
        self.asides.asides = before
        return text


def _lines(part: _Entity) -> list[str]:
    text = _decoded(part.content, part.charset)
    if part.kind in ("text/enriched", "text/richtext"):
        text = re.sub(r"<param>.*?</param>|</?[A-Za-z-]+>", "", text, flags=re.DOTALL | re.IGNORECASE)
    if "-----BEGIN PGP SIGNED" in text:
        text = re.sub(r"-----BEGIN PGP SIG.*?-----END PGP SIGNATURE-----", "", text, flags=re.DOTALL)
        text = re.sub(r"-----BEGIN PGP SIGNED MESSAGE-----\s*(?:Hash:.*)?", "", text)
    return [line for line in text.splitlines() if line.strip("> \t")]


def _decoded(data: bytes, charset: str | None) -> str:
    name = known(charset) if charset and charset != "us-ascii" else None
    try:
        return data.decode(name) if name else decoded(data)
    except (UnicodeDecodeError, UnreadableDocument):
        return data.decode(name or "cp1252", "replace")


def count_msg(data: bytes) -> Census:
    """List the headers and the lines of the body of a mail of Outlook; raises UnreadableDocument."""
    file = CompoundFile(data)

    def stream(own: str, *storages: str) -> str:
        page = file.stream("__properties_version1.0", *storages) or b""
        found = re.search(rb"\x03\x00\xfd\x3f....(..)\x00\x00", page, re.DOTALL)
        if (wide := file.stream(f"__substg1.0_{own}001F", *storages)) is not None:
            return wide.decode("utf-16-le", "replace")
        narrow = file.stream(f"__substg1.0_{own}001E", *storages) or b""
        return _decoded(narrow, f"cp{int.from_bytes(found[1], 'little')}" if found else None) if narrow else ""

    mail = _Mail()
    names = file.names()
    headers = [stream("0037"), stream("0042") or stream("0C1A")]
    headers += [stream("3001", name) for name in names if name.startswith("__recip_")]
    plain = [line for line in stream("1000").splitlines() if line.strip()]
    page = (file.stream("__substg1.0_10130102") or b"") or stream("1013").encode()
    rich = file.stream("__substg1.0_10090102")
    texts: list[str] = []
    if page:
        texts = mail.of_page(page, None)
    elif rich:
        unpacked = outlook_rtf.unpacked(rich)
        if source := outlook_rtf.page_in(unpacked):
            texts = mail.of_page(source.encode(), "utf-8")
        else:  # without a count of its own
            texts = [line for line in rtf.read(unpacked).splitlines() if line.strip()]
    if message.page_or_text("\n".join(texts), "\n".join(plain)) != "\n".join(texts):
        texts, mail.asides = plain, Census([], "parts")
    for name in names:
        if name.startswith("__attach_"):
            mail.files.append((stream("370E", name).lower(), stream("3712", name).strip("<> ")))
    return mail.census(headers, texts)
