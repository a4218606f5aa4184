"""Operators list, replay and discard what failed."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from ragstack_common.api import dead_letters
from ragstack_common.api.failures import DISCARDED
from ragstack_common.ingestion.messages import look
from ragstack_common.reconciliation.messages import JobMessage
from ragstack_common.registry.coordination import Gate
from ragstack_common.registry.jobs import FULL, RECONCILE, Job, JobKind, JobStatus, JobStore
from ragstack_common.registry.records import Status
from ragstack_common.registry.snapshot import SNAPSHOT_MESSAGE
from tests.ragstack_common.api.conftest import BUCKET, Aws, Call, error_of
from tests.support.registry_table import TABLE

PATH = "/api/failures"
REPLAY = "/api/failures/replay"
DISCARD = "/api/failures/discard"
UNKNOWN_JOB = "20260101T000000000-01234567"
HOUR = 3600.0


@pytest.fixture(autouse=True)
def _without_long_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moto's queue has one server, so an empty answer is always true."""
    monkeypatch.setattr(dead_letters, "WAIT_SECONDS", 0)


def uri(name: str) -> str:
    return f"s3://{BUCKET}/{name}"


def bury(aws: Aws, *bodies: str, cause: str | None = None) -> list[str]:
    """Put messages into the dead-letter queue; return their ids."""
    attributes: Any = {"Cause": {"DataType": "String", "StringValue": cause}} if cause else {}
    send = aws.sqs.send_message
    return [
        send(QueueUrl=aws.dead_letter_url, MessageBody=body, MessageAttributes=attributes)["MessageId"]
        for body in bodies
    ]


def drain(aws: Aws, url: str) -> list[str]:
    """Receive every message that is visible now."""
    bodies: list[str] = []
    while messages := aws.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=600).get(
        "Messages"
    ):
        bodies += [message["Body"] for message in messages]
    return bodies


def remaining(aws: Aws) -> list[str]:
    return sorted(drain(aws, aws.dead_letter_url))


def sent(aws: Aws) -> list[str]:
    """Receive which documents were sent to the ingestion queue."""
    looks = [json.loads(body) for body in drain(aws, aws.ingestion_url)]
    assert all(each["forced"] for each in looks)
    return sorted(name for each in looks for name in each["look"])


def sent_jobs(aws: Aws) -> list[dict[str, Any]]:
    return [json.loads(body) for body in drain(aws, aws.jobs_url)]


def create(aws: Aws, kind: JobKind = RECONCILE, *, age_seconds: float = 0.0, **changes: Any) -> Job:
    jobs = JobStore(TABLE, aws.dynamodb, clock=lambda: time.time() - age_seconds)
    job = jobs.create(kind, "api")
    if changes:
        assert jobs.write(job, replace(job, **changes))
    return jobs.get(job.id)


def about(job: Job | str, step: int = 0, failures: int = 0) -> str:
    return JobMessage(job_id=job if isinstance(job, str) else job.id, step=step, failures=failures).body


@contextmanager
def calling_back(aws: Aws, operation: str, happens: Callable[..., Any]) -> Iterator[None]:
    """Call *happens* before each call of one operation of SQS."""
    event = f"before-call.sqs.{operation}"
    aws.sqs.meta.events.register(event, happens)
    try:
        yield
    finally:
        aws.sqs.meta.events.unregister(event, happens)


