"""Vectors by what they were made of, in an SQLite file that may be lost at any time."""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import apsw

VERSION: Final = 1
"""Goes up when a vector of the same name and text comes out differently."""

LARGEST_BYTES: Final = 512 * 1024**2
SHARE_FORGOTTEN: Final = 10
"""One in so many entries goes, the oldest first, when the file has grown too large."""

KEYS_AT_ONCE: Final = 500

log = logging.getLogger(__name__)


class VectorFile:
    """Values by key; any thread may use it.

    A file that is damaged is thrown away, and one that cannot be written is done without: neither is an error.

    Args:
        path: Of the file, opened or made when it is first needed.
        largest_bytes: The oldest entries are forgotten beyond it.
    """

    def __init__(self, path: Path, *, largest_bytes: int = LARGEST_BYTES) -> None:
        self._path = path
        self._largest_bytes = largest_bytes
        self._using = threading.Lock()
        self._opened = False
        self._connection: apsw.Connection | None = None

    def find(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return what is known of these keys."""
        with self._using:
            connection = self._opened_connection()
            if connection is None:
                return {}
            try:
                return dict(
                    row
                    for start in range(0, len(keys), KEYS_AT_ONCE)
                    for row in _rows(connection, keys[start : start + KEYS_AT_ONCE])
                )
            except apsw.Error as error:
                self._renew(error)
                return {}

    def store(self, values: Mapping[bytes, bytes]) -> None:
        """Keep values, at the cost of the oldest."""
        with self._using:
            connection = self._opened_connection()
            if connection is None:
                return
            try:
                with connection:
                    self._forget_oldest(connection)
                    connection.executemany("REPLACE INTO entry (key, value) VALUES (?, ?)", values.items())
            except apsw.Error as error:
                self._renew(error)

    def close(self) -> None:
        """Close the file."""
        with self._using:
            self._opened = True
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _opened_connection(self) -> apsw.Connection | None:
        if not self._opened:
            self._opened = True
            try:
                self._connection = self._connected()
            except apsw.Error as error:
                self._renew(error)
        return self._connection

    def _renew(self, error: apsw.Error) -> None:
        """Begin with an empty file, or go on without one."""
        log.warning("The cached embeddings in %s cannot be used and are made again: %s", self._path, error)
        if self._connection is not None:
            with suppress(apsw.Error):
                self._connection.close()
        self._connection = None
        try:
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
            self._connection = self._connected()
        except (apsw.Error, OSError) as second_error:
            log.warning("Embeddings are not cached: %s", second_error)

    def _connected(self) -> apsw.Connection:
        connection = apsw.Connection(str(self._path))
        try:
            # Losing the last entries costs nothing but making them again.
            connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -8000")
            if connection.execute("PRAGMA user_version").get != VERSION:
                connection.execute("DROP TABLE IF EXISTS entry")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS entry"
                " (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, value BLOB NOT NULL)"
            )
            connection.execute(f"PRAGMA user_version = {VERSION}")
        except apsw.Error:
            connection.close()
            raise
        return connection

    def _forget_oldest(self, connection: apsw.Connection) -> None:
        used_pages = connection.execute("PRAGMA page_count").get - connection.execute("PRAGMA freelist_count").get
        if used_pages * connection.execute("PRAGMA page_size").get > self._largest_bytes:
            connection.execute(
                "DELETE FROM entry WHERE id <= (SELECT min(id) + (max(id) - min(id)) / ? FROM entry)",
                (SHARE_FORGOTTEN,),
            )


def _rows(connection: apsw.Connection, keys: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    marks = ",".join("?" * len(keys))
    return connection.execute(f"SELECT key, value FROM entry WHERE key IN ({marks})", keys)  # noqa: S608 - marks only
