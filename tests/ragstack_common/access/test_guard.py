import logging
from typing import Any

import pytest

from ragstack_common.access.callers import OPERATOR, Caller, Right
from ragstack_common.access.changes import AccessTable
from ragstack_common.access.guard import Guard
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.access.rules import Effect
from ragstack_common.core.errors import AccessRulesError, InvalidRequestError, NotAllowedError, RegistryError
from ragstack_common.core.reporting import error_status
from ragstack_common.registry.documents import DocumentRegistry, RecordChange
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_common.registry.table import ACCESS, PARTITION_KEY, SORT_KEY, to_item
from tests.support.registry_table import TABLE

POLICY = AccessPolicy(
    rights={"read": ["everyone"], "operate": ["group:ops"]},
    labels={"hr": {"allow": ["group:hr"]}, "public": {"allow": ["everyone"]}},
    prefixes={"hr/": {"default": "hr", "writers": ["group:hr"]}},
)
ALICE = Caller("user:alice", frozenset({"everyone", "user:alice", "group:hr"}))
BOB = Caller("user:bob", frozenset({"everyone", "user:bob"}))


@pytest.fixture
def guard(dynamodb: Any) -> Guard:
    return Guard(POLICY, AccessTable(dynamodb, TABLE))


def add(dynamodb: Any, uri: str, label: str | None, status: Status = Status.INDEXED) -> None:
    record = DocumentRecord(uri, status=status, label=label)
    assert DocumentRegistry(TABLE, dynamodb).write([RecordChange(DocumentRecord(uri), record)]) == set()


def test_a_change_counts_for_other_processes_at_once(guard: Guard, dynamodb: Any) -> None:
    other = Guard(POLICY, AccessTable(dynamodb, TABLE))
    assert other.rules().labels(BOB) == frozenset({"public"})

    guard.change(OPERATOR, "hr", "user:bob", Effect.ALLOW)
    assert other.rules().labels(BOB) == frozenset({"hr", "public"})

    guard.change(OPERATOR, "hr", "user:bob", None)
    assert other.rules().labels(BOB) == frozenset({"public"})

    guard.change(OPERATOR, "hr", "group:hr", Effect.DENY)
    assert other.rules().labels(ALICE) == frozenset({"public"})


def test_a_check_reads_labels_and_rules_in_one_call(guard: Guard, dynamodb: Any) -> None:
    add(dynamodb, "s3://b/hr.md", "hr")
    add(dynamodb, "s3://b/public.md", "public")
    add(dynamodb, "s3://b/none.md", None)
    add(dynamodb, "s3://b/gone.md", "public", Status.DELETED)
    uris = [f"s3://b/{name}.md" for name in ("hr", "public", "none", "gone", "unknown")]
    guard.known_rules()
    calls: list[str] = []
    dynamodb.meta.events.register("before-call.dynamodb", lambda model, **_: calls.append(model.name))

    checked = guard.check(BOB, uris)

    dynamodb.meta.events.unregister("before-call.dynamodb")
    assert checked.hidden == {uri for uri in uris if not uri.endswith("/public.md")}
    assert "BatchGetItem" in calls
    assert guard.check(ALICE, uris).hidden == {f"s3://b/{name}.md" for name in ("none", "gone", "unknown")}


def test_who_does_not_see_a_mail_does_not_see_what_is_attached_to_it(guard: Guard, dynamodb: Any) -> None:
    add(dynamodb, "s3://b/hr.eml", "hr")
    add(dynamodb, "s3://b/all.eml", "public")
    add(dynamodb, "s3://b/gone.eml", "public", Status.DELETED)
    attached = [f"s3://b/{mail}.eml.ragstack/{file}" for mail in ("hr", "all", "gone") for file in ("a.pdf", "b.eml")]
    attached += [f"{uri}.ragstack/c.md" for uri in attached if uri.endswith("b.eml")]
    for uri in attached:
        add(dynamodb, uri, "public")  # as before the mail got its label

    assert guard.check(BOB, attached).hidden == {uri for uri in attached if not uri.startswith("s3://b/all.eml")}
    assert guard.check(ALICE, attached).hidden == {uri for uri in attached if uri.startswith("s3://b/gone.eml")}


