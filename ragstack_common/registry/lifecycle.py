"""How a document gets from one state to the next. Nothing here reads or writes anything.

::

                   ┌──────────────── must be checked again ─────────────────┐
                   ▼                                                        │
    event ──►  WAITING ──►  SUBMITTING ──►  INDEXING ──►  INDEXED, PARTIALLY_INDEXED, FAILED
             (converted)                 (then compared)
                   │
                   └─────►  DELETING  ──►  DELETED; FAILED if it is in the bucket but must not be searchable as it is

The next step follows from what the bucket holds and from the document's record, never from the kind of event. A
document has one operation at a time; changes in the meantime are noted, and checked when the operation has ended.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from ragstack_common.registry.catalogue import counted_under
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.receipts import Receipt
from ragstack_common.registry.records import (
    FINAL,
    DocumentRecord,
    Observation,
    Operation,
    OperationKind,
    Status,
    Transition,
)

TRANSITIONS_KEPT: Final = 20

TOMBSTONE_SECONDS: Final = 30 * 24 * 3600.0
"""Lifetime of the record of a deleted document, by which events older than its deletion are recognised."""

OUTCOMES: Final[Mapping[str, Status]] = {
    "INDEXED": Status.INDEXED,
    "PARTIALLY_INDEXED": Status.PARTIALLY_INDEXED,
    "METADATA_PARTIALLY_INDEXED": Status.PARTIALLY_INDEXED,
    "METADATA_UPDATE_FAILED": Status.FAILED,
    "FAILED": Status.FAILED,
    "IGNORED": Status.FAILED,
}
"""The document's status for each final status of the service. Source: bedrock-agent, shape DocumentStatus."""

_IN_PROGRESS: Final = frozenset({"STARTING", "PENDING", "IN_PROGRESS", "DELETING", "DELETE_IN_PROGRESS"})
"""The service's statuses that are not final. Managed knowledge bases may report others, such as TEXT_INDEXED."""

CONVERTING: Final = "Its text is being read from the file"
READS_MORE: Final = "The knowledge base did not read all of it: its text is converted first"
OTHER_FORM: Final = "It is indexed again in another form"
CHANGED_MEANWHILE: Final = "The document changed while it was being processed"

_TRANSIENT: Final = re.compile(
    r"throttl|too many requests|rate exceeded|timed out|timeout|try again|unavailable", re.IGNORECASE
)
"""Words in the service's reason for a failure that another attempt may avoid."""


class Step(Enum):
    """The next step for a document."""

    NOTHING = "nothing"
    NOTE = "note"
    """Record the events; the state stays."""
    LATER = "later"
    """Another function is calling the knowledge base about it."""
    CONVERT = "convert"
    """Its converted text must be made before it is submitted."""
    INGEST = "ingest"
    DELETE = "delete"
    """Remove it from the knowledge base: it is gone from the bucket, must not be searchable as it is, or is indexed as
    a file and will be as converted text, or the other way round."""
    FAIL = "fail"
    """It cannot be submitted, and the knowledge base does not have it."""
    FORGET = "forget"
    """It is gone from the bucket, and the knowledge base does not have it."""


@dataclass(frozen=True)
class EventMarks:
    """The events that were read about a document: the newest sequencers of it and of its sidecar, or empty.

    *forced* means that a check was requested regardless of the registry's state.
    """

    sequencer: str = ""
    sidecar_sequencer: str = ""
    forced: bool = False


class Next(Enum):
    """What follows a status check."""

    FOLLOW = "follow"
    CHECK_AGAIN = "check again"
    COMPARE = "compare"
    """The index is compared with the file before the document gets its final state."""
    DONE = "done"


@dataclass(frozen=True)
class Patience:
    """The limits of operations.

    Attributes:
        settle_seconds: Time after the acceptance in which the knowledge base may still report the state before it.
        give_up_seconds: Time after which a document without a final status is FAILED.
        attempts: The maximum number of submissions of one version.
    """

    settle_seconds: float = 60.0
    give_up_seconds: float = 6 * 3600.0
    attempts: int = 5


def is_known(record: DocumentRecord, marks: EventMarks) -> bool:
    """Check whether the events bring nothing new, and the document is final or followed."""
    if marks.forced or not (record.is_final or record.is_followed) or not (marks.sequencer or marks.sidecar_sequencer):
        return False
    return _with_events(record, marks) == record


