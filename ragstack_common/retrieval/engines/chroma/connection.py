"""Ways to a Chroma store: a folder of this machine, a server, or memory.

Several threads may use one connection. Chroma reads a folder's vector index once and does not see what other processes
write after that, so a folder that has changed is opened anew.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import chromadb
from chromadb.config import Settings

from ragstack_common.errors import CollectionNotFoundError
from ragstack_common.retrieval.engines.chroma.failures import translated

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from chromadb.api import ClientAPI

DATABASE_FILE: Final = "chroma.sqlite3"

_CHANGES: Final = """
    SELECT (SELECT max(seq_id) FROM embeddings_queue),
           (SELECT group_concat(segment_id || ':' || seq_id) FROM max_seq_id),
           (SELECT group_concat(id || name) FROM collections)
"""
"""What no writer leaves as it was; opening a folder writes too, but not here. Source: schema of chromadb 1.5.9."""


class Connection(Protocol):
    """A way to a store.

    Attributes:
        place: The store, as a message names it.
    """

    place: str

    def client(self) -> "AbstractContextManager[Opened]":
        """Lend a client that sees what was written before.

        Raises:
            RetrievalError: The store cannot be opened or reached; which one, the subclass tells.
        """
        ...

    def close(self) -> None:
        """Close the client when nobody uses it any more; a second call does nothing."""
        ...


@dataclass(eq=False)
class Opened:
    """A client, for as long as it is lent.

    Attributes:
        client: The client.
        follows_changes: Whether another one is lent when somebody has written to the store.
        users: How many have it.
        path: The folder as this client names it.
    """

    client: "ClientAPI"
    follows_changes: bool = False
    users: int = 0
    path: str = ""


class MemoryConnection:
    """A client that somebody else made and closes."""

    place = "memory"

    def __init__(self, client: "ClientAPI") -> None:
        self._opened = Opened(client)

    @contextmanager
    def client(self) -> Iterator[Opened]:
        """As :class:`Connection`."""
        with translated(self.place):
            yield self._opened

    def close(self) -> None:
        """As :class:`Connection`."""


class ServerConnection:
    """A Chroma server; the first use connects.

    Args:
        host: Name or address.
        port: Of HTTP, or of HTTPS with *ssl*.
        options: What ``chromadb.HttpClient`` takes beside them: ssl, headers, tenant, database.
    """

    def __init__(self, host: str, port: int, **options: Any) -> None:
        self.place = f"the server {host}:{port}"
        self._options = {"host": host, "port": port, **options}
        self._opened: Opened | None = None
        self._lock = Lock()

    @contextmanager
    def client(self) -> Iterator[Opened]:
        """As :class:`Connection`."""
        with translated(self.place):
            with self._lock:
                if self._opened is None:
                    self._opened = Opened(chromadb.HttpClient(**self._options, settings=quiet()))
                opened = self._opened
            yield opened

    def close(self) -> None:
        """As :class:`Connection`."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            close_client(opened.client)


class FolderConnection:
    """A folder that exists; nothing is created in it.

    Args:
        folder: What ``chromadb.PersistentClient`` calls the path.
    """

    _names_in_use: Final[set[str]] = set()
    _names_lock: Final = Lock()

    def __init__(self, folder: Path) -> None:
        self.place = f"the folder {folder}"
        self._folder = folder.expanduser()
        self._file = self._folder / DATABASE_FILE
        self._probe: _Probe | None = None
        self._current: Opened | None = None
        self._lock = Lock()

    @contextmanager
    def client(self) -> Iterator[Opened]:
        """As :class:`Connection`."""
        if not self._file.is_file():
            raise CollectionNotFoundError(f"There is no Chroma store in {self._folder}: build a collection there first")
        with translated(self.place):
            with self._lock:
                opened = self._newest()
                opened.users += 1
            try:
                yield opened
            finally:
                with self._lock:
                    opened.users -= 1
                    if opened is not self._current:
                        self._dispose(opened)

    def close(self) -> None:
        """As :class:`Connection`."""
        with self._lock:
            self._give_up()

    def _newest(self) -> Opened:
        if self._probe is None or self._current is None or self._probe.has_changed():
            self._give_up()
            self._current = self._open()
            # Taken after opening, which writes, and before the first search, which reads the vectors.
            self._probe = _Probe(self._file)
        return self._current

    def _open(self) -> Opened:
        # Chroma keeps one store for each spelling of a path, with the vectors as they were first read.
        with self._names_lock:
            path = next(
                name for n in count(1) if (name := str(self._folder.absolute()) + "/." * n) not in self._names_in_use
            )
            self._names_in_use.add(path)
        try:
            return Opened(chromadb.PersistentClient(path, settings=quiet()), follows_changes=True, path=path)
        except BaseException:
            self._names_in_use.discard(path)
            raise

    def _give_up(self) -> None:
        current, self._probe, self._current = self._current, None, None
        if current is not None:
            self._dispose(current)

    def _dispose(self, opened: Opened) -> None:
        if opened.users == 0:
            close_client(opened.client)
            self._names_in_use.discard(opened.path)


class _Probe:
    """Notices what any process writes to a store after this was made.

    It reads without SQLite's locks: a thread that waits for Python's lock while it holds one of SQLite's would hold up
    Chroma, which may wait for SQLite while it holds Python's. A commit that is under way leaves a journal, and counts
    as a change.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._journals = [file.with_name(file.name + suffix) for suffix in ("-journal", "-wal")]
        self._seen = self._state()
        self._changes = self._written()

    def has_changed(self) -> bool:
        """Compare; the common answer takes microseconds."""
        state = self._state()
        if state == self._seen:
            return False
        changes = self._written()
        if changes is None or changes != self._changes or state[0] != self._seen[0] or self._state() != state:
            return True
        self._seen = state
        return False

    def _state(self) -> tuple[Any, ...]:
        """Return what every commit changes. Source: the counter at byte 24, SQLite's "Database File Format"."""
        with self._file.open("rb") as file:
            header = file.read(28)
            inode = os.fstat(file.fileno()).st_ino
        return inode, header[24:28], [_size_and_time(path) for path in self._journals]

    def _written(self) -> Any:
        """What was written last, or None where it cannot be told and everything counts as a change."""
        if any(path.exists() for path in self._journals):
            return None
        try:
            with closing(sqlite3.connect(f"{self._file.absolute().as_uri()}?immutable=1", uri=True)) as database:
                return database.execute(_CHANGES).fetchone()
        except sqlite3.Error:
            return None


def _size_and_time(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns


def close_client(client: "ClientAPI") -> None:
    """Close a client; the interface does not name what every client has."""
    cast("Any", client).close()


def quiet() -> Settings:
    """Return settings that report nothing to anybody."""
    return Settings(anonymized_telemetry=False)
