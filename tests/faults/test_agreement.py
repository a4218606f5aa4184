"""Each kind of difference is told, and where there is none, nothing is."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ragstack_common.documents import DocumentStatus
from ragstack_common.registry.catalogue import counted_under
from ragstack_common.registry.jobs import Job
from ragstack_common.registry.lifecycle import TRANSITIONS_KEPT
from ragstack_common.registry.records import (
    DocumentRecord,
    Observation,
    Operation,
    OperationKind,
    Status,
    Transition,
)
from tests.faults.agreement import disagreements
from tests.faults.snapshot import Objects, Snapshot
from tests.faults.told_agreement import Told, repetitions, told_disagreements

GOOD, BAD, GONE = "s3://docs/good.txt", "s3://docs/bad.txt", "s3://docs/gone.txt"
ATTRIBUTES = {"corpus": "handbook"}
COUNTED = counted_under(ATTRIBUTES)

AGREEING = Snapshot(
    bucket={GOOD: Objects('"1"', '"2"'), BAD: Objects('"3"', None)},
    registry={
        GOOD: DocumentRecord(
            GOOD,
            status=Status.INDEXED,
            observed=Observation('"1"', sidecar_etag='"2"', attributes=ATTRIBUTES),
            counted=COUNTED,
            history=(Transition(1.0, Status.INDEXED),),
        ),
        BAD: DocumentRecord(BAD, status=Status.FAILED, reason="FAILED: empty", observed=Observation('"3"')),
        GONE: DocumentRecord(GONE, status=Status.DELETED),
    },
    knowledge_base={GOOD: DocumentStatus("INDEXED"), BAD: DocumentStatus("FAILED", "empty")},
    counts=dict.fromkeys(COUNTED, 1),
    dead_letters=({"failed": {"uri": BAD, "operation": "o", "reason": "FAILED: empty", "attempts": 1}},),
)


def without(uri: str, what: str) -> Callable[[Snapshot], Snapshot]:
    return lambda now: replace(
        now, **{what: {name: value for name, value in getattr(now, what).items() if name != uri}}
    )


def with_record(uri: str, **changes: object) -> Callable[[Snapshot], Snapshot]:
    return lambda now: replace(now, registry={**now.registry, uri: replace(now.registry[uri], **changes)})  # type: ignore[arg-type]


def with_said(uri: str, status: str) -> Callable[[Snapshot], Snapshot]:
    return lambda now: replace(now, knowledge_base={**now.knowledge_base, uri: DocumentStatus(status)})


DIFFERENCES: dict[str, tuple[Callable[[Snapshot], Snapshot], str]] = {
    "an object without a record": (without(GOOD, "registry"), "the registry does not know it"),
    "a record without an object": (without(GOOD, "bucket"), "no such object is in the bucket"),
    "another object": (with_record(GOOD, observed=Observation('"0"', sidecar_etag='"2"')), "the bucket has"),
    "another sidecar": (
        with_record(GOOD, observed=Observation('"1"', sidecar_etag='"0"', attributes=ATTRIBUTES)),
        "the bucket has",
    ),
    "deleted and there": (with_record(GOOD, status=Status.DELETED, counted=()), "lies in the bucket"),
    "in motion": (with_record(GOOD, status=Status.INDEXING, counted=()), "is not at rest"),
    "to be looked at again": (with_record(GOOD, again=True), "is not at rest"),
    "failed without a reason": (with_record(BAD, reason=None), "FAILED without a reason"),
    "indexed and unknown": (without(GOOD, "knowledge_base"), "the knowledge base says None"),
    "indexed and failed": (with_said(GOOD, "FAILED"), "the knowledge base says FAILED"),
    "failed and indexed": (with_said(BAD, "INDEXED"), "the knowledge base says INDEXED"),
    "deleted and indexed": (with_said(GONE, "INDEXED"), "and not in the bucket"),
    "known to nobody else": (with_said("s3://docs/stray.txt", "INDEXED"), "the registry does not know it"),
    "counted under something else": (with_record(GOOD, counted=()), "is counted under"),
    "a count that is too high": (
        lambda now: replace(now, counts={**now.counts, ("corpus", '"handbook"'): 2}),
        "the catalogue counts 2",
    ),
    "a count that is missing": (lambda now: replace(now, counts={}), "the catalogue counts 0"),
    "a count of nothing": (
        lambda now: replace(now, counts={**now.counts, ("corpus", '"old"'): -1}),
        "the catalogue counts -1",
    ),
    "a failure that nobody was told of": (lambda now: replace(now, dead_letters=()), "has not been told"),
    "a dead letter of a stranger": (
        lambda now: replace(now, dead_letters=(*now.dead_letters, {"look": ["s3://docs/stray.txt"]})),
        "a document that the registry does not know",
    ),
}


def test_nothing_is_told_where_everything_agrees() -> None:
    assert disagreements(AGREEING) == []


@pytest.mark.parametrize("name", sorted(DIFFERENCES))
def test_a_difference_is_told(name: str) -> None:
    change, told = DIFFERENCES[name]

    wrong = disagreements(change(AGREEING))

    assert any(told in line for line in wrong), wrong


RUNNING = Job("a", "reconcile", "RUNNING", "api", 1.0)
REPAIRED = {"failed": {"uri": GOOD, "operation": "o", "reason": "once", "attempts": 1}}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"jobs": (RUNNING,)}, "has not ended"),
        ({"jobs": (replace(RUNNING, status="FAILED"),)}, "does not say why"),
        ({"gate_closed_until": 1.0}, "documents wait until"),
        ({"jobs": (replace(RUNNING, status="FAILED", reason="Given up"),)}, None),
        ({"dead_letters": (*AGREEING.dead_letters, {"job": RUNNING.id, "step": 0, "failures": 0}, REPAIRED)}, None),
    ],
    ids=["runs for ever", "no reason", "gate", "failed for a reason", "letters of jobs and of repaired documents"],
)
def test_jobs_and_dead_letters_are_compared(changes: Any, told: str | None) -> None:
    wrong = disagreements(replace(AGREEING, **changes))

    assert (told is None) if not wrong else (told is not None and told in wrong[0])


# Events. --------------------------------------------------------------------------------------------------------------

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


def event_disagreements(*told: Told, record: DocumentRecord = RECORD) -> Sequence[str]:
    return told_disagreements(Snapshot({}, {URI: record}, {}, {}, ()), told, CONTENTS)


def test_nothing_is_wrong_with_repetitions_in_any_order() -> None:
    told = (INDEXED, DELETED, INDEXED)

    assert event_disagreements(*told) == []
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

    wrong = event_disagreements(*told)

    assert any(says in line for line in wrong), wrong


def test_what_the_history_has_forgotten_is_no_claim_of_what_never_was() -> None:
    forgetful = replace(
        RECORD, history=(Transition(15.0, Status.DELETING),) * (TRANSITIONS_KEPT - 1) + RECORD.history[-1:]
    )

    assert event_disagreements(INDEXED, DELETED, record=forgetful) == []
