"""``ragstack certify``: what it lists, what it writes, and with which code it ends."""

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from typer.testing import CliRunner

from ragstack_local.certify import catalogue, rights, run
from ragstack_local.certify.check import Check, Source
from ragstack_local.certify.report import Report
from ragstack_local.cli import app
from ragstack_local.errors import FAILED, WRONG_USAGE


@pytest.fixture
def endpoints(bedrock_url: str, moto_url: str) -> list[str]:
    return ["--bedrock", bedrock_url, "--s3-endpoint", moto_url]


def certify(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["certify", *arguments])


def test_the_list_names_every_check_and_tries_none() -> None:
    done = certify("--list")

    assert done.exit_code == 0
    assert all(check.name in done.output for check in catalogue.CHECKS)


def test_the_list_has_a_group_for_each_subject_with_aligned_beliefs() -> None:
    groups = certify("--list").output.strip("\n").split("\n\n")
    subjects = [{line.partition(".")[0] for line in group.splitlines()} for group in groups]

    assert all(len(subject) == 1 for subject in subjects)
    assert len(subjects) == len(set.union(*subjects))
    for group in groups:
        columns = {len(line) - len(line.partition(" ")[2].lstrip()) for line in group.splitlines()}
        assert len(columns) == 1


def test_the_list_takes_patterns() -> None:
    vectors, words = certify("--list", "--only", "words.pages", "--only", "vectors.*").output.split("\n\n")

    assert len(vectors.splitlines()) == sum(check.name.startswith("vectors.") for check in catalogue.CHECKS)
    assert words.startswith("words.pages  ")


def test_a_pattern_chooses_by_name_or_by_topic() -> None:
    by_name = certify("--list", "--only", "filters.starts_*").output.splitlines()
    by_topic = certify("--list", "--only", "vectors").output

    assert len(by_name) == 1
    assert by_name[0].startswith("filters.starts_with ")
    assert "vectors.default_mode" in by_topic
    assert "vector-filters" not in by_topic


def test_an_unknown_check_is_wrong_usage() -> None:
    done = certify("--only", "tides.*")

    assert done.exit_code == WRONG_USAGE
    assert "no check is called tides.*" in done.output


def test_a_local_bedrock_needs_its_s3() -> None:
    done = certify("--bedrock", "http://127.0.0.1:1")

    assert done.exit_code == WRONG_USAGE
    assert "--s3-endpoint" in done.output


def test_a_run_writes_both_forms_of_the_report(endpoints: list[str], tmp_path: Path) -> None:
    done = certify(*endpoints, "--only", "vectors.default_mode", "--output", str(tmp_path))

    assert done.exit_code == 0, done.output
    assert "1 matches, 0 differs, 0 not tried" in done.output
    report = json.loads((tmp_path / "local.json").read_text())
    assert [check["verdict"] for check in report["checks"]] == ["matches"]
    assert "vectors.default_mode" in (tmp_path / "local.md").read_text()


def test_a_difference_is_the_exit_code(endpoints: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = Check(
        name="tides.high",
        topic="tides",
        belief="The tide is high",
        source=Source.GUESS,
        used_by="ships",
        expected="high",
        observe=lambda _: "low",
    )
    monkeypatch.setattr(catalogue, "CHECKS", (check,))

    done = certify(*endpoints, "--output", str(tmp_path))

    assert done.exit_code == FAILED
    assert "expected high, observed low" in done.output
    assert '| tides.high | The tide is high | `"high"` | `"low"` | ships |' in (tmp_path / "local.md").read_text()


def test_a_folder_that_cannot_be_written_is_noticed_before_the_run(
    endpoints: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "certify", None)
    (tmp_path / "file").touch()

    done = certify(*endpoints, "--output", str(tmp_path / "file" / "reports"))

    assert isinstance(done.exception, NotADirectoryError)


def test_a_report_that_cannot_be_written_is_printed(
    endpoints: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Report, "write", full)

    done = certify(*endpoints, "--only", "vectors.default_mode", "--output", str(tmp_path))

    assert isinstance(done.exception, OSError)
    text = done.stdout[done.stdout.index("{") : done.stdout.rindex("}") + 1]
    assert [check["verdict"] for check in json.loads(text)["checks"]] == ["matches"]


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, moto_url: str) -> None:
    """An account of moto's, which ``--aws`` uses."""
    monkeypatch.setattr(boto3.Session, "client", _client_at(moto_url, boto3.Session.client))


def _client_at(url: str, client: Any) -> Any:
    return lambda self, *arguments, **options: client(self, *arguments, **{**options, "endpoint_url": url})


def test_a_run_on_aws_says_what_it_creates_and_asks(account: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights, "missing_rights", lambda *_: [])

    done = certify("--aws", "--only", "vectors.*")

    assert done.exit_code == WRONG_USAGE  # there is no terminal to ask on
    assert "a vector bucket with eleven indexes" in done.output
    assert "stacks" not in done.output
    assert "at most $0.62" in done.output
    assert "at most 45 minutes" in done.output
    assert "--yes" in done.output


def test_what_cannot_be_tried_is_said_before_the_question(account: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights, "missing_rights", lambda *_: None)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-2")

    output = certify("--aws").output

    assert "us-east-2 has no managed knowledge bases" in output
    assert "rights of the caller cannot be read" in output
    assert "run `npx cdk bootstrap`" in output
    assert "RagStackCertify" not in output


def test_checks_of_stacks_alone_need_a_bootstrapped_region(account: None) -> None:
    done = certify("--aws", "--yes", "--only", "console.*")

    assert "The stacks cannot be deployed: the Region is not bootstrapped" in str(done.exception)


@pytest.mark.parametrize(("region", "advice"), [("", "needs a Region"), ("eu-nowhere-1", "not in the Region eu-now")])
def test_a_run_on_aws_needs_a_region_that_exists(
    account: None, monkeypatch: pytest.MonkeyPatch, region: str, advice: str
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)

    done = certify("--aws", "--yes", "--only", "vectors.*")

    assert advice in str(done.exception)
    assert "set AWS_DEFAULT_REGION" in str(done.exception)


def test_a_run_on_aws_does_not_start_without_rights(account: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights, "missing_rights", lambda *_: ["bedrock:Retrieve"])

    done = certify("--aws", "--yes", "--only", "vectors.*")

    assert "The caller lacks bedrock:Retrieve" in str(done.exception)
