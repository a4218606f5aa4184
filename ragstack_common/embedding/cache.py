"""An embedding that caches its vectors in an SQLite file, which may be deleted at any time."""

import hashlib
import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

import apsw
import numpy as np
import numpy.typing as npt

from ragstack_common.embedding.protocol import Embedding, Vectors

QUERIES_KEPT: Final = 1_000

TEXTS_AT_ONCE: Final = 256
"""Texts embedded before they are stored: at most this work is lost if the process ends."""

FILE_VERSION: Final = 1
"""Increase it when a model gives another vector for the same text."""

MAX_FILE_BYTES: Final = 512 * 1024**2
EVICTED_SHARE: Final = 10
"""A full file loses its oldest tenth."""

_KEYS_IN_QUERY: Final = 500

log = logging.getLogger(__name__)


class CachedEmbedding(Embedding):
    """Asks a model once for each passage, and once for each of the most recent queries.

    Vectors have 16-bit precision, as in the index, whether they are cached or not. A blank text is the zero vector.

    Args:
        model: Slow, or charged by the call.
        path: File of the cached passages.
    """

    def __init__(self, model: Embedding, path: Path) -> None:
        self.name, self.description = model.name, model.description
        self.dimension, self.fusion_weight = model.dimension, model.fusion_weight
        self._model = model
        self._file = VectorFile(path)
        self._query = lru_cache(maxsize=QUERIES_KEPT)(model.embed_query)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, only those that are not cached."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            some = texts[start : start + TEXTS_AT_ONCE]
            keys = [self._key(text) if text.strip() else None for text in some]
            text_of = {key: text for key, text in zip(keys, some, strict=True) if key is not None}
            values = self._values(text_of)
            for row, key in enumerate(keys, start):
                if key is not None:
                    vectors[row] = values[key]
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Embed a query, unless it is cached."""
        return self._query(text) if text.strip() else np.zeros(self.dimension, dtype=np.float32)

    def close(self) -> None:
        """Close the model and the file."""
        self._model.close()
        self._file.close()

    def _values(self, text_of: dict[bytes, str]) -> dict[bytes, npt.NDArray[np.float16]]:
        size = np.dtype("<f2").itemsize * self.dimension
        found = {key: value for key, value in self._file.find(list(text_of)).items() if len(value) == size}
        missing = [key for key in text_of if key not in found]
        if missing:
            embedded = self._model.embed([text_of[key] for key in missing]).astype("<f2")
            made = {key: row.tobytes() for key, row in zip(missing, embedded, strict=True)}
            self._file.store(made)
            found.update(made)
        return {key: np.frombuffer(value, dtype="<f2") for key, value in found.items()}

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(f"{self.name}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


class VectorFile:
    """Values by key in an SQLite file. Any thread may use it.

    A damaged file is replaced by an empty one. Without a writable file nothing is cached. Neither is an error.

    Args:
        path: The file; it is opened or created at the first use.
        max_bytes: A larger file loses its oldest entries.
    """

    def __init__(self, path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._opened = False
        self._connection: apsw.Connection | None = None

    def find(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values of the known keys."""
        found: dict[bytes, bytes] = {}
        with self._lock:
            connection = self._open()
            if connection is None:
                return found
            try:
                for start in range(0, len(keys), _KEYS_IN_QUERY):
                    some = keys[start : start + _KEYS_IN_QUERY]
                    marks = ",".join("?" * len(some))
                    found.update(connection.execute(f"SELECT key, value FROM entry WHERE key IN ({marks})", some))  # noqa: S608 - only marks
            except apsw.Error as error:
                self._replace(error)
                return {}
        return found

    def store(self, values: Mapping[bytes, bytes]) -> None:
        """Store values, and drop the oldest entries of a full file."""
        with self._lock:
            connection = self._open()
            if connection is None:
                return
            try:
                with connection:
                    self._evict(connection)
                    connection.executemany("REPLACE INTO entry (key, value) VALUES (?, ?)", values.items())
            except apsw.Error as error:
                self._replace(error)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._opened = True
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _open(self) -> apsw.Connection | None:
        if not self._opened:
            self._opened = True
            try:
                self._connection = self._connect()
            except apsw.Error as error:
                self._replace(error)
        return self._connection

    def _replace(self, error: apsw.Error) -> None:
        log.warning("The cached embeddings in %s cannot be used and are replaced: %s", self._path, error)
        if self._connection is not None:
            with suppress(apsw.Error):
                self._connection.close()
        self._connection = None
        try:
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
            self._connection = self._connect()
        except (apsw.Error, OSError) as second_error:
            log.warning("Embeddings are not cached: %s", second_error)

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(str(self._path))
        try:
            # Losing the last entries costs no more than embedding them again.
            connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -8000")
            if connection.execute("PRAGMA user_version").get != FILE_VERSION:
                connection.execute("DROP TABLE IF EXISTS entry")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS entry"
                " (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, value BLOB NOT NULL)"
            )
            connection.execute(f"PRAGMA user_version = {FILE_VERSION}")
        except apsw.Error:
            connection.close()
            raise
        return connection

    def _evict(self, connection: apsw.Connection) -> None:
        used_pages = connection.execute("PRAGMA page_count").get - connection.execute("PRAGMA freelist_count").get
        if used_pages * connection.execute("PRAGMA page_size").get > self._max_bytes:
            connection.execute(
                "DELETE FROM entry WHERE id <= (SELECT min(id) + (max(id) - min(id)) / ? FROM entry)", (EVICTED_SHARE,)
            )
