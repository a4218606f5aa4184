"""`ragstack up` says once that its default embedding has no model."""

from pathlib import Path

import pytest

from ragstack_common.embedding.kinds import FORMS
from ragstack_local.commands.stack import MODELS, _options, _start_again, advise_on_embedding
from ragstack_local.search_options import SettingsOptions
from ragstack_local.stack.local_stack import StackOptions
from ragstack_local.target.connection import Project


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


def test_the_command_to_start_again_has_the_ports_and_folder(tmp_path: Path) -> None:
    project = Project.find()
    own = _options(project, (4566, 5567, 4568), tmp_path / "my data", "hashed", None, SettingsOptions(), [])
    default = _options(project, (4566, 4567, 4568), None, "hashed", None, SettingsOptions(), [])

    assert _start_again(project, own).endswith(f"up --bedrock-port 5567 --data-dir '{tmp_path}/my data'")
    assert _start_again(project, default).endswith("ragstack up")


def test_every_advised_embedding_is_a_known_kind() -> None:
    kinds = [option.removeprefix("--embedding ").strip("'").partition(":")[0] for option, _ in MODELS]

    assert [kind for kind in kinds if kind not in FORMS] == []


@pytest.mark.parametrize(
    ("arguments", "model"),
    [
        ([], None),
        (["--llm-url", "http://127.0.0.1:11434/v1"], "local.model"),
        (
            ["--llm-url", "http://127.0.0.1:11434/v1", "--llm-model", "hf.co/some/llama3.2:3b"],
            "local.hf.co-some-llama3.2:3b",
        ),
    ],
    ids=["none", "the server's first", "named"],
)
def test_a_model_of_the_local_bedrock_writes_the_answers_too(
    tmp_path: Path, arguments: list[str], model: str | None
) -> None:
    project = Project.find()

    options = _options(project, (1, 2, 3), tmp_path, "hashed", None, SettingsOptions(), arguments)
    chosen = _options(project, (1, 2, 3), tmp_path, "hashed", ["answer_model=own"], SettingsOptions(), arguments)

    assert options.context.get("answer_model") == model
    assert chosen.context["answer_model"] == "own"
