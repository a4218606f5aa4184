"""``ragstack doctor``: what fails is named, what depends on it is skipped, and the probe is removed."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lambdas.documents import handler as documents
from ragstack_local.api.http_operations import HttpOperations
from ragstack_local.commands import doctor as command
from ragstack_local.connection.address import Address
from ragstack_local.connection.connection import Connection
from ragstack_local.show.checks import Checks
from tests.ragstack_common.services.conftest import BUCKET, Aws
from tests.ragstack_local.support import Api, ragstack, running_stack
from tests.support.api_server import BASE_PATH, api_server


def checked(stdout: str) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in json.loads(stdout)["checks"]}


@pytest.fixture
def alarm(connection: Connection) -> Callable[..., None]:
    """Make an alarm in some state."""
    client = connection.client("cloudwatch")

    def make(name: str, state: str) -> None:
        client.put_metric_alarm(
            AlarmName=name,
            Namespace="n",
            MetricName="m",
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=1.0,
            ComparisonOperator="GreaterThanThreshold",
        )
        client.set_alarm_state(AlarmName=name, StateValue=state, StateReason="test")

    return make


def test_a_stack_whose_api_is_down_fails(tmp_path: Path, connection: Connection, api: Api) -> None:
    api.will_answer(500, {"error": {"code": "Internal", "message": "no engine"}})
    connection.client("sqs").send_message(QueueUrl=connection.dead_letter_queue_url, MessageBody="x")

    with running_stack(tmp_path, replace(connection, api_url=api.url)):
        done = ragstack("doctor", "--json", "--stack-prefix", "Absent", data=tmp_path)
        shown = ragstack("doctor", "--stack-prefix", "Absent", data=tmp_path)

    found = checked(done.stdout)
    assert (done.returncode, shown.returncode) == (3, 3)
    assert {name: check["status"] for name, check in found.items()} == {
        **dict.fromkeys(("models", "data source", "quotas", "model access"), "skipped"),
        "permissions": "ok",
        "knowledge base": "ok",
        "text recognition": "ok",
        "alarms": "failed",
        "dead letters": "warning",
        "api": "failed",
        **dict.fromkeys(("word search", "upload", "search", "answer", "relevance", "clean-up"), "skipped"),
    }
    assert found["dead letters"]["found"] == "1 messages could not be processed"
    assert "failed   api: " in shown.stdout
    assert "`ragstack logs query` says why" in shown.stdout
    assert not [request for request in api.requests if request["method"] == "POST"]


def test_an_alarm_that_rings_is_a_warning(
    tmp_path: Path, connection: Connection, api: Api, alarm: Callable[..., None]
) -> None:
    api.will_answer(500, {})
    alarm("DoctorApi-Quiet-1", "OK")
    alarm("DoctorSecondApi-Loud-1", "ALARM")  # of another deployment
    with running_stack(tmp_path, replace(connection, api_url=api.url)):
        quiet = checked(ragstack("doctor", "--json", "--stack-prefix", "Doctor", data=tmp_path).stdout)
        alarm("DoctorStorage-Loud-1", "ALARM")
        loud = checked(ragstack("doctor", "--json", "--stack-prefix", "Doctor", data=tmp_path).stdout)

    assert (quiet["alarms"]["status"], quiet["alarms"]["found"]) == ("ok", "1 alarm, none of them firing")
    assert (loud["alarms"]["status"], loud["alarms"]["found"]) == ("warning", "Firing: DoctorStorage-Loud-1")


def test_a_refused_call_names_the_missing_permission(tmp_path: Path, connection: Connection, api: Api) -> None:
    api.will_answer(500, {})

    with running_stack(tmp_path, replace(connection, api_url=api.url, registry_table="absent")):
        found = checked(ragstack("doctor", "--json", data=tmp_path).stdout)["permissions"]

    assert found["status"] == "warning"
    assert found["found"].startswith("Refused: dynamodb:GetItem (")
    assert "OPERATIONS.md#permissions" in found["advice"]


def test_a_document_that_is_never_indexed_is_removed(
    connection: Connection, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = replace(connection, bucket=BUCKET)
    monkeypatch.setattr(Connection, "client", lambda _self, service: getattr(aws, service))

    async def upload(_: Any, __: str, fields: Any, *___: Any) -> dict[str, str]:
        aws.put(fields["key"])  # moto answers boto3 alone
        return {}

    monkeypatch.setattr(HttpOperations, "upload", upload)
    checks = Checks(show=lambda _check: None)

    with api_server(lambda _: documents.app.resolve, {}) as url:
        address = Address.for_url(url + BASE_PATH)
        command._check_documents(checks, HttpOperations(lambda: address), stack, timeout=1.0)

    found = {check.name: check for check in checks.done}
    assert [(name, check.status) for name, check in found.items()] == [
        *(("upload", "failed"), ("search", "skipped"), ("answer", "skipped"), ("relevance", "skipped")),
        ("clean-up", "ok"),
    ]
    assert "is UPLOADED after 1 s" in found["upload"].found
    assert "deleted from the bucket" in found["clean-up"].found
    assert aws.keys() == []
