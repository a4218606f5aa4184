"""The life cycle of a document: every step, and the invariants after any sequence of steps."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ragstack_common.registry import lifecycle as life
from ragstack_common.registry.catalogue import counted_under
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.lifecycle import EventMarks, Next, Patience, Step
from ragstack_common.registry.receipts import READERS, NotRead, Receipt
from ragstack_common.registry.records import (
    FINAL,
    SEARCHABLE,
    Conversion,
    DocumentRecord,
    Observation,
    Operation,
    OperationKind,
    Status,
)
from tests.support.soak import examples

URI = "s3://bucket/a.txt"
NOW = 1_000_000.0
LEASE = NOW + 60
PATIENCE = Patience()

GONE = Observation()
ONE = Observation('"1"', "v1", 10, 5.0, '"s1"', "sv1", 5.0, {"corpus": "stones"})
TWO = replace(ONE, etag='"2"', version_id="v2", last_modified=6.0, attributes={"corpus": "woods"})
BAD = replace(ONE, sidecar_etag='"bad"', sidecar_version_id="sv2", attributes={}, refusal="The sidecar is no JSON")

NEW = DocumentRecord(URI)


def written(record: DocumentRecord) -> DocumentRecord:
    return replace(record, revision=record.revision + 1)


def operation(kind: OperationKind = OperationKind.INGEST, name: str = "op1") -> Operation:
    return Operation(name, kind, LEASE)


def claimed(observed: Observation = ONE, kind: OperationKind = OperationKind.INGEST) -> DocumentRecord:
    return written(life.claimed(NEW, observed, EventMarks("01", "01"), operation(kind), NOW))


def followed(observed: Observation = ONE, kind: OperationKind = OperationKind.INGEST) -> DocumentRecord:
    return written(life.accepted(claimed(observed, kind), NOW))


def says(status: str, reason: str | None = None, at: float | None = NOW) -> DocumentStatus:
    return DocumentStatus(status, reason, None if at is None else datetime.fromtimestamp(at, UTC))


def ended(record: DocumentRecord, answer: DocumentStatus, now: float = NOW + 1) -> DocumentRecord:
    after, then = decided(record, answer, now)
    assert then is Next.DONE
    return written(after)


WHOLE = Receipt(NOW, READERS, chunks=1, words=5, compared=5, read=5)
WITH_A_PICTURE = replace(WHOLE, not_read=(NotRead("page 2", 0, 0, "it is a picture"),), parts_not_read=1)
NOTHING = replace(WITH_A_PICTURE, chunks=0, words=0, compared=0, read=0)
NOT_COMPARED = Receipt(NOW, READERS, chunks=3, unreadable="it is damaged")


def decided(
    record: DocumentRecord, answer: DocumentStatus, now: float, receipt: Receipt = WHOLE
) -> tuple[DocumentRecord, Next]:
    """Apply an answer, and what the index has of the file if it is compared."""
    after, then = life.answered(record, answer, now, PATIENCE)
    if then is not Next.COMPARE:
        return after, then
    assert after == record, "nothing is written before the comparison"
    return life.compared(record, answer, receipt, now)


CLAIMED = claimed()
DEAD = written(replace(claimed(), operation=replace(operation(), lease_until=NOW - 1)))
DEAD_DELETION = written(
    replace(
        claimed(GONE, OperationKind.DELETE), operation=replace(operation(OperationKind.DELETE), lease_until=NOW - 1)
    )
)
FOLLOWED = followed()
DELETION_FOLLOWED = followed(GONE, OperationKind.DELETE)
WAITING = written(life.put_back(CLAIMED, "Throttled", NOW))
INDEXED = ended(FOLLOWED, says("INDEXED"))
PARTIAL = ended(FOLLOWED, says("PARTIALLY_INDEXED"))
FAILED = written(life.failed(replace(FOLLOWED, in_knowledge_base=False), "It is empty", NOW + 1))
DELETED = ended(DELETION_FOLLOWED, says("NOT_FOUND", at=None))
REFUSED = written(life.failed(NEW, "The sidecar is no JSON", NOW, observed=BAD, marks=EventMarks("01")))

TO_CONVERT = replace(ONE, needs_conversion=True)
CONVERTED = replace(ONE, conversion=Conversion("text 1"))
NOT_CONVERTED = replace(ONE, conversion=Conversion("empty", refusal="It is damaged"))
UNREADABLE = replace(NOT_CONVERTED, refusal="It is damaged")
NEWER_TO_CONVERT = replace(TWO, needs_conversion=True)
CONVERTING = written(life.converting(NEW, TO_CONVERT, EventMarks("01"), NOW))
INDEXED_TEXT = replace(INDEXED, observed=CONVERTED, is_converted=True)

ANY = EventMarks("02")
FORCED = EventMarks(forced=True)

TABLE = [
    # It is new.
    ("new", NEW, ONE, ANY, Step.INGEST),
    ("new", NEW, GONE, ANY, Step.DELETE),
    ("new", NEW, GONE, EventMarks(sidecar_sequencer="02"), Step.NOTHING),
    ("new", NEW, GONE, FORCED, Step.DELETE),
    ("new", NEW, BAD, ANY, Step.FAIL),
    ("new", NEW, TO_CONVERT, ANY, Step.CONVERT),
    # It is converted.
    ("converting", CONVERTING, TO_CONVERT, EventMarks(), Step.CONVERT),
    ("converting", CONVERTING, CONVERTED, EventMarks(), Step.INGEST),
    ("converting", CONVERTING, UNREADABLE, EventMarks(), Step.FAIL),
    ("converting", CONVERTING, GONE, ANY, Step.FORGET),
    ("indexed", INDEXED, NEWER_TO_CONVERT, ANY, Step.CONVERT),
    ("indexed", INDEXED, CONVERTED, ANY, Step.DELETE),
    ("indexed, conversion did not help", INDEXED, NOT_CONVERTED, ANY, Step.INGEST),
    ("indexed text", INDEXED_TEXT, CONVERTED, ANY, Step.NOTE),
    ("indexed text", INDEXED_TEXT, TO_CONVERT, ANY, Step.CONVERT),
    ("indexed text", INDEXED_TEXT, TWO, ANY, Step.DELETE),
    ("indexed text", INDEXED_TEXT, GONE, ANY, Step.DELETE),
    # Another function is calling the knowledge base.
    ("claimed", CLAIMED, ONE, ANY, Step.LATER),
    ("claimed", CLAIMED, GONE, ANY, Step.LATER),
    ("claimed", CLAIMED, TWO, FORCED, Step.LATER),
    # The function that called it was killed.
    ("dead", DEAD, ONE, ANY, Step.INGEST),
    ("dead", DEAD, TWO, ANY, Step.INGEST),
    ("dead", DEAD, GONE, ANY, Step.DELETE),
    ("dead", DEAD, BAD, ANY, Step.DELETE),
    ("dead deletion", DEAD_DELETION, GONE, ANY, Step.DELETE),
    ("dead deletion", DEAD_DELETION, ONE, ANY, Step.INGEST),
    # It is followed.
    ("followed", FOLLOWED, ONE, ANY, Step.NOTE),
    ("followed", FOLLOWED, TWO, ANY, Step.NOTE),
    ("followed", FOLLOWED, GONE, ANY, Step.NOTE),
    ("followed", FOLLOWED, BAD, ANY, Step.NOTE),
    ("deletion followed", DELETION_FOLLOWED, ONE, ANY, Step.NOTE),
    # It waits.
    ("waiting", WAITING, ONE, EventMarks(), Step.INGEST),
    ("waiting", WAITING, TWO, ANY, Step.INGEST),
    ("waiting", WAITING, GONE, ANY, Step.DELETE),
    ("waiting", WAITING, BAD, ANY, Step.DELETE),
    # It is searchable.
    ("indexed", INDEXED, ONE, ANY, Step.NOTE),
    ("indexed", INDEXED, ONE, FORCED, Step.INGEST),
    ("indexed", INDEXED, TWO, ANY, Step.INGEST),
    ("indexed", INDEXED, GONE, ANY, Step.DELETE),
    ("indexed", INDEXED, BAD, ANY, Step.DELETE),
    ("partial", PARTIAL, ONE, ANY, Step.NOTE),
    # It failed.
    ("failed", FAILED, ONE, ANY, Step.NOTE),
    ("failed", FAILED, ONE, EventMarks(), Step.NOTE),
    ("failed", FAILED, ONE, FORCED, Step.INGEST),
    ("failed", FAILED, TWO, ANY, Step.INGEST),
    ("failed", FAILED, GONE, ANY, Step.DELETE),
    ("refused", REFUSED, BAD, ANY, Step.NOTE),
    ("refused", REFUSED, BAD, FORCED, Step.DELETE),
    ("refused", REFUSED, ONE, ANY, Step.INGEST),
    ("refused", REFUSED, GONE, ANY, Step.DELETE),
    # It is gone.
    ("deleted", DELETED, GONE, ANY, Step.NOTE),
    ("deleted", DELETED, GONE, FORCED, Step.DELETE),
    ("deleted", DELETED, ONE, ANY, Step.INGEST),
    ("deleted", DELETED, BAD, ANY, Step.FAIL),
]
NAMES = {
    id(ONE): "one",
    id(TWO): "two",
    id(GONE): "gone",
    id(BAD): "bad",
    id(TO_CONVERT): "to convert",
    id(CONVERTED): "converted",
    id(NOT_CONVERTED): "not converted",
    id(UNREADABLE): "unreadable",
    id(NEWER_TO_CONVERT): "newer to convert",
}


@pytest.mark.parametrize(
    ("record", "observed", "marks", "step"),
    [row[1:] for row in TABLE],
    ids=[
        f"{row[0]}, {NAMES[id(row[2])]}, {row[3].sequencer or 'forced' * row[3].forced or 'nothing said'}"
        for row in TABLE
    ],
)
def test_the_next_step_follows_from_record_and_bucket(
    record: DocumentRecord, observed: Observation, marks: EventMarks, step: Step
) -> None:
    assert life.step_for(record, observed, marks, NOW) is step


ANSWERS = [
    ("INGEST", "INDEXED", Next.DONE, Status.INDEXED),
    ("INGEST", "PARTIALLY_INDEXED", Next.DONE, Status.PARTIALLY_INDEXED),
    ("INGEST", "METADATA_PARTIALLY_INDEXED", Next.DONE, Status.PARTIALLY_INDEXED),
    *(
        ("INGEST", status, Next.CHECK_AGAIN, Status.WAITING)
        for status in ("FAILED", "IGNORED", "METADATA_UPDATE_FAILED")
    ),
    *(
        ("INGEST", status, Next.FOLLOW, Status.INDEXING)
        for status in ("STARTING", "PENDING", "IN_PROGRESS", "DELETING", "DELETE_IN_PROGRESS", "NOT_FOUND", "WHATEVER")
    ),
    ("DELETE", "NOT_FOUND", Next.DONE, Status.DELETED),
    *(
        ("DELETE", status, Next.FOLLOW, Status.DELETING)
        for status in ("DELETING", "DELETE_IN_PROGRESS", "INDEXED", "FAILED", "STARTING", "WHATEVER")
    ),
]


@pytest.mark.parametrize(("kind", "status", "then", "becomes"), ANSWERS, ids=[f"{a[0]} {a[1]}" for a in ANSWERS])
def test_the_status_in_the_knowledge_base_decides_the_next_state(
    kind: str, status: str, then: Next, becomes: Status
) -> None:
    record = FOLLOWED if kind == "INGEST" else DELETION_FOLLOWED

    after, next_ = decided(record, says(status), NOW + 1)

    assert (next_, after.status) == (then, becomes)


@pytest.mark.parametrize(
    ("receipt", "then", "becomes"),
    [
        (WHOLE, Next.DONE, Status.INDEXED),
        (WITH_A_PICTURE, Next.DONE, Status.PARTIALLY_INDEXED),
        (NOT_COMPARED, Next.DONE, Status.PARTIALLY_INDEXED),
        (NOTHING, Next.CHECK_AGAIN, Status.WAITING),
        (replace(NOT_COMPARED, chunks=0), Next.CHECK_AGAIN, Status.WAITING),
    ],
    ids=["everything", "not a picture", "not compared", "nothing", "nothing, not compared"],
)
def test_what_the_index_has_of_the_file_decides_the_final_state(receipt: Receipt, then: Next, becomes: Status) -> None:
    after, next_ = decided(FOLLOWED, says("INDEXED"), NOW + 1, receipt)

    assert (next_, after.status, after.receipt) == (then, becomes, receipt)
    assert after.reason == receipt.reason
    if then is Next.CHECK_AGAIN:
        assert is_to_be_removed(after, next_), "a document of which nothing was read is never found"


def test_a_receipt_ends_with_its_version() -> None:
    again = life.claimed(PARTIAL, TWO, ANY, operation(name="op2"), NOW)

    assert PARTIAL.receipt == WHOLE
    assert again.receipt is None
    assert life.forgotten(PARTIAL, NOW).receipt is None


def test_every_final_status_of_the_service_is_known() -> None:
    import botocore.model  # noqa: PLC0415 - only this test reads the model
    import botocore.session  # noqa: PLC0415 - as above

    model = botocore.session.get_session().get_service_model("bedrock-agent")
    passing = {"STARTING", "PENDING", "IN_PROGRESS", "DELETING", "DELETE_IN_PROGRESS", "NOT_FOUND"}

    shape = model.shape_for("DocumentStatus")
    assert isinstance(shape, botocore.model.StringShape)
    assert set(shape.enum) == set(life.OUTCOMES) | passing


@pytest.mark.parametrize(("status", "kind"), [("NOT_FOUND", "INGEST"), ("INDEXED", "DELETE"), ("FAILED", "DELETE")])
def test_a_lost_operation_is_repeated_a_limited_number_of_times(status: str, kind: str) -> None:
    record = FOLLOWED if kind == "INGEST" else DELETION_FOLLOWED
    late = NOW + PATIENCE.settle_seconds

    after, then = life.answered(record, says(status), late, PATIENCE)
    last, at_last = life.answered(replace(record, attempts=PATIENCE.attempts), says(status), late, PATIENCE)

    assert (then, after.status, after.observed) == (Next.CHECK_AGAIN, Status.WAITING, record.observed)
    assert "after 5 attempts" in str(last.reason)
    if kind == "DELETE":
        assert (at_last, last.status) == (Next.DONE, Status.FAILED)
    else:
        assert is_to_be_removed(last, at_last)


@pytest.mark.parametrize("reason", ["Throttled, try again", "The request timed out", "Service unavailable"])
def test_a_transient_failure_is_repeated_a_limited_number_of_times(reason: str) -> None:
    after, then = life.answered(FOLLOWED, says("FAILED", reason), NOW + 1, PATIENCE)
    last, at_last = life.answered(replace(FOLLOWED, attempts=5), says("FAILED", reason), NOW + 1, PATIENCE)

    assert (then, after.status, after.observed) == (Next.CHECK_AGAIN, Status.WAITING, FOLLOWED.observed)
    assert is_to_be_removed(last, at_last)


def is_to_be_removed(record: DocumentRecord, then: Next) -> bool:
    observed = life.with_known_refusal(written(record), ONE)
    return then is Next.CHECK_AGAIN and life.step_for(written(record), observed, EventMarks(), NOW + 2) is Step.DELETE


@pytest.mark.parametrize("kind", ["INGEST", "DELETE"])
def test_a_document_without_a_final_status_fails_in_time(kind: str) -> None:
    record = FOLLOWED if kind == "INGEST" else DELETION_FOLLOWED
    end = NOW + PATIENCE.give_up_seconds
    unfinished = says("IN_PROGRESS" if kind == "INGEST" else "DELETE_IN_PROGRESS")

    assert life.answered(record, unfinished, end - 1, PATIENCE) == (record, Next.FOLLOW)
    after, then = life.answered(record, unfinished, end, PATIENCE)

    assert (then, after.status) == (Next.DONE, Status.FAILED)
    assert after.reason
    assert "6.0 hours" in after.reason


@pytest.mark.parametrize("kind", ["INGEST", "DELETE"])
def test_a_status_that_is_not_known_is_shown_until_a_final_one_comes(kind: str) -> None:
    record = FOLLOWED if kind == "INGEST" else DELETION_FOLLOWED
    final = says("INDEXED" if kind == "INGEST" else "NOT_FOUND")
    later = NOW + PATIENCE.settle_seconds

    shown, then = life.answered(record, says("TEXT_INDEXED"), later, PATIENCE)
    again = life.answered(written(shown), says("TEXT_INDEXED"), later + 1, PATIENCE)
    ended, end = decided(written(shown), final, later + 2)

    assert (then, shown.status) == (Next.FOLLOW, record.status)
    assert "TEXT_INDEXED" in str(shown.reason)
    assert again == (written(shown), Next.FOLLOW), "nothing is written twice"
    assert (end, ended.status, ended.reason) == (
        Next.DONE,
        Status.INDEXED if kind == "INGEST" else Status.DELETED,
        None,
    )


def test_a_status_that_is_not_known_never_becomes_a_final_one() -> None:
    after, then = life.answered(FOLLOWED, says("TEXT_INDEXED"), NOW + PATIENCE.give_up_seconds, PATIENCE)

    assert (then, after.status) == (Next.DONE, Status.FAILED)
    assert "still reports TEXT_INDEXED" in str(after.reason)


@pytest.mark.parametrize("status", ["INDEXED", "FAILED", "IN_PROGRESS"])
def test_a_document_changed_during_its_operation_is_checked_again(status: str) -> None:
    changed = written(life.noted(FOLLOWED, TWO, ANY, NOW))

    after, then = life.answered(changed, says(status), NOW + PATIENCE.give_up_seconds, PATIENCE)

    assert changed.again
    assert (then, after.status, after.sequencer) == (Next.CHECK_AGAIN, Status.WAITING, "02")


def test_a_status_from_before_the_operation_does_not_end_it() -> None:
    again = written(life.claimed(INDEXED, TWO, ANY, operation(name="op2"), NOW + 5))
    again = written(life.accepted(again, NOW + 5))

    old = life.answered(again, says("INDEXED", at=NOW), NOW + 6, PATIENCE)
    new = life.answered(again, says("INDEXED", at=NOW + 5.5), NOW + 6, PATIENCE)
    late = life.answered(again, says("INDEXED", at=NOW), NOW + 5 + PATIENCE.settle_seconds, PATIENCE)

    assert old == (again, Next.FOLLOW)
    assert (new[1], late[1]) == (Next.COMPARE, Next.COMPARE)


@pytest.mark.parametrize("between", [TWO, GONE, BAD], ids=["other content", "nothing", "a bad sidecar"])
@pytest.mark.parametrize("before", [FOLLOWED, INDEXED], ids=["followed", "indexed"])
def test_the_same_bytes_in_another_version_are_submitted_again(before: DocumentRecord, between: Observation) -> None:
    """The knowledge base may have read what lay there in between."""
    back = replace(ONE, version_id="v3", last_modified=7.0)

    step = life.step_for(before, back, ANY, NOW)
    after = life.noted(before, back, ANY, NOW)

    assert not back.is_the_same_as(ONE)
    assert step is Step.INGEST or after.again
    assert not back.is_the_same_as(between)


def test_a_failed_overwrite_removes_the_earlier_version() -> None:
    again = written(life.claimed(INDEXED, TWO, ANY, operation(name="op2"), NOW))
    again = written(life.accepted(again, NOW))

    waiting, then = decided(again, says("FAILED", "It is empty", NOW + 1), NOW + 2)
    observed = life.with_known_refusal(waiting, TWO)

    assert (then, waiting.status) == (Next.CHECK_AGAIN, Status.WAITING)
    assert life.step_for(written(waiting), observed, EventMarks(), NOW + 3) is Step.DELETE
    deleting = life.claimed(written(waiting), observed, EventMarks(), operation(OperationKind.DELETE, "op3"), NOW + 3)
    failed = ended(written(life.accepted(written(deleting), NOW + 3)), says("NOT_FOUND", at=None), NOW + 4)
    assert failed.status is Status.FAILED
    assert "It is empty" in str(failed.reason)
    assert not failed.in_knowledge_base
    assert failed.counted == ()
    assert life.step_for(failed, TWO, FORCED, NOW + 5) is Step.INGEST


def test_attempts_count_submissions_of_the_same_version() -> None:
    second = life.claimed(WAITING, ONE, EventMarks(), operation(name="op2"), NOW)
    other = life.claimed(WAITING, TWO, ANY, operation(name="op2"), NOW)
    after_the_end = life.claimed(FAILED, ONE, FORCED, operation(name="op2"), NOW)

    assert (CLAIMED.attempts, second.attempts, other.attempts, after_the_end.attempts) == (1, 2, 1, 1)


def test_received_at_is_the_time_of_the_event_that_led_to_the_state() -> None:
    later = life.claimed(WAITING, ONE, EventMarks(), operation(name="op2"), NOW + 100)
    changed = life.claimed(WAITING, TWO, ANY, operation(name="op2"), NOW + 100)

    assert (later.received_at, changed.received_at) == (NOW, NOW + 100)


SEQUENCERS = ["", "00", "01", "0055AED6DCD90281E5", "0055AED6DCD90281E6", "0056AA", "0055AA", "00A", "00B0", "00a1"]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("0055AED6DCD90281E5", "0055AED6DCD90281E6"),
        ("0055", "0056AA"),
        ("0055AA", "0056"),
        ("", "0001"),
        ("00A", "00B0"),
        ("00a", "00B"),
    ],
)
def test_sequencers_of_any_length_are_ordered(older: str, newer: str) -> None:
    assert life.is_newer(newer, older)
    assert not life.is_newer(older, newer)


@pytest.mark.parametrize(("one", "other"), [("", ""), ("00A", "00A0"), ("ab", "AB"), ("", "0")])
def test_equal_sequencers_are_neither_newer(one: str, other: str) -> None:
    assert not life.is_newer(one, other)
    assert not life.is_newer(other, one)


KNOWN = [
    ("final, the same event", INDEXED, EventMarks("01"), True),
    ("final, an older one", replace(INDEXED, sequencer="05"), EventMarks("03"), True),
    ("final, a newer one", INDEXED, EventMarks("02"), False),
    ("final, a newer one of the sidecar", INDEXED, EventMarks("01", "02"), False),
    ("final, an old one of the sidecar", INDEXED, EventMarks(sidecar_sequencer="01"), True),
    ("final, forced", INDEXED, EventMarks("01", forced=True), False),
    ("final, nothing said", INDEXED, EventMarks(), False),
    ("followed, the same event", FOLLOWED, EventMarks("01"), True),
    ("followed, a newer one", FOLLOWED, EventMarks("02"), False),
    ("deleted, from before", replace(DELETED, sequencer="09"), EventMarks("08"), True),
    ("claimed, the same event", CLAIMED, EventMarks("01"), False),
    ("waiting, the same event", WAITING, EventMarks("01"), False),
    ("dead, the same event", DEAD, EventMarks("01"), False),
    ("new", NEW, EventMarks("01"), False),
]


@pytest.mark.parametrize(("record", "marks", "known"), [row[1:] for row in KNOWN], ids=[row[0] for row in KNOWN])
def test_an_event_without_news_is_known(record: DocumentRecord, marks: EventMarks, known: bool) -> None:
    assert life.is_known(record, marks) is known


STATUSES = [*life.OUTCOMES, "STARTING", "PENDING", "IN_PROGRESS", "DELETING", "DELETE_IN_PROGRESS", "NOT_FOUND"]
OBSERVATIONS = [GONE, ONE, TWO, BAD, replace(ONE, version_id="v4"), replace(BAD, version_id="v5")]


class Life(RuleBasedStateMachine):
    """One document, handled by functions in any order of events."""

    def __init__(self) -> None:
        super().__init__()
        self.record = NEW
        self.before = NEW
        self.now = NOW
        self.operations = 0

    def become(self, after: DocumentRecord) -> None:
        self.before, self.record = self.record, written(after)

    @rule(seconds=st.sampled_from([0.5, 30.0, 61.0, 7 * 3600.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(
        observed=st.sampled_from(OBSERVATIONS),
        marks=st.builds(EventMarks, st.sampled_from(SEQUENCERS), st.sampled_from(SEQUENCERS), st.booleans()),
    )
    def it_is_looked_at(self, observed: Observation, marks: EventMarks) -> None:
        record = self.record
        if life.is_known(record, marks):
            assert record.is_final or record.is_followed
            return
        observed = life.with_known_refusal(record, observed)
        match life.step_for(record, observed, marks, self.now):
            case Step.LATER:
                assert record.is_claimed(self.now)
            case Step.NOTHING:
                assert record.revision == 0
            case Step.NOTE:
                self.become(life.noted(record, observed, marks, self.now))
                assert self.record.status is record.status
            case Step.FAIL:
                assert not record.in_knowledge_base
                self.become(life.failed(record, str(observed.refusal), self.now, observed=observed, marks=marks))
            case Step.FORGET:
                assert not record.in_knowledge_base
                self.become(life.forgotten(record, self.now, marks))
            case Step.INGEST | Step.DELETE as step:
                self.operations += 1
                kind = OperationKind.INGEST if step is Step.INGEST else OperationKind.DELETE
                assert kind is OperationKind.DELETE or observed.is_present
                made = Operation(str(self.operations), kind, self.now + 60)
                self.become(life.claimed(record, observed, marks, made, self.now))
                assert self.record.is_claimed(self.now)

    @precondition(lambda self: self.record.is_claimed(self.now))
    @rule()
    def it_is_accepted(self) -> None:
        self.become(life.accepted(self.record, self.now))
        assert self.record.is_followed

    @precondition(lambda self: self.record.is_claimed(self.now))
    @rule()
    def its_call_fails(self) -> None:
        self.become(life.put_back(self.record, "ThrottlingException", self.now))

    @precondition(lambda self: self.record.is_claimed(self.now))
    @rule()
    def it_is_refused(self) -> None:
        self.become(life.refused(self.record, "It is empty", self.now))

    @precondition(lambda self: self.record.status is Status.WAITING and self.record.revision)
    @rule()
    def it_is_given_up(self) -> None:
        self.become(life.failed(self.record, "Given up", self.now))

    @precondition(lambda self: self.record.is_followed)
    @rule(
        status=st.sampled_from(STATUSES),
        reason=st.sampled_from([None, "Throttled", "Empty"]),
        old=st.booleans(),
        receipt=st.sampled_from([WHOLE, WITH_A_PICTURE, NOT_COMPARED, NOTHING]),
    )
    def the_knowledge_base_answers(self, status: str, reason: str | None, old: bool, receipt: Receipt) -> None:
        at = self.record.knowledge_base_updated_at if old else self.now
        after, then = decided(self.record, says(status, reason, at), self.now, receipt)
        match then:
            case Next.FOLLOW:
                assert after == self.record
            case Next.CHECK_AGAIN:
                assert after.status is Status.WAITING
                self.become(after)
            case Next.DONE:
                assert after.is_final
                assert not self.record.again, "a change must be checked"
                self.become(after)

    @invariant()
    def an_unfinished_document_waits_or_has_an_operation(self) -> None:
        if self.record.status not in FINAL:
            assert self.record.operation is not None or self.record.status is Status.WAITING
        assert self.record.status is not Status.UPLOADED

    @invariant()
    def a_failure_has_a_reason(self) -> None:
        if self.record.status is Status.FAILED:
            assert self.record.reason

    @invariant()
    def only_what_was_compared_and_found_is_indexed(self) -> None:
        if self.record.status in SEARCHABLE:
            assert self.record.receipt is not None
            assert not self.record.receipt.is_empty
            assert (self.record.status is Status.INDEXED) <= self.record.receipt.is_complete

    @invariant()
    def the_catalogue_counts_searchable_versions(self) -> None:
        """While another version is on its way, it counts the version that is still found."""
        match self.record.status:
            case status if status in SEARCHABLE:
                assert self.record.counted == counted_under(self.record.observed.attributes)
                assert self.record.observed.is_present
            case Status.FAILED | Status.DELETED:
                assert self.record.counted == ()
            case _:
                assert self.record.counted == self.before.counted

    @invariant()
    def sequencers_never_go_back(self) -> None:
        assert not life.is_newer(self.before.sequencer, self.record.sequencer)
        assert not life.is_newer(self.before.sidecar_sequencer, self.record.sidecar_sequencer)

    @invariant()
    def only_a_document_on_its_way_is_checked_again(self) -> None:
        assert self.record.is_followed or self.record.status is Status.WAITING or not self.record.again

    @invariant()
    def only_deleted_documents_expire(self) -> None:
        assert (self.record.expires_at is not None) == (self.record.status is Status.DELETED)

    @invariant()
    def a_final_state_has_a_time(self) -> None:
        assert (self.record.finished_at is not None) == self.record.is_final
        if self.record.revision:
            assert self.record.created_at == NOW or self.record.created_at > NOW
            assert self.record.history[-1].status is self.record.status
            assert self.record.history[-1].reason == self.record.reason
        assert len(self.record.history) <= life.TRANSITIONS_KEPT

    @invariant()
    def a_deleted_document_leaves_nothing(self) -> None:
        if self.record.status is Status.DELETED:
            assert not self.record.in_knowledge_base
            assert not self.record.observed.is_present


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=examples(150), stateful_step_count=25, deadline=None)


def test_what_the_parser_reads_in_part_is_converted_once() -> None:
    partial, then = life.compared(FOLLOWED, says("INDEXED"), WITH_A_PICTURE, NOW, converts=True)
    assert (partial.status, partial.convert, then) == (Status.WAITING, ONE.etag, Next.CHECK_AGAIN)

    followed_again = replace(FOLLOWED, convert=ONE.etag)
    again, then = life.compared(followed_again, says("INDEXED"), WITH_A_PICTURE, NOW, converts=True)
    assert (again.status, then) == (Status.PARTIALLY_INDEXED, Next.DONE)

    other_version = replace(FOLLOWED, convert="of another version")
    assert life.compared(other_version, says("FAILED"), NOTHING, NOW, converts=True)[0].convert == ONE.etag


@pytest.mark.parametrize(("receipt", "converts"), [(WHOLE, True), (WITH_A_PICTURE, False)])
def test_what_is_read_or_cannot_be_read_better_is_not_converted(receipt: Receipt, converts: bool) -> None:
    after, then = life.compared(FOLLOWED, says("INDEXED"), receipt, NOW, converts=converts)

    assert after.convert is None
    assert then is Next.DONE


def test_a_document_is_removed_in_one_form_before_it_is_indexed_in_the_other() -> None:
    removed = followed(CONVERTED, OperationKind.DELETE)

    after, then = life.answered(removed, says("NOT_FOUND", at=None), NOW + 1, PATIENCE)

    assert (after.status, after.in_knowledge_base, then) == (Status.WAITING, False, Next.CHECK_AGAIN)
    assert life.step_for(written(after), CONVERTED, EventMarks(), NOW + 1) is Step.INGEST