def is_newer(sequencer: str, known: str) -> bool:
    """Compare sequencers of one object. The shorter one is padded with zeros on the right.

    Source: Amazon S3 user guide, event message structure.
    """
    width = max(len(sequencer), len(known))
    return sequencer.ljust(width, "0").upper() > known.ljust(width, "0").upper()


def newest(one: str, other: str) -> str:
    """Return the newer of two sequencers."""
    return other if is_newer(other, one) else one


def with_known_refusal(record: DocumentRecord, observed: Observation) -> Observation:
    """Add the known refusal of the same version to what was observed."""
    known = record.observed
    if record.is_final or known.refusal is None or observed.refusal or not known.is_the_same_as(observed):
        return observed
    return replace(observed, refusal=known.refusal)


def step_for(record: DocumentRecord, observed: Observation, marks: EventMarks, now: float) -> Step:
    """Decide the next step from a document's record and what the bucket holds."""
    if record.is_claimed(now):
        return Step.LATER
    if record.is_followed:
        return Step.NOTE
    if not observed.is_present:
        # An ingestion job may have indexed documents that direct calls did not, or that the registry does not know.
        is_unknown = record.revision == 0 and marks.sequencer
        if record.in_knowledge_base or record.status is Status.FAILED or marks.forced or is_unknown:
            return Step.DELETE
        if record.status is Status.DELETED:
            return Step.NOTE
        return Step.FORGET if record.revision else Step.NOTHING
    is_settled = record.is_final and record.status is not Status.DELETED and record.observed.is_the_same_as(observed)
    if observed.refusal is not None:
        if record.in_knowledge_base or marks.forced:
            return Step.DELETE
        return Step.NOTE if is_settled else Step.FAIL
    if observed.needs_conversion:
        return Step.CONVERT
    if record.in_knowledge_base and record.is_converted is not observed.is_converted:
        return Step.DELETE
    return Step.NOTE if is_settled and not marks.forced else Step.INGEST


def noted(record: DocumentRecord, observed: Observation, marks: EventMarks, now: float) -> DocumentRecord:
    """Record events that change nothing, or that must wait for the end of the operation."""
    same = record.observed.is_the_same_as(observed)
    return replace(
        _with_events(record, marks),
        observed=observed if same else record.observed,
        label=observed.label,
        again=record.is_followed and (record.again or not same),
        updated_at=now,
    )


def is_converting(record: DocumentRecord, observed: Observation) -> bool:
    """Whether the converted text of this version was requested before."""
    waits = record.status is Status.WAITING and record.reason == CONVERTING
    return waits and record.observed.is_the_same_as(observed)


def converting(record: DocumentRecord, observed: Observation, marks: EventMarks, now: float) -> DocumentRecord:
    """Wait for the document's converted text."""
    after = replace(
        _unclaimed(_with_events(record, marks)),
        observed=observed,
        label=observed.label,
        again=False,
        received_at=record.received_at if record.reason == READS_MORE else now,
        expires_at=None,
    )
    return become(after, Status.WAITING, CONVERTING, now)


def claimed(
    record: DocumentRecord, observed: Observation, marks: EventMarks, operation: Operation, now: float
) -> DocumentRecord:
    """Claim a document for one operation."""
    continues = not record.is_final and record.revision > 0 and record.observed.is_the_same_as(observed)
    ingests = operation.kind is OperationKind.INGEST
    # Removing a failed document belongs to the attempt that failed.
    is_repeated = record.operation is None or record.operation.kind is operation.kind
    after = replace(
        _with_events(record, marks),
        observed=observed,
        label=observed.label,
        operation=operation,
        again=False,
        attempts=record.attempts + is_repeated if continues else 1,
        in_knowledge_base=record.in_knowledge_base or ingests or not observed.is_present,
        is_converted=observed.is_converted if ingests else record.is_converted,
        receipt=None if ingests else record.receipt,
        received_at=record.received_at if continues or record.reason in (CONVERTING, OTHER_FORM) else now,
        expires_at=None,
    )
    return become(after, Status.SUBMITTING if ingests else Status.DELETING, observed.refusal, now)