def test_a_check_of_many_documents_is_complete(guard: Guard, dynamodb: Any) -> None:
    uris = [f"s3://b/{number}.md" for number in range(150)]
    for number, uri in enumerate(uris):
        add(dynamodb, uri, "hr" if number % 2 else "public")

    assert guard.check(BOB, uris).hidden == set(uris[1::2])


def test_a_missing_right_is_refused_and_audited(guard: Guard, caplog: pytest.LogCaptureFixture) -> None:
    guard.require(BOB, Right.READ, "POST /api/retrieve")

    with caplog.at_level(logging.INFO), pytest.raises(NotAllowedError) as caught:
        guard.require(BOB, Right.OPERATE, "POST /api/failures/replay")

    assert str(caught.value) == "user:bob lacks the right operate"
    (event,) = [line.audit for line in caplog.records if hasattr(line, "audit")]
    assert event == {
        "kind": "refused",
        "caller": "user:bob",
        "right": "operate",
        "resource": "POST /api/failures/replay",
        "rule": "user:bob lacks the right operate",
    }


def test_writers_are_those_of_the_prefix(guard: Guard) -> None:
    guard.require_writer(ALICE, "hr/a.md")

    for caller, key in ((BOB, "hr/a.md"), (ALICE, "other/a.md")):
        with pytest.raises(NotAllowedError):
            guard.require_writer(caller, key)


def test_only_labels_of_the_access_file_change(guard: Guard) -> None:
    with pytest.raises(InvalidRequestError, match="no label 'board'"):
        guard.change(OPERATOR, "board", "user:bob", Effect.ALLOW)


def test_without_an_access_file_everybody_may_do_everything() -> None:
    guard = Guard()

    guard.require(BOB, Right.OPERATE, "x")
    guard.require_writer(BOB, "any/key.md")
    assert guard.rules().labels(BOB) is None
    assert guard.check(BOB, ["s3://b/a.md"]).hidden == frozenset()
    with pytest.raises(InvalidRequestError, match="access=FILE"):
        guard.change(OPERATOR, "hr", "user:bob", Effect.ALLOW)


def test_rules_that_cannot_be_read_refuse_everything(dynamodb: Any) -> None:
    guard = Guard(POLICY, AccessTable(dynamodb, "no-such-table"))

    for read in (guard.known_rules, guard.rules, lambda: guard.check(ALICE, [])):
        with pytest.raises(RegistryError):
            read()


@pytest.mark.parametrize(
    ("sort_key", "members"),
    [
        ("2#hr#user:bob", {"label": "hr", "principal": "user:bob", "effect": "allow", "by": "user:olga"}),
        ("2#hr#user:bob", {"label": "hr", "principal": "user:bob", "effect": "maybe", "by": "user:olga", "at": 1}),
        ("2#hr#user:bob", {"label": 7, "principal": "user:bob", "effect": "allow", "by": "user:olga", "at": 1}),
        ("2#hr#user:bob", {"label": "hr", "principal": ["a"], "effect": "allow", "by": "user:olga", "at": 1}),
        ("2#hr#user:bob", {"label": "hr", "principal": "user:bob", "effect": "allow", "by": "user:olga", "at": "now"}),
        ("2#hr#user:bob", {}),
        ("VERSION", {"number": "three"}),
        ("VERSION", {"other": 1}),
    ],
)
def test_a_malformed_rule_denies_access_without_a_bug_report(
    guard: Guard, dynamodb: Any, caplog: pytest.LogCaptureFixture, sort_key: str, members: dict[str, Any]
) -> None:
    guard.change(OPERATOR, "hr", "user:bob", Effect.ALLOW)
    dynamodb.put_item(TableName=TABLE, Item=to_item({PARTITION_KEY: ACCESS, SORT_KEY: sort_key, **members}))
    fresh = Guard(POLICY, AccessTable(dynamodb, TABLE))

    for read in (fresh.rules, lambda: fresh.check(BOB, ["s3://b/hr.md"]), fresh.known_rules):
        with pytest.raises(AccessRulesError, match="nobody is let in") as caught:
            read()
        assert error_status(caught.value) == 503
    assert f"ACCESS {sort_key}" in caplog.text
    assert "user:bob" not in str(caught.value)
