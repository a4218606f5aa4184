"""A function whose access file is missing does not answer callers whom rules and labels tell apart."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from ragstack_common.access.callers import OPERATOR, Right
from ragstack_common.access.changes import AccessTable
from ragstack_common.access.guard import Guard
from ragstack_common.access.rules import Effect
from ragstack_common.core.errors import ConfigurationError, RegistryError
from ragstack_common.registry.documents import DocumentRegistry, RecordChange
from ragstack_common.registry.records import DocumentRecord
from tests.support.registry_table import TABLE, create_table

AUTHS = ["iam", "api_key", "none,oidc"]


@pytest.fixture(autouse=True)
def region(monkeypatch: pytest.MonkeyPatch) -> None:
    """The region of the table in moto."""
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


def ask(auth: str, guard: Guard | None = None) -> Guard:
    """Send a request to a new process, or to one that is running."""
    guard = guard or Guard.from_env({"API_AUTH": auth, "REGISTRY_TABLE": TABLE})
    guard.require(OPERATOR, Right.READ, "POST /api/retrieve")
    return guard


@pytest.mark.parametrize("auth", AUTHS)
def test_labels_and_rules_need_their_access_file(dynamodb: Any, auth: str) -> None:
    assert ask(auth).policy is None
    AccessTable(dynamodb, TABLE).change("people", "user:bob", Effect.DENY, "user:olga")
    with pytest.raises(ConfigurationError, match="deploy with access=FILE"):
        ask(auth)
    AccessTable(dynamodb, TABLE).change("people", "user:bob", None, "user:olga")
    assert ask(auth).policy is None
    record = DocumentRecord("s3://docs/a.md", label="people")
    DocumentRegistry(TABLE, dynamodb).write([RecordChange(DocumentRecord(record.uri), record)])
    with pytest.raises(ConfigurationError, match="deploy with access=FILE"):
        ask(auth)


def test_an_api_without_authentication_has_one_caller(dynamodb: Any) -> None:
    AccessTable(dynamodb, TABLE).change("people", "user:bob", Effect.DENY, "user:olga")

    assert ask("none").policy is None


def test_a_registry_out_of_reach_stops_no_search_and_is_asked_again(dynamodb: Any) -> None:
    guard = Guard.from_env({"API_AUTH": "iam", "REGISTRY_TABLE": TABLE})
    dynamodb.delete_table(TableName=TABLE)
    ask("iam", guard)
    create_table(dynamodb, TABLE)
    AccessTable(dynamodb, TABLE).change("people", "user:bob", Effect.DENY, "user:olga")

    with pytest.raises(ConfigurationError, match="no access file"):
        ask("iam", guard)


def test_without_permission_to_read_the_registry_every_request_is_refused(
    dynamodb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trying again cannot help, so that nobody would ever know whether documents have labels."""

    def refuse(*_: Any) -> bool:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no dynamodb:Scan"}}, "Scan")

    monkeypatch.setattr(AccessTable, "is_in_use", refuse)

    for _ in range(2):
        with pytest.raises(RegistryError, match="AccessDeniedException"):
            ask("iam")
