"""What only the registry's table has survives `kill -9`, with the real MiniStack."""

import asyncio
import errno
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
import urllib3
from botocore.config import Config
from botocore.exceptions import ClientError

from ragstack_common.access.budget import DailyBudget
from ragstack_common.access.callers import Caller
from ragstack_common.access.changes import AccessTable
from ragstack_common.access.guard import Guard
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.access.rules import Effect
from ragstack_common.core.errors import LimitReachedError
from ragstack_common.registry.table import BY_LABEL, PARTITION_KEY, SORT_KEY, to_item
from ragstack_common.services.judgments import JudgmentChange, Judgments
from ragstack_local.connection.connection import LOCAL_REGION, Project
from ragstack_local.errors import StackError
from ragstack_local.stack import durable_items
from ragstack_local.stack.durable_items import Changes, Journal
from ragstack_local.stack.local_stack import KEPT_ITEMS, StackOptions, _start_ministack
from ragstack_local.stack.processes import Child
from ragstack_local.stack.recovery import DataFolder
from tests.ragstack_local.test_recovery import kill, ministack, project
from tests.support.registry_table import TABLE, create_table

pytestmark = pytest.mark.slow

__all__ = ["project"]

BOB = Caller("user:bob", frozenset({"everyone", "user:bob"}))
POLICY = AccessPolicy(
    rights={"read": ["everyone"]},
    labels={"people": {"allow": ["user:bob"]}, "law": {}},
    prefixes={"": {"default": "people"}},
)
GRADE = JudgmentChange(query_id="q", query="How many days?", document="leave.md", grade=2)
ONCE = Config(retries={"total_max_attempts": 1})


@contextmanager
def table(project: Project, folder: DataFolder) -> Iterator[tuple[Any, Child]]:
    """Run MiniStack with the table, as a start of the stack does."""
    with ministack(project, folder) as (connection, child):
        dynamodb: Any = boto3.client(
            "dynamodb",
            LOCAL_REGION,
            endpoint_url=connection.aws_endpoint,
            config=ONCE,
            aws_access_key_id="local",
            aws_secret_access_key="local",
        )
        if TABLE not in dynamodb.list_tables()["TableNames"]:
            create_table(dynamodb, TABLE)
        yield dynamodb, child


def save(dynamodb: Any) -> None:
    url = dynamodb.meta.endpoint_url
    assert urllib3.request("PUT", f"{url}/_ragstack/checkpoint", timeout=60).status == 204


def labels(dynamodb: Any) -> frozenset[str] | None:
    return AccessTable(dynamodb, TABLE).rules(POLICY).labels(BOB)


def grades(dynamodb: Any) -> list[int | None]:
    page = Judgments(dynamodb, TABLE, Guard()).page(BOB, of_all=False, limit=10)
    return [judgment.grade for judgment in page.judgments]


def test_rules_judgments_and_budgets_survive_kills_and_the_rest_does_not(tmp_path: Path, project: Project) -> None:
    folder = DataFolder(tmp_path)
    lost = to_item({PARTITION_KEY: "CATALOGUE", SORT_KEY: "city", "documents": 1})
    with folder.opened(), table(project, folder) as (dynamodb, child):
        rules = AccessTable(dynamodb, TABLE)
        rules.change("people", "user:bob", Effect.DENY, "user:olga")
        rules.change("law", "user:bob", Effect.ALLOW, "user:olga")
        rules.change("law", "user:ann", Effect.ALLOW, "user:olga")
        rules.change("law", "user:ann", None, "user:olga")
        judgments = Judgments(dynamodb, TABLE, Guard())
        judgments.write(BOB, GRADE)
        judgments.write(BOB, GRADE.model_copy(update={"query_id": "other"}))
        judgments.write(BOB, GRADE.model_copy(update={"query_id": "other", "grade": None}))
        DailyBudget(dynamodb, TABLE, 1).spend(BOB)
        dynamodb.put_item(TableName=TABLE, Item=lost)
        before = rules.rules(POLICY).changes
        kill(child)
    with folder.journal.open("ab") as journal:
        journal.write(b'[["ACCESS","6#people#user:bob",nu')  # cut by the kill, and never acknowledged

    with folder.opened() as session, table(project, folder) as (dynamodb, child):
        assert session.recovers
        assert labels(dynamodb) == frozenset({"law"})
        assert AccessTable(dynamodb, TABLE).rules(POLICY).changes == before
        assert AccessTable(dynamodb, TABLE).version() == 4
        assert grades(dynamodb) == [2]
        with pytest.raises(LimitReachedError):
            DailyBudget(dynamodb, TABLE, 1).spend(BOB)
        assert "Item" not in dynamodb.get_item(TableName=TABLE, Key={k: lost[k] for k in (PARTITION_KEY, SORT_KEY)})
        AccessTable(dynamodb, TABLE).change("law", "user:bob", None, "user:olga")
        kill(child)
    with folder.opened(), table(project, folder) as (dynamodb, _):
        assert labels(dynamodb) == frozenset()
        assert grades(dynamodb) == [2]


