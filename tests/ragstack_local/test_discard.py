"""Dead letters that are discarded: which, what is said before, and what ends with them."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from typer.testing import CliRunner

from ragstack_common.errors import NotKnownError
from ragstack_common.ingestion.messages import failure, look
from ragstack_common.reconciliation.messages import JobMessage
from ragstack_common.registry.coordination import Gate
from ragstack_common.registry.jobs import FULL, RECONCILE, Job, JobKind
from ragstack_local import dead_letters
from ragstack_local.cli import app
from ragstack_local.connection import Connection
from ragstack_local.discard import Discard, Discarded
from ragstack_local.job_letters import DISCARDED
from tests.ragstack_local import functions
from tests.ragstack_local.letters import bury, drain, jobs_of, put, uri
from tests.ragstack_local.support import running_stack

HOUR = 3600.0
LINES = '{"hello": "[bold]x",\n  "world": 1}'


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moto's queue has one server, which need not be waited for."""
    monkeypatch.setattr(dead_letters, "WAIT_SECONDS", 0)


def discard(connection: Connection, *message_ids: str, unreadable: bool = False) -> Discarded:
    discarding = Discard(connection)
    return discarding.delete(discarding.find(message_ids, unreadable=unreadable))


def notes(connection: Connection, message_id: str) -> tuple[str, ...]:
    (found,) = Discard(connection).find([message_id], unreadable=False)
    return found.notes


def left(connection: Connection) -> list[str]:
    return sorted(drain(connection, connection.dead_letter_queue_url))


def about(job: Job, step: int = 0) -> str:
    return JobMessage(job_id=job.id, step=step).body


def running_job(connection: Connection, kind: JobKind = FULL, **changes: Any) -> Job:
    jobs = jobs_of(connection)
    job = jobs.create(kind, "api")
    assert jobs.write(job, replace(job, status="RUNNING", **changes))
    return jobs.get(job.id)


