"""Operators list, replay and discard what failed."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ragstack_common.ingestion.messages import check
from ragstack_common.registry.records import Status
from ragstack_common.services import dead_letters
from tests.ragstack_common.services.conftest import BUCKET, Aws, Call, error_of
from tests.support.registry_table import TABLE

PATH = "/api/failures"
REPLAY = "/api/failures/replay"
DISCARD = "/api/failures/discard"


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
    checks = [json.loads(body) for body in drain(aws, aws.ingestion_url)]
    assert all(each["forced"] for each in checks)
    return sorted(name for each in checks for name in each["check"])


@contextmanager
def calling_back(aws: Aws, operation: str, happens: Callable[..., Any]) -> Iterator[None]:
    """Call *happens* before each call of one operation of SQS."""
    event = f"before-call.sqs.{operation}"
    aws.sqs.meta.events.register(event, happens)
    try:
        yield
    finally:
        aws.sqs.meta.events.unregister(event, happens)


def test_each_failed_document_is_listed_once_with_all_reasons(aws: Aws, call: Call) -> None:
    aws.record("both.md", Status.FAILED, reason="The file is empty.", attempts=1)
    aws.record("alone.md", Status.FAILED, reason="Rate exceeded (after 5 attempts)")
    aws.record("fixed.md", Status.INDEXED)
    aws.record("fine.md", Status.INDEXED)
    letter = {"failed": {"uri": uri("both.md"), "operation": "o", "reason": "The file is empty.", "attempts": 1}}
    ids = bury(aws, json.dumps(letter)) + bury(aws, check([uri("both.md")]), cause="arn:aws:iam::123456789012:role/x")
    bury(aws, check([uri("buried.md"), uri("fixed.md")]))

    status, answer = call("GET", PATH)

    found = {document["uri"]: document for document in answer["documents"]}
    both, alone = found[uri("both.md")], found[uri("alone.md")]
    assert status == 200
    assert set(found) == {uri(name) for name in ("both.md", "alone.md", "buried.md", "fixed.md")}
    assert both["reasons"] == ["The file is empty.", "[arn]"]
    assert (both["status"], both["attempts"], set(both["message_ids"])) == ("FAILED", 1, set(ids))
    assert (alone["status"], alone["message_ids"]) == ("FAILED", [])
    assert (found[uri("buried.md")]["status"], found[uri("buried.md")]["can_replay"]) == ("UNKNOWN", True)
    assert (
        found[uri("fixed.md")]["advice"]
        == "The document is INDEXED now: replay removes the messages that need a decision"
    )


@pytest.mark.parametrize(
    ("reason", "words", "can_replay"),
    [
        ("The sidecar cannot be used: it is not JSON", "Fix the sidecar", False),
        ("AccessDeniedException: not authorized to perform s3:GetObject", "Grant the missing permission", True),
        ("The dataSourceType that you specified in S3 doesn't match the type of the source", "Deploy with", True),
        ("No final status after 6.0 hours: the knowledge base still says PENDING", "The cause may be", True),
        ("The file type .png is not supported", "Fix the file", False),
        ("A picture: its text needs recognition (OCR): it is switched off", "Switch text recognition on", False),
        (None, "Fix the file", False),
    ],
)
def test_the_advice_follows_from_the_reason(
    aws: Aws, call: Call, reason: str | None, words: str, can_replay: bool
) -> None:
    aws.record("failed.md", Status.FAILED, reason=reason)

    (document,) = call("GET", PATH)[1]["documents"]

    assert document["advice"].startswith(words)
    assert document["can_replay"] == can_replay


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
    bury(aws, check([uri("a.md")]))
    aws.dynamodb.delete_table(TableName=TABLE)

    assert error_of(call("GET", PATH)) == (502, "Registry")
    assert len(remaining(aws)) == 1


def test_an_incomplete_list_is_reported(aws: Aws, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "MAX_CHARACTERS", 100)
    bury(aws, *(f"not JSON {number:03}" * 5 for number in range(15)))

    answer = call("GET", PATH)[1]

    assert len(answer["unreadable"]) == 10
    assert answer["complete"] is False


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (check(["s3://b/a", "s3://b/c"]), ["s3://b/a", "s3://b/c"]),
        (json.dumps({"follow": [["s3://b/a", "op"]], "checks": 3}), ["s3://b/a"]),
        (json.dumps({"failed": {"uri": "s3://b/a", "operation": None, "reason": "x", "attempts": 1}}), ["s3://b/a"]),
        (json.dumps({"Event": "s3:TestEvent"}), []),
        (json.dumps({"hello": 1}), []),
        ("not JSON", []),
        ("[]", []),
        (json.dumps({"check": [None]}), []),
        (json.dumps({"job": "20260101T000000000-01234567", "step": 3}), []),
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


def test_a_replay_sends_each_document_once_and_deletes_its_messages(aws: Aws, call: Call) -> None:
    names = [uri(f"{number:02}.md") for number in range(25)]
    aws.record("00.md", Status.FAILED, reason="x")
    bury(aws, *(check([name]) for name in names), check(names[:3]))

    status, answer = call("POST", REPLAY)

    replayed = {document["uri"]: document["updated_at"] for document in answer["documents"]}
    assert (status, answer["deleted"], answer["next_token"]) == (200, 26, None)
    assert sorted(replayed) == names
    assert replayed[names[0]] == "2026-02-02T02:40:01.500Z"
    assert replayed[names[1]] is None
    assert set(sent(aws)) == set(names)
    assert remaining(aws) == []


def test_a_new_failure_during_a_replay_stays(aws: Aws, call: Call) -> None:
    names = [uri(f"{number:02}.md") for number in range(25)]
    bury(aws, *(check([name]) for name in names))

    def fails_at_once(**_: Any) -> None:
        bury(aws, check(names[:1]))

    with calling_back(aws, "SendMessageBatch", fails_at_once):
        answer = call("POST", REPLAY)[1]

    assert answer["deleted"] == 25
    assert set(remaining(aws)) == {check(names[:1])}


def test_a_long_replay_continues_with_its_token(aws: Aws, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "MAX_CHARACTERS", 100)
    names = [uri(f"{number:02}.md") for number in range(25)]
    bury(aws, *(check([name]) for name in names))

    first = call("POST", REPLAY, {})[1]
    again = check([uri("fails-again.md")])
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
    bury(aws, check([a]), check([a, b]), check([c]), "not JSON")

    answer = call("POST", REPLAY, {"documents": [a]})[1]

    assert sent(aws) == [a]
    assert (answer["deleted"], answer["shared"], answer["unreadable"]) == (1, 1, 1)
    assert remaining(aws) == sorted([check([a, b]), check([c]), "not JSON"])


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
def test_a_kill_at_any_step_loses_no_message(aws: Aws, call: Call, operation: str) -> None:
    names = [uri(f"{name}.md") for name in "abc"]
    bury(aws, *(check([name]) for name in names))

    def killed(**_: Any) -> None:
        raise KeyboardInterrupt

    with calling_back(aws, operation, killed), pytest.raises(KeyboardInterrupt):
        call("POST", REPLAY)

    left = {name for body in remaining(aws) for name in json.loads(body)["check"]}
    assert left == set(names)
    assert sent(aws) == ([] if operation == "SendMessageBatch" else names)


def test_a_refused_replay_keeps_its_message(aws: Aws, call: Call) -> None:
    bury(aws, check([uri("a.md")]))
    aws.sqs.delete_queue(QueueUrl=aws.ingestion_url)

    assert error_of(call("POST", REPLAY)) == (502, "Delivery")
    assert len(remaining(aws)) == 1


def test_an_unknown_name_is_reported_and_nothing_is_sent(aws: Aws, call: Call) -> None:
    aws.record("known.md", Status.FAILED)
    aws.put("in-bucket.md")
    bury(aws, check([uri("buried.md")]))
    known = [uri(name) for name in ("known.md", "in-bucket.md", "buried.md")]

    strange = [uri("strange.md"), "s3://other/x.md"]
    refused = call("POST", REPLAY, {"documents": known + strange})

    assert error_of(refused) == (404, "NotFound")
    assert f"knows {uri('strange.md')}, s3://other/x.md; nothing was sent" in refused[1]["error"]["message"]
    assert sent(aws) == []
    assert call("POST", REPLAY, {"documents": known})[0] == 200
    assert sent(aws) == sorted(known)


def test_a_sidecar_is_not_replayed(aws: Aws, call: Call) -> None:
    aws.put("a.md.metadata.json")

    refused = call("POST", REPLAY, {"documents": [uri("a.md.metadata.json")]})

    assert error_of(refused) == (400, "InvalidRequest")
    assert f"name its document, {uri('a.md')}" in refused[1]["error"]["message"]
    assert sent(aws) == []


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
    first, _, third = bury(aws, check(["s3://b/a"]), check(["s3://b/b"]), "not JSON")

    answer = discard(call, first, third)

    assert {message["message_id"] for message in answer["messages"]} == {first, third}
    assert remaining(aws) == [check(["s3://b/b"])]


def test_unreadable_messages_are_deleted_and_no_other(aws: Aws, call: Call) -> None:
    bury(aws, check(["s3://b/a"]), *(f"not JSON {number}" for number in range(12)), '{"Event": "s3:TestEvent"}')

    answer = discard(call, unreadable=True)

    assert len(answer["messages"]) == 13
    assert remaining(aws) == [check(["s3://b/a"])]


def test_a_dry_run_returns_the_messages_and_deletes_nothing(aws: Aws, call: Call) -> None:
    (message_id,) = bury(aws, check(["s3://b/a"]), cause="a cause")

    (message,) = discard(call, message_id, dry_run=True)["messages"]

    assert (message["body"], message["cause"]) == (check(["s3://b/a"]), "a cause")
    assert remaining(aws) == [check(["s3://b/a"])]


def test_if_a_message_is_not_in_the_queue_nothing_is_deleted(aws: Aws, call: Call) -> None:
    (there,) = bury(aws, "x")

    answer = call("POST", DISCARD, {"message_ids": [there, "nowhere"]})

    assert error_of(answer) == (404, "NotFound")
    assert "No message nowhere needs a decision now; nothing was discarded" in answer[1]["error"]["message"]
    assert remaining(aws) == ["x"]


def test_the_notes_say_what_stays_wrong(aws: Aws, call: Call) -> None:
    aws.record("failed.md", Status.FAILED)
    aws.record("good.md", Status.INDEXED)
    aws.record("gone.md", Status.DELETED)
    aws.record("moving.md", Status.WAITING)
    failed, moving, strange = uri("failed.md"), uri("moving.md"), uri("strange.md")
    messages = bury(aws, check([failed]), check([uri("good.md"), uri("gone.md")]), check([moving]), check([strange]))

    assert notes(call, *messages) == [
        [f"{failed} is FAILED and stays so"],
        [],
        [f"{moving} is WAITING with or without the message"],
        [f"The registry does not know {strange}"],
    ]
