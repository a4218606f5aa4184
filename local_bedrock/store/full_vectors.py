"""The full vectors, which are read from SQLite when candidates are ranked."""

import json
import threading
from enum import Enum
from typing import Any, Final

import apsw
import numpy as np
import numpy.typing as npt

from local_bedrock.store.candidates import Ids
from local_bedrock.store.codes import Vectors

KEPT_BYTES: Final = 96 * 2**20
"""Maximum size of the vectors that are kept of one knowledge base: 65,536 of 384 numbers.

They are kept in 32 bits, because numpy takes 7 ns to convert a number of 16.
"""

FIRST_KEPT: Final = 1024


class Form(Enum):
    """How the vectors of a knowledge base or an index are stored, and what is searched."""

    HALF = "<f2"
    """In 16 bits, as embedded."""

    SINGLE = "<f4"
    """In 32 bits, as put."""

    SINGLE_TO_UNIT = "<f4 of unit length"
    """In 32 bits, as put; what is searched has unit length."""

    @property
    def kind(self) -> npt.DTypeLike:
        """The type of a stored number."""
        return self.value[:3]

    def searched(self, stored: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what is searched of stored vectors."""
        return unit(stored) if self is Form.SINGLE_TO_UNIT else stored


def unit(vectors: Vectors) -> Vectors:
    """Return vectors of unit length, without overflow or underflow; zero vectors stay zero."""
    exact = vectors.astype(np.float64)
    exact /= np.maximum(np.abs(exact).max(axis=-1, keepdims=True, initial=0.0), np.finfo(np.float64).tiny)
    lengths = np.linalg.norm(exact, axis=-1, keepdims=True)
    return np.asarray(exact / np.where(lengths > 0, lengths, 1), dtype=np.float32)


class FullVectors:
    """Those of one knowledge base or index: the latest that were read are kept, each in the place of its id.

    The vector of an id never changes; a knowledge base that is embedded again gets another instance.
    """

    def __init__(self, form: Form, dimension: int) -> None:
        self.form = form
        self.dimension = dimension
        self._most = max(1, KEPT_BYTES // max(1, dimension * np.dtype(np.float32).itemsize))
        self._lock = threading.Lock()
        self._put_since = 0
        self._make_room(0)

    @property
    def room(self) -> int:
        """How many vectors can be kept at present."""
        return len(self._ids)

    def read(self, connection: apsw.Connection, chunks: Ids) -> tuple[Ids, Vectors]:
        """Return the places of the chunks that exist, ascending, and their vectors."""
        with self._lock:
            places = chunks % len(self._ids)
            is_there = self._ids[places] == chunks
            found = self._vectors.take(places, axis=0)
        if not is_there.all():
            self._read(connection, chunks, is_there, found)
        there = np.flatnonzero(is_there)
        return there, found if len(there) == len(found) else found[there]

    def _read(self, connection: apsw.Connection, chunks: Ids, is_there: npt.NDArray[np.bool_], found: Vectors) -> None:
        """Complete ``found`` and ``is_there`` from SQLite."""
        missing = np.flatnonzero(~is_there)
        query = "SELECT chunk_id, value FROM full_vector WHERE chunk_id IN (SELECT value FROM json_each(?))"
        rows: dict[int, bytes] = dict(connection.execute(query, (json.dumps(chunks[missing].tolist()),)))
        missing = missing[[chunk in rows for chunk in chunks[missing].tolist()]]
        if not len(missing):
            return
        values = b"".join([rows[chunk] for chunk in chunks[missing].tolist()])
        found[missing] = self.form.searched(np.frombuffer(values, dtype=self.form.kind).reshape(len(missing), -1))
        is_there[missing] = True
        with self._lock:
            self._put(chunks[missing], found[missing])

    def _put(self, chunks: Ids, vectors: Vectors) -> None:
        """Keep vectors, each in place of another one whose id has the same remainder."""
        self._put_since += len(chunks)
        if self._put_since > self.room // 2 and self.room < self._most:
            held = self._ids >= 0
            chunks, vectors = np.append(self._ids[held], chunks), np.concatenate([self._vectors[held], vectors])
            self._make_room(2 * self._put_since)
        places, chosen = np.unique(chunks % self.room, return_index=True)
        self._ids[places], self._vectors[places] = chunks[chosen], vectors[chosen]

    def _make_room(self, vectors: int) -> None:
        """Make room for so many, or as many as may be kept."""
        room = min(max(FIRST_KEPT, 2 ** vectors.bit_length()), self._most)
        self._ids = np.full(room, -1, dtype=np.int64)
        self._vectors = np.empty((room, self.dimension), dtype=np.float32)
