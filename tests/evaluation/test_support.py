"""`ragstack eval support`: verdicts against sentences with known ones."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from evaluation import support
from evaluation.dataset import DataSetError
from ragstack_common.answers.answer import Verdict
from ragstack_common.answers.models.protocol import Passage
from ragstack_local.cli import app
from tests.support.entailment_models import make_entailment_folder

SAMPLES = Path("samples/judged")


class Knowing:
    """Says the known verdict, but that partly supported sentences are not supported, and fails to see some."""

    def __init__(self, cases: Sequence[support.Case], blind: int) -> None:
        wrong = [case for case in cases if case.verdict == support.NOT_SUPPORTED][:blind]
        self._verdicts = {
            case.sentence: "not supported"
            if case.verdict == "partly"
            else "supported"
            if case in wrong
            else case.verdict
            for case in cases
        }

    async def verdicts(
        self, sentences: Sequence[tuple[str, Sequence[int]]], passages: Sequence[Passage]
    ) -> Mapping[int, Verdict]:
        assert all(passages[number - 1].number == number for _, cited in sentences for number in cited)
        return {place: self._verdicts[text] for place, (text, _) in enumerate(sentences)}


def test_precision_and_recall_are_those_of_not_supported() -> None:
    cases, documents = support.read(SAMPLES)
    partly, against = (sum(case.verdict == known for case in cases) for known in ("partly", "not supported"))

    found = support.measured(cases, documents, Knowing(cases, 5), lambda: None)

    assert len(cases) >= 60
    assert found.counts["not supported", "supported"] == 5
    assert found.recall == (against - 5) / against
    assert found.precision == (against - 5) / (against - 5 + partly)


def test_a_classifier_is_measured_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tiny model knows no word of the samples, so every sentence seems to be supported."""
    model, output = make_entailment_folder(tmp_path / "nli"), tmp_path / "out"

    app(["eval", "support", str(SAMPLES), "--judge", f"onnx:{model}", "--output", str(output)], standalone_mode=False)

    assert "70 sentences" in capsys.readouterr().out
    verdicts = json.loads((output / "results.json").read_text())["verdicts"]
    assert len(verdicts) == 70
    assert set(verdicts.values()) <= {"supported", "not supported"}


def test_a_case_about_an_unknown_passage_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "A."}\n')
    case = {"_id": "s1", "sentence": "A.", "passages": ["b"], "verdict": "supported"}
    (tmp_path / "support.jsonl").write_text(json.dumps(case) + "\n")

    with pytest.raises(DataSetError, match="names 'b'"):
        support.read(tmp_path)
