"""Records that cannot be read: named with what to do, and in the way of no other document of a command."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.ingestion.messages import look
from ragstack_common.registry.table import document_key
from ragstack_local import dead_letters
from ragstack_local.awaiting import UNREADABLE, Gone, LookedAt, ask, readable, registry_of
from ragstack_local.bucket import Bucket
from ragstack_local.connection import Connection
from ragstack_local.discard import Discard
from ragstack_local.failures import find_failures
from ragstack_local.replay import Replay
from ragstack_local.uploads import select
from ragstack_local.watching import Outcome, Watch
from tests.ragstack_local import functions
from tests.ragstack_local.letters import bury, put, sent, uri
from tests.ragstack_local.support import ragstack, running_stack


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moto's queue has one server, which need not be waited for."""
    monkeypatch.setattr(dead_letters, "WAIT_SECONDS", 0)


def break_record(connection: Connection, name: str) -> None:
    """Edit the record of a document, or make one up, as somebody does who should not."""
    client, table = connection.client("dynamodb"), connection.registry_table
    key: Any = {name: {"S": value} for name, value in document_key(name).items()}
    item = client.get_item(TableName=table, Key=key).get("Item", key)
    client.put_item(TableName=table, Item={**item, "attempts": {"S": "many"}})


def says_what_to_do(text: str | None, name: str) -> bool:
    return text is not None and name in text and "cannot be read" in text and "`ragstack reconcile`" in text


def test_asking_tells_of_each_document_and_of_that_one_what_to_do(connection: Connection) -> None:
    good, broken = put(connection, "good", "broken")
    functions.index(connection, good)
    break_record(connection, broken)
    registry = registry_of(connection)

    assert readable(registry, [good, broken]).keys() == {good}
    answers = ask(registry, {good: LookedAt(0), broken: LookedAt(0)})

    assert answers[good] == "INDEXED"
    assert answers[broken] == UNREADABLE
    assert says_what_to_do(answers[broken].reason, broken)
    assert ask(registry, {broken: Gone()}) == {broken: UNREADABLE}


def test_a_replay_sends_the_others_and_keeps_the_letters_about_it(connection: Connection) -> None:
    good, shared, broken = put(connection, "good", "shared", "broken")
    break_record(connection, broken)
    bury(connection, look([good]), look([shared, broken]), look([broken]))

    replayed = Replay(connection).send(None, failed=False, done=lambda _: None)

    assert sent(connection) == [good, shared]
    assert replayed.awaited.keys() == {good, shared}
    assert replayed.left.keys() == {broken}
    assert says_what_to_do(replayed.left[broken], broken)
    assert replayed.deleted == 1
    (left,) = [each for each in find_failures(connection).documents if each.uri == broken]
    assert (left.status, left.letters) == (UNREADABLE, 2)
    assert says_what_to_do(left.reasons[0], broken)


def test_a_replay_of_all_that_failed_sends_the_others_and_names_it(connection: Connection) -> None:
    good, broken = put(connection, "good", "broken")
    for each in (good, broken):
        functions.fail(connection, each, "Throttled")
    break_record(connection, broken)

    replaying = Replay(connection)
    replaying.check([broken])
    replayed = replaying.send(None, failed=True, done=lambda _: None)

    assert sent(connection) == [good]
    (fault,) = replayed.records
    assert says_what_to_do(fault, broken)
    failures = find_failures(connection)
    assert [each.uri for each in failures.documents] == [good]
    assert failures.records == (fault,)


def test_before_its_letter_is_discarded_it_is_said_what_is_wrong(connection: Connection) -> None:
    break_record(connection, broken := uri(connection, "broken"))
    (letter,) = bury(connection, look([broken]))

    (found,) = Discard(connection).find([letter], unreadable=False)

    assert says_what_to_do(found.notes[0], broken)


def test_watching_goes_on_with_the_others_and_tells_of_it(connection: Connection, folder: Path) -> None:
    told: list[Outcome] = []
    warned: list[str] = []
    watch = Watch(
        [folder],
        "",
        Bucket.of(connection),
        registry_of(connection),
        tell=told.append,
        warn=warned.append,
        clock=lambda: 0.0,
        sleep=lambda _: None,
    )
    good, broken = (f"s3://{connection.bucket}/handbook/{name}.md" for name in ("good", "broken"))
    break_record(connection, broken)
    for name in ("good", "broken"):
        (folder / f"{name}.md").write_text("Thirty days.")

    for _ in range(2):
        watch.tick(changed=True)
    functions.index(connection, good)
    watch.tick()

    assert {outcome.uri: str(outcome.status) for outcome in told} == {broken: UNREADABLE, good: "INDEXED"}
    (unreadable,) = [outcome.status for outcome in told if outcome.uri == broken]
    assert says_what_to_do(unreadable.reason, broken)
    assert (warned, watch.on_their_way) == ([], 0)


def test_ingest_and_replay_go_on_with_the_others_and_end_with_1(
    tmp_path: Path, connection: Connection, folder: Path
) -> None:
    for name in ("good", "broken"):
        (folder / f"{name}.md").write_text("Thirty days.")
    selection = select([folder])
    bucket = Bucket.of(connection)
    for file in selection.files:
        bucket.put(file)
    good, broken = (f"s3://{connection.bucket}/handbook/{name}.md" for name in ("good", "broken"))
    functions.index(connection, good)
    break_record(connection, broken)
    bury(connection, look([broken]))

    with running_stack(tmp_path, connection):
        ingested = ragstack("ingest", folder, data=tmp_path)
        replayed = ragstack("replay", "--json", data=tmp_path)

    assert ingested.returncode == 1, ingested.stdout + ingested.stderr
    assert any(
        line.startswith(f"UNREADABLE {broken}: ") and says_what_to_do(line, broken)
        for line in ingested.stdout.splitlines()
    )
    assert "1 INDEXED, 1 UNREADABLE" in ingested.stdout
    assert replayed.returncode == 1, replayed.stdout + replayed.stderr
    answer = json.loads(replayed.stdout)
    (document,) = answer["documents"]
    assert (document["uri"], document["status"], document["sent"]) == (broken, UNREADABLE, False)
    assert says_what_to_do(document["reason"], broken)
    assert answer["letters"] == {"deleted": 0, "unreadable": 0, "shared": 0}


@pytest.mark.parametrize("arguments", [["--corpus", "people"], ["notes/", "--corpus", "people"]], ids=str)
def test_the_deletion_of_a_corpus_leaves_a_document_of_which_the_corpus_cannot_be_read_and_names_it(
    tmp_path: Path, connection: Connection, arguments: list[str]
) -> None:
    good, broken = put(connection, "notes/good", "notes/broken")
    for name in ("good", "broken"):
        sidecar = b'{"metadataAttributes": {"corpus": "people"}}'
        connection.client("s3").put_object(Bucket=connection.bucket, Key=f"notes/{name}.md.metadata.json", Body=sidecar)
    functions.index(connection, good, broken)
    break_record(connection, broken)

    with running_stack(tmp_path, connection):
        done = ragstack("delete", *arguments, "--yes", "--no-wait", "--json", data=tmp_path)

    assert done.returncode == 0, done.stderr
    assert [document["uri"] for document in json.loads(done.stdout)["documents"]] == [good]
    assert says_what_to_do(done.stderr, broken)
