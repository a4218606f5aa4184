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
"""

import gzip
import heapq
import json
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ragstack_common.core.artefacts import MARK, mail_of, mails_of
from ragstack_common.core.errors import RegistryError
from ragstack_common.core.objects import get_if_changed, put_if, unchanged
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.core.uris import file_name, key_of_uri
from ragstack_common.filters import Scalar
from ragstack_common.registry.catalogue import ALL_DOCUMENTS, values_of
from ragstack_common.registry.reads import query_items
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_common.registry.table import ENTRIES, PARTITION_KEY, REVISION, SORT_KEY, WRITE, Item, document_id, to_item
from ragstack_common.registry.transactions import Write, if_holds
from ragstack_common.settings.names import DIRECTORY_KEY
from ragstack_common.text.names import NameWord, words_to_index

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

MAX_DOCUMENTS: Final = 300_000
"""Maximum number of documents in the object, which takes some 300 bytes of memory for each. With more there is none."""

MAX_INDEXED_WORDS: Final = 200
"""Words by which a document is found: those of its name first."""

MAX_RANKED: Final = 5_000
"""Documents among which the first ones are chosen: it takes a tenth of a second."""

MAX_COUNTED_WORDS: Final = 4
"""Words that are counted to find the rarest one."""

MAX_NAMED_VALUES: Final = 20_000
"""The most frequent values of each label, from which questions are understood."""

_MARKER: Final = "~object"
"""Sort key of the item with the object's entity tag: after those of all lines."""

_ENTRY: Final = "entry"
_ETAG: Final = "etag"
_TOO_MANY: Final = "too many"
"""Stands for the entity tag if there are too many documents."""

_DIVIDER: Final = b"\x1f"
_ATTACHED: Final = f"{MARK}/".encode()
_ATTEMPTS: Final = 5
_COMPRESSION: Final = 3
_ID: Final = 32
"""Characters of a document's id."""

Pair: TypeAlias = tuple[str, str]
"""An attribute and the JSON text of a value."""


class Entry(NamedTuple):
    """A document as the directory has it; of an attribute that has changed since it was indexed, both values."""

    uri: str
    revision: int
    label: str | None
    values: tuple[tuple[str, Scalar], ...]


def entry_writes(pairs: Iterable[tuple[DocumentRecord, DocumentRecord]], write: str) -> Iterator[Write]:
    """Return the changed lines of documents as actions of the transaction that changes them."""
    for before, after in pairs:
        revision = before.revision + 1
        line = _line(after, revision)
        if (None if line is None else _content(line)) != (_content_of(before) if before.revision else None):
            text = None if line is None else line.decode()
            item = {PARTITION_KEY: ENTRIES, SORT_KEY: after.id, REVISION: revision, WRITE: write, _ENTRY: text}
            yield Write(name="", action={"Put": {"Item": to_item(item)}})


def _line(record: DocumentRecord, revision: int) -> bytes | None:
    """Return the line of a document, five parts: id, label, words of the name, other words, and the rest as JSON."""
    if record.status is Status.DELETED:
        return None
    given = (*values_of(record.observed.attributes), *record.counted)
    # 2024.0 and 2024 are one value: the table keeps whole numbers without a decimal point.
    values = dict.fromkeys((key, text.removesuffix(".0")) for key, text in given if (key, text) != ALL_DOCUMENTS)
    key = key_of_uri(record.uri) or record.uri
    own = words_to_index([file_name(key)])[:MAX_INDEXED_WORDS]
    texts = [key, *(part for name, text in values for part in (name, str(json.loads(text))))]
    others = [word for word in words_to_index(texts) if word not in {*own}][: MAX_INDEXED_WORDS - len(own)]
    pairs = ",".join(_pair(each) for each in values)
    stored = f"[{_json(record.uri)},{revision},{_json(record.label)},[{pairs}]]"
    parts = (record.id, _json(record.label), f" {' '.join(own)} ", f" {' '.join(others)} ", stored)
    return _DIVIDER.join(part.encode("utf-8", "replace") for part in parts)


def _content_of(record: DocumentRecord) -> tuple[Any, ...] | None:
    line = _line(record, 0)
    return None if line is None else _content(line)


def _content(line: bytes) -> tuple[Any, ...]:
    entry = _entry(line)
    return entry.uri, entry.label, entry.values


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _pair(pair: Pair) -> str:
    return f"[{_json(pair[0])},{pair[1]}]"


