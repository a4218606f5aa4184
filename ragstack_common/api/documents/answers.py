"""From what the registry and the bucket know of a document to what is answered about it."""

import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from ragstack_common.api.documents.models import DocumentDetail, DocumentSummary, HistoryLine
from ragstack_common.api.http import redacted
from ragstack_common.registry.records import ABANDONED, SEARCHABLE, DocumentRecord, Observation, Status

_NEXT: Final = {
    Status.WAITING: "The ingestion function, to submit what lies in the bucket to the knowledge base",
    Status.SUBMITTING: "The knowledge base, to accept the document",
    Status.INDEXING: "The knowledge base, to index the document; it is asked until it says how it ended",
    Status.DELETING: "The knowledge base, to remove the document; it is asked until it has",
}
_AFTERWARDS: Final = "; then what changed in the bucket meanwhile is looked at"
_EVENT_OF_UPLOAD: Final = "The event of the upload, to be read by the ingestion function"
_EVENT_OF_DELETION: Final = "The object is gone from the bucket; the event of its deletion, to be read"
_EARLIER: Final = "; until then searches may find the version before, which is {status}"


@dataclass(frozen=True)
class DocumentNow:
    """A document by its record, beside what lies in the bucket now.

    Attributes:
        record: The registry's.
        now: What lies in the bucket.
        at: When, in seconds since 1970.
    """

    record: DocumentRecord
    now: Observation
    at: float = field(default_factory=time.time)

    @property
    def is_newer(self) -> bool:
        """Whether the bucket has a version that the registry does not have yet."""
        known = self.record.observed
        if not self.now.is_present or not known.is_present:
            return self.now.is_present
        if self.now.version_id is not None and known.version_id is not None:
            return self.now.version_id != known.version_id
        return self.now.etag != known.etag

    @property
    def is_gone(self) -> bool:
        """Whether the object is gone, and the registry does not have that yet."""
        return self.record.observed.is_present and not self.now.is_present

    @property
    def is_uploaded(self) -> bool:
        """Whether the bucket has a version that nobody is seeing to yet."""
        return self.is_newer and (self.record.is_final or self.record.revision == 0)

    @property
    def again(self) -> bool:
        """Whether it will be looked at again."""
        return self.record.again or self.is_newer or self.is_gone

    @property
    def waiting_for(self) -> str | None:
        """What happens next, in a sentence."""
        status = self.record.status
        if self.is_uploaded:
            return _EVENT_OF_UPLOAD + (_EARLIER.format(status=status) if status in SEARCHABLE else "")
        if self.record.is_final:
            return _EVENT_OF_DELETION if self.is_gone else None
        awaited = ABANDONED if self.record.is_abandoned(self.at) else _NEXT[status]
        return awaited + (_AFTERWARDS if self.again else "")

    def as_it_is(self) -> DocumentRecord:
        """Describe the version in the bucket where the record is about another that nobody works on any more."""
        if not self.is_uploaded:
            return self.record
        return replace(
            self.record,
            status=Status.UPLOADED,
            reason=None,
            observed=self.now,
            attempts=0,
            received_at=0.0,
            finished_at=None,
        )


def summary_of(record: DocumentRecord) -> DocumentSummary:
    """Put a record into the form of a listing."""
    return DocumentSummary(**_members(record))


def detail_of(document: DocumentNow) -> DocumentDetail:
    """Put a document into the form of a question about it alone."""
    record = document.record
    return DocumentDetail(
        **_members(document.as_it_is()),
        created_at=time_of(record.created_at),
        history=[
            HistoryLine(at=iso(line.at), status=line.status, reason=redacted_or_none(line.reason))
            for line in record.history
        ],
        knowledge_base_status=record.knowledge_base_status,
        again=document.again,
        waiting_for=document.waiting_for,
    )


def redacted_or_none(reason: str | None) -> str | None:
    """Return a reason without ARNs, account ids and addresses, which the messages of AWS in it may name."""
    return None if reason is None else redacted(reason)


def time_of(seconds: float | None) -> str | None:
    """Write a time; None where there was none."""
    return iso(seconds) if seconds else None


def iso(seconds: float) -> str:
    """Write seconds since 1970 as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _members(record: DocumentRecord) -> dict[str, Any]:
    observed = record.observed
    return {
        "id": record.id,
        "uri": record.uri,
        "key": record.uri.removeprefix("s3://").partition("/")[2],
        "status": record.status,
        "reason": redacted_or_none(record.reason),
        "searchable": record.status in SEARCHABLE,
        "size": observed.size if observed.is_present else None,
        "etag": observed.etag,
        "version_id": observed.version_id,
        "corpus": record.corpus,
        "attributes": dict(observed.attributes),
        "attempts": record.attempts,
        "last_modified": time_of(observed.last_modified),
        "received_at": time_of(record.received_at),
        "updated_at": time_of(record.updated_at),
        "finished_at": time_of(record.finished_at),
    }
