"""S3 Vectors in the database: vector buckets, vector indexes, and the vectors that were put into them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import apsw
import numpy as np

from local_bedrock.http.errors import NoVectorResource
from local_bedrock.store.codes import Codes, Vectors
from local_bedrock.store.database import TEXT_SEARCH, VECTOR_INDEX, Transaction, insert, select
from local_bedrock.store.documents import add_attributes, chunk_metadata
from local_bedrock.store.postings import counted
from local_bedrock.store.vectors import VectorIndex, put_form, resized
from ragstack_common.settings.names import METADATA_KEY, TEXT_KEY

ARN: Final = "arn:aws:s3vectors:us-east-1:000000000000:bucket/{}"
INDEX_ARN: Final = ARN + "/index/{}"

STANDARD_ANALYZER: Final = ""
"""The language of texts that are not stemmed."""


@dataclass(frozen=True)
class Bucket:
    """A vector bucket.

    Attributes:
        mode: Mode of new indexes, CLASSIC or ENHANCED.
        created_at: Seconds since 1970.
    """

    name: str
    mode: str
    encryption: Mapping[str, Any]
    created_at: float

    @property
    def arn(self) -> str:
        """Its Amazon Resource Name."""
        return ARN.format(self.name)


@dataclass(frozen=True)
class TextSearch:
    """A metadata key whose words are searched.

    Attributes:
        language: None for the standard analyzer.
        active_at: When it can be searched, in seconds since 1970.
    """

    id: int
    key: str
    language: str | None
    active_at: float

    @property
    def name(self) -> str:
        """The name of its words in memory."""
        return f"{TEXT_SEARCH}{self.id}"


@dataclass(frozen=True)
class Index:
    """A vector index.

    Attributes:
        metric: cosine or euclidean.
        mode: CLASSIC or ENHANCED.
        non_filterable: Metadata keys that filters must not use.
        created_at: Seconds since 1970.
        knowledge_base_id: The knowledge base whose chunks it holds; None if vectors are put into it.
    """

    id: int
    bucket: str
    name: str
    dimension: int
    metric: str
    mode: str
    non_filterable: Sequence[str]
    encryption: Mapping[str, Any]
    created_at: float
    knowledge_base_id: str | None = None

    @property
    def arn(self) -> str:
        """Its Amazon Resource Name."""
        return INDEX_ARN.format(self.bucket, self.name)

    @property
    def vectors(self) -> str:
        """The knowledge base of its vectors, in the tables and in memory."""
        return self.knowledge_base_id or f"{VECTOR_INDEX}{self.id}"


def add_bucket(change: Transaction, bucket: Bucket) -> None:
    """Insert a bucket."""
    insert(change, "vector_bucket", vars(bucket))


def buckets(connection: apsw.Connection, prefix: str, *, after: str = "", limit: int = -1) -> list[Bucket]:
    """List buckets by name, those after ``after``."""
    rest = "vector_bucket WHERE substr(name, 1, ?) = ? AND name > ? ORDER BY name LIMIT ?"
    return select(connection, Bucket, rest, len(prefix), prefix, after, limit)


def find_bucket(connection: apsw.Connection, name: str) -> Bucket:
    """Return a bucket.

    Raises:
        NoVectorResource: It doesn't exist.
    """
    for found in select(connection, Bucket, "vector_bucket WHERE name = ?", name):
        return found
    raise NoVectorResource("The specified vector bucket could not be found")


def set_bucket_mode(change: Transaction, bucket: Bucket, mode: str) -> None:
    """Set the mode of new indexes."""
    change.connection.execute("UPDATE vector_bucket SET mode = ? WHERE name = ?", (mode, bucket.name))


def remove_bucket(change: Transaction, bucket: Bucket) -> None:
    """Delete a bucket that has no index."""
    change.connection.execute("DELETE FROM vector_bucket WHERE name = ?", (bucket.name,))


def add_index(change: Transaction, index: Index) -> Index:
    """Insert an index, and return it with its id."""
    row = {name: value for name, value in vars(index).items() if name != "id"}
    return replace(index, id=insert(change, "vector_index", row))


def indexes(
    connection: apsw.Connection, bucket: str, prefix: str = "", *, after: str = "", limit: int = -1
) -> list[Index]:
    """List the indexes of a bucket by name, those after ``after``."""
    rest = "vector_index WHERE bucket = ? AND substr(name, 1, ?) = ? AND name > ? ORDER BY name LIMIT ?"
    return select(connection, Index, rest, bucket, len(prefix), prefix, after, limit)


def find_index(connection: apsw.Connection, bucket: str, name: str) -> Index:
    """Return an index.

    Raises:
        NoVectorResource: The bucket or the index doesn't exist.
    """
    find_bucket(connection, bucket)
    for found in select(connection, Index, "vector_index WHERE bucket = ? AND name = ?", bucket, name):
        return found
    raise NoVectorResource("The specified index could not be found")


def set_index_mode(change: Transaction, index: Index, mode: str) -> None:
    """Set the mode of an index."""
    change.connection.execute("UPDATE vector_index SET mode = ? WHERE id = ?", (mode, index.id))


def hand_over(change: Transaction, index: Index, knowledge_base_id: str) -> None:
    """Give an empty index to a knowledge base, until that is deleted."""
    change.connection.execute(
        "UPDATE vector_index SET knowledge_base_id = ? WHERE id = ?", (knowledge_base_id, index.id)
    )


def remove_index(change: Transaction, index: Index) -> None:
    """Delete an index of no knowledge base, with its vectors."""
    remove_vectors(change, index)
    for each in text_searches(change.connection, index):
        remove_text_search(change, each)
    change.connection.execute("DELETE FROM vector_index WHERE id = ?", (index.id,))


def text_searches(connection: apsw.Connection, index: Index) -> list[TextSearch]:
    """List the searchable keys of an index in the order of their addition."""
    return select(connection, TextSearch, "text_search WHERE index_id = ? ORDER BY id", index.id)


def add_text_search(change: Transaction, index: Index, key: str, language: str | None, active_at: float) -> None:
    """Make a metadata key searchable, also in the vectors that are there."""
    row = {"index_id": index.id, "key": key, "language": language, "active_at": active_at}
    added = TextSearch(insert(change, "text_search", row), key, language, active_at)
    if index.knowledge_base_id is not None:  # its own words are searched
        return
    rows: list[tuple[Any, ...]] = change.connection.execute(
        "SELECT c.id, c.record_id, r.attributes FROM record r JOIN chunk c ON c.record_id = r.id"
        " WHERE r.knowledge_base_id = ? AND c.document_id = 0 ORDER BY c.id",
        (index.vectors,),
    ).fetchall()
    _add_texts(change, added, [(chunk, record, json.loads(attributes)) for chunk, record, attributes in rows])


def remove_text_search(change: Transaction, text_search: TextSearch) -> None:
    """Drop a searchable key with its words."""
    change.connection.execute("DELETE FROM text_search WHERE id = ?", (text_search.id,))
    change.vector_changes.append(lambda vectors: vectors.drop(text_search.name))


_KEY_IS: Final = "c.public_id = ? AND +v.knowledge_base_id = ?"
"""With the plus, SQLite looks for the key and not through all vectors of the index."""


@dataclass(frozen=True)
class StoredVector:
    """A vector of an index.

    Attributes:
        id: Of its chunk.
        values: As received, or as the embedding of the knowledge base returned them.
    """

    id: int
    key: str
    values: Vectors
    metadata: Mapping[str, Any]


def put_vectors(
    change: Transaction, index: Index, keys: Sequence[str], vectors: Vectors, metadata: Sequence[Mapping[str, Any]]
) -> None:
    """Add or replace vectors."""
    remove_vectors(change, index, keys)
    added = []
    form = put_form(index.metric)
    codes = Codes.of(form.searched(vectors))
    for key, vector, code, attributes in zip(keys, vectors.astype("<f4"), codes.written(), metadata, strict=True):
        held = {"knowledge_base_id": index.vectors, "document_id": 0}
        record = insert(change, "record", {**held, "attributes": attributes})
        filterable = {name: value for name, value in attributes.items() if name not in index.non_filterable}
        add_attributes(change.connection, -record, filterable)
        chunk = {"document_id": 0, "public_id": key, "header": "", "text": "", "record_id": record}
        added.append((insert(change, "chunk", chunk), record, attributes))
        row = {"chunk_id": added[-1][0], "knowledge_base_id": index.vectors, "document_id": -record}
        insert(change, "vector", {**row, "code": code})
        insert(change, "full_vector", {"chunk_id": added[-1][0], "value": vector.tobytes()})
    for each in text_searches(change.connection, index):
        _add_texts(change, each, added)
    holders, chunks = np.array([-record for _, record, _ in added]), np.array([chunk for chunk, _, _ in added])
    change.vector_changes.append(lambda memory: memory.extend(index.vectors, holders, chunks, codes, form=form))


def remove_vectors(change: Transaction, index: Index, keys: Iterable[str] | None = None) -> None:
    """Delete vectors that were put; unknown keys are ignored. None deletes all."""
    connection = change.connection
    found = "SELECT c.id, c.record_id FROM chunk c JOIN vector v ON v.chunk_id = c.id WHERE"
    gone: list[tuple[Any, ...]] = []
    if keys is None:
        gone = connection.execute(f"{found} v.knowledge_base_id = ?", (index.vectors,)).fetchall()
    else:
        for key in keys:
            gone += connection.execute(f"{found} {_KEY_IS}", (key, index.vectors))
    if not gone:
        return
    chunks, records = [(chunk,) for chunk, _ in gone], [(record,) for _, record in gone]
    for table, column in (("searched_text", "chunk_id"), ("vector", "chunk_id"), ("chunk", "id")):
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", chunks)  # noqa: S608
    connection.executemany("DELETE FROM record WHERE id = ?", records)
    connection.executemany("DELETE FROM attribute WHERE document_id = -?", records)
    holders = [-record for (record,) in records]
    for name in (index.vectors, *(each.name for each in text_searches(connection, index))):
        change.vector_changes.append(partial(VectorIndex.remove, knowledge_base_id=name, documents=holders))


def _add_texts(
    change: Transaction, text_search: TextSearch, added: Iterable[tuple[int, int, Mapping[str, Any]]]
) -> None:
    """Store the words of chunks, each with its record and its metadata; texts of a list count together."""
    language = text_search.language or STANDARD_ANALYZER
    rows = [
        (chunk, -record, counted(text, language))
        for chunk, record, metadata in added
        if (text := _text(metadata.get(text_search.key)))
    ]
    change.connection.executemany(
        "INSERT INTO searched_text VALUES (?, ?, ?)", [(text_search.id, chunk, words) for chunk, _, words in rows]
    )
    chunks, holders = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    change.vector_changes.append(
        lambda memory: memory.extend_words(text_search.name, holders, chunks, [row[2] for row in rows])
    )


def _text(value: Any) -> str:
    members = value if isinstance(value, list) else [value]
    return "\n".join(member for member in members if isinstance(member, str))


_VECTORS: Final = (
    "SELECT c.id, c.public_id, f.value, d.name, c.text, coalesce(p.public_id, c.public_id), c.page, c.position,"
    " coalesce(r.attributes, d.attributes)"
    " FROM vector v JOIN full_vector f ON f.chunk_id = v.chunk_id JOIN chunk c ON c.id = v.chunk_id"
    " LEFT JOIN document d ON d.id = c.document_id"
    " LEFT JOIN parent p ON p.id = c.parent_id LEFT JOIN record r ON r.id = c.record_id"
)


def get_vectors(connection: apsw.Connection, index: Index, keys: Iterable[str]) -> list[StoredVector]:
    """Return the existing vectors of some keys, each once, in the order of the keys."""
    # One by one, because SQLite's JSON functions end a text at a NUL character.
    query = f"{_VECTORS} WHERE {_KEY_IS}"
    rows = (connection.execute(query, (key, index.vectors)).fetchone() for key in dict.fromkeys(keys))
    return [_stored(index, row) for row in rows if row is not None]


def vectors_by_id(connection: apsw.Connection, index: Index, ids: Sequence[int]) -> list[StoredVector]:
    """Return the vectors of some chunks in their order."""
    query = f"{_VECTORS} WHERE c.id IN (SELECT value FROM json_each(?))"  # noqa: S608 - no input in it
    rows = connection.execute(query, (json.dumps(list(ids)),))
    found = {row[0]: _stored(index, row) for row in rows}
    return [found[id_] for id_ in ids]


def list_vectors(
    connection: apsw.Connection, index: Index, segment: int, segments: int, *, after: int, limit: int
) -> list[StoredVector]:
    """List the vectors in one of several segments by the id of their chunk, those after ``after``."""
    rows = connection.execute(
        f"{_VECTORS} WHERE v.knowledge_base_id = ? AND v.chunk_id % ? = ? AND v.chunk_id > ?"
        " ORDER BY v.chunk_id LIMIT ?",
        (index.vectors, segments, segment, after, limit),
    )
    return [_stored(index, row) for row in rows]


def _stored(index: Index, row: tuple[Any, ...]) -> StoredVector:
    id_, key, value, document, text, public_id, page, position, attributes = row
    if document is None:
        return StoredVector(id_, key, np.frombuffer(value, dtype="<f4"), json.loads(attributes))
    metadata = chunk_metadata(attributes, position, public_id, page)
    written = {TEXT_KEY: text, METADATA_KEY: json.dumps({"source": document}, ensure_ascii=False)}
    values = np.frombuffer(value, dtype="<f2").astype(np.float32)
    return StoredVector(id_, key, resized(values, index.dimension), {**metadata, **written})
