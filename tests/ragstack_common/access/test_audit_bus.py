"""Audit events on an event bus."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from ragstack_common.access.audit import AuditSink, record
from ragstack_common.access.audit_bus import audit_sink, put_on_bus
from ragstack_common.access.budget import DailyBudget
from ragstack_common.access.callers import caller_from_key
from ragstack_common.access.guard import Guard
from ragstack_common.core.errors import LimitReachedError
from ragstack_common.settings.access import AccessSettings
from tests.support.registry_table import TABLE

EVENT = {
    "kind": "refused",
    "caller": "key:reader",
    "right": "write",
    "resource": "POST /api/documents",
    "rule": "key:reader lacks the right write",
}


@pytest.fixture
def events() -> Iterator[Any]:
    with mock_aws():
        yield boto3.client("events", region_name="eu-west-1")


def refuse(sink: AuditSink) -> None:
    record(
        "refused",
        caller_from_key("reader"),
        right="write",
        resource="POST /api/documents",
        rule="key:reader lacks the right write",
        sink=sink,
    )


def test_the_bus_gets_what_the_log_has(events: Any, caplog: pytest.LogCaptureFixture) -> None:
    sent: list[dict[str, Any]] = []
    events.meta.events.register("provide-client-params.events.PutEvents", lambda params, **_: sent.append(params))
    events.create_event_bus(Name="audit")

    with caplog.at_level("INFO"):
        refuse(partial(put_on_bus, events, "audit"))

    [entry] = sent[0]["Entries"]
    assert (entry["Source"], entry["DetailType"], entry["EventBusName"]) == ("ragstack", "audit", "audit")
    assert json.loads(entry["Detail"]) == EVENT
    assert [line.audit for line in caplog.records if hasattr(line, "audit")] == [EVENT]


def test_a_bus_that_refuses_fails_no_request(events: Any, caplog: pytest.LogCaptureFixture) -> None:
    events.meta.events.register("before-call.events.PutEvents", _denied)

    refuse(partial(put_on_bus, events, "audit"))

    assert "audit event is not on the bus audit" in caplog.text


def _denied(**_: Any) -> None:
    raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "PutEvents")


def test_there_is_no_bus_by_default() -> None:
    assert audit_sink(AccessSettings()) is None
    assert audit_sink(AccessSettings(audit_bus="audit")) is not None


def test_a_caller_who_reaches_the_limit_is_audited(dynamodb: Any) -> None:
    sent: list[dict[str, Any]] = []
    budget = DailyBudget(dynamodb, TABLE, 0, 1, sink=sent.append)
    budget.spend(caller_from_key("reader"))

    with pytest.raises(LimitReachedError):
        budget.spend(caller_from_key("reader"))

    assert [(each["kind"], each["caller"]) for each in sent] == [("limit reached", "key:reader")]


def test_a_look_at_the_view_of_another_is_audited() -> None:
    sent: list[dict[str, Any]] = []

    Guard(sink=sent.append).view_as(caller_from_key("operator"), "s3://documents/a.md", "user:alice")

    assert sent == [
        {
            "kind": "view as",
            "caller": "key:operator",
            "right": "operate",
            "resource": "s3://documents/a.md",
            "rule": "user:alice",
        }
    ]
