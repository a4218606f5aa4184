"""What is awaited of documents, and the registry asked until it is so.

A document that is indexed says nothing about an upload: what is indexed may be what was there before. So everything
that is awaited decides itself whether a record of the registry is about it.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from ragstack_common.documents import DocumentStatus
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.records import FINAL, SEARCHABLE, DocumentRecord, Status
from ragstack_local.connection import Connection

NOT_UPLOADED: Final = "NOT_UPLOADED"
"""Said of a file that could not be read, or changed again and again."""

DELETED: Final = str(Status.DELETED)

ENDED: Final = frozenset({*map(str, FINAL), NOT_UPLOADED})
"""Statuses after which nothing goes on by itself."""

FOUND: Final = frozenset(map(str, SEARCHABLE))
"""Statuses of documents that searches find."""

NO_SIDECAR: Final = ""

POLL_SECONDS: Final = 0.3
LONGEST_POLL_SECONDS: Final = 3.0

_LOOK_AGAIN_SECONDS: Final = 5.0
"""As often the bucket is asked about documents that ended as something else than what is awaited."""


class Awaited(Protocol):
    """What is to become of a document."""

    def is_ended_by(self, record: DocumentRecord) -> bool:
        """Whether the record says how it ended."""

    @property
    def until_then(self) -> DocumentStatus:
        """What is said of a document whose record is final, but about something else."""


@dataclass(frozen=True)
class Uploaded:
    """An object in the bucket, which is to be indexed.

    Attributes:
        etag: Its entity tag.
        version_id: Its version; None in a bucket that keeps none.
        last_modified: Seconds since 1970; tells uploads apart where there are no versions.
        sidecar_etag: Of the sidecar that was uploaded with it; None where that does not matter, and
            :data:`NO_SIDECAR` where it must have none.
    """

    etag: str
    version_id: str | None
    last_modified: float | None = None
    sidecar_etag: str | None = None

    def is_ended_by(self, record: DocumentRecord) -> bool:
        """Whether the record is final for this upload, and not for what was there before."""
        seen = record.observed
        if self.version_id is not None:
            is_this = seen.version_id == self.version_id
        else:
            is_this = (seen.etag, seen.last_modified) == (self.etag, self.last_modified)
        has_sidecar = self.sidecar_etag is None or self.sidecar_etag == (seen.sidecar_etag or NO_SIDECAR)
        return is_this and has_sidecar and record.is_final and not record.again

    @property
    def until_then(self) -> DocumentStatus:
        """Nobody has read of the upload yet."""
        return DocumentStatus(Status.UPLOADED, "The upload has not been taken up yet")


@dataclass(frozen=True)
class Gone:
    """An object that is not in the bucket any more, and must not be found."""

    def is_ended_by(self, record: DocumentRecord) -> bool:
        """Whether the registry has forgotten the document, or never heard of it."""
        return record.revision == 0 or (record.status is Status.DELETED and not record.again)

    @property
    def until_then(self) -> DocumentStatus:
        """Nobody has read of the deletion yet."""
        return DocumentStatus(Status.WAITING, "The deletion has not been taken up yet")


@dataclass(frozen=True)
class LookedAt:
    """A document that somebody was asked to look at again.

    Attributes:
        revision: Of its record before.
    """

    revision: int

    def is_ended_by(self, record: DocumentRecord) -> bool:
        """Whether the record was written since, and is final."""
        return record.revision > self.revision and record.is_final and not record.again

    @property
    def until_then(self) -> DocumentStatus:
        """Nobody has looked yet."""
        return DocumentStatus(Status.WAITING, "Nobody has looked at it yet")


def registry_of(connection: Connection) -> DocumentRegistry:
    """Use the registry of a stack."""
    return DocumentRegistry(connection.registry_table, connection.client("dynamodb"))


def ask(registry: DocumentRegistry, awaited: Mapping[str, Awaited]) -> dict[str, DocumentStatus]:
    """Ask once how documents stand; those in :data:`ENDED` have got to what is awaited of them, or never will.

    Raises:
        RegistryError: The registry answered for a part only.
        ClientError: It refused.
    """
    records = registry.read(awaited)
    return {uri: _status(records[uri], what) for uri, what in awaited.items()}


def follow(
    registry: DocumentRegistry,
    awaited: Mapping[str, Awaited],
    changed: Callable[[Mapping[str, DocumentStatus]], None],
    timeout_seconds: float,
    *,
    current: Callable[[str], Awaited] | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, DocumentStatus]:
    """Ask until every document is as it is awaited, or the time is over.

    Args:
        registry: The document registry.
        awaited: What is awaited, by URI.
        changed: Told after each round what is known so far.
        timeout_seconds: Time for all of them.
        current: Tells what lies in the bucket now: somebody else may have replaced what was uploaded.
        clock: Seconds.
        sleep: Waits that many seconds.

    Returns:
        The last known status of each; one that is not in :data:`ENDED` has not got there in time.

    Raises:
        RegistryError: The registry answered for a part only.
        ClientError: It refused.
    """
    waiting = dict(awaited)
    statuses: dict[str, DocumentStatus] = {}
    start = looked_at = clock()
    pause = POLL_SECONDS
    while waiting:
        answers = ask(registry, waiting)
        statuses.update(answers)
        waiting = {uri: what for uri, what in waiting.items() if answers[uri] not in ENDED}
        changed(statuses)
        if not waiting or clock() - start > timeout_seconds:
            break
        if current is not None and clock() - looked_at > _LOOK_AGAIN_SECONDS:
            untouched = [uri for uri, what in waiting.items() if answers[uri] == what.until_then]
            waiting.update({uri: current(uri) for uri in untouched})
            looked_at = clock()
        sleep(pause)
        pause = min(pause * 1.2, LONGEST_POLL_SECONDS)
    return statuses


def _status(record: DocumentRecord, awaited: Awaited) -> DocumentStatus:
    if awaited.is_ended_by(record):
        status = Status.DELETED if record.revision == 0 else record.status
        return DocumentStatus(status, record.reason or _reason(status, awaited))
    if record.is_final or record.revision == 0:
        return awaited.until_then
    return DocumentStatus(record.status, record.reason)


def _reason(status: Status, awaited: Awaited) -> str | None:
    if status is Status.DELETED and not isinstance(awaited, Uploaded):
        return "It is no longer in the bucket"
    return None
