"""Items of the registry's table that survive a kill of the local stack.

MiniStack writes its tables when it ends in order, and ignores it if that fails. Documents are read again from their
bucket after a kill, but changes of access rules, judgments, conversations and the questions of the day are only in the
table. So each write of such an item is appended to a file, and the file is synchronized with the disk, before the
client gets its response. The file has the last word at the next start.

The records of documents could be made again from the bucket, by reading all documents again. So what changes in them
after a checkpoint is appended to another file, without waiting for the disk.

Standard library only, like ``guard.py``: MiniStack's interpreter loads this file.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, MutableMapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Item = dict[str, Any]
"""An item in the form of DynamoDB's low-level interface."""

Place = tuple[str, str]
"""Partition key and sort key."""

Answer = tuple[int, list[tuple[bytes, bytes]], bytes]
"""Status, headers and body."""

T = TypeVar("T")

OPERATION_HEADER: Final = b"x-amz-target"
PREFIX: Final = "DynamoDB_20120810."
WRITES: Final = frozenset({"BatchWriteItem", "DeleteItem", "PutItem", "TransactWriteItems", "UpdateItem"})
MAX_BATCH: Final = 25
"""Source: DynamoDB API reference, BatchWriteItem."""

COMPACT_BYTES: Final = 4 * 1024 * 1024
"""A longer journal is written again without the states that later ones replace."""


class KeptItems(NamedTuple):
    """Which items of a table survive.

    Attributes:
        partitions: Names of partitions; a partition key is one of them, or begins with one and ``#``.
        expires_at: Name of the attribute with the seconds since 1970 after which an item may be removed.
        index_name: Name of an index that no table but this one has.
    """

    partitions: tuple[str, ...]
    partition_key: str
    sort_key: str
    expires_at: str
    index_name: str

    def is_table(self, described: Mapping[str, Any]) -> bool:
        """Return whether a table, as DescribeTable describes it, is the one with the items."""
        keys = {each["AttributeName"] for each in described["KeySchema"]}
        indexes = {each["IndexName"] for each in described.get("GlobalSecondaryIndexes") or ()}
        return keys == {self.partition_key, self.sort_key} and self.index_name in indexes

    def place(self, item: Mapping[str, Any]) -> Place | None:
        """Return where an item or a key is; None if it is not kept."""
        try:
            place = item[self.partition_key]["S"], item[self.sort_key]["S"]
        except (KeyError, TypeError):
            return None
        return place if place[0].partition("#")[0] in self.partitions else None

    def key(self, place: Place) -> Item:
        """Return the key of the item at a place."""
        return {self.partition_key: {"S": place[0]}, self.sort_key: {"S": place[1]}}

    def is_expired(self, item: Mapping[str, Any] | None, now: float) -> bool:
        """Whether the table may have removed an item."""
        return item is not None and self.expires_at in item and float(item[self.expires_at]["N"]) < now


