"""Vector buckets, vector indexes and their vectors in the database."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

import apsw
import numpy as np

from local_bedrock.http.errors import NoVectorResource
from local_bedrock.store import schema
from local_bedrock.store.database import Change, insert, select
from local_bedrock.store.vectors import Vectors, name_of_index, prepared
from local_bedrock.store.words import spaced

ARN: Final = "arn:aws:s3vectors:us-east-1:000000000000:bucket/{}"
INDEX_ARN: Final = ARN + "/index/{}"
ENHANCED: Final = "ENHANCED"
"""The mode of every bucket and index; the tables have columns for it."""


@dataclass(frozen=True)
class Bucket:
    """One vector bucket, created ``created_at`` seconds since 1970."""

    name: str
    encryption: Mapping[str, Any]
    created_at: float

    @property
    def arn(self) -> str:
        """Its Amazon Resource Name."""
        return ARN.format(self.name)


@dataclass(frozen=True)
class TextSearch:
    """A metadata key with full-text search; the id is that of its full-text table."""

    id: int
    key: str
    language: str | None


@dataclass(frozen=True)
class Index:
    """One vector index.

    Attributes:
        metric: cosine or euclidean.
        non_filterable: Metadata keys that filters must not use.
        text_searches: In the order of their addition.
        created_at: Seconds since 1970.
    """

    id: int
    bucket: str
    name: str
    dimension: int
    metric: str
    non_filterable: Sequence[str]
    encryption: Mapping[str, Any]
    created_at: float
    text_searches: Sequence[TextSearch] = field(default=(), metadata={"stored": False})

    @property
    def arn(self) -> str:
        """Its Amazon Resource Name."""
        return INDEX_ARN.format(self.bucket, self.name)


def add_bucket(change: Change, bucket: Bucket) -> None:
    """Insert one."""
    insert(change, "vector_bucket", {**vars(bucket), "default_mode": ENHANCED})


def buckets(connection: apsw.Connection, *, prefix: str = "", after: str = "", limit: int = -1) -> list[Bucket]:
    """List by name, those after ``after``."""
    rest = "vector_bucket WHERE substr(name, 1, ?) = ? AND name > ? ORDER BY name LIMIT ?"
    return select(connection, Bucket, rest, len(prefix), prefix, after, limit)


def bucket_named(connection: apsw.Connection, name: str) -> Bucket | None:
    """Return the bucket of this name."""
    found = select(connection, Bucket, "vector_bucket WHERE name = ?", name)
    return found[0] if found else None


def find_bucket(connection: apsw.Connection, name: str) -> Bucket:
    """Return one.

    Raises:
        NoVectorResource: It doesn't exist.
    """
    found = bucket_named(connection, name)
    if found is None:
        raise NoVectorResource("The specified vector bucket could not be found")
    return found


def remove_bucket(change: Change, bucket: Bucket) -> None:
    """Delete one that has no index."""
    change.connection.execute("DELETE FROM vector_bucket WHERE name = ?", (bucket.name,))


def add_index(change: Change, index: Index) -> int:
    """Insert an index without text searches, and return its new id."""
    columns = {name: value for name, value in vars(index).items() if name not in ("id", "text_searches")}
    return insert(change, "vector_index", {**columns, "mode": ENHANCED})


def indexes(
    connection: apsw.Connection, bucket: str, *, prefix: str = "", after: str = "", limit: int = -1
) -> list[Index]:
    """List those of a bucket by name, those after ``after``."""
    rest = "vector_index WHERE bucket = ? AND substr(name, 1, ?) = ? AND name > ? ORDER BY name LIMIT ?"
    found = select(connection, Index, rest, bucket, len(prefix), prefix, after, limit)
    return [_with_text_searches(connection, index) for index in found]


def index_named(connection: apsw.Connection, bucket: str, name: str) -> Index | None:
    """Return the index of this name."""
    found = select(connection, Index, "vector_index WHERE bucket = ? AND name = ?", bucket, name)
    return _with_text_searches(connection, found[0]) if found else None


def find_index(connection: apsw.Connection, bucket: str, name: str) -> Index:
    """Return one.

    Raises:
        NoVectorResource: The bucket or the index doesn't exist.
    """
    find_bucket(connection, bucket)
    found = index_named(connection, bucket, name)
    if found is None:
        raise NoVectorResource("The specified index could not be found")
    return found


def remove_index(change: Change, index: Index) -> None:
    """Delete one with everything in it."""
    for text_search in index.text_searches:
        change.connection.execute(f"DROP TABLE {schema.vector_text_index(text_search.id)}")
    change.connection.execute("DELETE FROM vector_index WHERE id = ?", (index.id,))
    change.after_commit.append(lambda vectors: vectors.drop(name_of_index(index.id)))


def add_text_search(change: Change, index_id: int, key: str, language: str | None) -> None:
    """Insert one with its full-text table."""
    change.connection.execute(
        "INSERT INTO vector_text_search (index_id, metadata_key, language) VALUES (?, ?, ?)", (index_id, key, language)
    )
    added = change.connection.last_insert_rowid()
    change.connection.execute(schema.create_vector_text_index(added, language))


def _with_text_searches(connection: apsw.Connection, index: Index) -> Index:
    query = "SELECT id, metadata_key, language FROM vector_text_search WHERE index_id = ? ORDER BY id"
    return replace(index, text_searches=tuple(TextSearch(*row) for row in connection.execute(query, (index.id,))))


ROWS_PARSED_AT_ONCE: Final = 1000


@dataclass(frozen=True)
class StoredVector:
    """A vector as received; the id is internal."""

    id: int
    key: str
    value: bytes
    metadata: Mapping[str, Any]

    @property
    def float32(self) -> list[float]:
        """Its numbers."""
        found: list[float] = np.frombuffer(self.value, dtype="<f4").tolist()
        return found


def put_vectors(
    change: Change, index: Index, keys: Sequence[str], vectors: Vectors, metadata: Sequence[dict[str, Any]]
) -> None:
    """Add or replace vectors."""
    connection = change.connection
    earlier = list(_ids(connection, index, keys).values())
    _remove_texts(connection, index, earlier)
    hidden = set(index.non_filterable)
    connection.executemany(
        "INSERT INTO stored_vector (index_id, key, value, metadata, filterable) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (index_id, key) DO UPDATE SET"
        " value = excluded.value, metadata = excluded.metadata, filterable = excluded.filterable",
        [
            (
                index.id,
                key,
                vector.tobytes(),
                json.dumps(attributes),
                json.dumps({name: value for name, value in attributes.items() if name not in hidden}),
            )
            for key, vector, attributes in zip(keys, vectors.astype("<f4"), metadata, strict=True)
        ],
    )
    ids = _ids(connection, index, keys)
    for text_search in index.text_searches:
        _add_texts(connection, text_search, ((ids[key], m) for key, m in zip(keys, metadata, strict=True)))
    name, documents = name_of_index(index.id), np.array([ids[key] for key in keys], dtype=np.int64)
    rows = prepared(vectors, index.metric)
    if earlier:
        change.after_commit.append(lambda vectors: vectors.remove(name, earlier))
    change.after_commit.append(lambda vectors: vectors.extend(name, documents, documents, rows))


def remove_vectors(change: Change, index: Index, keys: Sequence[str]) -> None:
    """Delete vectors; unknown keys are ignored."""
    gone = list(_ids(change.connection, index, keys).values())
    if gone:
        _remove_texts(change.connection, index, gone)
        change.connection.executemany("DELETE FROM stored_vector WHERE id = ?", [(id_,) for id_ in gone])
        change.after_commit.append(lambda vectors: vectors.remove(name_of_index(index.id), gone))


def get_vectors(connection: apsw.Connection, index: Index, keys: Sequence[str]) -> list[StoredVector]:
    """Return the existing vectors of some keys, each once, in the order of the keys."""
    query = "SELECT id, key, value, metadata FROM stored_vector WHERE index_id = ? AND key = ?"
    rows = (connection.execute(query, (index.id, key)).fetchone() for key in dict.fromkeys(keys))
    return [_vector(row) for row in rows if row is not None]


def vectors_by_id(connection: apsw.Connection, ids: Sequence[int]) -> list[StoredVector]:
    """Return vectors in the order of their internal ids given."""
    rows = connection.execute(
        "SELECT id, key, value, metadata FROM stored_vector WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    found = {row[0]: _vector(row) for row in rows}
    return [found[id_] for id_ in ids]


def list_vectors(connection: apsw.Connection, index: Index, *, after: int, limit: int) -> list[StoredVector]:
    """List vectors by id, those after ``after``."""
    rows = connection.execute(
        "SELECT id, key, value, metadata FROM stored_vector WHERE index_id = ? AND id > ? ORDER BY id LIMIT ?",
        (index.id, after, limit),
    )
    return list(map(_vector, rows))


def filterable_metadata(connection: apsw.Connection, index: Index) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield ids and the metadata that filters can use."""
    rows: Any = connection.execute("SELECT id, filterable FROM stored_vector WHERE index_id = ?", (index.id,))
    while batch := list(islice(rows, ROWS_PARSED_AT_ONCE)):
        # Parsing one large document takes a quarter of the time of many small ones.
        yield from zip((id_ for id_, _ in batch), json.loads(f"[{','.join(text for _, text in batch)}]"), strict=True)


