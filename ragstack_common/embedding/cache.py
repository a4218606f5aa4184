"""An embedding that caches its vectors in an SQLite file, which may be deleted at any time."""

import hashlib
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeVar

import apsw
import numpy as np
import numpy.typing as npt

from ragstack_common.embedding.protocol import Embedding, Vectors

T = TypeVar("T")

TEXTS_AT_ONCE: Final = 256
"""Texts embedded before they are stored: at most this work is lost if the process ends."""

MAX_FAILURES: Final = 3
"""A damaged file is replaced; after this many failures nothing is cached any more."""

log = logging.getLogger(__name__)


class CachedEmbedding(Embedding):
    """Embeds each passage once, and each of the most recent queries once. Any thread may use it.

    Vectors have 16-bit precision, as in the index, whether they are cached or not. A blank text is the zero vector.
    A damaged file is replaced. Without a writable file nothing is cached. Neither is an error.

    Args:
        model: Slow, or charged by the call.
        path: File of the cached passages; it is opened or created at the first use.
        max_bytes: A larger file loses its oldest tenth.
    """

    def __init__(self, model: Embedding, path: Path, *, max_bytes: int = 512 * 1024**2) -> None:
        self.name, self.description = model.name, model.description
        self.dimension = model.dimension
        self.cosine_share, self.fusion_weight = model.cosine_share, model.fusion_weight
        self._model = model
        self._query = lru_cache(maxsize=1_000)(model.embed_query)
        self._path = path
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._connection: apsw.Connection | None = None
        self._failures = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed the passages that are not cached."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            keys = {text: self._key(text) for text in texts[start : start + TEXTS_AT_ONCE] if text.strip()}
            values = self._values(keys)
            for row, text in enumerate(texts[start : start + TEXTS_AT_ONCE], start):
                if text in keys:
                    vectors[row] = values[keys[text]]
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Embed a query, unless it is cached."""
        return self._query(text) if text.strip() else np.zeros(self.dimension, dtype=np.float32)

    def close(self) -> None:
        """Close the model and the file."""
        self._model.close()
        with self._lock:
            self._failures = MAX_FAILURES
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _values(self, keys: dict[str, bytes]) -> dict[bytes, npt.NDArray[np.float16]]:
        size = np.dtype("<f2").itemsize * self.dimension
        stored: dict[bytes, bytes] = self._in_file(lambda file: dict(_find(file, [*keys.values()])), {})
        found = {key: value for key, value in stored.items() if len(value) == size}
        missing = [text for text, key in keys.items() if key not in found]
        if missing:
            embedded = self._model.embed(missing).astype("<f2")
            made = {keys[text]: row.tobytes() for text, row in zip(missing, embedded, strict=True)}
            self._in_file(lambda file: _store(file, made, self._max_bytes), None)
            found |= made
        return {key: np.frombuffer(value, dtype="<f2") for key, value in found.items()}

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(f"{self.name}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def _in_file(self, work: Callable[[apsw.Connection], T], otherwise: T) -> T:
        with self._lock:
            if self._failures == MAX_FAILURES:
                return otherwise
            try:
                if self._connection is None:
                    self._connection = _open(self._path)
                return work(self._connection)
            except apsw.Error as error:
                log.warning("The cached embeddings in %s cannot be used and are replaced: %s", self._path, error)
                self._failures += 1
                if self._connection is not None:
                    with suppress(apsw.Error):
                        self._connection.close()
                self._connection = None
                for suffix in ("", "-wal", "-shm"):
                    with suppress(OSError):
                        self._path.with_name(self._path.name + suffix).unlink()
                return otherwise


def _open(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    try:
        # Losing the last entries costs no more than embedding them again.
        connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -8000")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS entry (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, value BLOB NOT NULL)"
        )
    except apsw.Error:
        connection.close()
        raise
    return connection


def _find(file: apsw.Connection, keys: Sequence[bytes]) -> apsw.Cursor:
    return file.execute(f"SELECT key, value FROM entry WHERE key IN ({','.join('?' * len(keys))})", keys)  # noqa: S608 - only marks


def _store(file: apsw.Connection, values: dict[bytes, bytes], max_bytes: int) -> None:
    with file:
        used_pages = file.execute("PRAGMA page_count").get - file.execute("PRAGMA freelist_count").get
        if used_pages * file.execute("PRAGMA page_size").get > max_bytes:
            file.execute("DELETE FROM entry WHERE id <= (SELECT min(id) + (max(id) - min(id)) / 10 FROM entry)")
        file.executemany("REPLACE INTO entry (key, value) VALUES (?, ?)", values.items())