def test_records_of_documents_that_changed_since_a_checkpoint_survive_a_kill(tmp_path: Path, project: Project) -> None:
    folder = DataFolder(tmp_path)
    kept, changed, deleted, later = (
        to_item({PARTITION_KEY: f"DOCUMENT#{name}", SORT_KEY: "DOCUMENT", "status": "INDEXING"})
        for name in ("kept", "changed", "deleted", "later")
    )
    after = changed | to_item({"status": "INDEXED"})
    lock = to_item({PARTITION_KEY: "JOB#LOCK", SORT_KEY: "full"})
    with folder.opened(), table(project, folder) as (dynamodb, child):
        for item in (kept, changed, deleted):
            dynamodb.put_item(TableName=TABLE, Item=item)
        save(dynamodb)
        was_cleared = not folder.changes.exists()
        dynamodb.put_item(TableName=TABLE, Item=lock)
        dynamodb.put_item(TableName=TABLE, Item=after)
        dynamodb.put_item(TableName=TABLE, Item=later)
        dynamodb.delete_item(TableName=TABLE, Key={name: deleted[name] for name in (PARTITION_KEY, SORT_KEY)})
        kill(child)

    for _ in range(2):
        with folder.opened() as session, table(project, folder) as (dynamodb, child):
            found = dynamodb.scan(TableName=TABLE)["Items"]
            kill(child)

        assert session.continues
        assert was_cleared
        assert sorted(found, key=str) == sorted((kept, after, later), key=str)


def test_a_checkpoint_before_the_first_request_keeps_the_changes(tmp_path: Path, project: Project) -> None:
    """As of a start after a kill that deploys something first."""
    folder = DataFolder(tmp_path)
    item = to_item({PARTITION_KEY: "DOCUMENT#one", SORT_KEY: "DOCUMENT"})
    with folder.opened(), table(project, folder) as (dynamodb, child):
        save(dynamodb)
        dynamodb.put_item(TableName=TABLE, Item=item)
        kill(child)

    with folder.opened(), table(project, folder) as (dynamodb, child):
        save(dynamodb)
        kill(child)

    with folder.opened(), table(project, folder) as (dynamodb, _):
        assert dynamodb.scan(TableName=TABLE)["Items"] == [item]


def test_after_an_orderly_end_the_state_alone_counts(tmp_path: Path, project: Project) -> None:
    folder = DataFolder(tmp_path)
    item = to_item({PARTITION_KEY: "DOCUMENT#one", SORT_KEY: "DOCUMENT"})
    with whole(project, folder) as (dynamodb, _):
        dynamodb.put_item(TableName=TABLE, Item=item)
    Changes(folder.changes).append({("DOCUMENT#one", "DOCUMENT"): None})

    with whole(project, folder) as (dynamodb, _):
        assert dynamodb.scan(TableName=TABLE)["Items"] == [item]


def test_changes_that_a_power_cut_has_damaged_are_left_out(tmp_path: Path) -> None:
    """The bucket has the documents, so that they can be compared again."""
    changes = Changes(tmp_path / "changes")
    changes.append(ONE)
    with (tmp_path / "changes").open("ab") as file:
        file.write(b"\0\0\0\n")

    assert changes.read() == {}


