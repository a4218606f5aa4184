"""How a document gets from one state to the next. Nothing here reads or writes anything.

::

                   ┌─────────────── somebody must look again ───────────────┐
                   ▼                                                        │
    event ──►  WAITING ──►  SUBMITTING ──►  INDEXING ──►  INDEXED, PARTIALLY_INDEXED, FAILED
                   │
                   └─────►  DELETING  ──►  DELETED; FAILED for what is there and must not be searchable as it is

What is done about a document follows from what lies in the bucket and from its record, never from the kind of event.
A document has one operation at a time; what happens meanwhile is noted, and looked at when the operation has ended.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

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
"""How long the registry remembers a deleted document, and with it which events are older than its deletion."""


class Step(Enum):
    """What is to be done about a document."""

    NOTHING = "nothing"
    NOTE = "note"
    """Take the events into account; the state stays."""
    LATER = "later"
    """Another function is calling the knowledge base about it."""
    INGEST = "ingest"
    DELETE = "delete"
    """Remove it from the knowledge base: it is gone from the bucket, or must not be searchable as it is."""
    FAIL = "fail"
    """It cannot be submitted, and the knowledge base has nothing of it."""
    FORGET = "forget"
    """It is gone, and the knowledge base has nothing of it."""


@dataclass(frozen=True)
class Seen:
    """Which events were read about a document.

    Attributes:
        sequencer: The newest of its own, or empty.
        sidecar_sequencer: The newest of its sidecar, or empty.
        forced: Whether somebody asked to look again, whatever the registry says.
    """

    sequencer: str = ""
    sidecar_sequencer: str = ""
    forced: bool = False


def is_known(record: DocumentRecord, seen: Seen) -> bool:
    """Tell whether everything that the events can say was taken into account, and somebody is seeing to it."""
    if seen.forced or not (record.is_final or record.is_followed) or not (seen.sequencer or seen.sidecar_sequencer):
        return False
    return not (
        is_newer(seen.sequencer, record.sequencer) or is_newer(seen.sidecar_sequencer, record.sidecar_sequencer)
    )


def is_newer(sequencer: str, known: str) -> bool:
    """Compare sequencers of one object. Of different lengths, the shorter is padded with zeros on the right.

    Source: Amazon S3 user guide, event message structure.
    """
    width = max(len(sequencer), len(known))
    return sequencer.ljust(width, "0").upper() > known.ljust(width, "0").upper()


def standing(record: DocumentRecord, observed: Observation) -> Observation:
    """Add to what was observed what is known of it already: that it must not be searchable."""
    known = record.observed
    if record.is_final or known.refusal is None or observed.refusal or not known.is_the_same_as(observed):
        return observed
    return replace(observed, refusal=known.refusal)


def step_for(record: DocumentRecord, observed: Observation, seen: Seen, now: float) -> Step:
    """Decide what is to be done about a document, from its record and what lies in the bucket."""
    is_settled = record.is_final and record.status is not Status.DELETED and record.observed.is_the_same_as(observed)
    if record.is_claimed(now):
        return Step.LATER
    if record.is_followed:
        return Step.NOTE
    if not observed.is_present:
        # An ingestion job may have read what direct calls did not index, or never heard of.
        is_unheard_of = record.revision == 0 and seen.sequencer
        if record.in_knowledge_base or record.status is Status.FAILED or seen.forced or is_unheard_of:
            return Step.DELETE
        if record.status is Status.DELETED:
            return Step.NOTE
        return Step.FORGET if record.revision else Step.NOTHING
    if observed.refusal is not None:
        if record.in_knowledge_base or seen.forced:
            return Step.DELETE
        return Step.NOTE if is_settled else Step.FAIL
    return Step.NOTE if is_settled and not seen.forced else Step.INGEST


def noted(record: DocumentRecord, observed: Observation, seen: Seen, now: float) -> DocumentRecord:
    """Take events into account that change nothing, or what must wait for the end of the operation."""
    same = record.observed.is_the_same_as(observed)
    return replace(
        _with_events(record, seen),
        observed=observed if same else record.observed,
        again=record.is_followed and (record.again or not same),
        updated_at=now,
    )


def claimed(
    record: DocumentRecord, observed: Observation, seen: Seen, operation: Operation, now: float
) -> DocumentRecord:
    """Claim a document for one operation."""
    goes_on = not record.is_final and record.revision > 0 and record.observed.is_the_same_as(observed)
    ingests = operation.kind is OperationKind.INGEST
    # To remove what failed is part of the attempt that failed.
    is_repeated = record.operation is None or record.operation.kind is operation.kind
    after = replace(
        _with_events(record, seen),
        observed=observed,
        operation=operation,
        again=False,
        attempts=record.attempts + is_repeated if goes_on else 1,
        in_knowledge_base=record.in_knowledge_base or ingests or not observed.is_present,
        received_at=record.received_at if goes_on else now,
        expires_at=None,
    )
    return become(after, Status.SUBMITTING if ingests else Status.DELETING, observed.refusal, now)


def accepted(record: DocumentRecord, now: float) -> DocumentRecord:
    """Note that the knowledge base accepted the operation."""
    assert record.operation is not None, "what was submitted was claimed"
    status = Status.INDEXING if record.operation.kind is OperationKind.INGEST else Status.DELETING
    return become(replace(record, operation=replace(record.operation, accepted_at=now)), status, record.reason, now)


def put_back(record: DocumentRecord, reason: str, now: float) -> DocumentRecord:
    """Give up the claim; whoever looks at the document next goes on."""
    return become(replace(_unclaimed(record), again=False), Status.WAITING, reason, now)


def failed(
    record: DocumentRecord,
    reason: str,
    now: float,
    *,
    observed: Observation | None = None,
    seen: Seen | None = None,
) -> DocumentRecord:
    """End in failure, for a reason that people can do something about."""
    after = _unclaimed(_with_events(record, seen or Seen()))
    return become(
        replace(
            after,
            observed=observed or record.observed,
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


def forgotten(record: DocumentRecord, now: float, seen: Seen | None = None) -> DocumentRecord:
    """End as deleted: neither the bucket nor the knowledge base has anything of it."""
    after = replace(
        _unclaimed(_with_events(record, seen or Seen())),
        observed=Observation(),
        again=False,
        counted=(),
        in_knowledge_base=False,
        expires_at=now + TOMBSTONE_SECONDS,
    )
    return become(after, Status.DELETED, None, now)


def _with_events(record: DocumentRecord, seen: Seen) -> DocumentRecord:
    return replace(
        record,
        sequencer=seen.sequencer if is_newer(seen.sequencer, record.sequencer) else record.sequencer,
        sidecar_sequencer=seen.sidecar_sequencer
        if is_newer(seen.sidecar_sequencer, record.sidecar_sequencer)
        else record.sidecar_sequencer,
    )


def _unclaimed(record: DocumentRecord) -> DocumentRecord:
    """End the lease; the operation stays as the name of what was done last."""
    if record.operation is None:
        return record
    return replace(record, operation=replace(record.operation, lease_until=0.0))


def become(record: DocumentRecord, status: Status, reason: str | None, now: float) -> DocumentRecord:
    """Put a document into a state, and its history with it."""
    history = record.history
    if not history or (history[-1].status, history[-1].reason) != (status, reason):
        history = (*history, Transition(now, status, reason))[-TRANSITIONS_KEPT:]
    changes: dict[str, Any] = {"finished_at": now if status in FINAL else None}
    return replace(
        record,
        status=status,
        reason=reason,
        history=history,
        created_at=record.created_at or now,
        updated_at=now,
        **changes,
    )
