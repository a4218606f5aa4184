"""How ``ragstack logs`` shows lines; tests/e2e reads those of a running stack."""

import json
import time
from pathlib import Path

import pytest

from ragstack_local.commands import logs

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
