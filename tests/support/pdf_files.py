"""PDF files, written object by object."""

import hashlib
from collections.abc import Sequence

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


def pages(*contents: bytes, more: Sequence[bytes] = (), trailer: bytes = b"") -> bytes:
    """A file whose pages draw these contents, with the font F."""
    first = 4
    kids = b" ".join(b"%d 0 R" % (first + 2 * number) for number in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] /MediaBox [0 0 595 842] >>" % (len(contents), kids),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, content in enumerate(contents):
        page = b"<< /Type /Page /Parent 2 0 R /Contents %d 0 R /Resources << /Font << /F 3 0 R >> >> >>"
        objects.append(page % (first + 2 * number + 1))
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
    return pdf(*objects, *more, trailer=trailer)


def text(*lines: tuple[int, int, bytes]) -> bytes:
    """The content of a page: height over the bottom, font size, and the operand of TJ, for each line."""
    return b"\n".join(b"BT /F %d Tf 72 %d Td [%s] TJ ET" % (size, height, line) for height, size, line in lines)


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
