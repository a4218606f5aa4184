"""The demonstration: what it asks, and how it judges the answers."""

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from typer.testing import CliRunner

from ragstack_common.core.artefacts import mail_of
from ragstack_common.core.uris import s3_uri
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.records import DocumentRecord
from ragstack_common.services.document_models import DocumentDetail, DocumentReceipt, RecognizedPart
from ragstack_local import demo
from ragstack_local.cli import app
from ragstack_local.demo import ANSWERS, ATTACHMENT, CONVERTED, SCAN, SCANNED, SEARCHES, AnswerExample, SearchExample
from ragstack_local.errors import StackError
from ragstack_local.files.ingestion import Round
from ragstack_local.files.uploads import LocalFile
from ragstack_local.show import display
from tests.ragstack_local import retrieve_answers
from tests.ragstack_local.answer_events import SOURCES, events, response
from tests.ragstack_local.support import Api, running_stack, stack_at

ROOT = Path(__file__).parents[2]
DOCUMENTS = ROOT / "samples" / "documents"
SAMPLES = [
    path.relative_to(ROOT).as_posix()
    for folder in (DOCUMENTS, ROOT / demo.FOLDER)
    for path in folder.rglob("*")
    if path.is_file() and not path.name.endswith(".metadata.json")
]
ASKED = (*ANSWERS, *CONVERTED, SCANNED)
BUCKET = stack_at().bucket
questions = pytest.mark.parametrize("question", SEARCHES, ids=lambda question: " ".join(question.arguments[1:]))


def answer(*names: str) -> dict[str, Any]:
    return retrieve_answers.answer(
        *(retrieve_answers.result(source=f"s3://documents/{name}", ranking=retrieve_answers.RANKING) for name in names)
    )


def document(key: str, **more: Any) -> DocumentDetail:
    uri = s3_uri(BUCKET, key)
    known = {"id": DocumentRecord(uri).id, "uri": uri, "key": key, "status": "INDEXED", "searchable": True}
    others = {"attributes": {}, "attempts": 1, "history": [], "again": False}
    return DocumentDetail(**{**dict.fromkeys(DocumentDetail.model_fields), **known, **others, **more})


def receipt(confidence: float) -> DocumentReceipt:
    recognized = [RecognizedPart(part="page 1", confidence=confidence)]
    counts = {"chunks": 1, "words": 80, "compared": 80, "read": 80, "complete": True, "parts_not_read": 0}
    lists: dict[str, Any] = {"counted": [], "left_out": [], "not_read": [], "recognized": recognized}
    return DocumentReceipt(**{"compared_at": "2026-01-05T09:00:00Z", "unreadable": None, **counts, **lists})


@dataclass
class Uploads:
    """What the demonstration uploads, each time; everything is indexed at once, but for the documents in *failed*."""

    rounds: list[list[str]] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def ingest(self, _: object, files: Sequence[LocalFile], **__: Any) -> Round:
        self.rounds.append([file.key for file in files])
        reasons = {file.key: self.failed.get(file.key) for file in files}
        return Round(
            {
                s3_uri(BUCKET, key): DocumentStatus("FAILED" if reason else "INDEXED", reason)
                for key, reason in reasons.items()
            }
        )


@pytest.fixture
def uploads(monkeypatch: pytest.MonkeyPatch, api: Api) -> Uploads:
    """Text recognition is installed."""
    uploads = Uploads()
    monkeypatch.setattr(demo, "ingest", uploads.ingest)
    monkeypatch.setattr(demo, "installed_recognition", lambda: "tesseract")
    for known in (document(ATTACHMENT), document(SCAN, receipt=receipt(0.957))):
        answer_about(api, known)
    return uploads


