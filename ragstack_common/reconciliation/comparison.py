"""What differs between registry, bucket and knowledge base. Nothing here reads or writes anything.

The registry is read first: whatever is found in the two others can then be judged at once, by name, and what they
turn out not to have is found in the registry again by its id. Nothing that differs is believed before the record was
read once more, see suspects.py.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ragstack_common.documents import MAX_URI_CHARACTERS, s3_uri
from ragstack_common.reconciliation.differences import Difference
from ragstack_common.reconciliation.memory import (
    IN_BUCKET,
    IN_KNOWLEDGE_BASE,
    SIDECAR_IN_BUCKET,
    Memory,
    Standing,
    number_of,
)
from ragstack_common.reconciliation.settings import ReconcileSettings
from ragstack_common.reconciliation.sources import BucketObject, IndexedDocument
from ragstack_common.registry.answers import OUTCOMES
from ragstack_common.registry.items import plain_of, record_of
from ragstack_common.registry.records import FINAL, SEARCHABLE, DocumentRecord, Status
from ragstack_common.registry.table import FULL_URI, PARTITION_KEY

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


class Comparison:
    """Takes in page after page, and tells what seems to differ; of each document one thing at most."""

    def __init__(self, settings: ReconcileSettings, started_at: float) -> None:
        """Begin a comparison at a time, in seconds since 1970."""
        self.memory = Memory()
        self.elsewhere = 0
        self._settings = settings
        self._started_at = started_at
        self._settled_before = started_at - settings.settle_seconds
        self._prefix = s3_uri(settings.documents_bucket, "")

    def registry(self, items: Iterable[Mapping[str, Any]]) -> Iterator[Suspect]:
        """Remember what the registry says; tell what is stuck, and what cannot be read."""
        for item in items:
            try:
                plain = plain_of(item)
                uri, status = plain[FULL_URI], Status(plain["status"])
                number = number_of(uri)
                if not uri.startswith(self._prefix):
                    self.elsewhere += 1
                elif status in FINAL:
                    standing = Standing.MOVING if self.is_new(plain["updated_at"]) else _STANDINGS[status]
                    self.memory.remember(number, standing, plain.get("etag"), plain.get("sidecar_etag"))
                else:
                    self.memory.remember(number, Standing.MOVING)
                    if self.is_stuck(record_of(item)):
                        yield Suspect(Difference.STUCK, number, uri)
            except (KeyError, TypeError, ValueError):
                number = int(item[PARTITION_KEY]["S"].rpartition("#")[2], 16)
                self.memory.remember(number, Standing.MOVING)
                yield Suspect(Difference.UNREADABLE, number)

    def bucket(self, objects: Iterable[BucketObject]) -> Iterator[Suspect]:
        """Note what lies in the bucket; tell what the registry does not know, or knows otherwise."""
        for each in objects:
            number = number_of(each.uri)
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
            if not each.uri.startswith(self._prefix):
                self.elsewhere += 1
                continue
            number = number_of(each.uri)
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
            is_usable = len(each.uri) <= MAX_URI_CHARACTERS
            return Difference.NOT_IN_REGISTRY if is_usable else Difference.UNREADABLE
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
        is_moving = each.status not in _FOUND | _NOT_FOUND
        if standing is Standing.MOVING or (is_moving and each.updated_at > self._given_up_before):
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

    @property
    def _given_up_before(self) -> float:
        return self._started_at - self._settings.give_up_seconds - self._settings.stuck_seconds
