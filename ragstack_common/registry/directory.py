"""The names and attributes of all documents, whatever their status: one object in S3, and what changed since.

Names are looked for word by word, which no key of DynamoDB finds at a bounded cost: a word such as "contract" may be in
every name. So one object has a line for each document, and a search reads it from memory. A change of a document
writes its new line into the table, in the transaction that changes the document; the job that writes the snapshot of
the catalogue moves these lines into the object::

    a document changes     its line is written to ENTRIES
    the job runs           ENTRIES and the object are read; the object is written; the marker gets its entity tag;
                           the lines that it took are deleted, unless they have changed since
    a name is looked for   ENTRIES is read, the marker last; the object is read if its entity tag is another one

So a reader that finds a line gone finds the marker of the object that has it. Lines have the revision of their record:
the newer one counts. Reconciliation compares the object with all records, and writes it again if they differ.
Another format of lines needs other names of both: of ENTRIES and of the object.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ragstack_common.core.errors import RegistryError
from ragstack_common.core.objects import get_if_changed, put_if, unchanged
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.registry.entries import (
    Entries,
    NamedValues,
    count_values,
    find_line,
    lines_by_id,
    parse_line,
    to_line,
)
from ragstack_common.registry.reads import query_items
from ragstack_common.registry.records import DocumentRecord
from ragstack_common.registry.table import ENTRIES, PARTITION_KEY, REVISION, SORT_KEY, WRITE, Item, to_item
from ragstack_common.registry.transactions import Write, if_holds
from ragstack_common.settings.names import DIRECTORY_KEY

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

MAX_DOCUMENTS: Final = 300_000
"""Maximum number of documents in the object, which takes some 300 bytes of memory for each. With more there is none."""

_MARKER: Final = "~object"
"""Sort key of the item with the object's entity tag: after those of all lines."""

_ENTRY: Final = "entry"
_ETAG: Final = "etag"
_TOO_MANY: Final = "too many"
"""Stands for the entity tag if there are too many documents."""

_ATTEMPTS: Final = 5
_COMPRESSION: Final = 3


def entry_writes(pairs: Iterable[tuple[DocumentRecord, DocumentRecord]], write: str) -> Iterator[Write]:
    """Return the changed lines of documents as actions of the transaction that changes them."""
    for before, after in pairs:
        revision = before.revision + 1
        line = to_line(after, revision)
        if line != (to_line(before, revision) if before.revision else None):
            text = None if line is None else line.decode()
            item = {PARTITION_KEY: ENTRIES, SORT_KEY: after.id, REVISION: revision, WRITE: write, _ENTRY: text}
            yield Write(name="", action={"Put": {"Item": to_item(item)}})


class _Changes(NamedTuple):
    """The lines of the table by id, None for a deleted document, with the marks of their writes."""

    lines: dict[bytes, tuple[int, bytes | None]]
    writes: dict[bytes, str]
    etag: str | None


def _read_changes(client: "DynamoDBClient", table: str) -> _Changes:
    lines: dict[bytes, tuple[int, bytes | None]] = {}
    writes: dict[bytes, str] = {}
    etag = None
    for item in query_items(client, table, f"{PARTITION_KEY} = :partition", {":partition": ENTRIES}):
        name = item[SORT_KEY]["S"]
        if name == _MARKER:
            etag = item[_ETAG]["S"]
        else:
            text = item[_ENTRY]["S"].encode() if _ENTRY in item else None
            lines[name.encode()] = int(item[REVISION]["N"]), text
            writes[name.encode()] = item[WRITE]["S"]
    return _Changes(lines, writes, etag)


class _Object(NamedTuple):
    """The object: its entity tag, its lines, each with a line end after it, and the counts of their values.

    Without lines, it is absent or damaged.
    """

    etag: str | None
    lines: bytes | None
    values: NamedValues


_ABSENT: Final = _Object(None, None, NamedValues({}))


def _packed(lines: Mapping[bytes, bytes], left_out: Collection[str]) -> bytes:
    """Return the object's content; equal lines always give the same."""
    ordered = [lines[name] for name in sorted(lines)]
    header = json.dumps({"values": count_values(ordered, left_out)}, ensure_ascii=False, separators=(",", ":"))
    content = b"".join(chain([header.encode("utf-8", "replace"), b"\n"], *((line, b"\n") for line in ordered)))
    return gzip.compress(content, _COMPRESSION, mtime=0)


def _unpacked(etag: str | None, body: bytes) -> _Object:
    try:
        header, _, lines = gzip.decompress(body).partition(b"\n")
        return _Object(etag, lines, NamedValues(json.loads(header)["values"]))
    except (EOFError, KeyError, OSError, ValueError, zlib.error) as error:
        LOGGER.error("the directory of documents is damaged; the next change or reconciliation writes it: %s", error)
        return _Object(etag, None, NamedValues({}))


class Directory:
    """Reads the lines of all documents. It keeps the object in memory, and reads it again when there is another."""

    def __init__(self, client: "DynamoDBClient", table: str, s3: "S3Client", bucket: str) -> None:
        self._client = client
        self._table = table
        self._s3 = s3
        self._bucket = bucket
        self._lock = Lock()
        self._object = _ABSENT

    def read(self) -> Entries | None:
        """Return the lines as they are now, which takes one query; None if there is no object yet, or none any more.

        Raises:
            ClientError, BotoCoreError: The registry or S3 did not answer.
        """
        changes = _read_changes(self._client, self._table)
        if changes.etag in (None, _TOO_MANY):
            return None
        found = self._current(changes.etag)
        if found.lines is None:
            return None
        changed, replaced = [], set()
        for name, (revision, line) in changes.lines.items():
            known = find_line(found.lines, name)
            if known is None or parse_line(known).revision < revision:
                replaced.add(name)
                changed += [] if line is None else [line]
        return Entries(found.lines, changed, replaced, found.values)

    def _current(self, etag: str | None) -> _Object:
        with self._lock:
            if self._object.etag != etag:
                self._object = _read_object(self._s3, self._bucket, self._object)
            return self._object


