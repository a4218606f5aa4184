"""A classifier on this machine judges whether passages entail sentences."""

import threading
from pathlib import Path

import pytest

from ragstack_common.answers.answer import Sentence, Verdict
from ragstack_common.answers.entailment import EntailmentJudge
from ragstack_common.answers.factory import judge_from
from ragstack_common.answers.quote.extractive import ExtractiveProvider
from ragstack_common.answers.support import judged
from ragstack_common.core.errors import EmbeddingError
from ragstack_common.settings.answers import AnswerSettings
from tests.support.entailment_models import make_entailment_folder
from tests.support.passages import numbered

LEAVE = "Leave is ten weeks at full pay."
LUNCH = "Guests get lunch and tea every day."


def sentence(text: str, *citations: int) -> Sentence:
    return Sentence(start=0, end=len(text), text=text, citations=list(citations), unsupported=not citations)


async def verdict(folder: Path, text: str, *citations: int, passages: tuple[str, ...] = (LEAVE, LUNCH)) -> Verdict:
    found, remark = await judged(
        [sentence(text, *(citations or (1,)))], numbered(*passages), EntailmentJudge(folder), 5
    )
    assert remark is None
    return found[0]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_entailment_folder(tmp_path_factory.mktemp("models") / "nli")


@pytest.mark.parametrize(
    ("text", "citations", "expected"),
    [
        ("Leave is ten weeks.", (1,), "supported"),
        ("Leave is twenty weeks.", (1,), "not supported"),
        ("Leave is not ten weeks.", (1,), "not supported"),
        ("Guests get tea.", (1,), "not supported"),
        ("Guests get tea.", (1, 2), "supported"),
    ],
)
async def test_a_sentence_is_supported_if_a_cited_passage_entails_it(
    model: Path, text: str, citations: tuple[int, ...], expected: Verdict
) -> None:
    assert await verdict(model, text, *citations) == expected


async def test_each_part_of_a_long_passage_is_read(model: Path) -> None:
    passages = (f"{LUNCH} " * 30 + LEAVE + f" {LUNCH}" * 30,)

    assert await verdict(model, "Leave is ten weeks at full pay.", passages=passages) == "supported"
    assert await verdict(model, "Leave is twenty weeks.", passages=passages) == "not supported"


async def test_a_long_sentence_is_cut(model: Path) -> None:
    assert await verdict(model, "Leave is ten weeks at full pay . " * 20) == "supported"


async def test_texts_without_words_are_not_supported_or_harmless(model: Path) -> None:
    assert await verdict(model, "Leave \ud800 is", passages=("\ud800",)) == "not supported"


async def test_the_event_loop_is_free_while_the_model_runs(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    entails = EntailmentJudge._entails
    monkeypatch.setattr(
        EntailmentJudge,
        "_entails",
        lambda self, pair: threads.append(threading.current_thread()) or entails(self, pair),
    )

    await verdict(model, "Leave is ten weeks.")

    assert threads
    assert threading.main_thread() not in threads


def test_the_setting_chooses_the_classifier(model: Path) -> None:
    settings = AnswerSettings.from_env({"ANSWER_MODEL": "a.b", "SUPPORT_MODEL": f"onnx:{model}"})

    assert isinstance(judge_from(settings, ExtractiveProvider()), EntailmentJudge)


@pytest.mark.parametrize("labels", [("LABEL_0", "LABEL_1", "LABEL_2"), ("entailment", "not_entailment"), ()])
def test_other_classes_are_rejected(tmp_path: Path, labels: tuple[str, ...]) -> None:
    folder = make_entailment_folder(tmp_path / "nli", labels=labels)

    with pytest.raises(EmbeddingError, match=r"id2label|its 2 classes"):
        EntailmentJudge(folder)


async def test_a_model_that_fails_leaves_the_sentence_unknown(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = EntailmentJudge(model)
    monkeypatch.setattr(judge, "_session", None)

    found, remark = await judged([sentence("Leave is ten weeks.", 1)], numbered(LEAVE), judge, 5)

    assert found == {0: "unknown"}
    assert remark is not None
    assert "failed" in remark
