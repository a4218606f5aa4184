"""Web archives (mht): a page with its pictures and styles in one file, as browsers and Word save them."""

import email
from collections.abc import Iterator
from email.message import Message
from urllib.parse import urljoin

from ragstack_common.reading.encodings import decoded, known
from ragstack_common.reading.html import pages
from ragstack_common.reading.html.linked_styles import with_styles
from ragstack_common.reading.html.pages import Page
from ragstack_common.reading.mail.eml import header


def read(data: bytes) -> Page:
    """Read the pages of an archive: the whole one first, then those in its frames."""
    read_pages = [pages.read(page, charset) for page, charset in pages_in(data)]
    title = next((page.title for page in read_pages if page.title), None)
    subject = header(email.message_from_bytes(data), "Subject")
    return Page("\n\n".join(page.text for page in read_pages if page.text), title or subject or None)


def pages_in(data: bytes) -> Iterator[tuple[bytes, str | None]]:
    """Yield the pages of an archive with their charsets, with the styles that they take from its other files."""
    parts = [part for part in email.message_from_bytes(data).walk() if not part.is_multipart()]
    styles = {_location(part): part for part in parts if part.get_content_type() == "text/css"}

    for part in parts:
        if part.get_content_type() not in ("text/html", "application/xhtml+xml"):
            continue
        charset = known(str(part.get_content_charset(""))) if part.get_content_charset() else None
        page = _content(part)
        if not styles:
            yield page, charset
            continue
        location = _location(part)

        def style(address: str, base: str = location) -> str | None:
            found = styles.get(address) or styles.get(urljoin(base, address))
            return decoded(_content(found)) if found else None

        text = decoded(page, charset or pages.declared_charset(page))
        yield with_styles(text, style).encode("utf-8", "replace"), "utf-8"


def _content(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _location(part: Message) -> str:
    return header(part, "Content-Location") or f"cid:{header(part, 'Content-ID').strip('<>')}"