def _ids(connection: apsw.Connection, index: Index, keys: Sequence[str]) -> dict[str, int]:
    # One by one, because SQLite's JSON functions end a text at a NUL character.
    query = "SELECT id FROM stored_vector WHERE index_id = ? AND key = ?"
    rows = ((key, connection.execute(query, (index.id, key)).fetchone()) for key in keys)
    return {key: row[0] for key, row in rows if row is not None}


def _add_texts(
    connection: apsw.Connection, text_search: TextSearch, metadata: Iterable[tuple[int, Mapping[str, Any]]]
) -> None:
    connection.executemany(
        f"INSERT INTO {schema.vector_text_index(text_search.id)} (rowid, body) VALUES (?, ?)",  # noqa: S608
        [(id_, spaced(text)) for id_, found in metadata if (text := _text(found.get(text_search.key)))],
    )


def _remove_texts(connection: apsw.Connection, index: Index, ids: Sequence[int]) -> None:
    for text_search in index.text_searches:
        connection.executemany(
            f"DELETE FROM {schema.vector_text_index(text_search.id)} WHERE rowid = ?",  # noqa: S608
            [(id_,) for id_ in ids],
        )


def _text(value: Any) -> str:
    members = value if isinstance(value, list) else [value]
    return " ".join(member for member in members if isinstance(member, str))


def _vector(row: tuple[Any, ...]) -> StoredVector:
    return StoredVector(row[0], row[1], row[2], json.loads(row[3]))
