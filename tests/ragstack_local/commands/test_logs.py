"""How ``ragstack logs`` shows lines; tests/e2e reads those of a running stack."""

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner

from ragstack_local.cli import app
from ragstack_local.commands import logs
from ragstack_local.connection_options import DeploymentOptions

ENTRY = {"level": "ERROR", "message": "Retrieve failed", "code": 7, "service": "query", "exception": "Boom\n  at x"}


def test_an_entry_is_shown_in_words_with_its_exception(capsys: pytest.CaptureFixture[str]) -> None:
    shown = logs._print(time.time(), "query", json.dumps(ENTRY), raw=False)

    first, *rest = capsys.readouterr().out.splitlines()
    assert shown
    assert first[8:] == " query ERROR Retrieve failed  code=7"
    assert [line.strip() for line in rest] == ["Boom", "at x"]


@pytest.mark.parametrize("text", ["START RequestId: 1", "REPORT RequestId: 1", '{"_aws": {}, "Requests": [1.0]}'])
def test_metrics_and_lines_of_lambda_are_shown_with_raw_only(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert not logs._print(time.time(), "query", text, raw=False)
    assert capsys.readouterr().out == ""

    assert logs._print(time.time(), "query", text, raw=True)
    assert text in capsys.readouterr().out


def test_new_lines_of_a_file_are_read_once(tmp_path: Path) -> None:
    source = logs._LogFile("bedrock", tmp_path / "bedrock.log")
    before = list(source.read(0))
    source.file.write_text("started\n")

    first, again = list(source.read(0)), list(source.read(0))
    with source.file.open("a") as file:
        file.write("ended\n")

    assert (before, first, again) == ([], [(0.0, "bedrock", "started")], [])
    assert list(source.read(0)) == [(0.0, "bedrock", "ended")]
    assert list(logs._LogFile("bedrock", source.file).read(time.time() + 60)) == []


def test_lines_without_a_time_keep_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = logs._LogFile("bedrock", tmp_path / "bedrock.log")
    source.file.write_text("Traceback:\n  at x\nError: Boom\n")
    monkeypatch.setattr(DeploymentOptions, "connect", lambda _: None)
    monkeypatch.setattr(logs, "_sources", lambda *_: [source])

    logs.logs(aws=False, stack_prefix="RagStack", name=None, follow=False, since=30.0, raw=False)

    assert [line.partition("bedrock ")[2] for line in capsys.readouterr().out.splitlines()] == [
        "Traceback:",
        "  at x",
        "Error: Boom",
    ]


@pytest.mark.parametrize(("follow", "code"), [(True, 0), (False, 130)])
def test_ctrl_c_is_an_interruption_unless_lines_are_followed(
    monkeypatch: pytest.MonkeyPatch, follow: bool, code: int
) -> None:
    def interrupted(_: float) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(DeploymentOptions, "connect", lambda _: None)
    monkeypatch.setattr(logs, "_sources", lambda *_: [SimpleNamespace(name="query", read=interrupted)])

    assert CliRunner().invoke(app, ["logs", *(["--follow"] if follow else [])]).exit_code == code


@mock_aws
def test_equal_lines_are_shown_and_old_ones_not_read_again() -> None:
    client = boto3.client("logs", region_name="us-east-1")
    client.create_log_group(logGroupName="query")
    client.create_log_stream(logGroupName="query", logStreamName="one")
    now = int(time.time() * 1000)

    def write(*ages: int) -> None:
        events = [{"timestamp": now - age, "message": "retried"} for age in ages]
        client.put_log_events(logGroupName="query", logStreamName="one", logEvents=events)

    starts: list[int] = []
    client.meta.events.register(
        "provide-client-params.cloudwatch-logs.FilterLogEvents",
        lambda params, **_: starts.append(params["startTime"]),
    )
    source = logs._LogGroup("query", "query", client)

    write(600_000, 0, 0)
    counts = [len(list(source.read(0))), len(list(source.read(0)))]
    write(1_000)
    counts.append(len(list(source.read(0))))

    assert counts == [3, 0, 1]
    assert starts == [0, now - logs.LATE_MILLISECONDS, now - logs.LATE_MILLISECONDS]