def test_each_document_is_listed_once_with_the_reasons_of_the_registry_and_of_its_dead_letters(
    aws: Aws, call: Call
) -> None:
    aws.record("both.md", Status.FAILED, reason="The file is empty.", attempts=1)
    aws.record("alone.md", Status.FAILED, reason="Rate exceeded (after 5 attempts)")
    aws.record("fixed.md", Status.INDEXED)
    aws.record("fine.md", Status.INDEXED)
    told = {"failed": {"uri": uri("both.md"), "operation": "o", "reason": "The file is empty.", "attempts": 1}}
    ids = bury(aws, json.dumps(told)) + bury(aws, look([uri("both.md")]), cause="arn:aws:iam::123456789012:role/x")
    bury(aws, look([uri("buried.md"), uri("fixed.md")]))

    status, answer = call("GET", PATH)

    found = {document["uri"]: document for document in answer["documents"]}
    both, alone = found[uri("both.md")], found[uri("alone.md")]
    assert status == 200
    assert set(found) == {uri(name) for name in ("both.md", "alone.md", "buried.md", "fixed.md")}
    assert both["reasons"] == ["The file is empty.", "[arn]"]
    assert (both["status"], both["attempts"], set(both["message_ids"])) == ("FAILED", 1, set(ids))
    assert (alone["status"], alone["message_ids"]) == ("FAILED", [])
    assert (found[uri("buried.md")]["status"], found[uri("buried.md")]["actions"]) == ("UNKNOWN", ["replay"])
    assert found[uri("fixed.md")]["advice"] == "The document is INDEXED now: replay clears its dead letters"


@pytest.mark.parametrize(
    ("reason", "words", "actions"),
    [
        ("The sidecar cannot be used: it is not JSON", "Fix the sidecar", []),
        ("AccessDeniedException: not authorized to perform s3:GetObject", "Grant the missing permission", ["replay"]),
        ("No final status after 6.0 hours: the knowledge base still says PENDING", "The cause may be", ["replay"]),
        ("The file type .png is not supported", "Fix the file", []),
        (None, "Fix the file", []),
    ],
)
def test_the_advice_follows_from_the_reason(
    aws: Aws, call: Call, reason: str | None, words: str, actions: list[str]
) -> None:
    aws.record("failed.md", Status.FAILED, reason=reason)

    (document,) = call("GET", PATH)[1]["documents"]

    assert document["advice"].startswith(words)
    assert document["actions"] == actions


def test_failed_documents_come_in_pages_and_dead_letters_on_the_first(aws: Aws, call: Call) -> None:
    for number in range(5):
        aws.record(f"{number}.md", Status.FAILED, reason="x")
    bury(aws, "not JSON")

    first = call("GET", PATH, limit="3")[1]
    second = call("GET", PATH, limit="3", next_token=first["next_token"])[1]

    listed = [document["uri"] for page in (first, second) for document in page["documents"]]
    assert listed == [uri(f"{number}.md") for number in range(5)]
    assert [len(page["unreadable"]) for page in (first, second)] == [1, 0]
    assert second["next_token"] is None


def test_messages_become_visible_again_after_an_error(aws: Aws, call: Call) -> None:
    bury(aws, look([uri("a.md")]))
    aws.dynamodb.delete_table(TableName=TABLE)

    assert error_of(call("GET", PATH)) == (502, "Registry")
    assert len(remaining(aws)) == 1


def test_what_does_not_fit_into_one_answer_is_reported(aws: Aws, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "MAX_CHARACTERS", 100)
    bury(aws, *(f"not JSON {number:03}" * 5 for number in range(15)))

    answer = call("GET", PATH)[1]

    assert len(answer["unreadable"]) == 10
    assert answer["complete"] is False


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (look(["s3://b/a", "s3://b/c"]), ["s3://b/a", "s3://b/c"]),
        (json.dumps({"follow": [["s3://b/a", "op"]], "checks": 3}), ["s3://b/a"]),
        (json.dumps({"failed": {"uri": "s3://b/a", "operation": None, "reason": "x", "attempts": 1}}), ["s3://b/a"]),
        (json.dumps({"Event": "s3:TestEvent"}), []),
        (json.dumps({"hello": 1}), []),
        ("not JSON", []),
        ("[]", []),
        (json.dumps({"look": [None]}), []),
    ],
    ids=str,
)
def test_a_message_names_its_documents_or_is_unreadable(aws: Aws, call: Call, body: str, names: list[str]) -> None:
    (message_id,) = bury(aws, body, cause="a cause")

    answer = call("GET", PATH)[1]

    assert [document["uri"] for document in answer["documents"]] == names
    assert all(document["reasons"] == ["a cause"] for document in answer["documents"])
    assert [message["message_id"] for message in answer["unreadable"]] == ([] if names else [message_id])
    assert [message["body"] for message in answer["unreadable"]] == ([] if names else [body])