def _entry(line: bytes) -> Entry:
    uri, revision, label, values = json.loads(line.rpartition(_DIVIDER)[2])
    return Entry(uri, revision, label, tuple((key, value) for key, value in values))


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


@dataclass(frozen=True)
class NamedValues:
    """How many documents have each value, by label, whatever their status; attachments of mails are left out."""

    of_labels: Mapping[str, Mapping[str, Mapping[str, int]]]

    def seen_with(self, labels: Collection[str] | None) -> dict[str, dict[Scalar, int]]:
        """Return the counts of values of the documents with some labels, or of all, by attribute."""
        wanted = self.of_labels if labels is None else {_json(label) for label in labels} & self.of_labels.keys()
        found: dict[str, Counter[Scalar]] = {}
        for label in sorted(wanted):
            for key, counts in self.of_labels[label].items():
                own = found.setdefault(key, Counter())
                for text, count in counts.items():
                    value = json.loads(text)
                    if not isinstance(value, bool):  # which equals 0 or 1, and is never named
                        own[value] += count
        return {key: dict(counts) for key, counts in found.items()}


@dataclass(frozen=True)
class Entries:
    """The lines of all documents.

    Attributes:
        lines: Those of the object, sorted by id, each between two line ends.
        changed: Those that replace others, or that are new.
        replaced: The ids whose line in the object does not count.
        values: The values of the object's documents.
    """

    lines: bytes
    changed: Sequence[bytes]
    replaced: Collection[bytes]
    values: NamedValues

    def named(self, words: Sequence[NameWord], labels: Collection[str] | None, limit: int) -> list[Entry]:
        """Return documents of some labels, or of all, that have each word in name, folder or attributes.

        A word is found by its beginning. First come the documents that have more of the words as a whole in their
        names, then as a whole elsewhere; of very many, :data:`MAX_RANKED` are compared.
        """
        if not words:
            return []
        matching = (line for line in self._with(self._rarest(words)) if _has_all(line, words))
        whole = [f" {word.text} ".encode() for word in words]

        def order(line: bytes) -> tuple[int, int, bytes]:
            _, _, name, others, stored = line.split(_DIVIDER)
            in_name = sum(word in name for word in whole)
            return -in_name, -in_name - sum(word in others and word not in name for word in whole), stored

        compared = islice(self._visible(matching, labels), MAX_RANKED)
        return [*map(_entry, heapq.nsmallest(limit, compared, key=order))]

    def _rarest(self, words: Sequence[NameWord]) -> bytes:
        """Return what the lines with all words have, and few others."""
        longest = sorted(words, key=lambda word: -len((word.parts or (word.text,))[0]))[:MAX_COUNTED_WORDS]
        needles = [_needle((word.parts or (word.text,))[0], within=word.is_within) for word in longest]
        return min(needles, key=self.lines.count) if len(needles) > 1 else needles[0]

    def having(
        self, alternatives: Sequence[Sequence[tuple[str, Scalar]]], labels: Collection[str] | None
    ) -> list[Entry]:
        """Return the documents of some labels, or of all, that have one pair of each group of attribute and value."""
        groups = [[f"[{_json(key)},{_json(value)}]".encode() for key, value in group] for group in alternatives]
        first = min(groups, key=len)
        lines = {line: None for pair in first for line in self._with(pair)}
        having = [line for line in lines if all(any(pair in line for pair in group) for group in groups)]
        return [_entry(line) for line in self._visible(having, labels)]

    def of(self, identifier: str) -> Entry | None:
        """Return the document with an id; None if there is none."""
        name = identifier.encode()
        line = next((each for each in self.changed if each.startswith(name)), None)
        if line is None and name not in self.replaced:
            line = _line_of(self.lines, name)
        return None if line is None else _entry(line)

    def _visible(self, lines: Iterable[bytes], labels: Collection[str] | None) -> Iterator[bytes]:
        """Yield the lines of documents with one of the labels, and whose mails, if any, have one too."""
        if labels is None:
            yield from lines
            return
        seen = {_json(label).encode() for label in labels}
        for line in lines:
            if line.split(_DIVIDER, 2)[1] in seen:
                mails = mails_of(_entry(line).uri) if _ATTACHED in line else ()
                if all((mail := self.of(document_id(uri))) is not None and mail.label in labels for uri in mails):
                    yield line

    def _with(self, text: bytes) -> Iterator[bytes]:
        """Yield the lines that contain a text."""
        yield from (line for line in self.changed if text in line)
        lines, at = self.lines, self.lines.find(text)
        while at >= 0:
            start, end = lines.rfind(b"\n", 0, at) + 1, lines.find(b"\n", at)
            if lines[start : start + _ID] not in self.replaced:
                yield lines[start:end]
            at = lines.find(text, end)


