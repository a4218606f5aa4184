"""`ragstack eval answers`, as a user starts it, with a real local Bedrock."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import typer

from ragstack_common.core.errors import RagStackError
from tests.evaluation.conftest import InProcess
from tests.evaluation.support import QUERIES, results, rows, write_data_set
from tests.ragstack_local.support import ragstack
from tests.support.language_model import language_model

REFERENCES: Mapping[str, Mapping[str, Any]] = {
    "q1": {"answer": ["the grey heron"]},
    "q2": {"answer": "a dinghy of plywood for two sailors"},
    "q3": {"answer": "the kestrel"},
    "unjudged": {"answerable": False},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    queries = [{**query, "metadata": {**query.get("metadata", {}), **REFERENCES[query["_id"]]}} for query in QUERIES]
    return write_data_set(tmp_path_factory.mktemp("sets") / "birds", queries)


def by_question(setup: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {f"{line['kind']} {line['_id']}": line for line in setup["answers"]}


def test_every_figure_can_be_traced_to_its_answer(home: Path, data: Path) -> None:
    output = home / "out"

    options = ("--without-documents", "--compare", "top_k=1", "--output")
    ended = ragstack("eval", "answers", data, *options, output, data=home)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "birds: 3 questions, 1 unanswerable, 3 removed, 6 documents" in ended.stdout
    first, second = results(output)["setups"]
    assert [first["label"], second["label"]] == ["HYBRID, hashed", "HYBRID, hashed, top_k=1"]
    answers = by_question(first)
    assert list(answers)[:4] == ["answerable q1", "answerable q2", "answerable q3", "unanswerable unjudged"]
    hovers = answers["answerable q3"]
    assert hovers["cited"] == ["kestrel"]
    assert hovers["token recall"] == 1
    assert "kestrel" not in answers["removed q3"]["found"]
    assert len(by_question(second)["answerable q1"]["found"]) == 1
    recall = [line["token recall"] for line in answers.values() if "token recall" in line]
    figures = rows(output)
    assert figures["token recall"]["HYBRID, hashed"]["mean"] == pytest.approx(sum(recall) / 3, abs=0.001)
    assert figures["answered"]["Δ"]["mean"] <= 0
    assert "| measure | HYBRID, hashed | top_k=1 | Δ |" in (output / "results.md").read_text()
    assert "citation precision" in (output / "results.svg").read_text()


def test_a_model_answers_and_another_judges(
    home: Path, data: Path, tmp_path: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    with language_model() as model:
        monkeypatch.setenv("RAGSTACK_LLM_URL", model.url)
        model.says(models=("qwen3:8b", "org/judge"), pieces=("It hovers [1] and hunts [99].\n", "VERDICT: correct"))
        models = ("--setup", "answer_model=qwen3:8b", "--judge", "org/judge")
        in_process("eval", "answers", data, *models, "--output", tmp_path / "out", data=home)

    (setup,) = results(tmp_path / "out")["setups"]
    assert setup["label"] == "HYBRID, hashed, answer_model=qwen3:8b"
    figures = {name: row[setup["label"]] for name, row in rows(tmp_path / "out").items()}
    measures = {name: figure["mean"] for name, figure in figures.items() if isinstance(figure, dict)}
    assert measures["judged correct"] == 1
    assert measures["removed citations"] == 1
    assert measures["unsupported"] == 0.5
    assert {asked["model"] for asked in model.asked} == {"qwen3:8b", "org/judge"}
    assert setup["judge"] == {
        "model": "org/judge",
        "verdicts": 3,
        "unparsable": 0,
        "failed": 0,
        "controls": 6,
        "controls_right": 3,
    }
    assert "its figures mean little" in (tmp_path / "out" / "results.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--compare", "search=KEYWORD"], "search: Input should be 'HYBRID' or 'SEMANTIC'"),
        (["--compare", "top_k=0"], "top_k: Input should be greater than or equal to 1"),
        (["--unanswerable", "DATASET"], "birds answers its own questions"),
    ],
)
def test_an_impossible_measurement_of_answers_is_rejected(
    home: Path, data: Path, arguments: list[str], message: str, in_process: InProcess
) -> None:
    with pytest.raises((RagStackError, typer.BadParameter)) as refused:
        in_process("eval", "answers", data, *(data if each == "DATASET" else each for each in arguments), data=home)

    assert message in str(refused.value)
