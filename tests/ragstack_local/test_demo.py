"""The demonstration: what it asks, and how it judges the answers."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ragstack_common.registry.document_status import DocumentStatus
from ragstack_local import demo
from ragstack_local.cli import app
from ragstack_local.demo import ANSWERS, SEARCHES, AnswerExample, SearchExample
from ragstack_local.errors import StackError
from ragstack_local.files.ingestion import Round
from ragstack_local.show import display
from tests.ragstack_local import retrieve_answers
from tests.ragstack_local.answer_events import SOURCES, events, response
from tests.ragstack_local.support import Api, running_stack, stack_at

ROOT = Path(__file__).parents[2]
DOCUMENTS = ROOT / "samples" / "documents"
HANDBOOK = [path for path in DOCUMENTS.rglob("*") if path.is_file() and not path.name.endswith(".metadata.json")]
questions = pytest.mark.parametrize("question", SEARCHES, ids=lambda question: " ".join(question.arguments[1:]))


def answer(*names: str) -> dict[str, Any]:
    return retrieve_answers.answer(
        *(retrieve_answers.result(source=f"s3://documents/{name}", ranking=retrieve_answers.RANKING) for name in names)
    )


@pytest.fixture
def uploaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keys that the demonstration uploads; each is indexed at once."""
    keys: list[str] = []

    def ingest(_: object, files: Any, *, timeout_seconds: float) -> Round:
        keys.extend(file.key for file in files)
        return Round({file.key: DocumentStatus("INDEXED") for file in files})

    monkeypatch.setattr(demo, "ingest", ingest)
    return keys


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the demonstration asks; each answer is as expected."""
    asked: list[str] = []

    def print_stream(stream: Any) -> Any:
        question = next(each for each in ANSWERS if each.body["question"] not in asked)
        asked.append(question.body["question"])
        cited = SOURCES[0].model_copy(update={"source": f"s3://b/{question.expected}"})
        stream.close()
        return response(answered=question.expected is not None, sources=[cited]).model_dump()

    monkeypatch.setattr(demo, "print_stream", print_stream)
    return asked


@questions
def test_the_command_that_is_shown_sends_what_the_demonstration_sends(
    tmp_path: Path, api: Api, question: SearchExample
) -> None:
    api.will_answer(200, answer())

    with running_stack(tmp_path, stack_at(api_url=api.url)):
        CliRunner().invoke(app, ["query", *question.arguments], env={"RAGSTACK_DATA": str(tmp_path)})

    assert [request["body"] for request in api.requests] == [question.body]


@pytest.mark.parametrize("question", ANSWERS, ids=lambda question: question.arguments[0])
def test_the_displayed_command_sends_the_same_request(tmp_path: Path, api: Api, question: AnswerExample) -> None:
    api.will_stream(*events(response()))

    with running_stack(tmp_path, stack_at(api_url=api.url)):
        CliRunner().invoke(app, ["ask", *question.arguments], env={"RAGSTACK_DATA": str(tmp_path)})

    assert [request["body"] for request in api.requests] == [question.body]
    assert question.expected is None or [*DOCUMENTS.rglob(question.expected)]


def test_an_unexpected_answer_is_noticed() -> None:
    """It lacks the expected source, or answers what no document answers."""
    first, *_, unanswerable = ANSWERS
    source = SOURCES[0].model_copy(update={"source": f"s3://b/{first.expected}"})
    cited, other = (response(sources=[each]).model_dump() for each in (source, SOURCES[0]))
    silent = response(answered=False, sources=[]).model_dump()

    assert [first.is_answered_by(answer) for answer in (cited, other, silent)] == [True, False, False]
    assert [unanswerable.is_answered_by(answer) for answer in (cited, silent)] == [False, True]


@questions
def test_an_expected_document_exists_and_fits_the_filter(question: SearchExample) -> None:
    for name in question.expected:
        (path,) = DOCUMENTS.rglob(name)
        attributes = json.loads(path.with_name(f"{name}.metadata.json").read_text("utf-8"))["metadataAttributes"]
        assert attributes.items() >= dict(question.body.get("metadata_filter", {})).items()
        assert attributes["corpus"] == question.body.get("corpus_filter", attributes["corpus"])
    assert len(question.expected) <= question.within


def test_only_the_handbook_is_uploaded_and_all_examples_run(
    api: Api, uploaded: list[str], answers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    api.first = [{"facets": [], "documents": len(HANDBOOK), "next_token": None}]
    api.first += [answer(*(f"samples/{name}" for name in question.expected)) for question in SEARCHES]

    demo.run_demo(stack_at(api_url=api.url), ROOT)

    shown = " ".join(capsys.readouterr().out.split())
    assert len(uploaded) == len(HANDBOOK)
    assert all(key.startswith("samples/documents/") for key in uploaded)
    assert [request["body"] for request in api.requests[1:]] == [question.body for question in SEARCHES]
    assert all(question.note in shown for question in SEARCHES)
    assert all(question.note in shown for question in ANSWERS)
    assert answers == [question.body["question"] for question in ANSWERS]
    assert "How the results were ranked" in shown


@pytest.mark.parametrize(
    ("question", "names"),
    [
        (SEARCHES[1], ("api-rate-limits-v1.md", "other.md")),
        (SEARCHES[2], ("api-rate-limits-v1.md", "api-rate-limits-v2.md")),
        (SEARCHES[-1], ("api-rate-limits-v1.md",)),
    ],
    ids=["one of two is missing", "the obsolete one is first", "something where nothing may be"],
)
def test_an_answer_that_is_not_as_the_note_says_is_noticed(question: SearchExample, names: tuple[str, ...]) -> None:
    assert not question.is_answered_by(answer(*names)["results"])


@pytest.mark.parametrize("others", [0, 3])
def test_a_wrong_answer_fails_unless_there_are_other_documents(
    api: Api, uploaded: list[str], answers: list[str], capsys: pytest.CaptureFixture[str], others: int
) -> None:
    api.first = [{"facets": [], "documents": len(HANDBOOK) + others, "next_token": None}]
    api.will_answer(200, answer("of-the-user.md"))
    connection = stack_at(api_url=api.url)

    if others:
        demo.run_demo(connection, ROOT)
    else:
        with pytest.raises(StackError, match="These questions were not answered as expected"):
            demo.run_demo(connection, ROOT)

    shown = capsys.readouterr().out
    assert ("3 other documents in the data folder can be found too" in shown) is bool(others)
    assert SEARCHES[0].note.split(":", maxsplit=1)[0] not in shown


def test_a_document_that_is_not_searchable_ends_the_demonstration(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Round({"s3://b/a.md": DocumentStatus("FAILED", "no text")})
    monkeypatch.setattr(demo, "ingest", lambda *_, **__: failed)

    with pytest.raises(StackError, match="Not every document became searchable: 1 FAILED"):
        demo.run_demo(stack_at(api_url=api.url), ROOT)

    assert api.requests == []


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a command in .venv/bin, which is the working directory; nothing is on the PATH."""
    program = tmp_path / ".venv" / "bin" / "ragstack"
    program.parent.mkdir(parents=True)
    shutil.copy(sys.executable, program)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("MAKELEVEL", raising=False)
    monkeypatch.setattr(sys, "argv", [str(program)])
    return tmp_path


def test_a_command_outside_the_path_is_shown_by_its_path(checkout: Path) -> None:
    assert display.program() == ".venv/bin/ragstack"


def test_a_command_on_the_path_is_shown_by_its_name(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout / ".venv" / "bin"))

    assert display.program() == "ragstack"
