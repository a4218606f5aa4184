"""What an operation is called: by its name it is submitted once, followed, and told of.

A function that comes later goes on under the same name, and whatever is told again has the same name again.
"""

import uuid
from dataclasses import replace

from ragstack_common.registry.life import Step
from ragstack_common.registry.records import DocumentRecord, Observation, Operation, OperationKind


def operation_for(record: DocumentRecord, observed: Observation, step: Step, deadline: float) -> Operation:
    """Name what is to be done. What was claimed and not accepted is the same thing again, under the same name.

    Args:
        record: The document as it is.
        observed: What lies in the bucket for it.
        step: INGEST or DELETE.
        deadline: Seconds since 1970, until which nobody else takes over.
    """
    kind = OperationKind.INGEST if step is Step.INGEST else OperationKind.DELETE
    last = record.operation
    if (
        last is not None
        and not record.is_final
        and last.accepted_at is None
        and last.kind is kind
        and record.observed.is_the_same_as(observed)
    ):
        return replace(last, lease_until=deadline)
    return Operation(uuid.uuid4().hex, kind, deadline)


def named(record: DocumentRecord, kind: OperationKind) -> DocumentRecord:
    """Name an end that the knowledge base had no part in, so that it is not taken for the one before told again."""
    return replace(record, operation=Operation(uuid.uuid4().hex, kind, lease_until=0.0))
