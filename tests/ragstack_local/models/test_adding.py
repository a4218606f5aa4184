"""Models in the user's cache."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from ragstack_common import embedding
from ragstack_common.core.errors import EmbeddingError
from ragstack_common.settings import model_cache
from ragstack_common.settings.model_cache import AUTOMATIC, MINILM
from ragstack_local.models import adding
from ragstack_local.models.adding import add
from tests.support.bert_models import config, random_weights, write_model


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "ragstack" / "models"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package on the index, with a tiny model instead of MiniLM."""
    folder = tmp_path / "package"
    source = folder / adding._PACKAGE_FOLDER
    write_model(source, config(), random_weights(config(), 1))
    hashes = {file: hashlib.sha256((source / file).read_bytes()).hexdigest() for file in adding._MINILM_HASHES}
    monkeypatch.setattr(adding, "_MINILM_HASHES", hashes)
    monkeypatch.setattr(adding, "_install", lambda *_: folder)
    return source


def test_an_added_model_is_loaded_by_its_name(package: Path, models: Path) -> None:
    assert model_cache.chosen(AUTOMATIC) == "hashed"

    added = add(MINILM)

    model = embedding.load(MINILM)
    manifest = json.loads((added.folder / "manifest.json").read_text())
    assert added.folder.parent == models
    assert model.dimension == config()["hidden_size"]
    assert model.name.startswith("onnx:minilm-int8@")
    assert embedding.flag(model.name) == "--embedding minilm"
    assert (manifest["pooling"], manifest["max_tokens"], manifest["licence"]) == ("mean", 256, "Apache-2.0")
    assert manifest["sha256"]["model.onnx"] == hashlib.sha256((added.folder / "model.onnx").read_bytes()).hexdigest()
    assert manifest["min_cosine_with_float"] >= adding.MIN_COSINE
    assert model_cache.chosen(AUTOMATIC) == MINILM


def test_a_model_is_automatic_only_where_the_packages_that_run_it_are_installed(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(MINILM)

    monkeypatch.setattr(model_cache, "RUNTIME", ("no_such_package",))

    assert model_cache.chosen(AUTOMATIC) == "hashed"


def test_batches_of_short_texts_change_no_vector(package: Path) -> None:
    add(MINILM)
    model = embedding.load(MINILM)
    texts = ["w1", "w2 w3 " * 12, "w4 w5", "w1 w6 w7", "w8 " * 20]

    together = model.embed(texts)

    assert np.allclose(together, [model.embed_query(text) for text in texts], atol=1e-5)


def test_only_a_missing_or_damaged_model_is_fetched(package: Path) -> None:
    folder = add(MINILM).folder
    assert add(MINILM).was_there
    (folder / "model.onnx").write_bytes(b"damaged")

    again = add(MINILM)

    assert not again.was_there
    assert embedding.load(MINILM).embed(["w1"]).any()


def test_a_model_that_was_converted_differently_is_converted_again(
    package: Path,
) -> None:
    with pytest.MonkeyPatch.context() as earlier:
        earlier.setattr(adding, "CONVERSION", adding.CONVERSION - 1)
        add(MINILM)

    assert not add(MINILM).was_there
    assert add(MINILM).was_there


def test_a_failure_leaves_no_model(package: Path, models: Path) -> None:
    models.mkdir(parents=True)
    (models / ".adding-killed").mkdir()  # by an earlier process that was killed
    (package / "model.safetensors").write_bytes(b"something else")

    with pytest.raises(EmbeddingError, match=r"model\.safetensors of .* is not the expected one"):
        add(MINILM)

    assert [path.name for path in models.iterdir()] == [".lock"]
    with pytest.raises(EmbeddingError, match="run `ragstack model add minilm`"):
        embedding.load(MINILM)


def test_an_unlike_conversion_is_refused(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adding, "MIN_COSINE", 1.1)

    with pytest.raises(EmbeddingError, match="differs from the original"):
        add(MINILM)

    assert not model_cache.is_added(MINILM)


def test_an_unreachable_index_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("UV_OFFLINE", "1")  # where there is no pip

    with pytest.raises(EmbeddingError, match=r"cannot be fetched \(.*run `ragstack model add minilm` again"):
        add(MINILM)


def test_an_unreachable_hub_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")

    with pytest.raises(EmbeddingError, match=r"cannot be fetched from http://127\.0\.0\.1:9 "):
        add("granite")


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(EmbeddingError, match="choose minilm or granite"):
        add("other")
