"""`ragstack up` says once that its default embedding has no model."""

from pathlib import Path

import pytest

from ragstack_common.embedding.kinds import FORMS
from ragstack_local.commands.stack import MODELS, advise_on_embedding
from ragstack_local.stack.local_stack import StackOptions


def test_the_advice_on_models_is_shown_once_for_a_data_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    advise_on_embedding(StackOptions(tmp_path))
    first = capsys.readouterr().out
    advise_on_embedding(StackOptions(tmp_path))
    second = capsys.readouterr().out

    assert "knows no synonyms" in first
    assert [option for option, _ in MODELS if option not in first] == []
    assert second == ""


def test_a_stack_with_a_model_needs_no_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    advise_on_embedding(StackOptions(tmp_path, embedding="fastembed"))

    assert capsys.readouterr().out == ""


def test_every_advised_embedding_is_a_known_kind() -> None:
    kinds = [option.removeprefix("--embedding ").strip("'").partition(":")[0] for option, _ in MODELS]

    assert [kind for kind in kinds if kind not in FORMS] == []