def accepted(record: DocumentRecord, now: float) -> DocumentRecord:
    """Record that the knowledge base accepted the operation."""
    assert record.operation is not None, "a submitted document was claimed"
    status = Status.INDEXING if record.operation.kind is OperationKind.INGEST else Status.DELETING
    return become(replace(record, operation=replace(record.operation, accepted_at=now)), status, record.reason, now)


def put_back(record: DocumentRecord, reason: str, now: float) -> DocumentRecord:
    """Release the claim; the next check of the document continues."""
    return become(replace(_unclaimed(record), again=False), Status.WAITING, reason, now)


def failed(
    record: DocumentRecord,
    reason: str,
    now: float,
    *,
    observed: Observation | None = None,
    marks: EventMarks | None = None,
) -> DocumentRecord:
    """Mark as FAILED, with a reason that a person can fix."""
    after = _unclaimed(_with_events(record, marks or EventMarks()))
    return become(
        replace(
            after,
            observed=observed or record.observed,
            label=observed.label if observed else record.label,
            again=False,
            attempts=max(1, record.attempts),
            received_at=now if observed else record.received_at,
            expires_at=None,
            counted=(),
        ),
        Status.FAILED,
        reason,
        now,
    )


def forgotten(record: DocumentRecord, now: float, marks: EventMarks | None = None) -> DocumentRecord:
    """End as deleted: neither the bucket nor the knowledge base has the document."""
    after = replace(
        _unclaimed(_with_events(record, marks or EventMarks())),
        observed=Observation(),
        label=None,
        again=False,
        receipt=None,
        counted=(),
        in_knowledge_base=False,
        convert=None,
        expires_at=now + TOMBSTONE_SECONDS,
    )
    return become(after, Status.DELETED, None, now)


def become(record: DocumentRecord, status: Status, reason: str | None, now: float) -> DocumentRecord:
    """Change a document's status, and add the change to its history."""
    history = record.history
    if not history or (history[-1].status, history[-1].reason) != (status, reason):
        history = (*history, Transition(now, status, reason))[-TRANSITIONS_KEPT:]
    return replace(
        record,
        status=status,
        reason=reason,
        history=history,
        created_at=record.created_at or now,
        updated_at=now,
        finished_at=now if status in FINAL else None,
    )


def answered(
    record: DocumentRecord, answer: DocumentStatus, now: float, patience: Patience
) -> tuple[DocumentRecord, Next]:
    """Apply the knowledge base's answer about a document that is followed.

    The record may differ although it is followed further.
    """
    assert record.operation is not None, "a followed document has an operation"
    deletes = record.operation.kind is OperationKind.DELETE
    since = now - (record.operation.accepted_at or record.operation.lease_until)
    updated_at = answer.updated_at.timestamp() if answer.updated_at else None
    is_final, is_absent = answer in OUTCOMES, answer == "NOT_FOUND"
    has_succeeded_or_failed = is_absent if deletes else is_final
    if since < patience.settle_seconds:
        is_old = updated_at is not None and updated_at == record.knowledge_base_updated_at
        if is_old or not has_succeeded_or_failed:
            # The knowledge base may not have begun the operation, and this may be its state before.
            return record, Next.FOLLOW
    is_pending = not (is_final or is_absent)
    if is_pending and since < patience.give_up_seconds:
        return _reported(record, answer, now), Next.FOLLOW
    heard = _heard(record, answer)
    if record.again:
        return put_back(heard, CHANGED_MEANWHILE, now), Next.CHECK_AGAIN
    if is_pending:
        reason = f"No final status after {since / 3600:.1f} hours: the knowledge base still reports {answer}"
        return failed(heard, reason, now), Next.DONE
    if not has_succeeded_or_failed:
        lost = "The knowledge base accepted the document and does not know it"
        kept = f"The knowledge base accepted the deletion and still has the document: {failure_reason(answer)}"
        return _once_more(heard, kept if deletes else lost, now, patience)
    if deletes and heard.observed.is_present and heard.observed.refusal is None:
        return put_back(replace(heard, in_knowledge_base=False), OTHER_FORM, now), Next.CHECK_AGAIN
    if deletes:
        return _removed(heard, now), Next.DONE
    if OUTCOMES[str(answer)] is Status.FAILED and _TRANSIENT.search(failure_reason(answer)):
        return _once_more(heard, failure_reason(answer), now, patience)
    return record, Next.COMPARE


