"""What follows from the knowledge base's answer about a document that is followed. Nothing here reads or writes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from ragstack_common.documents import DocumentStatus
from ragstack_common.registry.catalogue import counted_under
from ragstack_common.registry.life import become, failed, forgotten, put_back
from ragstack_common.registry.records import DocumentRecord, OperationKind, Status

OUTCOMES: Final[Mapping[str, Status]] = {
    "INDEXED": Status.INDEXED,
    "PARTIALLY_INDEXED": Status.PARTIALLY_INDEXED,
    "METADATA_PARTIALLY_INDEXED": Status.PARTIALLY_INDEXED,
    "METADATA_UPDATE_FAILED": Status.FAILED,
    "FAILED": Status.FAILED,
    "IGNORED": Status.FAILED,
}
"""What the final statuses of the service mean for a document. Source: bedrock-agent, shape DocumentStatus."""

CHANGED_MEANWHILE: Final = "The document changed while it was worked on"

_PASSING: Final = ("throttl", "too many requests", "rate exceeded", "timed out", "timeout", "try again", "unavailable")
"""Words of the service's reason for a failure that another attempt may not meet again."""


class Next(Enum):
    """What is to be done after the knowledge base was asked."""

    FOLLOW = "follow"
    LOOK_AGAIN = "look again"
    DONE = "done"


@dataclass(frozen=True)
class Patience:
    """How long an operation may take.

    Attributes:
        settle_seconds: As long after its acceptance, the knowledge base may still answer as it was before.
        give_up_seconds: After which a document without a final status is FAILED.
        attempts: Submissions of one content at most.
    """

    settle_seconds: float = 60.0
    give_up_seconds: float = 6 * 3600.0
    attempts: int = 5


def answered(
    record: DocumentRecord, answer: DocumentStatus, now: float, patience: Patience
) -> tuple[DocumentRecord, Next]:
    """Take in what the knowledge base says of a document that is followed."""
    assert record.operation is not None, "what is followed has an operation"
    since = now - (record.operation.accepted_at or record.operation.lease_until)
    updated_at = answer.updated_at.timestamp() if answer.updated_at else None
    as_before = updated_at is not None and updated_at == record.knowledge_base_updated_at
    ended = _has_ended(record.operation.kind, str(answer))
    absent = record.operation.kind is OperationKind.INGEST and answer == "NOT_FOUND"
    if (absent or not ended or as_before) and since < patience.settle_seconds:
        # It may not have taken the operation up yet, and this may be its answer from before.
        return record, Next.FOLLOW
    heard = replace(
        record,
        knowledge_base_status=str(answer),
        knowledge_base_updated_at=updated_at,
    )
    hangs = not ended and not _has_missed(record.operation.kind, str(answer))
    if hangs and since < patience.give_up_seconds:
        return record, Next.FOLLOW
    if record.again:
        return put_back(heard, CHANGED_MEANWHILE, now), Next.LOOK_AGAIN
    if hangs:
        reason = f"No final status after {since / 3600:.1f} hours: the knowledge base still says {answer}"
        return failed(heard, reason, now), Next.DONE
    if not ended:
        return _once_more(heard, _missed(record.operation.kind, answer), now, patience)
    if record.operation.kind is OperationKind.DELETE:
        return _removed(heard, now), Next.DONE
    return _indexed_or_not(heard, answer, now, patience)


def refused(record: DocumentRecord, reason: str, now: float) -> DocumentRecord:
    """Have removed, before it ends in failure, what the knowledge base did not index.

    It keeps the version before in its index and does not say so. The registry need not know of that version: an
    ingestion job reads the whole bucket, whatever events are still on their way.
    """
    to_remove = replace(record, observed=replace(record.observed, refusal=reason))
    return put_back(to_remove, reason, now)


def told(answer: DocumentStatus) -> str:
    """Say what the knowledge base said of a document; that it failed, people are told anyway."""
    if not answer.reason:
        return f"{answer}, without a reason"
    return answer.reason if str(answer) == Status.FAILED else f"{answer}: {answer.reason}"


def _has_ended(kind: OperationKind, status: str) -> bool:
    return status == "NOT_FOUND" if kind is OperationKind.DELETE else status in OUTCOMES


def _has_missed(kind: OperationKind, status: str) -> bool:
    """Tell whether a status means that the operation was lost: a document to be indexed is absent, or the reverse."""
    return status in OUTCOMES if kind is OperationKind.DELETE else status == "NOT_FOUND"


def _missed(kind: OperationKind, answer: DocumentStatus) -> str:
    if kind is OperationKind.INGEST:
        return "The knowledge base accepted the document and does not know it"
    return f"The knowledge base accepted the deletion and still has the document: {told(answer)}"


def _indexed_or_not(
    record: DocumentRecord, answer: DocumentStatus, now: float, patience: Patience
) -> tuple[DocumentRecord, Next]:
    status = OUTCOMES[str(answer)]
    if status is Status.FAILED:
        reason = told(answer)
        if any(word in reason.lower() for word in _PASSING):
            return _once_more(record, reason, now, patience)
        return refused(record, reason, now), Next.LOOK_AGAIN
    after = replace(record, counted=counted_under(record.observed.attributes))
    return become(after, status, answer.reason, now), Next.DONE


def _removed(record: DocumentRecord, now: float) -> DocumentRecord:
    if not record.observed.is_present:
        return forgotten(record, now)
    reason = record.observed.refusal or record.reason or "It must not be searchable"
    return failed(replace(record, in_knowledge_base=False), reason, now)


def _once_more(record: DocumentRecord, reason: str, now: float, patience: Patience) -> tuple[DocumentRecord, Next]:
    if record.attempts < patience.attempts:
        return put_back(record, reason, now), Next.LOOK_AGAIN
    reason = f"{reason} (after {record.attempts} attempts)"
    if record.operation is not None and record.operation.kind is OperationKind.DELETE:
        return failed(record, reason, now), Next.DONE
    return refused(record, reason, now), Next.LOOK_AGAIN
