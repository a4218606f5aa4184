"""Audit events on an event bus."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from ragstack_common.access.audit import record
from ragstack_common.access.audit_bus import AuditBus, audit_sink
from ragstack_common.access.callers import caller_from_key
from ragstack_common.access_config import AccessSettings

EVENT = {
    "kind": "refused",
    "caller": "key:reader",
    "right": "write",
    "resource": "POST /api/documents",
    "rule": "key:reader lacks the right write",
}


@pytest.fixture
def client() -> Iterator[Any]:
    with mock_aws():
        yield boto3.client("events", region_name="eu-west-1")


def refuse(sink: AuditBus) -> None:
    record(
        "refused",
        caller_from_key("reader"),
        right="write",
        resource="POST /api/documents",
        rule="key:reader lacks the right write",
        sink=sink,
    )


def test_the_bus_gets_what_the_log_has(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    sent: list[dict[str, Any]] = []
    client.meta.events.register("provide-client-params.events.PutEvents", lambda params, **_: sent.append(params))
    client.create_event_bus(Name="audit")

    with caplog.at_level("INFO"):
        refuse(AuditBus(client, "audit"))

    [entry] = sent[0]["Entries"]
    assert (entry["Source"], entry["DetailType"], entry["EventBusName"]) == ("ragstack", "audit", "audit")
    assert json.loads(entry["Detail"]) == EVENT
    assert [line.audit for line in caplog.records if hasattr(line, "audit")] == [EVENT]


def test_a_bus_that_refuses_fails_no_request(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    client.meta.events.register("before-call.events.PutEvents", _denied)

    refuse(AuditBus(client, "audit"))

    assert "audit event is not on the bus audit" in caplog.text


def _denied(**_: Any) -> None:
    raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "PutEvents")


def test_there_is_no_bus_by_default() -> None:
    assert audit_sink(AccessSettings()) is None
    assert isinstance(audit_sink(AccessSettings(audit_bus="audit")), AuditBus)
