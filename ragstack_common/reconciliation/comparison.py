"""What differs between registry, bucket and knowledge base. Nothing here reads or writes anything.

The registry is read first: whatever is found in the two others can then be judged at once, by name, and what they
turn out not to have is found in the registry again by its id. Nothing that differs is believed before the record was
read once more, see suspects.py.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ragstack_common.documents import fault_of_uri, s3_uri
from ragstack_common.errors import RegistryError
from ragstack_common.reconciliation.differences import Difference, Reach, Tally
from ragstack_common.reconciliation.memory import (
    IN_BUCKET,
    IN_KNOWLEDGE_BASE,
    SIDECAR_IN_BUCKET,
    Memory,
    Standing,
    id_of,
    number_of,
)
from ragstack_common.reconciliation.settings import ReconcileSettings
from ragstack_common.reconciliation.sources import BucketObject, IndexedDocument
from ragstack_common.registry.answers import OUTCOMES
from ragstack_common.registry.items import record_of
from ragstack_common.registry.records import SEARCHABLE, DocumentRecord, Status
from ragstack_common.registry.table import ID_CHARACTERS, id_in_key

_ID: Final = re.compile(f"[0-9a-f]{{{ID_CHARACTERS}}}")

CLOCK_SECONDS: Final = 10.0
"""By so much a record may look older than it is: the clocks of two functions, and the time that a write takes."""

_FOUND: Final = frozenset(status for status, outcome in OUTCOMES.items() if outcome in SEARCHABLE)
_NOT_FOUND: Final = frozenset({*OUTCOMES, "NOT_FOUND"} - _FOUND)

_STANDINGS: Final = {
    **dict.fromkeys(SEARCHABLE, Standing.SEARCHABLE),
    Status.FAILED: Standing.FAILED,
    Status.DELETED: Standing.DELETED,
}


@dataclass(frozen=True)
class Suspect:
    """A document that seems to differ: in what way, which number its id has, and its URI where that is known."""

    kind: Difference
    number: int
    uri: str | None = None


@dataclass
class Unreadable:
    """A document whose item cannot be read.

    Attributes:
        uri: What the bucket or the knowledge base calls it; None where neither has it.
        is_worked_on: Whether the knowledge base is at work on it.
    """

    uri: str | None = None
    is_worked_on: bool = False


class Comparison:
    """Takes in page after page, and tells what seems to differ; of each document one thing at most.

    Attributes:
        memory: What is remembered of each document.
        unreadable: Documents whose item in the registry cannot be read, by the id that it is kept under.
        elsewhere: Documents of the data source that lie in other buckets.
        reach: Documents that searches find and no call about them can remove.
    """

    def __init__(self, settings: ReconcileSettings, started_at: float, quiet_since: float | None = None) -> None:
        """Begin a comparison.

        Args:
            settings: How long things may take.
            started_at: When, in seconds since 1970.
            quiet_since: Since when events have waited for the end of a synchronisation; None where they have not.
        """
        self.memory = Memory()
        self.unreadable: dict[str, Unreadable] = {}
        self.elsewhere = 0
        self._settings = settings
        self._started_at = started_at
        self._settled_before = (quiet_since or started_at) - settings.settle_seconds
        self.reach = Tally(Reach)
        self._prefix = s3_uri(settings.documents_bucket, "")

    def registry(self, items: Iterable[Mapping[str, Any]]) -> Iterator[Suspect]:
        """Remember what the registry says, and which items cannot be read; tell what is stuck."""
        for item in items:
            try:
                record = record_of(item)
            except RegistryError:
                self._remember_unreadable(id_in_key(item))
                continue
            number = number_of(record.uri)
            if not record.uri.startswith(self._prefix):
                self.elsewhere += 1
            elif record.is_final:
                standing = Standing.MOVING if self.is_new(record.updated_at) else _STANDINGS[record.status]
                self.memory.remember(number, standing, record.observed.etag, record.observed.sidecar_etag)
            else:
                self.memory.remember(number, Standing.MOVING)
                if self.is_stuck(record):
                    yield Suspect(Difference.STUCK, number, record.uri)

    def _remember_unreadable(self, identifier: str) -> None:
        """Say nothing more of a document whose item cannot be read, but what it is called elsewhere."""
        self.unreadable[identifier] = Unreadable()
        if _ID.fullmatch(identifier):
            self.memory.remember(int(identifier, 16), Standing.MOVING)

    def _unreadable(self, number: int, uri: str) -> "Unreadable | None":
        """Note how a document is called whose item cannot be read."""
        found = self.unreadable.get(id_of(number)) if self.unreadable else None
        if found is not None:
            found.uri = uri
        return found

    def bucket(self, objects: Iterable[BucketObject]) -> Iterator[Suspect]:
        """Note what lies in the bucket; tell what the registry does not know, or knows otherwise."""
        for each in objects:
            number = number_of(each.uri)
            if not each.is_sidecar:
                self._unreadable(number, each.uri)
            standing = self.memory.standing(number)
            kind = self._sidecar(number, each, standing) if each.is_sidecar else self._object(number, each, standing)
            if kind is None:
                continue
            self.memory.drop(number)
            if each.modified_at < self._settled_before:
                yield Suspect(kind, number, each.uri)

    def knowledge_base(self, documents: Iterable[IndexedDocument]) -> Iterator[Suspect]:
        """Note what the knowledge base has; tell what it should not have, or not so."""
        for each in documents:
            number = number_of(each.uri)
            if (unreadable := self._unreadable(number, each.uri)) is not None:
                unreadable.is_worked_on = self._is_moving(each)
            if not each.uri.startswith(self._prefix):
                self.elsewhere += 1
                continue
            kind = self._indexed(number, each)
            if kind is not None:
                self.memory.drop(number)
                yield Suspect(kind, number, each.uri)

    def absent_from_bucket(self) -> Iterator[Suspect]:
        """Tell which documents or sidecars that the registry knows are not in the bucket, once all of it was read."""
        for number in self.memory:
            if self.memory.standing(number) not in (Standing.SEARCHABLE, Standing.FAILED):
                continue
            kind = None
            if not self.memory.was_seen(number, IN_BUCKET):
                kind = Difference.NOT_IN_BUCKET
            elif self.memory.has_sidecar(number) and not self.memory.was_seen(number, SIDECAR_IN_BUCKET):
                kind = Difference.CONTENT
            if kind is not None:
                self.memory.drop(number)
                yield Suspect(kind, number)

    def absent_from_knowledge_base(self) -> Iterator[Suspect]:
        """Tell which searchable documents the knowledge base does not have, once all of it was read."""
        for number in self.memory:
            is_searchable = self.memory.standing(number) is Standing.SEARCHABLE
            if is_searchable and not self.memory.was_seen(number, IN_KNOWLEDGE_BASE):
                yield Suspect(Difference.NOT_SEARCHABLE, number)

    def is_new(self, updated_at: float) -> bool:
        """Tell whether a record was written since the comparison began, so that nothing can be said of it."""
        return updated_at >= self._started_at - CLOCK_SECONDS

    def is_stuck(self, record: DocumentRecord) -> bool:
        """Tell whether nobody brings a document further that is on its way."""
        if record.is_final:
            return False
        if record.is_followed and record.operation and record.operation.accepted_at is not None:
            expected = record.operation.accepted_at + self._settings.give_up_seconds
        else:
            expected = max(record.updated_at, record.operation.lease_until if record.operation else 0.0)
        return self._started_at > expected + self._settings.stuck_seconds

    def _object(self, number: int, each: BucketObject, standing: Standing | None) -> Difference | None:
        self.memory.mark(number, IN_BUCKET)
        if standing is None or standing in (Standing.UNKNOWN, Standing.DELETED):
            return Difference.UNREADABLE if fault_of_uri(each.uri) else Difference.NOT_IN_REGISTRY
        if standing is Standing.MOVING or self.memory.has_etag(number, each.etag):
            return None
        return Difference.CONTENT

    def _sidecar(self, number: int, each: BucketObject, standing: Standing | None) -> Difference | None:
        if standing not in (Standing.SEARCHABLE, Standing.FAILED):
            return None  # of no document, or of one that is reported by itself
        self.memory.mark(number, SIDECAR_IN_BUCKET)
        return None if self.memory.has_sidecar_etag(number, each.etag) else Difference.CONTENT

    def _indexed(self, number: int, each: IndexedDocument) -> Difference | None:
        standing = self.memory.standing(number)
        if fault_of_uri(each.uri):
            if each.status in _FOUND:
                self.reach.add(Reach.OUT_OF_REACH, [each.uri])
            return None
        if standing is Standing.MOVING or self._is_moving(each):
            self.memory.mark(number, IN_KNOWLEDGE_BASE)
            self.memory.drop(number)
            return None
        if standing is Standing.SEARCHABLE:
            self.memory.mark(number, IN_KNOWLEDGE_BASE)
            return None if each.status in _FOUND else Difference.NOT_SEARCHABLE
        if standing is Standing.FAILED:
            return Difference.SEARCHABLE if each.status in _FOUND else None
        if standing is Standing.DELETED and each.status in _FOUND:
            return Difference.SEARCHABLE
        return Difference.UNKNOWN_IN_KNOWLEDGE_BASE if each.updated_at < self._settled_before else None

    def _is_moving(self, each: IndexedDocument) -> bool:
        """Tell whether the knowledge base is working on a document, and not for longer than anybody waits for it."""
        given_up_before = self._started_at - self._settings.give_up_seconds - self._settings.stuck_seconds
        return each.status not in _FOUND | _NOT_FOUND and each.updated_at > given_up_before
