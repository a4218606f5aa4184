"""The SQLite file, with one connection that writes and several that read, and the vectors in memory.

A reader holds a consistent snapshot of the file and of the vectors. Readers and the writer exclude each other only
during a commit.
"""

import ctypes
import fcntl
import json
import logging
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import apsw
import numpy as np

from local_bedrock.http.guard import make_private
from local_bedrock.store import condition
from local_bedrock.store.candidates import Ids
from local_bedrock.store.codes import Codes, Vectors
from local_bedrock.store.condition import FILE_NAME
from local_bedrock.store.full_vectors import Form
from local_bedrock.store.postings import MAX_ROWS, build_segments
from local_bedrock.store.vectors import VectorIndex, VectorSnapshot, put_form
from ragstack_common.core.errors import RagStackError

READERS: Final = 8

VECTOR_INDEX: Final = "s3vectors/index/"
TEXT_SEARCH: Final = "s3vectors/text/"
"""With an id, the names under which the vectors that were put into an index, and the words of one of its text searches,
are in the tables and in memory. No knowledge base has such an id."""

CHECKPOINT_PAGES: Final = 10_000
"""Pages of 4 KiB in the log, above which they are written to the file. Pages that change often are then written once:
1,000,000 chunks were built in 83 seconds, and in 99 with 2,000."""

RELEASED_PAGES: Final = 1000
"""Free pages of 4 KiB below which no space is released."""

RELEASED_SHARE: Final = 0.5
"""Share of free pages above which the file is rewritten without them."""


M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
RETURNED_BYTES: Final = 2**20
"""Arrays of this size are returned to the system when they are freed. Otherwise glibc keeps some for each thread: with
1,000,000 chunks and 32 clients, 500 of 1,100 MiB."""
KEPT_BYTES: Final = 2**22
"""Smaller ones are not, while a thread has less than this to spare. By default, glibc returns them too, and each search
waits for new pages: eight clients took 35 ms for HYBRID over 100,000 chunks, and 29 with 16 MiB. 4 are as fast."""

RETRY_SECONDS: Final = 1.0
"""Interval at which background work checks a full disk for room."""

log = logging.getLogger(__name__)

Row = TypeVar("Row")
_T = TypeVar("_T")


class DataFolderError(RagStackError):
    """The data folder can't be used; the message says why and what to do."""


class UnreadableIndexError(DataFolderError):
    """The index is damaged, empty, or of a version that this program does not read."""


class DiskFullError(RagStackError):
    """There is no room for a change, which can be repeated later."""


@dataclass
class Transaction:
    """A transaction that writes.

    Attributes:
        vector_changes: Applied at the end to a copy of the index, which becomes visible together with the commit.
    """

    connection: apsw.Connection
    vector_changes: list[Callable[[VectorIndex], None]] = field(default_factory=list)


@dataclass(frozen=True)
class View:
    """A consistent snapshot of the tables, of the vectors of one knowledge base, and of all of them."""

    connection: apsw.Connection
    vectors: VectorSnapshot
    index: VectorIndex

    def read_vectors(self, chunks: Ids) -> tuple[Ids, Vectors]:
        """Return the places of the chunks that exist, and their full vectors."""
        return self.vectors.full.read(self.connection, chunks)

    def of(self, name: str) -> "View":
        """Return the same snapshot with the vectors of another knowledge base."""
        return replace(self, vectors=self.index.snapshot(name))


