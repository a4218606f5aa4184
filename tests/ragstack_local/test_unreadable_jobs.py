"""Dead letters about a job whose item cannot be read: told, cleared away, and in no other letter's way."""

import pytest

from ragstack_common.ingestion.messages import look
from ragstack_common.reconciliation.messages import JobMessage
from ragstack_common.registry.job_records import FULL, RECONCILE, job_key
from ragstack_local import dead_letters
from ragstack_local.connection import Connection
from ragstack_local.discard import Discard
from ragstack_local.failure_display import print_replayed
from ragstack_local.failures import find_failures
from ragstack_local.replay import Replay
from tests.ragstack_local.letters import bury, jobs_of, sent, sent_jobs, uri


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moto's queue has one server, which need not be waited for."""
    monkeypatch.setattr(dead_letters, "WAIT_SECONDS", 0)


@pytest.fixture
def broken(connection: Connection) -> str:
    """The id of a job whose item is no job's, and which a letter is about."""
    job = jobs_of(connection).create(RECONCILE, "api")
    item = {**job_key(job.id), "job": {"S": "{"}, "revision": {"N": "1"}}
    connection.client("dynamodb").put_item(TableName=connection.registry_table, Item=item)
    bury(connection, JobMessage(job_id=job.id).body)
    return job.id


def test_it_is_told_with_what_to_do_beside_the_others(connection: Connection, broken: str) -> None:
    other = jobs_of(connection).create(FULL, "api")
    bury(connection, JobMessage(job_id=other.id).body)

    told = {failure.job_id: failure for failure in find_failures(connection).jobs}

    assert told[other.id].status == "QUEUED"
    assert told[broken].status == "UNREADABLE"
    assert "cannot be read" in told[broken].reasons[0]
    assert told[broken].advice.startswith("ragstack reconcile compares everything again; to clear its dead letter:")


def test_a_replay_sends_the_others_and_says_what_became_of_it(
    connection: Connection, broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = jobs_of(connection).create(FULL, "api")
    document = uri(connection, "a")
    bury(connection, JobMessage(job_id=other.id).body, look([document]))

    replayed = Replay(connection).send(None, failed=False, done=lambda _: None)
    print_replayed(replayed)

    assert [message["job"] for message in sent_jobs(connection)] == [other.id]
    assert sent(connection) == [document]
    assert not find_failures(connection)
    printed = capsys.readouterr().out
    assert f"Job {broken} was not sent. The registry's item JOB/{broken} cannot be read" in printed


def test_before_it_is_discarded_it_is_said_what_is_wrong(connection: Connection, broken: str) -> None:
    discard = Discard(connection)
    (letter,) = find_failures(connection).jobs

    (found,) = discard.find(letter.message_ids, unreadable=False)
    discarded = discard.delete([found])

    assert f"JOB/{broken} cannot be read" in found.notes[0]
    assert (len(discarded.deleted), discarded.ended) == (1, [])