@pytest.mark.parametrize(
    ("kind", "status", "reason", "words", "actions"),
    [
        (RECONCILE, "QUEUED", None, "The job has not ended", ["replay"]),
        (FULL, "RUNNING", "Could not connect", "The job has not ended", ["replay"]),
        (RECONCILE, "COMPLETE", None, "Nothing is left to do", ["discard"]),
        (FULL, "FAILED", "Given up", "The job does not continue", ["reconcile", "discard"]),
        (RECONCILE, "INCOMPLETE", "No time", "The job does not continue", ["reconcile", "discard"]),
    ],
)
def test_a_job_is_listed_with_its_status_and_what_to_do(
    aws: Aws, call: Call, kind: JobKind, status: JobStatus, reason: str | None, words: str, actions: list[str]
) -> None:
    job = create(aws, kind, status=status, reason=reason)
    (message_id,) = bury(aws, about(job), cause="a cause")

    (found,) = call("GET", PATH)[1]["jobs"]

    assert (found["job_id"], found["kind"], found["status"], found["by"]) == (job.id, kind, status, "api")
    assert found["reasons"] == ([reason, "a cause"] if reason else ["a cause"])
    assert found["message_ids"] == [message_id]
    assert found["advice"].startswith(words)
    assert found["actions"] == actions


def test_a_job_that_was_never_started_is_listed_until_one_has_run(aws: Aws, call: Call) -> None:
    bury(aws, JobMessage(kind=RECONCILE, by="schedule").body)

    (before,) = call("GET", PATH)[1]["jobs"]
    job = create(aws, status="COMPLETE")
    (after,) = call("GET", PATH)[1]["jobs"]

    assert (before["job_id"], before["status"], before["by"]) == (None, "NOT_STARTED", "schedule")
    assert before["actions"] == ["replay"]
    assert (after["job_id"], after["status"], after["actions"]) == (job.id, "COMPLETE", ["discard"])


def test_a_snapshot_that_was_not_written_is_replayed(aws: Aws, call: Call) -> None:
    bury(aws, SNAPSHOT_MESSAGE, cause="S3 did not answer")

    (failure,) = call("GET", PATH)[1]["jobs"]
    status, answer = call("POST", REPLAY)

    assert (failure["job_id"], failure["kind"], failure["actions"]) == (None, "snapshot", ["replay"])
    assert (status, answer["deleted"]) == (200, 1)
    assert remaining(aws) == []


def test_a_replay_sends_each_document_once_and_deletes_its_messages(aws: Aws, call: Call) -> None:
    names = [uri(f"{number:02}.md") for number in range(25)]
    aws.record("00.md", Status.FAILED, reason="x")
    bury(aws, *(look([name]) for name in names), look(names[:3]))

    status, answer = call("POST", REPLAY)

    replayed = {document["uri"]: document["updated_at"] for document in answer["documents"]}
    assert (status, answer["deleted"], answer["next_token"]) == (200, 26, None)
    assert sorted(replayed) == names
    assert replayed[names[0]] == "2026-02-02T02:40:01.500Z"
    assert replayed[names[1]] is None
    assert set(sent(aws)) == set(names)
    assert remaining(aws) == []


def test_what_fails_again_during_a_replay_stays(aws: Aws, call: Call) -> None:
    names = [uri(f"{number:02}.md") for number in range(25)]
    bury(aws, *(look([name]) for name in names))

    def fails_at_once(**_: Any) -> None:
        bury(aws, look(names[:1]))

    with calling_back(aws, "SendMessageBatch", fails_at_once):
        answer = call("POST", REPLAY)[1]

    assert answer["deleted"] == 25
    assert set(remaining(aws)) == {look(names[:1])}


