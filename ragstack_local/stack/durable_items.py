"""Items of the registry's table that survive a kill of the local stack.

MiniStack writes its tables when it ends in order. Documents are read again from their bucket after a kill, but changes
of access rules, judgments and the questions of the day are only in the table. So each write of such an item is
appended to a file, and the file is synchronized with the disk, before the client gets its response.

Standard library only, like ``guard.py``: MiniStack's interpreter loads this file.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final, NamedTuple

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Item = dict[str, Any]
"""An item in the form of DynamoDB's low-level interface."""

Place = tuple[str, str]
"""Partition key and sort key."""

TARGET: Final = b"x-amz-target"
PREFIX: Final = "DynamoDB_20120810."
WRITES: Final = frozenset({"BatchWriteItem", "DeleteItem", "PutItem", "TransactWriteItems", "UpdateItem"})
MAX_BATCH: Final = 25
"""Source: DynamoDB API reference, BatchWriteItem."""

OK: Final = 200


class KeptItems(NamedTuple):
    """Which items of a table survive.

    Attributes:
        partitions: Names of partitions; a partition key is one of them, or begins with one and ``#``.
        partition_key: Name of the partition key.
        sort_key: Name of the sort key.
        expires_at: Name of the attribute with the seconds since 1970 after which an item may be removed.
    """

    partitions: tuple[str, ...]
    partition_key: str
    sort_key: str
    expires_at: str

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

    def is_expired(self, item: Mapping[str, Any], now: float) -> bool:
        """Whether the table may have removed an item."""
        return self.expires_at in item and float(item[self.expires_at]["N"]) < now


class Journal:
    """A file of the last state of each item: a line holds the items of one write, None for deleted ones.

    Args:
        file: Created with its first line.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> dict[Place, Item]:
        """Return the items. A line that a kill cut was never acknowledged, and is ignored."""
        found: dict[Place, Item | None] = {}
        for line in self._file.read_bytes().split(b"\n")[:-1] if self._file.exists() else ():
            found |= {(partition, name): item for partition, name, item in json.loads(line)}
        return {place: item for place, item in found.items() if item is not None}

    def append(self, items: Mapping[Place, Item | None]) -> None:
        """Write the items of one write to the disk."""
        with self._file.open("ab") as file:
            _write(file, items)

    def replace(self, items: Mapping[Place, Item]) -> None:
        """Write a new file; a kill leaves the old one or the new one."""
        new = self._file.with_suffix(".new")
        with new.open("wb") as file:
            _write(file, items)
        new.replace(self._file)
        folder = os.open(self._file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class DurableItems:
    """An ASGI application that keeps items of MiniStack's table in a journal.

    Before the first request to the table, the two are made equal. After an orderly end, the table has the items, also
    those that an earlier version of the local stack wrote, and the journal is written from it. After a kill, the table
    is empty, and gets the items of the journal: no request sees it without them.

    Args:
        application: MiniStack.
        journal: The file.
        kept: Which items it has.
        is_loaded: Whether MiniStack has loaded the state that an orderly end left.
        clock: Seconds since 1970.
    """

    def __init__(
        self,
        application: Application,
        journal: Journal,
        kept: KeptItems,
        *,
        is_loaded: bool,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._application = application
        self._journal = journal
        self._kept = kept
        self._is_loaded = is_loaded
        self._clock = clock
        self._is_equal = False
        self._lock = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        operation = _operation(scope)
        if operation is None or (self._is_equal and operation not in WRITES):
            await self._application(scope, receive, send)
            return
        body = b"".join([part async for part in _parts(receive)])
        tables = _tables(body)
        try:
            if not self._is_equal:
                await self._make_equal(scope, tables)
            places = {table: self._written(request) for table, request in tables.items()} if operation in WRITES else {}
            if not any(places.values()):
                await self._application(scope, _received(body), send)
                return
            status, headers, answer = await self._answer(scope, body)
            for table, of_table in places.items() if status == OK else ():
                await self._keep(scope, table, of_table)
        except (OSError, RuntimeError) as error:
            status, headers = 500, [(b"content-type", b"application/x-amz-json-1.0")]
            answer = json.dumps({"__type": "InternalServerError", "message": str(error)}).encode()
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def _written(self, requests: Iterable[Mapping[str, Any]]) -> list[Place]:
        found = (self._kept.place(request.get("Item") or request.get("Key") or {}) for request in requests)
        return [*dict.fromkeys(place for place in found if place is not None)]

    async def _keep(self, scope: Scope, table: str, places: list[Place]) -> None:
        """Write the present state of items: with several writers, the last line has what the table has."""
        if not places:
            return
        gets = [{"Get": {"TableName": table, "Key": self._kept.key(place)}} for place in places]
        async with self._lock:
            answer = await self._call(scope, "TransactGetItems", {"TransactItems": gets})
            items = [each.get("Item") for each in answer["Responses"]]
            await asyncio.to_thread(self._journal.append, dict(zip(places, items, strict=True)))

    async def _make_equal(self, scope: Scope, tables: Iterable[str]) -> None:
        """Make journal and table equal, unless no request named the table yet, or it does not exist yet."""
        async with self._lock:
            for table in tables:
                if not self._is_equal and await self._is_the_table(scope, table):
                    items = (
                        {place: item async for place, item in self._scanned(scope, table)} if self._is_loaded else {}
                    )
                    if not items:
                        items = await self._restored(scope, table)
                    await asyncio.to_thread(self._journal.replace, items)
                    self._is_equal = True

    async def _is_the_table(self, scope: Scope, table: str) -> bool:
        described = await self._call(scope, "DescribeTable", {"TableName": table}, or_none=True)
        keys = {each["AttributeName"] for each in described["Table"]["KeySchema"]} if described else set()
        return keys == {self._kept.partition_key, self._kept.sort_key}

    async def _restored(self, scope: Scope, table: str) -> dict[Place, Item]:
        """Write what the journal has into the table, and return it."""
        now = self._clock()
        items = {place: item for place, item in self._journal.read().items() if not self._kept.is_expired(item, now)}
        puts = [{"PutRequest": {"Item": item}} for item in items.values()]
        for start in range(0, len(puts), MAX_BATCH):
            await self._call(scope, "BatchWriteItem", {"RequestItems": {table: puts[start : start + MAX_BATCH]}})
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
        if status == OK:
            return json.loads(answer)
        if or_none:
            return None
        raise RuntimeError(f"{operation} failed with {status}: {answer.decode(errors='replace')[:200]}")

    async def _answer(
        self, scope: Scope, body: bytes, operation: str | None = None
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Return what MiniStack answers: the status, the headers and the body."""
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        if operation is not None:
            changed = {TARGET: f"{PREFIX}{operation}".encode(), b"content-length": str(len(body)).encode()}
            others = [(name, value) for name, value in scope["headers"] if name.lower() not in changed]
            scope = {**scope, "headers": [*others, *changed.items()]}
        await self._application(scope, _received(body), send)
        return sent[0]["status"], [*sent[0]["headers"]], b"".join(each.get("body", b"") for each in sent[1:])


def _operation(scope: Scope) -> str | None:
    """Return the operation of DynamoDB that a request asks for; None for other requests."""
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    target = next((value.decode("latin-1") for name, value in scope["headers"] if name.lower() == TARGET), "")
    return target.removeprefix(PREFIX) if target.startswith(PREFIX) else None


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


def _write(file: Any, items: Mapping[Place, Item | None]) -> None:
    file.write(json.dumps([[*place, item] for place, item in items.items()], separators=(",", ":")).encode() + b"\n")
    file.flush()
    os.fsync(file.fileno())
