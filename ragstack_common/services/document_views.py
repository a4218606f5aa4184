"""A document as it is now, by its record in the registry and its object in the bucket, and as the API shows it."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from ragstack_common.core.reporting import redacted_or_none
from ragstack_common.core.times import iso, to_time
from ragstack_common.core.uris import file_name, key_of_uri
from ragstack_common.registry.receipts import Receipt
from ragstack_common.registry.records import ABANDONED, SEARCHABLE, DocumentRecord, Observation, Status
from ragstack_common.services.document_models import (
    DocumentDetail,
    DocumentReceipt,
    DocumentSummary,
    FoundDocument,
    HistoryLine,
    LeftOutLine,
    NotReadPart,
    ReceiptLine,
    RecognizedPart,
)
from ragstack_common.text.names import NameWord, places_of

_NEXT: Final = {
    Status.WAITING: "The ingestion function submits the object in the bucket to the knowledge base",
    Status.SUBMITTING: "The knowledge base accepts the document",
    Status.INDEXING: (
        "The knowledge base indexes the document; then the index is compared with the file, which gives it its final"
        " status"
    ),
    Status.DELETING: "The knowledge base removes the document; it is polled until the document is gone",
}


@dataclass(frozen=True)
class DocumentNow:
    """A document's record in the registry, and its object in the bucket *at* a time in seconds since 1970."""

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
        """Whether the object is gone and the registry does not know it yet."""
        return self.record.observed.is_present and not self.now.is_present

    @property
    def is_uploaded(self) -> bool:
        """Whether the bucket has a version that no function processes yet."""
        return self.is_newer and (self.record.is_final or self.record.revision == 0)

    @property
    def is_live(self) -> bool:
        """Whether the bucket has the document, or the registry does not know that it is gone."""
        return self.now.is_present or self.record.status is not Status.DELETED

    @property
    def again(self) -> bool:
        """Whether the document will be processed again."""
        return self.record.again or self.is_newer or self.is_gone

    @property
    def waiting_for(self) -> str | None:
        """What happens next, in a sentence."""
        status = self.record.status
        if self.is_uploaded:
            earlier = f"; until then searches may find the previous version, which is {status}"
            return f"The ingestion function reads the event of the upload{earlier if status in SEARCHABLE else ''}"
        if self.record.is_final:
            gone = "The object is gone from the bucket; the ingestion function reads the event of its deletion"
            return gone if self.is_gone else None
        awaited = ABANDONED if self.record.is_abandoned(self.at) else _NEXT[status]
        return f"{awaited}; then what changed in the bucket since is processed" if self.again else awaited

    def as_it_is(self) -> DocumentRecord:
        """Describe the version in the bucket if the record is about an earlier one that is no longer processed."""
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


def to_found(record: DocumentRecord, words: Sequence[NameWord]) -> FoundDocument:
    """Return a record as a look-up of some words shows it."""
    key = key_of_uri(record.uri)
    name = file_name(key)
    return FoundDocument(
        id=record.id,
        key=key,
        name=name,
        folder=key.removesuffix(name),
        status=record.status,
        reason=redacted_or_none(record.reason),
        attributes={
            attribute: value
            for attribute, value in record.observed.attributes.items()
            if any(places_of(words, str(each)) for each in (value if isinstance(value, list) else [value]))
        },
        matched=places_of(words, name),
    )


def to_summary(record: DocumentRecord) -> DocumentSummary:
    """Return a record as a listing shows it."""
    observed = record.observed
    return DocumentSummary(
        id=record.id,
        uri=record.uri,
        key=key_of_uri(record.uri),
        status=record.status,
        reason=redacted_or_none(record.reason),
        searchable=record.status in SEARCHABLE,
        size=observed.size if observed.is_present else None,
        etag=observed.etag,
        version_id=observed.version_id,
        corpus=record.corpus,
        attributes=dict(observed.attributes),
        attempts=record.attempts,
        last_modified=to_time(observed.last_modified),
        received_at=to_time(record.received_at),
        updated_at=to_time(record.updated_at),
        finished_at=to_time(record.finished_at),
    )


def to_document_receipt(receipt: Receipt) -> DocumentReceipt:
    """Return a receipt as a request for its document shows it."""
    return DocumentReceipt(
        compared_at=iso(receipt.compared_at),
        chunks=receipt.chunks,
        words=receipt.words,
        compared=receipt.compared,
        read=receipt.read,
        complete=receipt.is_complete,
        counted=[ReceiptLine(**asdict(each)) for each in receipt.counted],
        left_out=[LeftOutLine(**asdict(each)) for each in receipt.left_out],
        not_read=[NotReadPart(**asdict(each)) for each in receipt.not_read],
        parts_not_read=receipt.parts_not_read,
        recognized=[RecognizedPart(**asdict(each)) for each in receipt.recognized],
        unreadable=receipt.unreadable,
    )


def to_detail(document: DocumentNow) -> DocumentDetail:
    """Return a document as a request for it alone shows it."""
    record = document.record
    return DocumentDetail(
        **dict(to_summary(document.as_it_is())),
        created_at=to_time(record.created_at),
        history=[
            HistoryLine(at=iso(line.at), status=line.status, reason=redacted_or_none(line.reason))
            for line in record.history
        ],
        receipt=None if record.receipt is None or document.is_uploaded else to_document_receipt(record.receipt),
        knowledge_base_status=record.knowledge_base_status,
        again=document.again,
        waiting_for=document.waiting_for,
    )