def test_a_long_replay_continues_with_its_token(aws: Aws, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "MAX_CHARACTERS", 100)
    names = [uri(f"{number:02}.md") for number in range(25)]
    bury(aws, *(look([name]) for name in names))

    first = call("POST", REPLAY, {})[1]
    again = look([uri("fails-again.md")])
    time.sleep(0.01)
    bury(aws, again)
    answers = [first]
    while token := answers[-1]["next_token"]:
        answers.append(call("POST", REPLAY, {"next_token": token})[1])

    assert sorted(document["uri"] for answer in answers for document in answer["documents"]) == names
    assert sum(answer["deleted"] for answer in answers) == 25
    assert remaining(aws) == [again]


def test_only_the_chosen_documents_are_sent_and_shared_messages_stay(aws: Aws, call: Call) -> None:
    a, b, c = (uri(f"{name}.md") for name in "abc")
    bury(aws, look([a]), look([a, b]), look([c]), "not JSON")

    answer = call("POST", REPLAY, {"documents": [a]})[1]

    assert sent(aws) == [a]
    assert (answer["deleted"], answer["shared"], answer["unreadable"]) == (1, 1, 1)
    assert remaining(aws) == sorted([look([a, b]), look([c]), "not JSON"])


def test_failed_documents_without_a_message_are_sent_by_name_or_all(aws: Aws, call: Call) -> None:
    named, other = uri("named.md"), uri("other.md")
    aws.record("named.md", Status.FAILED)
    aws.record("other.md", Status.FAILED)

    replays = [call("POST", REPLAY, body)[1] for body in ({}, {"documents": [named]}, {"failed": True})]

    assert [[document["uri"] for document in answer["documents"]] for answer in replays] == [
        [],
        [named],
        [named, other],
    ]
    assert sent(aws) == [named, named, other]


@pytest.mark.parametrize("operation", ["SendMessageBatch", "DeleteMessageBatch"])
def test_a_kill_at_any_step_leaves_a_message_too_many_and_never_one_too_few(
    aws: Aws, call: Call, operation: str
) -> None:
    names = [uri(f"{name}.md") for name in "abc"]
    bury(aws, *(look([name]) for name in names))

    def killed(**_: Any) -> None:
        raise KeyboardInterrupt

    with calling_back(aws, operation, killed), pytest.raises(KeyboardInterrupt):
        call("POST", REPLAY)

    left = {name for body in remaining(aws) for name in json.loads(body)["look"]}
    assert left == set(names)
    assert sent(aws) == ([] if operation == "SendMessageBatch" else names)


@pytest.mark.parametrize("body", [look([uri("a.md")]), None], ids=["document", "job"])
def test_what_a_queue_does_not_take_keeps_its_message(aws: Aws, call: Call, body: str | None) -> None:
    bury(aws, body or about(create(aws)))
    aws.sqs.delete_queue(QueueUrl=aws.ingestion_url if body else aws.jobs_url)

    assert error_of(call("POST", REPLAY)) == (502, "Delivery")
    assert len(remaining(aws)) == 1


def test_an_unknown_name_is_reported_and_nothing_is_sent(aws: Aws, call: Call) -> None:
    aws.record("known.md", Status.FAILED)
    aws.put("in-bucket.md")
    bury(aws, look([uri("buried.md")]))
    job = create(aws)
    known = [uri(name) for name in ("known.md", "in-bucket.md", "buried.md")]

    strange = [uri("strange.md"), "s3://other/x.md"]
    refused = call("POST", REPLAY, {"documents": known + strange, "jobs": [job.id]})

    assert error_of(refused) == (404, "NotKnown")
    assert f"knows {job.id}, {uri('strange.md')}, s3://other/x.md; nothing was sent" in refused[1]["error"]["message"]
    assert sent(aws) == []
    assert call("POST", REPLAY, {"documents": known})[0] == 200
    assert sent(aws) == sorted(known)


def test_a_sidecar_is_not_replayed(aws: Aws, call: Call) -> None:
    aws.put("a.md.metadata.json")

    refused = call("POST", REPLAY, {"documents": [uri("a.md.metadata.json")]})

    assert error_of(refused) == (400, "InvalidRequest")
    assert f"name its document, {uri('a.md')}" in refused[1]["error"]["message"]
    assert sent(aws) == []


