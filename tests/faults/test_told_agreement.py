"""Each way in which what was told can be wrong is noticed, and repetitions in any order are right."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime

import pytest

from ragstack_common.registry.lifecycle import TRANSITIONS_KEPT
from ragstack_common.registry.records import DocumentRecord, Operation, OperationKind, Status, Transition
from tests.faults.listener import Told
from tests.faults.snapshot import Snapshot
from tests.faults.told_agreement import repetitions, told_disagreements

URI = "s3://docs/a.txt"
CONTENTS = {URI: {'"1"', '"2"'}}

RECORD = DocumentRecord(
    URI,
    status=Status.DELETED,
    operation=Operation("second", OperationKind.DELETE, 0.0),
    finished_at=20.0004,
    history=(
        Transition(1.0, Status.SUBMITTING),
        Transition(10.0, Status.INDEXED),
        Transition(15.0, Status.DELETING),
        Transition(20.0004, Status.DELETED),
    ),
)
INDEXED = Told("DocumentIndexed", URI, "INDEXED", None, '"1"', "first", 10.0)
DELETED = Told("DocumentDeleted", URI, "DELETED", None, None, "second", 20.0)


def disagreements(*told: Told, record: DocumentRecord = RECORD) -> Sequence[str]:
    return told_disagreements(Snapshot({}, {URI: record}, {}, {}, ()), told, CONTENTS)


def test_nothing_is_wrong_with_repetitions_in_any_order() -> None:
    told = (INDEXED, DELETED, INDEXED)

    assert disagreements(*told) == []
    assert repetitions(told) == 1


WRONG = {
    "the end is not told": ([INDEXED], "what was told last is"),
    "nothing is told": ([], "what was told last is None"),
    "a state before is not told": ([DELETED], "was never told"),
    "one operation with two ends": ([INDEXED, replace(DELETED, operation="first"), DELETED], "have one operation"),
    "a repetition with a name of its own": ([INDEXED, DELETED, replace(DELETED, operation="third")], "two names"),
    "a state that never was": ([INDEXED, DELETED, replace(INDEXED, operation="x", reason="y")], "that never was"),
    "a state before it was": ([INDEXED, DELETED, replace(INDEXED, operation="x", finished_at=9)], "that never was"),
    "a content that never was": ([INDEXED, DELETED, replace(INDEXED, operation="x", etag='"0"')], "no such content"),
    "a deleted content": ([INDEXED, replace(DELETED, etag='"1"')], "a content is not deleted"),
    "an index of nothing": ([replace(INDEXED, etag=None), DELETED], "of no content"),
    "a type of another status": ([replace(INDEXED, type="DocumentFailed"), DELETED], "its type"),
    "a stranger": ([INDEXED, DELETED, replace(INDEXED, uri="s3://docs/b.txt")], "the registry does not know it"),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_what_is_told_wrongly_is_noticed(name: str) -> None:
    told, says = WRONG[name]

    wrong = disagreements(*told)

    assert any(says in line for line in wrong), wrong


def test_what_the_history_has_forgotten_is_no_claim_of_what_never_was() -> None:
    forgetful = replace(
        RECORD, history=(Transition(15.0, Status.DELETING),) * (TRANSITIONS_KEPT - 1) + RECORD.history[-1:]
    )

    assert disagreements(INDEXED, DELETED, record=forgetful) == []


def test_an_event_is_read_as_it_is_published() -> None:
    detail = asdict(INDEXED) | {"finished_at": datetime.fromtimestamp(10.0, UTC).isoformat(timespec="milliseconds")}
    event = json.loads(json.dumps({"detail-type": detail.pop("type"), "detail": detail}))

    assert Told.of(event) == INDEXED
