"""Dead letters and failed documents: listed, and sent again."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from ragstack_common.errors import DeliveryError, NotKnownError
from ragstack_common.ingestion.messages import failure, look
from ragstack_local import dead_letters
from ragstack_local.connection import Connection
from ragstack_local.dead_letters import DeadLetters
from ragstack_local.failures import Failure, find_failures
from ragstack_local.replay import Replay, Replayed
from tests.ragstack_local import functions
from tests.ragstack_local.letters import bury, drain, put, sent, uri


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moto's queue has one server, which need not be waited for."""
    monkeypatch.setattr(dead_letters, "WAIT_SECONDS", 0)


def nothing(_: int) -> None:
    pass


def event(connection: Connection, key: str) -> str:
    s3 = {"bucket": {"name": connection.bucket}, "object": {"key": key, "sequencer": "1"}}
    return json.dumps({"Records": [{"eventName": "ObjectCreated:Put", "s3": s3}]})


def replay(connection: Connection, *chosen: str, failed: bool = False) -> Replayed:
    return Replay(connection).send(chosen or None, failed=failed, done=nothing)


def by_uri(connection: Connection) -> dict[str, Failure]:
    return {failure.uri: failure for failure in find_failures(connection).documents}


class Unlucky:
    """A real client of which one call fails, or is never made because we were killed."""

    def __init__(self, sqs: Any, operation: str, happens: Callable[..., Any]) -> None:
        self._sqs = sqs
        self._operation = operation
        self._happens = happens

    def __getattr__(self, name: str) -> Any:
        return self._happens if name == self._operation else getattr(self._sqs, name)


def test_every_letter_is_read_and_can_be_received_by_anybody_afterwards(connection: Connection) -> None:
    bury(connection, *(look([f"s3://b/{number}"]) for number in range(25)))

    letters = DeadLetters.of(connection).peek()
    again = DeadLetters.of(connection).peek()

    assert sorted(uri for letter in letters for uri in letter.uris) == sorted(f"s3://b/{n}" for n in range(25))
    assert {letter.message_id for letter in again} == {letter.message_id for letter in letters}
    assert len(drain(connection, connection.dead_letter_queue_url)) == 25


def test_letters_are_given_back_after_an_error_too(connection: Connection) -> None:
    bury(connection, look(["s3://b/a"]))

    with pytest.raises(ZeroDivisionError), DeadLetters.of(connection).looking() as pages:
        _ = len(next(pages)) / 0

    assert len(drain(connection, connection.dead_letter_queue_url)) == 1


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (look(["s3://b/a", "s3://b/c"]), ("s3://b/a", "s3://b/c")),
        (json.dumps({"follow": [["s3://b/a", "op"]], "checks": 3}), ("s3://b/a",)),
        (json.dumps({"failed": {"uri": "s3://b/a", "operation": None, "reason": "x", "attempts": 1}}), ("s3://b/a",)),
        (json.dumps({"Event": "s3:TestEvent"}), ()),
        (json.dumps({"hello": 1}), ()),
        ("not JSON", ()),
        ("[]", ()),
        (json.dumps({"look": [None]}), ()),
    ],
    ids=str,
)
def test_a_letter_tells_its_documents_or_why_it_cannot_be_read(
    connection: Connection, body: str, names: Sequence[str]
) -> None:
    bury(connection, body, cause="a cause")

    (letter,) = DeadLetters.of(connection).peek()

    assert letter.uris == tuple(names)
    assert letter.job is None
    assert (letter.fault is None) is bool(names)
    assert letter.cause == "a cause"
    assert letter.body == body
    assert letter.sent_at > 1_600_000_000


def test_each_document_is_listed_once_with_the_reasons_of_registry_and_letters(connection: Connection) -> None:
    both, lone, buried, mended = put(connection, "both", "lone", "buried", "mended")
    bury(connection, failure(functions.fail(connection, both, "The file is empty.")), cause="The file is empty.")
    bury(connection, event(connection, "both.md"), cause="ThrottlingException: slow down")
    functions.fail(connection, lone, "Rate exceeded (after 5 attempts)")
    bury(connection, look([buried, mended]))
    functions.index(connection, mended)

    found = by_uri(connection)

    assert set(found) == {both, lone, buried, mended}
    assert found[both].reasons == ("The file is empty.", "ThrottlingException: slow down")
    assert (found[both].status, found[both].letters, found[both].attempts) == ("FAILED", 2, 1)
    assert "Mend the file" in found[both].advice
    assert (found[lone].status, found[lone].letters) == ("FAILED", 0)
    assert found[lone].advice == f"It may pass: ragstack replay '{lone}'"
    assert (found[buried].status, found[buried].reasons) == ("UNKNOWN", ("no reason given",))
    assert (found[mended].status, found[mended].is_failed) == ("INDEXED", False)
    assert found[mended].advice == f"It is INDEXED by now; to clear its dead letters: ragstack replay '{mended}'"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("The sidecar cannot be used: it is not JSON", "Mend the sidecar"),
        ("AccessDeniedException: not authorized to perform s3:GetObject", "Give the functions' roles"),
        ("No final status after 6.0 hours: the knowledge base still says PENDING", "It may pass"),
        ("The file type .png is not supported", "Mend the file"),
        (None, "Mend the file"),
    ],
)
def test_what_to_do_follows_from_the_reason(connection: Connection, reason: str | None, words: str) -> None:
    (failed,) = put(connection, "failed")
    functions.fail(connection, failed, reason or "")

    assert by_uri(connection)[failed].advice.startswith(words)