@pytest.mark.parametrize("status", ["QUEUED", "RUNNING"])
def test_a_job_that_has_not_ended_is_sent_once_at_its_current_step(aws: Aws, call: Call, status: JobStatus) -> None:
    job = create(aws, FULL, status=status, step=3)
    bury(aws, about(job, step=2, failures=2), about(job, step=3), look([uri("a.md")]))

    answer = call("POST", REPLAY)[1]

    assert sent_jobs(aws) == [{"job": job.id, "step": 3, "failures": 0}]
    assert [(each["job_id"], each["status"], each["sent"]) for each in answer["jobs"]] == [(job.id, status, True)]
    assert answer["deleted"] == 3
    assert sent(aws) == [uri("a.md")]
    assert remaining(aws) == []


@pytest.mark.parametrize("status", ["COMPLETE", "INCOMPLETE", "FAILED", None])
def test_a_job_that_has_ended_or_is_forgotten_is_not_sent_and_its_message_is_deleted(
    aws: Aws, call: Call, status: JobStatus | None
) -> None:
    name = create(aws, status=status).id if status else UNKNOWN_JOB
    bury(aws, about(name))

    (job,) = call("POST", REPLAY)[1]["jobs"]

    assert (job["job_id"], job["status"], job["sent"]) == (name, status or "FORGOTTEN", False)
    assert sent_jobs(aws) == []
    assert remaining(aws) == []


@pytest.mark.parametrize(
    ("status", "age_seconds", "is_sent"),
    [
        (None, 0.0, True),
        ("QUEUED", 0.0, True),  # its own message may never have been sent: a start sends it
        ("RUNNING", HOUR, False),
        ("COMPLETE", -HOUR, False),
        ("COMPLETE", HOUR, True),
        ("FAILED", -HOUR, True),
    ],
)
def test_a_start_is_sent_unless_such_a_job_runs_or_has_run_since(
    aws: Aws, call: Call, status: JobStatus | None, age_seconds: float, is_sent: bool
) -> None:
    if status:
        create(aws, age_seconds=age_seconds, status=status)
    start = JobMessage(kind=RECONCILE, by="schedule").body
    bury(aws, start, start)

    answer = call("POST", REPLAY)[1]

    assert sent_jobs(aws) == ([{"start": "reconcile", "by": "schedule"}] if is_sent else [])
    assert answer["deleted"] == 2
    assert [job["sent"] for job in answer["jobs"]] == [is_sent]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        (REPLAY, {"documents": [uri("a.md")], "failed": True}, "failed"),
        (REPLAY, {"next_token": "nonsense"}, "next_token"),
    ],
)
def test_an_invalid_request_names_the_member(aws: Aws, call: Call, path: str, body: Any, words: str) -> None:
    answer = call("POST", path, body)

    assert error_of(answer) == (400, "InvalidRequest")
    assert words in answer[1]["error"]["message"]


def discard(call: Call, *message_ids: str, **options: bool) -> dict[str, Any]:
    status, answer = call("POST", DISCARD, {"message_ids": [*message_ids], **options})
    assert status == 200, answer
    return dict(answer)


def notes(call: Call, *message_ids: str) -> list[list[str]]:
    found = {each["message_id"]: each["notes"] for each in discard(call, *message_ids, dry_run=True)["messages"]}
    return [found[name] for name in message_ids]


def test_only_the_named_messages_are_deleted(aws: Aws, call: Call) -> None:
    first, _, third = bury(aws, look(["s3://b/a"]), look(["s3://b/b"]), "not JSON")

    answer = discard(call, first, third)

    assert {message["message_id"] for message in answer["messages"]} == {first, third}
    assert remaining(aws) == [look(["s3://b/b"])]


def test_unreadable_messages_are_deleted_and_no_other(aws: Aws, call: Call) -> None:
    readable = [look(["s3://b/a"]), about(create(aws)), JobMessage(kind=RECONCILE, by="schedule").body]
    bury(aws, *readable, *(f"not JSON {number}" for number in range(12)), '{"Event": "s3:TestEvent"}')

    answer = discard(call, unreadable=True)

    assert len(answer["messages"]) == 13
    assert remaining(aws) == sorted(readable)