class Database:
    """One data folder, opened by one process at a time.

    Attributes:
        obstacle: Why nothing can be written at present; None if the last change was written.
    """

    def __init__(self, folder: Path, *, replaces_index: bool = False) -> None:
        """Open or create it.

        Args:
            folder: Created if missing.
            replaces_index: Whether an index that cannot be used is set aside and replaced by an empty one.

        Raises:
            UnreadableIndexError: The index cannot be used.
            DataFolderError: Another process uses the folder, or it isn't writable.
            DiskFullError: There is no room for it.
        """
        self.obstacle: str | None = None
        with suppress(AttributeError):  # another library than glibc
            ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, RETURNED_BYTES)
            ctypes.CDLL(None).mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        self._lock_file = _lock(folder)
        self._path = folder / FILE_NAME
        self._writing = threading.Lock()
        self._publishing = threading.Lock()
        self._vectors = VectorIndex()
        self._log_pages = 0
        with self._noticing_a_full_disk():
            self._check_index(replaces_index=replaces_index)
            if not self._path.exists():
                condition.create(self._path)
            self._writer = self._connect()
            self._prepare()
        self._load_vectors()
        self._readers: queue.LifoQueue[apsw.Connection] = queue.LifoQueue()
        for _ in range(READERS):
            self._readers.put(self._connect(read_only=True))

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Run a transaction; an exception rolls it back.

        Raises:
            DiskFullError: There is no room for it.
        """
        with self._writing, self._noticing_a_full_disk():
            change = Transaction(self._writer)
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield change
                vectors = self._vectors.changed(change.vector_changes)
                with self._publishing:
                    self._writer.execute("COMMIT")
                    self._vectors = vectors
            except BaseException:
                if self._writer.in_transaction:  # SQLite itself may have rolled it back
                    self._writer.execute("ROLLBACK")
                raise
            self._checkpoint()

    def write_when_possible(self, work: Callable[[Transaction], _T], closing: threading.Event) -> _T | None:
        """Run a transaction, on a full disk as soon as there is room; None if *closing* is set before that."""
        while True:
            try:
                with self.write() as change:
                    return work(change)
            except DiskFullError:
                if closing.wait(RETRY_SECONDS):
                    return None

    @contextmanager
    def read(self, vectors_of: str = "") -> Iterator[View]:
        """Hold a snapshot that later commits don't change.

        Args:
            vectors_of: The id of the knowledge base whose vectors are searched.
        """
        connection = self._readers.get()
        try:
            with self._publishing:
                connection.execute("BEGIN")
                # SQLite takes the snapshot at the first read.
                connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
                view = View(connection, self._vectors.snapshot(vectors_of), self._vectors)
            yield view
        finally:
            try:
                if connection.in_transaction:
                    connection.execute("COMMIT")
            finally:
                self._readers.put(connection)

    def release_space(self) -> None:
        """Release disk space and memory after deletions, if at least half of the file is free.

        Other writers wait, readers don't. Takes about a second for each 100 MB of remaining data.
        """
        with self._writing:
            free, pages = (int(self._writer.execute(f"PRAGMA {name}").get) for name in ("freelist_count", "page_count"))
            if free < max(RELEASED_PAGES, RELEASED_SHARE * pages):
                return
            try:
                self._writer.execute("VACUUM")
            except apsw.FullError:  # no room for the copy; new documents use the free pages
                return
            # If a reader is still active, the next checkpoint shortens the log.
            with suppress(apsw.BusyError):
                self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            idle: list[apsw.Connection] = []
            with suppress(queue.Empty):  # without waiting: close() takes readers too, and then waits for the writer
                while True:
                    idle.append(self._readers.get_nowait())
            for connection in (self._writer, *idle):
                connection.execute("PRAGMA shrink_memory")
            for connection in idle:
                self._readers.put(connection)
        # glibc keeps freed memory: 13 of 157 MB after 100 documents of 70 KB were deleted.
        with suppress(AttributeError):
            ctypes.CDLL(None).malloc_trim(0)

    def close(self) -> None:
        """Close every connection; waits for readers and the writer."""
        for _ in range(READERS):
            self._readers.get().close()
        with self._writing:
            self._writer.close()
        self._lock_file.close()

    @contextmanager
    def _noticing_a_full_disk(self) -> Iterator[None]:
        try:
            yield
        except (apsw.FullError, apsw.IOError) as error:
            if isinstance(error, apsw.IOError) and getattr(error, "extendedresult", 0) != apsw.SQLITE_IOERR_SHMSIZE:
                raise
            obstacle = f"The disk of the data folder {self._path.parent} is full: free space on it"
            if self.obstacle is None:
                log.error("%s. Documents wait until then", obstacle)  # noqa: TRY400 - the message says all
            self.obstacle = obstacle
            raise DiskFullError(obstacle) from error
        if self.obstacle is not None:
            log.warning("The disk has room again: the work continues")
            self.obstacle = None

    def _connect(self, *, read_only: bool = False) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
        connection = apsw.Connection(str(self._path), flags=flags)
        connection.set_busy_timeout(10_000)
        connection.execute("PRAGMA cache_size = -16000; PRAGMA foreign_keys = ON")
        if read_only:
            # Not for the writer, whose VACUUM makes a temporary copy of the whole file.
            connection.execute("PRAGMA temp_store = MEMORY")
        return connection

    def _check_index(self, *, replaces_index: bool) -> None:
        fault = condition.find_fault(self._path)
        if fault is None:
            return
        if not replaces_index:
            self._lock_file.close()
            raise UnreadableIndexError(
                f"The index {self._path} {fault}. Start with --replace-index: it keeps the file in another folder and"
                " starts an empty index, into which you ingest the documents again. `ragstack up` does both itself."
            )
        log.warning("The index %s %s: it is set aside, and a new one is started", self._path, fault)
        condition.set_aside(self._path, fault)

    def _prepare(self) -> None:
        # Readers would wait for a checkpoint inside a commit, so the hook only counts and write() does it later.
        self._writer.execute(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
            f"PRAGMA journal_size_limit = {CHECKPOINT_PAGES * 4096}"
        )
        self._writer.set_wal_hook(self._count_log_pages)

    def _load_vectors(self) -> None:
        rows = self._writer.execute("SELECT ? || id, metric FROM vector_index", (VECTOR_INDEX,))
        forms = {name: put_form(metric) for name, metric in rows}
        rows = self._writer.execute(
            "SELECT knowledge_base_id, document_id, chunk_id, code, words FROM vector ORDER BY chunk_id"
        )
        for knowledge_base_id, of_base in groupby(rows, itemgetter(0)):
            form = forms.get(knowledge_base_id, Form.HALF)
            while batch := list(islice(of_base, MAX_ROWS)):
                _, documents, chunks, codes, words = zip(*batch, strict=True)
                ids = np.array(documents), np.array(chunks)
                self._vectors.extend(knowledge_base_id, *ids, Codes.read(codes), build_segments(words), form)
                self._vectors.tidy()
        self._load_texts()

    def _load_texts(self) -> None:
        rows = self._writer.execute(
            "SELECT ? || text_search_id, document_id, chunk_id, t.words"
            " FROM searched_text t JOIN vector USING (chunk_id) ORDER BY text_search_id, chunk_id",
            (TEXT_SEARCH,),
        )
        for name, of_text in groupby(rows, itemgetter(0)):
            while batch := list(islice(of_text, MAX_ROWS)):
                _, documents, chunks, words = zip(*batch, strict=True)
                self._vectors.extend_words(name, np.array(documents), np.array(chunks), words)

    def _checkpoint(self) -> None:
        if self._log_pages > CHECKPOINT_PAGES:
            with suppress(apsw.FullError):  # the change is in the log already
                self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _count_log_pages(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK


def insert(change: Transaction, table: str, values: Mapping[str, Any], *, replace: bool = False) -> int:
    """Insert a row, with lists and objects as JSON, and return its row id."""
    columns, marks = ", ".join(values), ", ".join("?" * len(values))
    row = [json.dumps(value) if isinstance(value, list | tuple | dict) else value for value in values.values()]
    verb = "INSERT OR REPLACE" if replace else "INSERT"
    change.connection.execute(f"{verb} INTO {table} ({columns}) VALUES ({marks})", row)
    return change.connection.last_insert_rowid()


@cache
def _columns(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


def select(connection: apsw.Connection, kind: Callable[..., Row], rest: str, *parameters: Any) -> list[Row]:
    """Return rows as dataclasses whose fields are named like the columns.

    Args:
        connection: A reader, or the writer.
        kind: The dataclass.
        rest: The statement from the name of the table on, without input of a request.
        parameters: For the placeholders in it.
    """
    names, in_json = _columns(kind), ("encryption", "failures", "non_filterable", "request", "statistics")
    rows = connection.execute(f"SELECT {', '.join(names)} FROM {rest}", parameters)  # noqa: S608
    return [kind(**{n: json.loads(v) if n in in_json else v for n, v in zip(names, row, strict=True)}) for row in rows]


def _lock(folder: Path) -> IO[str]:
    try:
        make_private(folder)
        handle = (folder / "lock").open("w")
    except OSError as error:
        raise DataFolderError(f"The data folder {folder} cannot be used: {error.strerror}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        handle.close()
        raise DataFolderError(
            f"The data folder {folder} is in use by another local Bedrock: stop that one, or choose another folder"
        ) from error
    return handle