def test_each_acknowledged_change_survives_a_kill_amid_many(tmp_path: Path, project: Project) -> None:
    folder = DataFolder(tmp_path)
    acknowledged: list[str] = []
    with folder.opened(), table(project, folder) as (dynamodb, child):

        def revoke(number: int) -> None:
            AccessTable(dynamodb, TABLE).change("people", f"user:{number}", Effect.DENY, "user:olga")
            acknowledged.append(f"user:{number}")
            if len(acknowledged) == 20:
                kill(child)

        with ThreadPoolExecutor(6) as pool:
            results = [pool.submit(revoke, number) for number in range(60)]
            failed = sum(result.exception() is not None for result in results)
        promised = {*acknowledged}
    with folder.opened(), table(project, folder) as (dynamodb, _):
        rules = AccessTable(dynamodb, TABLE)
        found = {principal for _, principal in rules.rules(POLICY).changes}

        assert failed > 0
        assert len(promised) >= 20
        assert promised <= found
        assert rules.version() >= len(promised)


@contextmanager
def whole(project: Project, folder: DataFolder) -> Iterator[tuple[Any, Child]]:
    """Run MiniStack after an orderly end, and end it in order."""
    with folder.opened() as session:
        assert not session.recovers
        with table(project, folder) as started:
            yield started
        session.is_deployed = session.is_written = True


def test_a_failed_save_restores_no_revoked_right(tmp_path: Path, project: Project) -> None:
    """MiniStack loads the state before it, and the journal has the changes since then, also deletions."""
    folder = DataFolder(tmp_path)
    state = folder.state / "dynamodb.json"
    with whole(project, folder) as (dynamodb, _):
        judgments = Judgments(dynamodb, TABLE, Guard())
        AccessTable(dynamodb, TABLE).change("people", "user:bob", Effect.ALLOW, "user:olga")
        judgments.write(BOB, GRADE)
        judgments.write(BOB, GRADE.model_copy(update={"query_id": "other"}))
    old = state.read_bytes()
    with whole(project, folder) as (dynamodb, _):
        AccessTable(dynamodb, TABLE).change("people", "user:bob", Effect.DENY, "user:olga")
        items = dynamodb.scan(TableName=TABLE)["Items"]
        (other,) = [item for item in items if item[SORT_KEY]["S"].startswith("other#")]
        dynamodb.delete_item(TableName=TABLE, Key={name: other[name] for name in (PARTITION_KEY, SORT_KEY)})
        before = AccessTable(dynamodb, TABLE).rules(POLICY).changes

    for _ in range(2):
        state.write_bytes(old)
        with whole(project, folder) as (dynamodb, _):
            assert labels(dynamodb) == frozenset()
            assert grades(dynamodb) == [2]
            assert AccessTable(dynamodb, TABLE).rules(POLICY).changes == before


def test_the_state_of_a_version_without_a_journal_is_kept(tmp_path: Path, project: Project) -> None:
    folder = DataFolder(tmp_path)
    with whole(project, folder) as (dynamodb, _):
        AccessTable(dynamodb, TABLE).change("people", "user:bob", Effect.DENY, "user:olga")
        expected = AccessTable(dynamodb, TABLE).rules(POLICY).changes
    folder.journal.unlink()

    with folder.opened() as session, table(project, folder) as (dynamodb, child):
        assert not session.recovers
        assert AccessTable(dynamodb, TABLE).rules(POLICY).changes == expected
        kill(child)
    with folder.opened() as session, table(project, folder) as (dynamodb, _):
        assert session.recovers
        assert AccessTable(dynamodb, TABLE).rules(POLICY).changes == expected


def test_other_tables_with_the_same_keys_are_not_in_the_journal(tmp_path: Path, project: Project) -> None:
    folder = DataFolder(tmp_path)
    keys = ((PARTITION_KEY, "HASH"), (SORT_KEY, "RANGE"))
    item = to_item({PARTITION_KEY: "ACCESS", SORT_KEY: "theirs"})
    with folder.opened(), table(project, folder) as (dynamodb, _):
        dynamodb.create_table(
            TableName="another",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
        )
        dynamodb.put_item(TableName="another", Item=item)
        AccessTable(dynamodb, TABLE).change("people", "user:bob", Effect.DENY, "user:olga")
        dynamodb.put_item(TableName="another", Item=item)

        places = Journal(folder.journal).read().keys()

    assert {partition for partition, _ in places} == {"ACCESS"}
    assert "theirs" not in {name for _, name in places}


