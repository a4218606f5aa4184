"""What only the registry's table has survives `kill -9`, with the real MiniStack."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from ragstack_common.access.budget import DailyBudget
from ragstack_common.access.callers import Caller
from ragstack_common.access.changes import AccessTable
from ragstack_common.access.guard import Guard
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.access.rules import Effect
from ragstack_common.api.judgments import JudgmentChange, Judgments
from ragstack_common.core.errors import LimitReachedError
from ragstack_common.registry.table import PARTITION_KEY, SORT_KEY, to_item
from ragstack_local.stack.processes import Child
from ragstack_local.stack.recovery import DataFolder
from ragstack_local.target.connection import LOCAL_REGION, Project
from tests.ragstack_local.test_recovery import kill, ministack, project
from tests.support.registry_table import TABLE, create_table

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
        assert labels(dynamodb) == {"law"}
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


def test_an_orderly_end_has_the_last_word(tmp_path: Path, project: Project) -> None:
    """A version without the file may have run in between, and its changes survive a later kill too."""
    folder = DataFolder(tmp_path)
    with folder.opened() as session:
        with table(project, folder) as (dynamodb, _):
            rules = AccessTable(dynamodb, TABLE)
            rules.change("people", "user:bob", Effect.ALLOW, "user:olga")
            stale = folder.journal.read_bytes()
            rules.change("people", "user:bob", Effect.DENY, "user:olga")
        session.is_deployed = session.is_written = True
    folder.journal.write_bytes(stale)

    with folder.opened() as session, table(project, folder) as (dynamodb, child):
        assert not session.recovers
        assert labels(dynamodb) == frozenset()
        kill(child)
    with folder.opened() as session, table(project, folder) as (dynamodb, _):
        assert session.recovers
        assert labels(dynamodb) == frozenset()


def test_a_change_that_cannot_be_kept_is_not_acknowledged(tmp_path: Path, project: Project) -> None:
    folder = DataFolder(tmp_path)
    with folder.opened(), table(project, folder) as (dynamodb, _):
        rules = AccessTable(dynamodb, TABLE)
        rules.change("people", "user:ann", Effect.DENY, "user:olga")
        folder.journal.unlink()
        folder.journal.mkdir()

        with pytest.raises(ClientError, match="InternalServerError"):
            rules.change("people", "user:bob", Effect.DENY, "user:olga")