class Journal:
    """A file of the last state of each item: a line holds the items of one write, None for deleted ones.

    Args:
        file: Created with its first line.
        compact_bytes: Length over which it is written again.
    """

    is_whole: ClassVar[bool] = True
    """Whether it has all items of a table, also those that did not change since it was begun."""

    def __init__(self, file: Path, compact_bytes: int = COMPACT_BYTES) -> None:
        self._file = file
        self._compact_bytes = self._compact_at = compact_bytes

    @property
    def exists(self) -> bool:
        """Whether an earlier start has written it."""
        return self._file.exists()

    def read(self) -> dict[Place, Item | None]:
        """Return the items, and the places of deleted ones. A line without an end was never acknowledged: ignore it.

        Raises:
            RuntimeError: A line is damaged.
        """
        found: dict[Place, Item | None] = {}
        lines = self._file.read_bytes().split(b"\n")[:-1] if self.exists else []
        for number, line in enumerate(lines, 1):
            try:
                found |= {(str(partition), str(name)): item for partition, name, item in json.loads(line)}
            except (RecursionError, TypeError, ValueError) as error:
                raise RuntimeError(
                    f"Line {number} of {self._file} is damaged. It had changes of access rules, judgments or numbers of"
                    " questions: put the file back from a backup, or remove the line and check"
                    " `ragstack access show` after the start"
                ) from error
        return found

    def append(self, items: Mapping[Place, Item | None]) -> None:
        """Write the items of one write to the disk, or nothing."""
        end = self._file.stat().st_size if self.exists else 0
        try:
            with self._file.open("ab") as file:
                self._write(file, items)
                written = file.tell()
        except OSError:
            with suppress(OSError):  # an incomplete line
                os.truncate(self._file, end)
            raise
        if written > self._compact_at:
            self._compact_at = 2 * written
            with suppress(OSError):  # the items are on the disk already
                self.replace(self.read())
                self._compact_at = max(self._compact_bytes, 2 * self._file.stat().st_size)

    def replace(self, items: Mapping[Place, Item | None]) -> None:
        """Write a new file; a kill leaves the old one or the new one."""
        new = self._file.with_suffix(".new")
        with new.open("wb") as file:
            self._write(file, items)
        new.replace(self._file)
        folder = os.open(self._file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _write(self, file: Any, items: Mapping[Place, Item | None]) -> None:
        file.write(_line(items))
        file.flush()
        os.fsync(file.fileno())


class Changes(Journal):
    """A file of the items that changed since a checkpoint of the table. It survives a kill, but not every power cut."""

    is_whole: ClassVar[bool] = False

    def read(self) -> dict[Place, Item | None]:
        """Return the changed items; nothing if a power cut has damaged a line, because the bucket has them too."""
        try:
            return super().read()
        except RuntimeError:
            return {}

    def clear(self) -> None:
        """Begin again after a checkpoint."""
        self._file.unlink(missing_ok=True)

    def _write(self, file: Any, items: Mapping[Place, Item | None]) -> None:
        file.write(_line(items))


class DurableItems:
    """An ASGI application that keeps items of MiniStack's table in a journal.

    Before the first request to the table, it gets the items of the journal, and loses those that the journal has as
    deleted: no request sees it without them. After a kill the table is empty, and after a failed save it has an older
    state. Without a journal, which a version of the local stack before it has left, the journal gets the table's items.

    Args:
        application: MiniStack.
        clock: Seconds since 1970.
    """

    def __init__(
        self, application: Application, journal: Journal, kept: KeptItems, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._application = application
        self._journal = journal
        self._kept = kept
        self._clock = clock
        self._tables: set[str] = set()
        """Names of the tables that are equal to the journal: one, unless a deployment replaces it."""
        self._lock = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        operation = _operation(scope)
        if operation is None:
            await self._application(scope, receive, send)
            return
        body = b"".join([part async for part in _parts(receive)])
        requests = _tables(body)
        try:
            if not self._tables.issuperset(requests):
                await self._to_the_end(self._make_equal(scope, requests))
            kept = self._tables.intersection(requests) if operation in WRITES else ()
            places = {table: found for table in kept if (found := self._written(requests[table]))}
            if not places:
                await self._application(scope, _received(body), send)
                return
            status, headers, answer = await self._to_the_end(self._write(scope, body, places))
        except (OSError, RuntimeError) as error:
            status, headers = 500, [(b"content-type", b"application/x-amz-json-1.0")]
            answer = json.dumps({"__type": "InternalServerError", "message": str(error)}).encode()
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    @property
    def is_restored(self) -> bool:
        """Whether the table has the items of the journal; until then, a checkpoint does not have them."""
        return bool(self._tables)

    async def _to_the_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something to its end, also if the client goes: table and journal do not differ."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    def _written(self, requests: Iterable[Mapping[str, Any]]) -> list[Place]:
        found = (self._kept.place(request.get("Item") or request.get("Key") or {}) for request in requests)
        return [*dict.fromkeys(place for place in found if place is not None)]

    async def _write(self, scope: Scope, body: bytes, places: Mapping[str, list[Place]]) -> Answer:
        """Write to MiniStack and keep the present state of items; of several writers, the last line has it."""
        answer = await self._answer(scope, body)
        for table, of_table in places.items() if answer[0] == HTTPStatus.OK else ():
            gets = [{"Get": {"TableName": table, "Key": self._kept.key(place)}} for place in of_table]
            async with self._lock:
                got = await self._call(scope, "TransactGetItems", {"TransactItems": gets})
                items = [each.get("Item") for each in got["Responses"]]
                await asyncio.to_thread(self._journal.append, dict(zip(of_table, items, strict=True)))
        return answer

    async def _make_equal(self, scope: Scope, tables: Iterable[str]) -> None:
        """Make journal and table equal, if the table is among those that a request names, and exists."""
        async with self._lock:
            for table in tables:
                described = await self._call(scope, "DescribeTable", {"TableName": table}, or_none=True)
                if table in self._tables or described is None or not self._kept.is_table(described["Table"]):
                    continue
                if self._journal.exists:
                    items = await self._restored(scope, table)
                    await asyncio.to_thread(self._journal.replace, items)
                elif self._journal.is_whole:
                    items = {place: item async for place, item in self._scanned(scope, table)}
                    await asyncio.to_thread(self._journal.replace, items)
                self._tables.add(table)

    async def _restored(self, scope: Scope, table: str) -> dict[Place, Item | None]:
        """Write what the journal has into the table, and return it."""
        now = self._clock()
        read = await asyncio.to_thread(self._journal.read)
        items = {place: item for place, item in read.items() if not self._kept.is_expired(item, now)}
        requests = [
            {"DeleteRequest": {"Key": self._kept.key(place)}} if item is None else {"PutRequest": {"Item": item}}
            for place, item in items.items()
        ]
        for start in range(0, len(requests), MAX_BATCH):
            batch = requests[start : start + MAX_BATCH]
            await self._call(scope, "BatchWriteItem", {"RequestItems": {table: batch}})
        return items

    async def _scanned(self, scope: Scope, table: str) -> AsyncIterator[tuple[Place, Item]]:
        start: Item = {}
        while True:
            page = await self._call(scope, "Scan", {"TableName": table, "ConsistentRead": True, **start})
            for item in page["Items"]:
                place = self._kept.place(item)
                if place is not None:
                    yield place, item
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    async def _call(self, scope: Scope, operation: str, request: Item, *, or_none: bool = False) -> Any:
        """Call another operation of MiniStack in the name of the same client.

        Raises:
            RuntimeError: It failed, and *or_none* is not set.
        """
        status, _, answer = await self._answer(scope, json.dumps(request).encode(), operation)
        if status == HTTPStatus.OK:
            return json.loads(answer)
        if or_none:
            return None
        raise RuntimeError(f"{operation} failed with {status}: {answer.decode(errors='replace')[:200]}")

    async def _answer(self, scope: Scope, body: bytes, operation: str | None = None) -> Answer:
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        if operation is not None:
            changed = {OPERATION_HEADER: f"{PREFIX}{operation}".encode(), b"content-length": str(len(body)).encode()}
            others = [(name, value) for name, value in scope["headers"] if name.lower() not in changed]
            scope = {**scope, "headers": [*others, *changed.items()]}
        await self._application(scope, _received(body), send)
        return sent[0]["status"], [*sent[0]["headers"]], b"".join(each.get("body", b"") for each in sent[1:])


def _operation(scope: Scope) -> str | None:
    """Return the operation of DynamoDB that a request calls; None for other requests."""
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    values = (value.decode("latin-1") for name, value in scope["headers"] if name.lower() == OPERATION_HEADER)
    operation = next(values, "")
    return operation.removeprefix(PREFIX) if operation.startswith(PREFIX) else None


def _tables(body: bytes) -> dict[str, list[Mapping[str, Any]]]:
    """Return what a request does in each table: objects with ``Item`` or ``Key``."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    try:
        request = json.loads(body)
        actions = [action for each in request.get("TransactItems", ()) for action in each.values()]
        for action in [request, *actions]:
            if "TableName" in action:
                found.setdefault(action["TableName"], []).append(action)
        for table, requests in request.get("RequestItems", {}).items():
            of_table = [part for each in requests for part in each.values()] if isinstance(requests, list) else []
            found.setdefault(table, []).extend(of_table)
    except (AttributeError, RecursionError, TypeError, ValueError):  # MiniStack says what is wrong with it
        return {}
    return found


async def _parts(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        yield message.get("body", b"")
        if not message.get("more_body"):
            return


def _received(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    return receive


def _line(items: Mapping[Place, Item | None]) -> bytes:
    return json.dumps([[*place, item] for place, item in items.items()], separators=(",", ":")).encode() + b"\n"
