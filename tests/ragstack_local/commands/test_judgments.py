"""``ragstack judgments``, against both functions behind HTTP, and ``ragstack eval`` on what it writes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lambdas.documents import handler as documents
from lambdas.query import handler as query
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.services import judged_files
from ragstack_local.cli import app
from tests.access.conftest import account
from tests.access.world import BUCKET, Document, World, claims_of, deployed, user
from tests.evaluation.conftest import in_threads
from tests.ragstack_local.commands.conftest import Run
from tests.support.api_server import BASE_PATH, api_server

__all__ = ["in_threads"]

pytestmark = pytest.mark.xdist_group("measured data set")

POLICY = AccessPolicy(
    rights={"read": ["everyone"], "operate": ["group:operators"]},
    labels={"public": {"allow": ["everyone"]}, "board": {"allow": ["group:board"]}},
    prefixes={"": {"default": "public", "labels": ["public", "board"]}},
)
ALICE, BOB, OPERATOR = user("alice"), user("bob"), user("olga", "operators")
DOCUMENTS = [
    Document("people/leave.md", "public", "Leave is thirty days. Ask early", {"corpus": "people"}),
    Document("people/sick.md", "public", "Call before nine when you are sick", {"corpus": "people"}),
    Document("secret.md", "board", "The board sells the company"),
]


@pytest.fixture(scope="module", autouse=True)
def _moto() -> Iterator[None]:
    with account():
        yield


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with deployed(tmp_path, POLICY, DOCUMENTS) as made:
        yield made


@pytest.fixture
def run(world: World) -> Iterator[Run]:
    context = {"requestId": "r", "authorizer": {"claims": json.dumps(claims_of(OPERATOR))}}

    def function_of(path: str) -> Any:
        return (query if path == "/api/judgments/export" else documents).app.resolve

    with api_server(function_of, {}, context) as url:
        yield lambda *arguments: CliRunner().invoke(app, [*arguments, "--api-url", url + BASE_PATH])


def judge(world: World, caller: Any, name: str, query: str, key: str, grade: int) -> None:
    body = {"query_id": name, "query": query, "document": f"s3://{BUCKET}/{key}", "grade": grade}
    assert world.call(caller, "PUT", "/api/judgments", body)[0] == 200


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_an_export_is_a_data_set_that_can_be_measured(
    world: World, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge(world, OPERATOR, "q1", "How many days is leave?", "people/leave.md", 3)
    judge(world, OPERATOR, "q1", "How many days is leave?", "people/sick.md", 0)
    judge(world, OPERATOR, "q2", "What do I do when I am sick?", "people/sick.md", 1)
    judge(world, OPERATOR, "q2", "What do I do when I am sick?", "gone.md", 2)
    answer = {"query_id": "q1", "query": "How many days is leave?", "answer_grade": 0, "reference": "Thirty"}
    assert world.call(OPERATOR, "PUT", "/api/judgments", answer)[0] == 200
    folder = tmp_path / "judged"

    ended = run("judgments", "export", str(folder))

    assert ended.exit_code == 0, ended.output
    assert "Wrote 2 questions and 3 judgments of 2 documents" in ended.output
    assert "Left out (no passages found): s3://documents/gone.md" in ended.output
    corpus = {line["_id"]: line for line in lines(folder / "corpus.jsonl")}
    assert set(corpus["people/leave.md"]["text"].split("\n\n")) == {"Leave is thirty days", "Ask early"}
    assert corpus["people/leave.md"]["metadata"] == {"access": "public", "corpus": "people"}
    assert lines(folder / "queries.jsonl")[0]["metadata"] == {"answer": "Thirty"}
    assert (folder / "questions.csv").read_text().splitlines() == [
        "question,file",
        "How many days is leave?,s3://documents/people/leave.md",
        "What do I do when I am sick?,s3://documents/people/sick.md",
    ]
    monkeypatch.setenv("RAGSTACK_DATA", str(tmp_path / "data"))
    out = tmp_path / "out"
    command = ["eval", "search", str(folder), "--setup", "embedding=hashed", "--output", str(out)]
    app(command, standalone_mode=False)
    assert "judged, test: 2 queries, 2 documents" in (out / "results.md").read_text()


def test_the_newest_judgment_of_all_callers_counts(world: World, run: Run, tmp_path: Path) -> None:
    judge(world, BOB, "q1", "How many days is leave?", "people/leave.md", 0)
    judge(world, ALICE, "q1", "How many days is leave?", "people/leave.md", 2)

    own = run("judgments", "export", str(tmp_path / "own"))
    of_all = run("judgments", "export", str(tmp_path / "all"), "--all")

    assert (own.exit_code, of_all.exit_code) == (1, 0)
    assert "There are no judgments" in own.output
    written = (tmp_path / "all" / "qrels" / "test.tsv").read_text().splitlines()
    assert written == ["query-id\tcorpus-id\tscore", "q1\tpeople/leave.md\t2"]


def test_judgments_without_a_relevant_document_are_named(world: World, run: Run, tmp_path: Path) -> None:
    judge(world, OPERATOR, "q1", "How many days is leave?", "people/sick.md", 0)

    ended = run("judgments", "export", str(tmp_path / "judged"))

    assert "No judgment is above 0" in ended.output


def test_pages_of_an_export_make_the_same_files(
    world: World, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, key, grade in (("q1", "people/leave.md", 3), ("q2", "people/leave.md", 0), ("q2", "people/sick.md", 1)):
        judge(world, OPERATOR, name, f"Question {name}?", key, grade)
    assert run("judgments", "export", str(tmp_path / "whole")).exit_code == 0
    monkeypatch.setattr(judged_files, "CALLS_AT_ONCE", 1)
    monkeypatch.setattr(judged_files, "PAGE_BYTES", 1)

    assert run("judgments", "export", str(tmp_path / "paged")).exit_code == 0

    for name in ("queries.jsonl", "corpus.jsonl", "qrels/test.tsv", "questions.csv"):
        assert (tmp_path / "paged" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert len(lines(tmp_path / "paged" / "corpus.jsonl")) == 2
