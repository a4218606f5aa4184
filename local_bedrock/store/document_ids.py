"""The ids by which Retrieve and other operations name the documents of managed knowledge bases."""

import apsw

from local_bedrock.http.errors import NotFound
from local_bedrock.store import documents
from local_bedrock.store.database import select
from local_bedrock.store.documents import Document
from local_bedrock.store.resources import DataSource


def document_id(row_id: int, kind: str, name: str) -> str:
    """Return the id of a document: its own in a CUSTOM source, and otherwise one that the service chooses."""
    return name if kind == "CUSTOM" else f"{row_id:032x}"


def find(connection: apsw.Connection, source: DataSource, wanted: str) -> Document:
    """Return a document of a data source by its id.

    Raises:
        NotFound: It doesn't exist.
    """
    if source.type == "CUSTOM":
        found = documents.find(connection, source.id, wanted)
    else:
        rest = "document WHERE data_source_id = ? AND printf('%032x', id) = ?"
        found = next(iter(select(connection, Document, rest, source.id, wanted)), None)
    if found is None:
        raise NotFound(f"Document with id {wanted} in data source {source.id} does not exist")
    return found


def with_row_id(connection: apsw.Connection, row_id: int) -> Document | None:
    """Return a document by its row; None if it was deleted."""
    return next(iter(select(connection, Document, "document WHERE id = ?", row_id)), None)
