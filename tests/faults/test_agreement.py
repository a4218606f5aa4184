"""Each kind of difference is told, and where there is none, nothing is."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ragstack_common.documents import DocumentStatus
from ragstack_common.registry.catalogue import counted_under
from ragstack_common.registry.jobs import Job
from ragstack_common.registry.records import DocumentRecord, Observation, Status, Transition
from tests.faults.agreement import disagreements
from tests.faults.snapshot import Objects, Snapshot

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


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"jobs": (RUNNING,)}, "has not ended"),
        ({"jobs": (replace(RUNNING, status="FAILED"),)}, "does not say why"),
        ({"gate_closed_until": 1.0}, "documents wait until"),
    ],
    ids=["runs for ever", "no reason", "gate"],
)
def test_what_a_job_leaves_behind_is_told(changes: Any, told: str) -> None:
    (wrong,) = disagreements(replace(AGREEING, **changes))

    assert told in wrong


def test_a_job_that_failed_for_a_reason_and_its_message_are_no_difference() -> None:
    letter = {"job": RUNNING.id, "step": 0, "failures": 0}
    failed = replace(RUNNING, status="FAILED", reason="Given up")

    now = replace(AGREEING, jobs=(failed,), dead_letters=(*AGREEING.dead_letters, letter))

    assert disagreements(now) == []


def test_a_dead_letter_of_a_document_that_was_repaired_since_is_no_difference() -> None:
    letter = {"failed": {"uri": GOOD, "operation": "o", "reason": "once", "attempts": 1}}

    assert disagreements(replace(AGREEING, dead_letters=(*AGREEING.dead_letters, letter))) == []


def test_a_difference_is_told_with_the_history_of_the_document() -> None:
    (line,) = disagreements(without(GOOD, "knowledge_base")(AGREEING))

    assert line.startswith(GOOD)
    assert "00:00:01.000 INDEXED" in line
