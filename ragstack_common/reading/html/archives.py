"""Web archives (mht): a page with its pictures in one file, as Word documents contain them."""

import email
from collections.abc import Iterator

from ragstack_common.reading.encodings import known


def pages_in(data: bytes) -> Iterator[tuple[bytes, str | None]]:
    """Yield the pages of an archive with their charsets."""
    for part in email.message_from_bytes(data).walk():
        if part.get_content_type() == "text/html" and isinstance(page := part.get_payload(decode=True), bytes):
            yield page, known(part.get_content_charset("utf-8"))