def test_a_change_that_cannot_be_kept_is_not_acknowledged(tmp_path: Path, project: Project) -> None:
    folder = DataFolder(tmp_path)
    with folder.opened(), table(project, folder) as (dynamodb, _):
        rules = AccessTable(dynamodb, TABLE)
        rules.change("people", "user:ann", Effect.DENY, "user:olga")
        folder.journal.unlink()
        folder.journal.mkdir()

        with pytest.raises(ClientError, match="InternalServerError"):
            rules.change("people", "user:bob", Effect.DENY, "user:olga")


ONE: Any = {("ACCESS", "one"): {"pk": {"S": "ACCESS"}, "sk": {"S": "one"}}}
TWO: Any = {("ACCESS", "two"): None}


def test_a_write_that_fails_half_way_leaves_no_part_of_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "journal")
    journal.append(ONE)

    def fail(handle: int) -> None:
        os.write(handle, b"cut")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="No space"):
            journal.append(TWO)
    assert journal.read() == ONE
    journal.append(TWO)

    assert journal.read() == ONE | TWO


@pytest.mark.parametrize("line", [b'[["ACCESS","on', b"\xff", b"{}", b"[[1]]", b"1", b"[" * 99_999], ids=repr)
def test_a_damaged_line_is_named(tmp_path: Path, project: Project, line: bytes) -> None:
    folder = DataFolder(tmp_path)
    journal = Journal(folder.journal)
    journal.append(ONE)
    folder.journal.write_bytes(folder.journal.read_bytes() + line)
    if line != b"{}":  # a line that has an end is whole
        assert journal.read() == ONE
    folder.journal.write_bytes(folder.journal.read_bytes() + b"\n")
    journal.append(TWO)

    if line == b"{}":
        assert journal.read() == ONE | TWO
        return
    with pytest.raises(RuntimeError, match=r"Line 2 of .*kept-items.jsonl is damaged"):
        journal.read()
    with pytest.raises(StackError, match=r"Line 2 of .*put the file back from a backup, or remove the line"):
        _start_ministack(project, StackOptions(folder.path), folder)


def test_a_long_journal_is_written_again_with_the_last_states(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    journal = Journal(file, compact_bytes=2000)
    journal.append(TWO)
    longest = 0

    for number in range(200):
        journal.append({("BUDGET#a", "day"): {"questions": {"N": str(number)}}})
        longest = max(longest, file.stat().st_size)

    assert longest < 2100
    assert journal.read() == {("ACCESS", "two"): None, ("BUDGET#a", "day"): {"questions": {"N": "199"}}}
    for number in range(200):  # more states than fit: it is not written again for each of them
        journal.append({("JUDGMENT", str(number)): {"grade": {"N": "1"}}})
    assert len(journal.read()) == 202


class Waiting:
    """A DynamoDB with the table, whose writes wait, like those of MiniStack for its own lock."""

    def __init__(self) -> None:
        self.started, self.released = asyncio.Event(), asyncio.Event()

    async def __call__(self, scope: Any, _receive: Any, send: Any) -> None:
        operation = dict(scope["headers"])[b"x-amz-target"].decode().partition(".")[2]
        keys = [{"AttributeName": name} for name in (PARTITION_KEY, SORT_KEY)]
        answers: dict[str, Any] = {
            "DescribeTable": {"Table": {"KeySchema": keys, "GlobalSecondaryIndexes": [{"IndexName": BY_LABEL}]}},
            "Scan": {"Items": []},
            "TransactGetItems": {"Responses": [{"Item": ONE["ACCESS", "one"]}]},
        }
        if operation == "PutItem":
            self.started.set()
            await self.released.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(answers.get(operation, {})).encode()})


def test_a_write_is_kept_if_its_client_goes(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")

    async def write() -> None:
        database = Waiting()
        application = durable_items.DurableItems(database, journal, KEPT_ITEMS)
        body = json.dumps({"TableName": TABLE, "Item": ONE["ACCESS", "one"]}).encode()
        headers = [(b"x-amz-target", b"DynamoDB_20120810.PutItem")]

        async def receive() -> Any:
            return {"type": "http.request", "body": body}

        async def send(_message: Any) -> None:
            raise AssertionError("the client has gone")

        request = asyncio.ensure_future(
            application({"type": "http", "method": "POST", "headers": headers}, receive, send)
        )
        await database.started.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        database.released.set()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait(others)

    asyncio.run(write())

    assert journal.read() == ONE
