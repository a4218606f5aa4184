"""``ragstack gaps``, against the documents function behind HTTP."""

import json
import re

import pytest

from lambdas.documents import handler as documents
from ragstack_common.access.callers import OPERATOR
from ragstack_common.services.gap_models import GapReport
from tests.ragstack_common.services.conftest import Aws
from tests.ragstack_local.commands.conftest import Run


@pytest.fixture(autouse=True)
def _without_access(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_AUTH", "none")
    documents.callers.cache_clear()


def report(question: str, comment: str | None = None) -> str:
    return documents.service().gaps.report(OPERATOR, GapReport(question=question, comment=comment)).id


def test_gaps_are_listed_with_what_people_wrote(run: Run) -> None:
    identifier = report("Where is the zebra?", "It moved\nlast week")

    shown = run("gaps", "list")

    assert shown.exit_code == 0, shown.output
    assert "1×  Where is the zebra?" in shown.stdout  # noqa: RUF001 - times
    assert re.search(r"1 person, last 20\S+ \S+ UTC: reported 1$", shown.stdout, re.MULTILINE)
    assert "local: It moved last week" in shown.stdout
    assert identifier in shown.stdout
    assert "Questions without an answer are not stored" in shown.stdout


def test_a_gap_is_closed_and_opened_again(run: Run) -> None:
    identifier = report("Where is the zebra?")

    closed = run("gaps", "set", identifier, "answered")

    assert closed.exit_code == 0, closed.output
    assert "answered, by local" in closed.stdout
    assert "There is no open gap that you may see." in run("gaps", "list").stdout
    answered = json.loads(run("gaps", "list", "--state", "answered", "--json").stdout)
    assert [each["id"] for each in answered["groups"]] == [identifier]
    assert json.loads(run("gaps", "set", identifier, "open", "--json").stdout)["state"] == "open"
    assert "zebra" in run("gaps", "list", "--state", "all").stdout


def test_an_unknown_gap_or_state_is_refused(run: Run) -> None:
    unknown = run("gaps", "set", "5f70bf18a086007016e948b04aed3b82", "answered")

    assert unknown.exit_code != 0
    assert "There is no gap" in f"{unknown.output} {unknown.exception}"
    assert run("gaps", "set", report("Where is it?"), "closed").exit_code == 2
