"""The vectors of a vector index in the tables, and the texts of their metadata that are searched by words."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import apsw
import numpy as np

from local_bedrock.store import schema, searched_vectors
from local_bedrock.store.database import Change
from local_bedrock.store.products import Vectors
from local_bedrock.store.vector_buckets import Index, TextSearch

ROWS_PARSED_AT_ONCE: Final = 1000

# Chinese characters, kana and hangul: languages without blanks between words. Each is a word of its own.
_IDEOGRAPH: Final = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")


@dataclass(frozen=True)
class StoredVector:
    """A vector as it was put; the id is the store's own."""

    id: int
    key: str
    value: bytes
    metadata: Mapping[str, Any]

    @property
    def float32(self) -> list[float]:
        """Its numbers."""
        found: list[float] = np.frombuffer(self.value, dtype="<f4").tolist()
        return found


def spaced(text: str) -> str:
    """Set the characters apart that are words without blanks around them."""
    return _IDEOGRAPH.sub(r" \g<0> ", text)


def put(
    change: Change, index: Index, keys: Sequence[str], vectors: Vectors, metadata: Sequence[dict[str, Any]]
) -> None:
    """Add vectors; one whose key is there takes its place whole.

    Args:
        change: The transaction.
        index: Where.
        keys: Different ones.
        vectors: One row for each key.
        metadata: One object for each key.
    """
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
    name, documents = searched_vectors.name_of(index.id), np.array([ids[key] for key in keys], dtype=np.int64)
    rows = searched_vectors.prepared(vectors, index.metric)
    if earlier:
        change.after_commit.append(lambda vectors: vectors.remove(name, earlier))
    change.after_commit.append(lambda vectors: vectors.extend(name, documents, documents, rows))


def remove(change: Change, index: Index, keys: Sequence[str]) -> None:
    """Delete vectors; a key that is not there is no error."""
    gone = list(_ids(change.connection, index, keys).values())
    if gone:
        _remove_texts(change.connection, index, gone)
        change.connection.executemany("DELETE FROM stored_vector WHERE id = ?", [(id_,) for id_ in gone])
        change.after_commit.append(lambda vectors: vectors.remove(searched_vectors.name_of(index.id), gone))


def get(connection: apsw.Connection, index: Index, keys: Sequence[str]) -> list[StoredVector]:
    """Return those of these keys that are there, each once, in the order of the keys."""
    query = "SELECT id, key, value, metadata FROM stored_vector WHERE index_id = ? AND key = ?"
    rows = (connection.execute(query, (index.id, key)).fetchone() for key in dict.fromkeys(keys))
    return [_vector(row) for row in rows if row is not None]


def by_id(connection: apsw.Connection, ids: Sequence[int]) -> list[StoredVector]:
    """Return vectors by the store's ids, in their order."""
    rows = connection.execute(
        "SELECT id, key, value, metadata FROM stored_vector WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    found = {row[0]: _vector(row) for row in rows}
    return [found[id_] for id_ in ids]


def listed(connection: apsw.Connection, index: Index, after: int, segment: int, of: int) -> Iterator[StoredVector]:
    """Go through the vectors of one of ``of`` segments by id, those after ``after``."""
    rows = connection.execute(
        "SELECT id, key, value, metadata FROM stored_vector WHERE index_id = ? AND id > ? AND id % ? = ? ORDER BY id",
        (index.id, after, of, segment),
    )
    return map(_vector, rows)


def filterable(connection: apsw.Connection, index: Index) -> Iterator[tuple[int, dict[str, Any]]]:
    """Go through the metadata that filters see, by id."""
    rows: Any = connection.execute("SELECT id, filterable FROM stored_vector WHERE index_id = ?", (index.id,))
    while batch := list(islice(rows, ROWS_PARSED_AT_ONCE)):
        # One document of many is parsed in a quarter of the time of as many documents.
        yield from zip((id_ for id_, _ in batch), json.loads(f"[{','.join(text for _, text in batch)}]"), strict=True)


def index_texts(change: Change, index: Index, text_search: TextSearch) -> None:
    """Fill a new full-text table with what is there."""
    rows: list[Any] = change.connection.execute(
        "SELECT id, metadata FROM stored_vector WHERE index_id = ?", (index.id,)
    ).fetchall()
    _add_texts(change.connection, text_search, ((id_, json.loads(document)) for id_, document in rows))


def _ids(connection: apsw.Connection, index: Index, keys: Sequence[str]) -> dict[str, int]:
    # One by one: SQLite's JSON functions, which could take all of them, end a text at a NUL.
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