def compared(
    record: DocumentRecord, answer: DocumentStatus, receipt: Receipt, now: float, *, converts: bool = False
) -> tuple[DocumentRecord, Next]:
    """Apply the knowledge base's final answer about an ingested document, and what the index has of its file.

    If it was submitted as it is and not all of it is in the index, it is converted if *converts* says that this can
    help. A document of which the index has nothing is FAILED whatever the knowledge base says, and removed from it.
    """
    heard = replace(_heard(record, answer), receipt=receipt)
    status = OUTCOMES[str(answer)]
    if record.again:
        return put_back(heard, CHANGED_MEANWHILE, now), Next.CHECK_AGAIN
    is_whole = status is Status.INDEXED and receipt.is_complete
    if converts and not is_whole and not record.is_converted and record.convert != record.observed.etag:
        return put_back(replace(heard, convert=record.observed.etag), READS_MORE, now), Next.CHECK_AGAIN
    if status is Status.FAILED or receipt.is_empty:
        conversion = record.observed.conversion
        reason: str | None = failure_reason(answer) if status is Status.FAILED else receipt.reason
        if conversion is not None and conversion.refusal is not None:
            reason = conversion.refusal  # it was tried, and may recognize text in pictures
        return refused(heard, reason or "", now), Next.CHECK_AGAIN
    if not receipt.is_complete:
        status = Status.PARTIALLY_INDEXED
    counted = replace(heard, counted=counted_under(heard.observed.attributes, has_label=heard.label is not None))
    reason = " ".join(filter(None, (answer.reason, receipt.reason))) or None
    return become(counted, status, reason, now), Next.DONE


def _reported(record: DocumentRecord, answer: DocumentStatus, now: float) -> DocumentRecord:
    """Show a status that the service model does not have; the knowledge base may stay in it for long."""
    if answer in _IN_PROGRESS:
        return record
    reason = f"The knowledge base reports {answer}, which is not known to be final"
    return record if record.reason == reason else become(record, record.status, reason, now)


def _heard(record: DocumentRecord, answer: DocumentStatus) -> DocumentRecord:
    updated_at = answer.updated_at.timestamp() if answer.updated_at else None
    return replace(record, knowledge_base_status=str(answer), knowledge_base_updated_at=updated_at)


def refused(record: DocumentRecord, reason: str, now: float) -> DocumentRecord:
    """Remove a document that the knowledge base rejected, then mark it FAILED.

    The knowledge base keeps the version before in its index and does not say so. The registry need not know of that
    version: an ingestion job reads the whole bucket, whatever events are still on their way.
    """
    to_remove = replace(record, observed=replace(record.observed, refusal=reason))
    return put_back(to_remove, reason, now)


def failure_reason(answer: DocumentStatus) -> str:
    """Return the knowledge base's reason for its answer, with the status unless that is FAILED."""
    if not answer.reason:
        return f"{answer}, without a reason"
    return answer.reason if str(answer) == Status.FAILED else f"{answer}: {answer.reason}"


def _with_events(record: DocumentRecord, marks: EventMarks) -> DocumentRecord:
    return replace(
        record,
        sequencer=newest(record.sequencer, marks.sequencer),
        sidecar_sequencer=newest(record.sidecar_sequencer, marks.sidecar_sequencer),
    )


def _unclaimed(record: DocumentRecord) -> DocumentRecord:
    """End the lease; the operation stays as the name of the last one."""
    if record.operation is None:
        return record
    return replace(record, operation=replace(record.operation, lease_until=0.0))


def _removed(record: DocumentRecord, now: float) -> DocumentRecord:
    if not record.observed.is_present:
        return forgotten(record, now)
    reason = record.observed.refusal or record.reason or "It must not be searchable"
    return failed(replace(record, in_knowledge_base=False), reason, now)


def _once_more(record: DocumentRecord, reason: str, now: float, patience: Patience) -> tuple[DocumentRecord, Next]:
    if record.attempts < patience.attempts:
        return put_back(record, reason, now), Next.CHECK_AGAIN
    reason = f"{reason} (after {record.attempts} attempts)"
    if record.operation is not None and record.operation.kind is OperationKind.DELETE:
        return failed(record, reason, now), Next.DONE
    return refused(record, reason, now), Next.CHECK_AGAIN