def test_every_letter_is_sent_once_for_each_document_and_then_deleted(connection: Connection) -> None:
    names = [uri(connection, f"{number:02}") for number in range(25)]
    bury(connection, *(look([name]) for name in names), look(names[:3]), event(connection, "00.md"))
    seen: list[int] = []

    replayed = Replay(connection).send(None, failed=False, done=seen.append)

    assert sent(connection) == names
    assert set(replayed.awaited) == set(names)
    assert replayed.deleted == sum(seen) == 27
    assert drain(connection, connection.dead_letter_queue_url) == []


def test_the_letter_of_what_fails_once_more_while_others_are_sent_stays(connection: Connection) -> None:
    names = [uri(connection, f"{number:02}") for number in range(25)]
    bury(connection, *(look([name]) for name in names))
    sqs = connection.client("sqs")

    def fails_at_once(**request: Any) -> Any:
        bury(connection, look(names[:1]))
        return sqs.send_message_batch(**request)

    replaying = Replay(connection)
    replaying._queue = replace(replaying._queue, sqs=Unlucky(sqs, "send_message_batch", fails_at_once))
    replayed = replaying.send(None, failed=False, done=nothing)

    assert (sent(connection), replayed.deleted) == (names, 25)
    assert set(drain(connection, connection.dead_letter_queue_url)) == {look(names[:1])}


def test_messages_that_are_about_no_document_stay(connection: Connection) -> None:
    bury(connection, "not JSON", look([uri(connection, "a")]))

    replayed = replay(connection)

    assert (replayed.unreadable, replayed.deleted) == (1, 1)
    assert drain(connection, connection.dead_letter_queue_url) == ["not JSON"]


def test_only_the_chosen_documents_are_sent_and_shared_letters_stay(connection: Connection) -> None:
    a, b, c = (uri(connection, name) for name in "abc")
    bury(connection, look([a]), look([a, b]), look([c]))

    replayed = replay(connection, a)

    assert sent(connection) == [a]
    assert (replayed.deleted, replayed.shared) == (1, 1)
    assert sorted(drain(connection, connection.dead_letter_queue_url)) == sorted([look([a, b]), look([c])])


def test_a_failed_document_without_a_letter_is_sent_when_named_or_with_all(connection: Connection) -> None:
    named, other = put(connection, "named", "other")
    functions.fail(connection, named, "x")
    functions.fail(connection, other, "x")

    without = replay(connection)
    chosen = replay(connection, named)
    every = replay(connection, failed=True)

    assert set(without.awaited) == set()
    assert set(chosen.awaited) == {named}
    assert set(every.awaited) == {named, other}
    assert sent(connection) == [named, named, other]


def test_failed_documents_beyond_one_page_are_all_sent(connection: Connection) -> None:
    names = [uri(connection, f"{number:03}") for number in range(105)]
    functions.fail_all(connection, names)

    replayed = replay(connection, failed=True)

    assert set(replayed.awaited) == set(names)
    assert sent(connection) == sorted(names)


def test_a_failure_from_before_the_replay_is_not_taken_for_its_outcome(connection: Connection) -> None:
    (name,) = put(connection, "a")
    before = functions.fail(connection, name, "x")

    awaited = replay(connection, name).awaited[name]

    assert not awaited.is_ended_by(before)
    assert awaited.is_ended_by(functions.fail(connection, name, "x again"))


@pytest.mark.parametrize("operation", ["send_message_batch", "delete_message_batch"])
def test_killed_at_any_step_it_leaves_a_letter_too_many_and_never_one_too_few(
    connection: Connection, operation: str
) -> None:
    names = [uri(connection, name) for name in "abc"]
    bury(connection, *(look([name]) for name in names))

    def killed(**_: Any) -> None:
        raise KeyboardInterrupt

    replaying = Replay(connection)
    unlucky = Unlucky(connection.client("sqs"), operation, killed)
    replaying._letters = replace(replaying._letters, sqs=unlucky)
    replaying._queue = replace(replaying._queue, sqs=unlucky)
    with pytest.raises(KeyboardInterrupt):
        replaying.send(None, failed=False, done=nothing)

    left = {name for letter in DeadLetters.of(connection).peek() for name in letter.uris}
    assert left == set(names)
    assert sent(connection) == ([] if operation == "send_message_batch" else names)


def test_what_the_queue_does_not_take_keeps_its_letter(connection: Connection) -> None:
    bury(connection, look([uri(connection, "a")]))
    gone = replace(connection, queue_url=f"{connection.queue_url}-gone")

    with pytest.raises(ClientError, match="NonExistentQueue"):
        replay(gone)

    assert len(DeadLetters.of(connection).peek()) == 1


def test_a_letter_that_was_not_deleted_is_an_error_and_stays(connection: Connection) -> None:
    bury(connection, look([uri(connection, "a")]))
    letters = DeadLetters.of(connection)

    with letters.looking() as pages:
        (letter,) = next(pages)
        wrong = replace(letter, receipt_handle="no such handle")
        with pytest.raises((ClientError, DeliveryError), match=r"deleted|handle"):
            letters.delete([wrong])

    assert len(DeadLetters.of(connection).peek()) == 1


def test_a_document_that_nobody_knows_is_named_and_nothing_is_sent(connection: Connection) -> None:
    known, in_bucket, buried = (uri(connection, name) for name in ("known", "in-bucket", "buried"))
    put(connection, "known", "in-bucket")
    functions.fail(connection, known, "x")
    bury(connection, look([buried]))
    replaying = Replay(connection)

    replaying.check([known, in_bucket, buried])
    with pytest.raises(NotKnownError, match=r"knows .*/strange\.md, s3://other/x; nothing was sent"):
        replaying.check([known, uri(connection, "strange"), "s3://other/x"])

    assert sent(connection) == []