def answer_about(api: Api, known: DocumentDetail) -> None:
    detail = known.model_dump(mode="json")
    api.lists[f"documents?{urlencode({'uri': known.uri})}"] = {"documents": [detail], "next_token": None}
    api.lists[known.id] = detail


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the demonstration asks; each answer is as expected."""
    asked: list[str] = []

    def print_stream(stream: Any) -> Any:
        question = next(each for each in ASKED if each.body["question"] not in asked)
        asked.append(question.body["question"])
        cited = SOURCES[0].model_copy(update={"source": f"s3://b/{question.expected}", **question.place})
        stream.close()
        return response(answered=question.expected is not None, sources=[cited]).model_dump()

    monkeypatch.setattr(demo, "print_stream", print_stream)
    return asked


def posted(api: Api) -> list[Any]:
    return [request["body"] for request in api.requests if request["method"] == "POST"]


@questions
def test_the_command_that_is_shown_sends_what_the_demonstration_sends(
    tmp_path: Path, api: Api, question: SearchExample
) -> None:
    api.will_answer(200, answer())

    with running_stack(tmp_path, stack_at(api_url=api.url)):
        CliRunner().invoke(app, ["query", *question.arguments], env={"RAGSTACK_DATA": str(tmp_path)})

    assert [request["body"] for request in api.requests] == [question.body]


@pytest.mark.parametrize("question", ASKED, ids=lambda question: question.arguments[0])
def test_the_displayed_command_sends_the_same_request(tmp_path: Path, api: Api, question: AnswerExample) -> None:
    api.will_stream(*events(response()))

    with running_stack(tmp_path, stack_at(api_url=api.url)):
        CliRunner().invoke(app, ["ask", *question.arguments], env={"RAGSTACK_DATA": str(tmp_path)})

    assert [request["body"] for request in api.requests] == [question.body]
    assert question.expected is None or any(
        name.endswith(mail_of(question.expected) or question.expected) for name in SAMPLES
    )


def test_an_unexpected_answer_is_noticed() -> None:
    """It lacks the expected source, or answers what no document answers."""
    first, *_, unanswerable = ANSWERS
    source = SOURCES[0].model_copy(update={"source": f"s3://b/{first.expected}"})
    cited, other = (response(sources=[each]).model_dump() for each in (source, SOURCES[0]))
    silent = response(answered=False, sources=[]).model_dump()

    assert [first.is_answered_by(answer) for answer in (cited, other, silent)] == [True, False, False]
    assert [unanswerable.is_answered_by(answer) for answer in (cited, silent)] == [False, True]


def test_an_answer_from_another_place_of_the_document_is_noticed() -> None:
    slide = CONVERTED[0]
    source = SOURCES[0].model_copy(update={"source": f"s3://b/{slide.expected}", "page": 2, "is_slide": True})
    there, elsewhere = (response(sources=[source.model_copy(update={"page": page})]).model_dump() for page in (2, 3))

    assert [slide.is_answered_by(answer) for answer in (there, elsewhere)] == [True, False]


@questions
def test_an_expected_document_exists_and_fits_the_filter(question: SearchExample) -> None:
    for name in question.expected:
        (path,) = DOCUMENTS.rglob(name)
        attributes = json.loads(path.with_name(f"{name}.metadata.json").read_text("utf-8"))["metadataAttributes"]
        assert attributes.items() >= dict(question.body.get("metadata_filter", {})).items()
        assert attributes["corpus"] == question.body.get("corpus_filter", attributes["corpus"])
    assert len(question.expected) <= question.within


def test_the_samples_are_uploaded_and_all_examples_run(
    api: Api, uploads: Uploads, answers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    api.first = [{"facets": [], "documents": len(SAMPLES) + 1, "next_token": None}]
    api.first += [answer(*(f"samples/{name}" for name in question.expected)) for question in SEARCHES]

    demo.run_demo(stack_at(api_url=api.url), ROOT)

    shown = " ".join(capsys.readouterr().out.split())
    assert [sorted(keys) for keys in uploads.rounds] == [sorted(SAMPLES)]
    assert posted(api) == [question.body for question in SEARCHES]
    assert all(question.note in shown for question in (*SEARCHES, *ASKED))
    assert answers == [question.body["question"] for question in ASKED]
    assert "How the results were ranked" in shown
    assert "maintenance-contract.docx, attached to coffee-machines.eml, became a document of its own." in shown
    assert "warehouse-lease.pdf was read from its image, with 96% confidence." in shown
    assert "other document" not in shown


def test_without_text_recognition_the_scan_is_named_and_not_asked_about(
    api: Api,
    uploads: Uploads,
    answers: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(demo, "installed_recognition", lambda: None)
    uploads.failed[SCAN] = "It needs text recognition (OCR) first."
    api.first = [{"facets": [], "documents": len(SAMPLES), "next_token": None}]
    api.first += [answer(*(f"samples/{name}" for name in question.expected)) for question in SEARCHES]

    demo.run_demo(stack_at(api_url=api.url), ROOT)

    shown = " ".join(capsys.readouterr().out.split())
    assert answers == [question.body["question"] for question in ASKED if question is not SCANNED]
    assert f"FAILED {s3_uri(BUCKET, SCAN)}: It needs text recognition (OCR) first." in shown
    assert "apt install tesseract-ocr, or pip install 'ragstack-kb[ocr]'" in shown


def test_what_failed_before_is_uploaded_again(api: Api, uploads: Uploads) -> None:
    """Text recognition may have been installed since."""
    uploads.failed[SCAN] = "It needs text recognition (OCR) first."

    with pytest.raises(StackError, match="1 FAILED"):
        demo.run_demo(stack_at(api_url=api.url), ROOT)

    assert [len(keys) for keys in uploads.rounds] == [len(SAMPLES), 1]
    assert uploads.rounds[1] == [SCAN]


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
    api: Api, uploads: Uploads, answers: list[str], capsys: pytest.CaptureFixture[str], others: int
) -> None:
    api.first = [{"facets": [], "documents": len(SAMPLES) + 1 + others, "next_token": None}]
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


@pytest.mark.parametrize("key", [ATTACHMENT, SCAN, demo.DOCUMENT])
def test_a_document_that_is_not_searchable_ends_the_demonstration(api: Api, uploads: Uploads, key: str) -> None:
    uploads.failed[key] = "no text"
    if key == ATTACHMENT:
        answer_about(api, document(key, status="FAILED", searchable=False))

    with pytest.raises(StackError, match="Not every document became searchable: 1 FAILED"):
        demo.run_demo(stack_at(api_url=api.url), ROOT)

    assert posted(api) == []


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