def _read_object(s3: "S3Client", bucket: str, known: _Object = _ABSENT) -> _Object:
    """Return the object as it is now, without transferring the known one again."""
    found = get_if_changed(s3, bucket, DIRECTORY_KEY, known.etag)
    if found is None:
        return known
    body, etag = found
    return _ABSENT if body is None else _unpacked(etag, body)


@dataclass(frozen=True)
class DirectoryWriter:
    """Moves the changed lines into the object.

    *records* reads all documents in pages; *read* reads some by URI. The values of attributes *left_out* are not
    counted, such as that of access labels.
    """

    client: "DynamoDBClient"
    table: str
    s3: "S3Client"
    bucket: str
    records: Callable[[], Iterable[Sequence[DocumentRecord]]]
    read: Callable[[Iterable[str]], Mapping[str, DocumentRecord]]
    left_out: Collection[str] = ()

    def write(self) -> dict[str, Any]:
        """Move the changed lines, or write the first object, and report.

        Raises:
            ClientError, BotoCoreError: The registry or S3 did not answer.
            RegistryError: Others wrote at the same time, repeatedly.
        """
        return self._written(None)

    def rebuild(self, scanned: "ScannedLines") -> dict[str, Any]:
        """Compare the object with all documents as they were read, write it again if they differ, and report."""
        return self._written(scanned)

    def _written(self, scanned: "ScannedLines | None") -> dict[str, Any]:
        for _ in range(_ATTEMPTS):
            changes = _read_changes(self.client, self.table)
            if scanned is None and changes.etag == _TOO_MANY:
                return self._too_many(changes)
            now = _read_object(self.s3, self.bucket)
            if scanned is None and not changes.lines and now.lines is not None and changes.etag == now.etag:
                return {"changes": 0}
            known = lines_by_id(now.lines or b"")
            if scanned is None and (now.lines is None or changes.etag is None):
                scanned = ScannedLines()
                for page in self.records():
                    scanned.add(page)
            lines = known if scanned is None else self._corrected(known, scanned)
            for name, (revision, line) in changes.lines.items():
                if name not in lines or parse_line(lines[name]).revision < revision:
                    lines.pop(name, None)
                    lines |= {} if line is None else {name: line}
            if len(lines) > MAX_DOCUMENTS:
                return self._too_many(changes)
            body = _packed(lines, self.left_out)
            etag = put_if(
                unchanged(now.etag),
                self.s3,
                Bucket=self.bucket,
                Key=DIRECTORY_KEY,
                Body=body,
                ContentType="application/gzip",
            )
            if etag is not None and self._mark(etag, changes):
                return {"documents": len(lines), "changes": len(changes.lines), "bytes": len(body)}
        raise RegistryError(f"Other workers replaced the directory of documents {_ATTEMPTS} times in a row")

    def _corrected(self, known: Mapping[bytes, bytes], scanned: "ScannedLines") -> dict[bytes, bytes]:
        """Return the scanned lines, with what is known and newer."""
        lines = dict(scanned.lines)
        newer = {
            name: line
            for name, line in known.items()
            if (other := lines.get(name)) is None
            or (line != other and parse_line(line).revision > parse_line(other).revision)
        }
        absent = [parse_line(line).uri for name, line in newer.items() if name not in lines]
        records = self.read(absent) if absent else {}
        gone = {record.id.encode() for record in records.values() if to_line(record, 0) is None or not record.revision}
        return lines | {name: line for name, line in newer.items() if name not in gone}

    def _mark(self, etag: str, changes: _Changes) -> bool:
        """Name the new object, then delete the lines that it took; False if another worker has named one meanwhile."""
        item = to_item({PARTITION_KEY: ENTRIES, SORT_KEY: _MARKER, _ETAG: etag})
        named = if_holds(
            lambda: self.client.put_item(
                TableName=self.table,
                Item=item,
                ConditionExpression="attribute_not_exists(#etag) OR #etag = :before",
                ExpressionAttributeNames={"#etag": _ETAG},
                ExpressionAttributeValues=to_item({":before": changes.etag or "none"}),
            )
        )
        if named is None:
            return False
        for name, write in changes.writes.items():
            self._delete(name.decode(), write)
        return True

    def _too_many(self, changes: _Changes) -> dict[str, Any]:
        """Let readers know that there is no object; only a reconciliation counts the documents again."""
        self._mark(_TOO_MANY, changes)
        return {"reason": f"There are more than {MAX_DOCUMENTS:,} documents: they are found by their listing"}

    def _delete(self, name: str, write: str) -> None:
        if_holds(
            lambda: self.client.delete_item(
                TableName=self.table,
                Key=_key(name),
                ConditionExpression="#write = :write",
                ExpressionAttributeNames={"#write": WRITE},
                ExpressionAttributeValues=to_item({":write": write}),
            )
        )


@dataclass
class ScannedLines:
    """The lines of documents as they were read from the registry, one page after the other."""

    lines: dict[bytes, bytes] = field(default_factory=dict)

    def add(self, records: Iterable[DocumentRecord]) -> None:
        """Add documents, unless there are too many already."""
        if len(self.lines) <= MAX_DOCUMENTS:
            for record in records:
                if (line := to_line(record, record.revision)) is not None:
                    self.lines[record.id.encode()] = line


def _key(name: str) -> Item:
    return to_item({PARTITION_KEY: ENTRIES, SORT_KEY: name})
