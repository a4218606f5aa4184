"""Connections to a Chroma store (a folder, a server or memory), and Chroma's errors as errors of this package.

Any thread may use a connection.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import chromadb
import httpx
from chromadb.api.shared_system_client import SharedSystemClient
from chromadb.errors import (
    AuthorizationError,
    ChromaAuthError,
    ChromaError,
    InvalidArgumentError,
    InvalidDimensionException,
    NotFoundError,
    RateLimitError,
)

from ragstack_common.core.errors import (
    AccessDeniedError,
    CollectionNotFoundError,
    InvalidRequestError,
    ServiceUnavailableError,
    ThrottledError,
)

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

_LAST_WRITE: Final = """
    SELECT (SELECT max(seq_id) FROM embeddings_queue),
           (SELECT group_concat(segment_id || ':' || seq_id) FROM max_seq_id),
           (SELECT group_concat(id || name) FROM collections)
"""
"""Changes with every write. Opening a folder writes too, but not here. Source: schema of chromadb 1.5.9."""


@dataclass(eq=False)
class OpenStore:
    """A client while it is in use; one that *follows_changes* is replaced after a write to the store."""

    client: "ClientAPI"
    follows_changes: bool = False
    users: int = 0
    path: str = ""


class ClientConnection:
    """One client for all uses, such as of a server; messages name its *place*. The first use opens it."""

    folder: Path | None = None

    def __init__(self, place: str, make: "Callable[[], ClientAPI]") -> None:
        self._place = place
        self._make = make
        self._store: OpenStore | None = None
        self._lock = Lock()

    @contextmanager
    def client(self, *, creates: bool = False) -> Iterator[OpenStore]:  # noqa: ARG002 - there is nothing to create
        """Return a client that sees all earlier writes. Only one that *creates* makes a missing folder."""
        with translated_errors(self._place):
            with self._lock:
                self._store = store = self._store or OpenStore(self._make())
            yield store

    def close(self) -> None:
        """Close the client after its last use. Further calls have no effect."""
        with self._lock:
            store, self._store = self._store, None
        if store is not None:
            close_client(store.client)


class FolderConnection:
    """A folder. A search creates nothing in it.

    Chroma reads a folder's vector index once and does not see later writes of other processes, so the folder is
    reopened after a write. Looking for one takes 0.2 ms; a search takes 1.5 ms and more.
    """

    _paths_in_use: Final[set[str]] = set()
    _paths_lock: Final = Lock()

    def __init__(self, folder: Path) -> None:
        self._place = f"the folder {folder}"
        self._folder = folder.expanduser().absolute()
        self.folder: Path | None = self._folder
        self._file = self._folder / "chroma.sqlite3"
        self._current: OpenStore | None = None
        self._last_write: Any = None
        self._lock = Lock()

    @contextmanager
    def client(self, *, creates: bool = False) -> Iterator[OpenStore]:
        """See :class:`ClientConnection`."""
        if not creates and not self._file.is_file():
            raise CollectionNotFoundError(f"There is no Chroma store in {self._folder}: build a collection there first")
        with translated_errors(self._place):
            with self._lock:
                store = self._newest()
                store.users += 1
            try:
                yield store
            finally:
                with self._lock:
                    store.users -= 1
                    if store is not self._current:
                        self._close_unused(store)

    def close(self) -> None:
        """See :class:`ClientConnection`."""
        with self._lock:
            self._discard()

    def _newest(self) -> OpenStore:
        if self._current is None or self._last_write is None or self._read_last_write() != self._last_write:
            self._discard()
            self._current = self._open()
            # Read after opening, and before the first search, which reads the vectors.
            self._last_write = self._read_last_write()
        return self._current

    def _read_last_write(self) -> Any:
        """Return what the last write left, or None if a write may be in progress.

        It reads without SQLite's locks: a thread that waits for the GIL while it holds a lock of SQLite would block
        Chroma, which may wait for SQLite while it holds the GIL. A journal shows a commit in progress.
        """
        if any(self._file.with_name(self._file.name + suffix).exists() for suffix in ("-journal", "-wal")):
            return None
        try:
            with closing(sqlite3.connect(f"{self._file.as_uri()}?immutable=1", uri=True)) as database:
                return database.execute(_LAST_WRITE).fetchone()
        except sqlite3.Error:
            return None

    def _open(self) -> OpenStore:
        # Chroma shares one store, with the vectors as first read, between all clients that spell the path equally.
        # This spelling is used once.
        with self._paths_lock:
            spellings = (f"{self._folder}{'/.' * n}" for n in count(1))
            path = next(spelling for spelling in spellings if spelling not in self._paths_in_use)
            self._paths_in_use.add(path)
        try:
            return OpenStore(chromadb.PersistentClient(path), follows_changes=True, path=path)
        except BaseException:
            self._paths_in_use.discard(path)
            raise

    def _discard(self) -> None:
        current, self._current = self._current, None
        if current is not None:
            self._close_unused(current)

    def _close_unused(self, store: OpenStore) -> None:
        if store.users == 0:
            close_client(store.client)
            self._paths_in_use.discard(store.path)


Connection: TypeAlias = ClientConnection | FolderConnection


def close_client(client: "ClientAPI") -> None:
    """Close a client. Every client has this method, but Chroma's interface does not declare it."""
    cast("Any", client).close()


def open_folder(folder: Path) -> "ClientAPI":
    """Open a folder as a program would itself; if one has it open, the client shares the store with that one.

    Chroma opens a folder once in a process and rejects other settings for it, so these are the first client's, or
    Chroma's own. It knows folders by how their paths are written, and a relative path may have been another folder's
    when the working directory was another one.
    """
    path = str(folder.absolute())
    running = SharedSystemClient._identifier_to_system.get(path)  # noqa: SLF001 - Chroma has no other way
    return chromadb.PersistentClient(path, settings=None if running is None else running.settings)


@contextmanager
def translated_errors(place: str) -> Iterator[None]:
    """Translate Chroma's errors; messages call the store *place*."""
    try:
        yield
    except NotFoundError as error:
        raise CollectionNotFoundError(f"{_text(error)} in {place}: check the name, or build the collection") from error
    except (InvalidArgumentError, InvalidDimensionException) as error:
        if "Error executing plan" in str(error):  # it could not read what another process is writing
            raise ServiceUnavailableError(f"Chroma in {place} failed, try again: {_text(error)}") from error
        raise InvalidRequestError(f"Chroma rejects the request: {_text(error)}") from error
    except (AuthorizationError, ChromaAuthError) as error:
        raise AccessDeniedError(f"Chroma denies access to {place}: check the headers and the database") from error
    except RateLimitError as error:
        raise ThrottledError(f"Chroma in {place} limits the request rate: try again later") from error
    except (ChromaError, httpx.HTTPError, sqlite3.Error, OSError) as error:
        raise ServiceUnavailableError(f"Chroma in {place} failed: {_text(error)}") from error
    except ValueError as error:  # what Chroma raises when it opens a store
        if str(error).startswith("Could not connect"):
            raise ServiceUnavailableError(f"Chroma in {place} cannot be reached: is it running?") from error
        raise


def _text(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__
