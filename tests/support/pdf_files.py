"""PDF files, written object by object."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence

_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
_ID = bytes(16)


def pdf(*objects: bytes, trailer: bytes = b"") -> bytes:
    """A file of these objects, numbered from 1; the first is the catalogue."""
    made, offsets = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(made)
    made += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    made += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    made += b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, trailer, start)
    return bytes(made)


def pages(*contents: bytes, more: Sequence[bytes] = (), trailer: bytes = b"", entries: bytes = b"") -> bytes:
    """A file whose pages draw these contents, with the font F, and have these entries, such as a rotation."""
    first = 4
    kids = b" ".join(b"%d 0 R" % (first + 2 * number) for number in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] /MediaBox [0 0 595 842] >>" % (len(contents), kids),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, content in enumerate(contents):
        page = b"<< /Type /Page /Parent 2 0 R /Contents %d 0 R /Resources << /Font << /F 3 0 R >> >> %s >>"
        objects.append(page % (first + 2 * number + 1, entries))
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
    return pdf(*objects, *more, trailer=trailer)


def text(*lines: tuple[int, int, bytes]) -> bytes:
    """The content of a page: height over the bottom, font size, and the operand of TJ, for each line."""
    return b"\n".join(b"BT /F %d Tf 72 %d Td [%s] TJ ET" % (size, height, line) for height, size, line in lines)


def mapped(content: bytes, characters: Mapping[str, str]) -> bytes:
    """A file of one page, in whose font some letters stand for other characters."""
    codes = b" ".join(
        b"<%02x> <%s>" % (ord(code), shown.encode("utf-16-be").hex().encode()) for code, shown in characters.items()
    )
    meaning = b"begincmap 1 begincodespacerange <00> <ff> endcodespacerange %d beginbfchar %s endbfchar endcmap"
    meaning %= (len(characters), codes)
    stream = b"<< /Length %d >>\nstream\n%s\nendstream"
    return pdf(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 1 /Kids [4 0 R] /MediaBox [0 0 595 842] >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>",
        b"<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Resources << /Font << /F 3 0 R >> >> >>",
        stream % (len(content), content),
        stream % (len(meaning), meaning),
    )


def report(paragraphs: Sequence[str], entries: bytes = b"") -> bytes:
    """A file of many pages of 44 lines, with words that are divided at the ends of lines and sentences across pages."""
    lines: list[tuple[int, bytes]] = []
    for paragraph in paragraphs:
        for number, line in enumerate(_wrapped(paragraph)):
            lines.append((14 if number else 22, line))
    contents, height = [], 0
    drawn: list[tuple[int, int, bytes]] = []
    for gap, line in lines:
        height -= gap
        if height < 120:
            contents.append(text(*drawn))
            height, drawn = 740, []
        drawn.append((height, 11, b"(%s)" % line))
    return pages(*contents[1:], text(*drawn), entries=entries)


def _wrapped(paragraph: str, width: int = 70) -> Iterator[bytes]:
    line = ""
    for word in paragraph.split():
        room = width - len(line) - 1
        if len(word) < room:
            line += f" {word}" if line else word
            continue
        cut = min(room - 1, len(word) - 3)
        if cut > 2 and word[: cut + 3].isalpha():
            line, word = f"{line} {word[:cut]}-", word[cut:]  # noqa: PLW2901 - the rest begins the next line
        yield _escaped(line)
        line = word
    yield _escaped(line)


def _escaped(line: str) -> bytes:
    return re.sub(r"([()\\\\])", r"\\\1", line).encode("cp1252", "replace")


def protected(password: bytes) -> bytes:
    """A file that opens with a password only (RC4 with 40 bits, ISO 32000-1, 7.6.3)."""
    padded = (password + _PADDING)[:32]
    owner = _rc4(hashlib.md5(padded).digest()[:5], padded)
    key = hashlib.md5(padded + owner + (0xFFFFFFFC).to_bytes(4, "little") + _ID).digest()[:5]
    user = _rc4(key, _PADDING)
    encryption = b"<< /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >>"
    stream_key = hashlib.md5(key + (5).to_bytes(3, "little") + bytes(2)).digest()[:10]
    content = _rc4(stream_key, text((700, 12, b"(secret)")))
    trailer = b"/Encrypt 6 0 R /ID [<%s> <%s>]" % ((_ID.hex().encode(),) * 2)
    more = [encryption % (owner.hex().encode(), user.hex().encode())]
    return pages(content, more=more, trailer=trailer)


def _rc4(key: bytes, data: bytes) -> bytes:
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    made, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        made.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(made)