def _needle(text: str, *, within: bool) -> bytes:
    return (text if within else f" {text}").encode()


def _has_all(line: bytes, words: Iterable[NameWord]) -> bool:
    _, _, name, others, _ = line.split(_DIVIDER)
    return all(_has(name + others, word) for word in words)


def _has(words: bytes, word: NameWord) -> bool:
    if _needle(word.text, within=word.is_within) in words:
        return True
    return bool(word.parts) and all(_needle(part, within=False) in words for part in word.parts)


class _Lines:
    """The lines of an object as a sequence of ids at places, for a binary search."""

    def __init__(self, lines: bytes) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, place: int) -> bytes:
        """Return the id of the line that contains a character."""
        start = self._lines.rfind(b"\n", 0, place) + 1
        return self._lines[start : start + _ID]


def _line_of(lines: bytes, identifier: bytes) -> bytes | None:
    found = _Lines(lines)
    place = bisect_left(found, identifier)
    if place >= len(lines) or found[place] != identifier:
        return None
    start = lines.rfind(b"\n", 0, place) + 1
    return lines[start : lines.find(b"\n", place)]


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
    header = json.dumps({"values": _counts(map(_entry, ordered), left_out)}, ensure_ascii=False, separators=(",", ":"))
    content = b"".join(chain([header.encode("utf-8", "replace"), b"\n"], *((line, b"\n") for line in ordered)))
    return gzip.compress(content, _COMPRESSION, mtime=0)


def _unpacked(etag: str | None, body: bytes) -> _Object:
    try:
        header, _, lines = gzip.decompress(body).partition(b"\n")
        return _Object(etag, lines, NamedValues(json.loads(header)["values"]))
    except (EOFError, KeyError, OSError, ValueError, zlib.error) as error:
        LOGGER.error("the directory of documents is damaged; the next change or reconciliation writes it: %s", error)
        return _Object(etag, None, NamedValues({}))


def _counts(entries: Iterable[Entry], left_out: Collection[str]) -> dict[str, dict[str, dict[str, int]]]:
    """Count the values of each label, as JSON texts; of too many, the most frequent ones."""
    counts: dict[str, Counter[Pair]] = {}
    for entry in entries:
        if mail_of(entry.uri) is None:
            own = counts.setdefault(_json(entry.label), Counter())
            own.update((key, _json(value)) for key, value in entry.values if key not in left_out)
    found: dict[str, dict[str, dict[str, int]]] = {}
    for label, own in counts.items():
        for (key, text), count in sorted(own.items(), key=lambda each: (-each[1], each[0]))[:MAX_NAMED_VALUES]:
            found.setdefault(label, {}).setdefault(key, {})[text] = count
    return found


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
            known = _line_of(found.lines, name)
            if known is None or _entry(known).revision < revision:
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
            known = _by_id(now.lines or b"")
            if scanned is None and (now.lines is None or changes.etag is None):
                scanned = ScannedLines()
                for page in self.records():
                    scanned.add(page)
            lines = known if scanned is None else self._corrected(known, scanned)
            for name, (revision, line) in changes.lines.items():
                if name not in lines or _entry(lines[name]).revision < revision:
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
            if name not in lines or (line != lines[name] and _entry(line).revision > _entry(lines[name]).revision)
        }
        absent = [_entry(line).uri for name, line in newer.items() if name not in lines]
        records = self.read(absent) if absent else {}
        gone = {record.id.encode() for record in records.values() if _line(record, 0) is None or not record.revision}
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
                if (line := _line(record, record.revision)) is not None:
                    self.lines[record.id.encode()] = line


def _by_id(lines: bytes) -> dict[bytes, bytes]:
    return {line[:_ID]: line for line in lines.split(b"\n") if line}


def _key(name: str) -> Item:
    return to_item({PARTITION_KEY: ENTRIES, SORT_KEY: name})
