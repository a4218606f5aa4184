"""How the command line waits for documents.

The status INDEXED alone says nothing about an upload: it may be that of the version before. So each awaited outcome
decides itself whether a record of the registry is about it.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.records import FINAL, SEARCHABLE, DocumentRecord, Status
from ragstack_local.connection.connection import Connection

if TYPE_CHECKING:
    from ragstack_common.registry.documents import DocumentRegistry

NOT_UPLOADED: Final = "NOT_UPLOADED"
"""The status of a file that could not be read, or kept changing."""

DELETED: Final = str(Status.DELETED)

ENDED: Final = frozenset({*map(str, FINAL), NOT_UPLOADED})
"""Statuses that don't change without a new event."""

FOUND: Final = frozenset(map(str, SEARCHABLE))
"""Statuses of documents that searches find."""

NO_SIDECAR: Final = ""

BUCKET_SECONDS: Final = 5.0
"""Interval of the checks for objects that another user has replaced."""


class Awaited(Protocol):
    """The outcome that is awaited for a document."""

    def is_ended_by(self, record: DocumentRecord) -> bool:
        """Whether the record is about this outcome, and final."""

    @property
    def until_then(self) -> DocumentStatus:
        """The status to show while the record is final but about something else."""


@dataclass(frozen=True)
class Uploaded:
    """An object in the bucket that is to be indexed.

    Attributes:
        etag: Its entity tag.
        version_id: Its version.
        sidecar_etag: ETag of the sidecar that was uploaded with it; None for any, :data:`NO_SIDECAR` for none.
    """

    etag: str
    version_id: str | None
    sidecar_etag: str | None = None

    def is_ended_by(self, record: DocumentRecord) -> bool:
        """Whether the record is final for this upload, not for the version before."""
        seen = record.observed
        is_this = (seen.etag, seen.version_id) == (self.etag, self.version_id)
        has_sidecar = self.sidecar_etag is None or self.sidecar_etag == (seen.sidecar_etag or NO_SIDECAR)
        return is_this and has_sidecar and record.is_final and not record.again

    @property
    def until_then(self) -> DocumentStatus:
        """Its event has not been read yet."""
        return DocumentStatus(Status.UPLOADED, "The upload has not been processed yet")


@dataclass(frozen=True)
class Gone:
    """An object that was deleted from the bucket."""

    def is_ended_by(self, record: DocumentRecord) -> bool:
        """Whether the registry has no such document any more, or never had one."""
        return record.revision == 0 or (record.status is Status.DELETED and not record.again)

    @property
    def until_then(self) -> DocumentStatus:
        """Its event has not been read yet."""
        return DocumentStatus(Status.WAITING, "The deletion has not been processed yet")


def open_registry(connection: Connection) -> "DocumentRegistry":
    """Use the registry of a stack."""
    from ragstack_common.registry.documents import DocumentRegistry  # noqa: PLC0415 - imports the AWS SDK

    return DocumentRegistry(connection.registry_table, connection.client("dynamodb"))


def read_statuses(registry: "DocumentRegistry", awaited: Mapping[str, Awaited]) -> dict[str, DocumentStatus]:
    """Read the status of documents once, by URI; it is in :data:`ENDED` if the awaited outcome has been reached.

    Raises:
        RegistryError: The registry answered only in part.
        ClientError: The table cannot be read.
    """
    records = registry.read(awaited)
    return {uri: _status(records[uri], outcome) for uri, outcome in awaited.items()}


def follow(
    ask: Callable[[Mapping[str, Awaited]], Mapping[str, DocumentStatus]],
    awaited: Mapping[str, Awaited],
    changed: Callable[[Mapping[str, DocumentStatus]], None],
    timeout_seconds: float,
    *,
    current: Callable[[str], Awaited] | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, DocumentStatus]:
    """Poll until every document has its awaited outcome, or the time is over.

    Args:
        ask: Returns the statuses of documents, such as :func:`read_statuses` a registry.
        awaited: Outcomes by URI.
        changed: Called after each poll with all known statuses.
        timeout_seconds: For all documents.
        current: Returns the outcome to await for what is in the bucket now, because another user may have replaced
            the upload.
        clock: Seconds.
        sleep: Waits that many seconds.

    Returns:
        The last known status of each; one that is not in :data:`ENDED` timed out. Errors of *ask* pass through.
    """
    waiting = dict(awaited)
    statuses: dict[str, DocumentStatus] = {}
    start = checked_at = clock()
    pause = 0.3
    while waiting:
        found = ask(waiting)
        statuses.update(found)
        waiting = {uri: outcome for uri, outcome in waiting.items() if found[uri] not in ENDED}
        changed(statuses)
        if not waiting or clock() - start > timeout_seconds:
            break
        if current is not None and clock() - checked_at > BUCKET_SECONDS:
            untouched = [uri for uri, outcome in waiting.items() if found[uri] == outcome.until_then]
            waiting.update({uri: current(uri) for uri in untouched})
            checked_at = clock()
        sleep(pause)
        pause = min(pause * 1.2, 3.0)
    return statuses


def _status(record: DocumentRecord, awaited: Awaited) -> DocumentStatus:
    if awaited.is_ended_by(record):
        status = Status.DELETED if record.revision == 0 else record.status
        is_deleted = status is Status.DELETED and not isinstance(awaited, Uploaded)
        return DocumentStatus(status, record.reason or ("It is no longer in the bucket" if is_deleted else None))
    if record.is_final or record.revision == 0:
        return awaited.until_then
    return DocumentStatus(record.status, record.reason)
