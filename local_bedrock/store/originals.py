"""The files of documents in managed knowledge bases: inline content, or where the file is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import apsw

from local_bedrock.store.database import Transaction, insert, select
from ragstack_common.reading import formats

TEXT: Final = "text/plain"
"""Of content that is submitted as text, whatever it is read as."""


@dataclass(frozen=True)
class Original:
    """The file of a document.

    Attributes:
        format: As in :data:`ragstack_common.reading.formats.FORMATS`.
        uri: The object in S3; None for inline content.
        mime_type: That of inline content; None for an object.
        content: Inline content.
    """

    format: str
    uri: str | None
    mime_type: str | None
    content: bytes | None

    @classmethod
    def of(cls, request: Mapping[str, Any], content: bytes | None) -> "Original":
        """Return the file of a submitted document whose format is supported."""
        mime_type = None if content is None else request.get("mimeType", TEXT)
        return cls(formats.of_request(request), request.get("uri"), mime_type, content)

    @property
    def media_type(self) -> str:
        """The media type, without parameters."""
        return (self.mime_type or formats.FORMATS[self.format].media_type).partition(";")[0].strip()


def save(change: Transaction, document_id: int, original: Original) -> None:
    """Record the file of an indexed document; it is deleted with the document."""
    insert(change, "original", {"document_id": document_id, **vars(original)}, replace=True)


def find(connection: apsw.Connection, document_id: int) -> Original | None:
    """Return the file of a document; None if it is not indexed."""
    found = select(connection, Original, "original WHERE document_id = ?", document_id)
    return found[0] if found else None