@pytest.fixture
def run(tmp_path: Path, connection: Connection, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run the command in this process, with what a person answers."""
    monkeypatch.setenv("RAGSTACK_DATA", str(tmp_path))

    def invoke(*arguments: str, answers: str = "") -> Any:
        with running_stack(tmp_path, connection):
            return CliRunner().invoke(app, ["discard", *arguments], input=answers, env={"COLUMNS": "250"})

    return invoke


def test_only_what_is_named_is_deleted_and_the_others_can_be_received(connection: Connection) -> None:
    first, _, third = bury(connection, look(["s3://b/a"]), look(["s3://b/b"]), "not JSON")

    discarded = discard(connection, first, third)

    assert {letter.message_id for letter in discarded.deleted} == {first, third}
    assert discarded.missing == []
    assert left(connection) == [look(["s3://b/b"])]


def test_what_nobody_can_read_is_deleted_and_nothing_else(connection: Connection) -> None:
    job = running_job(connection)
    readable = [look(["s3://b/a"]), about(job), JobMessage(kind=RECONCILE, by="schedule").body]
    bury(connection, *readable, *(f"not JSON {number}" for number in range(12)), '{"Event": "s3:TestEvent"}')

    discarded = discard(connection, unreadable=True)

    assert len(discarded.deleted) == 13
    assert left(connection) == sorted(readable)


def test_a_message_that_is_not_in_the_queue_is_named_and_nothing_is_deleted(connection: Connection) -> None:
    (there,) = bury(connection, "x")

    with pytest.raises(NotKnownError, match="No message nowhere lies in the dead-letter queue now; nothing was"):
        discard(connection, there, "nowhere")

    assert left(connection) == ["x"]


def test_a_letter_that_is_gone_meanwhile_is_told(connection: Connection) -> None:
    one, other = bury(connection, "x", "y")
    discarding = Discard(connection)
    chosen = discarding.find([one, other], unreadable=False)
    discard(connection, one)

    discarded = discarding.delete(chosen)

    assert [letter.message_id for letter in discarded.deleted] == [other]
    assert [letter.message_id for letter in discarded.missing] == [one]


def test_of_a_document_that_is_not_right_it_is_said_and_of_one_that_is_nothing(connection: Connection) -> None:
    failed, good, gone, moving = put(connection, "failed", "good", "gone", "moving")
    told = failure(functions.fail(connection, failed, "The file is empty."))
    functions.index(connection, good)
    functions.forget(connection, gone)
    functions.submit(connection, moving)
    letters = bury(connection, told, look([good, gone]), look([moving]), look([uri(connection, "strange")]))

    of_failed, of_right, of_moving, of_strange = (notes(connection, letter) for letter in letters)

    assert len(of_failed) == 1
    assert of_failed[0].startswith(f"{failed} is FAILED and stays so. Mend the file and upload it again")
    assert of_right == ()
    assert of_moving[0].startswith(f"{moving} is INDEXING, whatever becomes of the letter. Look at it again: ragstack")
    assert of_strange[0].startswith(f"The registry does not know {uri(connection, 'strange')}. Look at it again: ")


def test_a_job_that_waits_for_its_message_ends_with_it_and_another_can_begin(connection: Connection) -> None:
    job = running_job(connection, reason="Could not connect", step=2)
    gate = Gate(connection.client("dynamodb"), connection.registry_table)
    assert gate.close(job.id, time.time() + HOUR)
    (letter,) = bury(connection, about(job, step=2))

    said = notes(connection, letter)
    discarded = discard(connection, letter)

    ended = jobs_of(connection).get(job.id)
    assert said == (f"Job {job.id} (full) is RUNNING, and ends FAILED with this message: nothing else goes on with it",)
    assert [found.message.job_id for found in discarded.ended] == [job.id]
    assert ended.status == "FAILED"
    assert ended.reason == f"{DISCARDED}. The last that was said: Could not connect"
    assert ended.finished_at is not None
    assert gate.closed_until() is None
    assert jobs_of(connection).create(FULL, "api").status == "QUEUED"


@pytest.mark.parametrize(
    "changes", [{"step": 5}, {"lease_until": time.time() + 10 * HOUR}], ids=["has got further", "is worked on"]
)
def test_a_job_that_somebody_goes_on_with_does_not_end_with_a_letter(
    connection: Connection, changes: dict[str, Any]
) -> None:
    job = running_job(connection, **changes)
    (letter,) = bury(connection, about(job))

    said = notes(connection, letter)
    discarded = discard(connection, letter)

    assert said == (f"Job {job.id} (full) is RUNNING, and goes on without this message",)
    assert discarded.ended == []
    assert jobs_of(connection).get(job.id) == job
    assert left(connection) == []


def test_a_job_that_went_on_while_one_was_asked_is_left_alone(connection: Connection) -> None:
    job = running_job(connection)
    (letter,) = bury(connection, about(job))
    discarding = Discard(connection)
    chosen = discarding.find([letter], unreadable=False)
    assert jobs_of(connection).write(job, replace(job, step=1))

    discarded = discarding.delete(chosen)

    assert discarded.ended == []
    assert jobs_of(connection).get(job.id).status == "RUNNING"


def test_of_jobs_that_are_over_or_were_never_started_it_is_said_what_starts_another(connection: Connection) -> None:
    jobs = jobs_of(connection)
    failed = running_job(connection)
    assert jobs.write(failed, replace(failed, status="FAILED"))
    done = jobs.create(RECONCILE, "api")
    assert jobs.write(done, replace(done, status="COMPLETE"))
    start = JobMessage(kind=FULL, by="schedule").body
    unknown = JobMessage(job_id="20260101T000000000-01234567").body
    letters = bury(connection, about(failed), about(done), start, unknown)

    said = [notes(connection, letter) for letter in letters]

    assert said == [
        (f"Job {failed.id} (full) is FAILED; ragstack reconcile --full starts another",),
        (),
        ("A job (full) that schedule asked for was never started; ragstack reconcile --full starts one",),
        ("Job 20260101T000000000-01234567 is FORGOTTEN; ragstack reconcile starts another",),
    ]


def test_if_the_job_cannot_be_ended_its_letter_stays(connection: Connection) -> None:
    job = running_job(connection)
    (letter,) = bury(connection, about(job))
    discarding = Discard(connection)
    chosen = discarding.find([letter], unreadable=False)
    gone = replace(connection, registry_table="there-is-none")

    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        Discard(gone).delete(chosen)

    assert left(connection) == [about(job)]


def test_the_command_prints_the_whole_letter_asks_and_deletes(connection: Connection, run: Callable[..., Any]) -> None:
    (letter,) = bury(connection, LINES, cause="a cause")

    refused = run("--unreadable", answers="n\n")
    kept = len(dead_letters.DeadLetters.of(connection).peek())
    done = run("--unreadable", answers="y\n")

    assert (refused.exit_code, kept) == (1, 1)
    assert done.exit_code == 0, done.output
    assert LINES in done.stdout
    assert f"message {letter}\n" in done.stdout
    assert "a cause" in done.stdout
    assert "Discard 1 dead letter for good?" in done.stderr
    assert done.stdout.index(LINES) < done.stdout.index("Discarded: 1 dead letter")
    assert left(connection) == []


def test_as_json_the_bodies_are_all_that_a_program_reads(connection: Connection, run: Callable[..., Any]) -> None:
    job = running_job(connection)
    letter, other = bury(connection, about(job), LINES, cause="a cause")

    done = run(letter, "--unreadable", "--yes", "--json")

    answer = {entry["message_id"]: entry for entry in json.loads(done.stdout)["discarded"]}
    assert done.exit_code == 0, done.output
    assert (answer[letter]["body"], answer[other]["body"]) == (about(job), LINES)
    assert [len(answer[name]["notes"]) for name in (letter, other)] == [1, 0]
    assert answer[other]["cause"] == "a cause"
    assert "Discarded: 2 dead letters" in done.stderr
    assert f"Job {job.id} (full) is FAILED: ragstack reconcile --full starts another" in done.stderr


def test_without_an_unreadable_letter_nobody_is_asked(connection: Connection, run: Callable[..., Any]) -> None:
    bury(connection, look(["s3://b/a"]))

    done = run("--unreadable")

    assert (done.exit_code, done.stdout) == (0, "There is no dead letter that nobody can read.\n")
    assert len(left(connection)) == 1