def test_a_dry_run_returns_the_messages_and_deletes_nothing(aws: Aws, call: Call) -> None:
    job = create(aws, FULL, status="RUNNING")
    (message_id,) = bury(aws, about(job), cause="a cause")

    answer = discard(call, message_id, dry_run=True)

    (message,) = answer["messages"]
    assert (message["body"], message["cause"], answer["ended_jobs"]) == (about(job), "a cause", [])
    assert JobStore(TABLE, aws.dynamodb).get(job.id).status == "RUNNING"
    assert remaining(aws) == [about(job)]


def test_if_a_message_is_not_in_the_queue_nothing_is_deleted(aws: Aws, call: Call) -> None:
    (there,) = bury(aws, "x")

    answer = call("POST", DISCARD, {"message_ids": [there, "nowhere"]})

    assert error_of(answer) == (404, "NotKnown")
    assert "message nowhere now; nothing was discarded" in answer[1]["error"]["message"]
    assert remaining(aws) == ["x"]


def test_the_notes_say_what_stays_wrong(aws: Aws, call: Call) -> None:
    aws.record("failed.md", Status.FAILED)
    aws.record("good.md", Status.INDEXED)
    aws.record("gone.md", Status.DELETED)
    aws.record("moving.md", Status.WAITING)
    failed, moving, strange = uri("failed.md"), uri("moving.md"), uri("strange.md")
    messages = bury(aws, look([failed]), look([uri("good.md"), uri("gone.md")]), look([moving]), look([strange]))

    assert notes(call, *messages) == [
        [f"{failed} is FAILED and stays so"],
        [],
        [f"{moving} is WAITING with or without the message"],
        [f"The registry does not know {strange}"],
    ]


def test_a_job_that_waits_for_its_message_ends_with_it_and_another_can_start(aws: Aws, call: Call) -> None:
    job = create(aws, FULL, status="RUNNING", reason="Could not connect", step=2)
    gate, jobs = Gate(aws.dynamodb, TABLE), JobStore(TABLE, aws.dynamodb)
    assert gate.close(job.id, time.time() + HOUR)
    (message_id,) = bury(aws, about(job, step=2))

    said = notes(call, message_id)
    answer = discard(call, message_id)

    ended = jobs.get(job.id)
    assert said == [[f"Job {job.id} (full) is RUNNING and ends FAILED with this message: nothing else continues it"]]
    assert answer["ended_jobs"] == [{"job_id": job.id, "kind": FULL}]
    assert (ended.status, ended.reason) == ("FAILED", f"{DISCARDED}. Its last reason: Could not connect")
    assert ended.finished_at is not None
    assert gate.closed_until() is None
    assert jobs.create(FULL, "api").status == "QUEUED"


@pytest.mark.parametrize(
    "changes", [{"step": 5}, {"lease_until": time.time() + 10 * HOUR}], ids=["a later step", "a function at work"]
)
def test_a_job_that_continues_does_not_end_with_a_message(aws: Aws, call: Call, changes: dict[str, Any]) -> None:
    job = create(aws, FULL, status="RUNNING", **changes)
    (message_id,) = bury(aws, about(job))

    said = notes(call, message_id)
    answer = discard(call, message_id)

    assert said == [[f"Job {job.id} (full) continues without this message"]]
    assert answer["ended_jobs"] == []
    assert JobStore(TABLE, aws.dynamodb).get(job.id) == job
    assert remaining(aws) == []


def test_if_the_job_cannot_be_ended_its_message_stays(aws: Aws, call: Call) -> None:
    (message_id,) = bury(aws, about(create(aws, FULL, status="RUNNING")))
    aws.dynamodb.delete_table(TableName=TABLE)

    assert error_of(call("POST", DISCARD, {"message_ids": [message_id]})) == (502, "Registry")
    assert len(remaining(aws)) == 1
