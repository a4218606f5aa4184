"""ONNX models in a folder."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common import embedding
from ragstack_common.embedding import EmbeddingClosed, EmbeddingError
from ragstack_common.embedding.onnx import OnnxEmbedding
from tests.support.embedding_models import WORDS, make_model_folder, shared_sentence_model

CLS, SEP, UNK, HERON, BRIDGE, QUESTION = range(len(WORDS))


@pytest.fixture(scope="session")
def sentence_model() -> OnnxEmbedding:
    return shared_sentence_model()


def parts(vector: Any) -> list[float]:
    """Undo the scaling to unit length: how often each word counted."""
    least = min(value for value in vector if value > 0)
    return [round(float(value / least), 3) for value in vector]


def test_the_default_pooling_is_the_mean(tmp_path: Path) -> None:
    model = embedding.load(f"onnx:{make_model_folder(tmp_path / 'model')}")

    found = model.embed(["heron heron bridge"])[0]

    assert model.dimension == len(WORDS)
    assert np.isclose(np.linalg.norm(found), 1)
    assert parts(found) == [1, 1, 0, 2, 1, 0]


@pytest.mark.parametrize(("mode", "word"), [("pooling_mode_cls_token", CLS), ("pooling_mode_lasttoken", SEP)])
def test_the_pooling_of_the_model_is_used(tmp_path: Path, mode: str, word: int) -> None:
    pooling = {"1_Pooling/config.json": {mode: True, "pooling_mode_mean_tokens": False}}
    model = OnnxEmbedding(make_model_folder(tmp_path, configurations=pooling))

    found = model.embed(["heron bridge", "bridge"])

    assert np.array_equal(found, np.eye(len(WORDS), dtype=np.float32)[[word, word]])


@pytest.mark.parametrize(
    ("configurations", "tokens"),
    [
        ({}, 256),
        ({"config.json": {"max_position_embeddings": 512}}, 256),
        ({"config.json": {"max_position_embeddings": 128}}, 128),
        ({"config.json": {"max_position_embeddings": 512}, "tokenizer_config.json": {"model_max_length": 512}}, 512),
        ({"tokenizer_config.json": {"model_max_length": 10**30}}, 256),
        (
            {"sentence_bert_config.json": {"max_seq_length": 64}, "tokenizer_config.json": {"model_max_length": 512}},
            64,
        ),
    ],
)
def test_a_text_is_truncated_at_the_models_number_of_tokens(tmp_path: Path, configurations: Any, tokens: int) -> None:
    model = OnnxEmbedding(make_model_folder(tmp_path, configurations=configurations))

    found = model.embed(["heron " * 600])[0]

    assert parts(found)[HERON] == tokens - 2


def test_queries_and_passages_get_the_prefixes_of_the_model(tmp_path: Path) -> None:
    prompts = {"config_sentence_transformers.json": {"prompts": {"query": "question ", "document": "bridge "}}}
    model = OnnxEmbedding(make_model_folder(tmp_path, configurations=prompts))

    assert parts(model.embed_query("heron")) == [1, 1, 0, 1, 0, 1]
    assert parts(model.embed(["heron"])[0]) == [1, 1, 0, 1, 1, 0]


def test_the_name_follows_the_model_and_not_the_path(tmp_path: Path) -> None:
    first = make_model_folder(tmp_path / "here" / "model")
    moved = Path(shutil.copytree(first, tmp_path / "there" / "model"))
    changed = Path(shutil.copytree(first, tmp_path / "elsewhere" / "model"))
    content = bytearray((changed / "model.onnx").read_bytes())
    content[content.index(np.float32(1).tobytes())] ^= 1
    (changed / "model.onnx").write_bytes(content)
    pooled = make_model_folder(
        tmp_path / "pooled" / "model", configurations={"1_Pooling/config.json": {"pooling_mode_cls_token": True}}
    )

    names = [OnnxEmbedding(folder).name for folder in (first, moved, changed, pooled)]

    assert names[0].startswith("onnx:model@")
    assert names[0] == names[1]
    assert len(set(names)) == 3


@pytest.mark.parametrize("inputs", [("input_ids",), ("input_ids", "attention_mask")])
def test_a_model_gets_only_its_own_inputs(tmp_path: Path, inputs: tuple[str, ...]) -> None:
    model = OnnxEmbedding(make_model_folder(tmp_path, inputs=inputs))

    assert parts(model.embed(["heron"])[0]) == [1, 1, 0, 1, 0, 0]


def test_a_folder_without_a_usable_model_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    half = make_model_folder(tmp_path / "half")
    (half / "tokenizer.json").unlink()
    damaged = make_model_folder(tmp_path / "damaged")
    (damaged / "model.onnx").write_bytes(b"no model")
    garbled = make_model_folder(tmp_path / "garbled", configurations={"config.json": {}})
    (garbled / "config.json").write_text("{")
    garbled_tokens = make_model_folder(tmp_path / "tokens")
    (garbled_tokens / "tokenizer.json").write_text("{}")
    pooling = {"1_Pooling/config.json": {"pooling_mode_weightedmean_tokens": True}}
    folders = {
        tmp_path / "nowhere": "There is no folder .*nowhere: name one with model.onnx and tokenizer.json",
        tmp_path / "empty": "The folder .*empty has no model.onnx: download it",
        half: "The folder .*half has no tokenizer.json: download it",
        damaged: "The model .*model.onnx cannot be loaded .*: download it again",
        garbled: "The file .*config.json cannot be read .*: download it again",
        garbled_tokens: "The tokenizer .*tokenizer.json cannot be read .*: download it again",
        make_model_folder(
            tmp_path / "max", configurations=pooling
        ): "pools by pooling_mode_weightedmean_tokens, which is not",
        make_model_folder(tmp_path / "in", inputs=("input_ids", "pixel_values")): "needs pixel_values, which no",
        make_model_folder(tmp_path / "out", output="logits", inputs=("input_ids",)): "",
    }

    for folder, message in folders.items():
        if message:
            with pytest.raises(EmbeddingError, match=message):
                embedding.load(f"onnx:{folder}")

    assert embedding.load(f"onnx:{tmp_path / 'out'}").dimension == len(WORDS)  # one output alone can only be it


def test_a_closed_model_rejects_texts(tmp_path: Path) -> None:
    model = OnnxEmbedding(make_model_folder(tmp_path))

    model.close()

    with pytest.raises(EmbeddingClosed):
        model.embed(["heron"])


@settings(deadline=None, max_examples=30)
@given(st.lists(st.text(max_size=60), max_size=6))
def test_a_text_has_the_same_vector_alone_and_in_a_batch(sentence_model: OnnxEmbedding, texts: list[str]) -> None:
    together = sentence_model.embed(texts)

    assert together.shape == (len(texts), 384)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for row, text in zip(together, texts, strict=True):
        assert np.array_equal(row, sentence_model.embed([text])[0])


def pooled(folder: Path, choice: str = "", **environment: str) -> tuple[list[float], embedding.Embedding]:
    model = embedding.load(f"onnx:{folder}{choice}", environment=environment)
    return parts(model.embed(["heron heron bridge"])[0]), model


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ("mean", [1, 1, 0, 2, 1, 0]),
        ("max", [1, 1, 0, 1, 1, 0]),
        ("cls", [1, 0, 0, 0, 0, 0]),
        ("lasttoken", [0, 1, 0, 0, 0, 0]),
        ("mean+max", [1, 1, 0, 2, 1, 0, 5, 5, 0, 5, 5, 0]),
    ],
)
def test_a_chosen_pooling_is_used_and_is_part_of_the_name(tmp_path: Path, pooling: str, expected: list[float]) -> None:
    folder = make_model_folder(
        tmp_path / "model", configurations={"1_Pooling/config.json": {"pooling_mode_cls_token": 1}}
    )

    found, model = pooled(folder, f"#{pooling}")

    own = embedding.load(f"onnx:{folder}").name
    assert found == expected
    assert model.dimension == len(expected)
    assert model.name == (own if pooling == "cls" else f"{own}#{pooling}")


def test_the_pooling_of_the_environment_is_the_default(tmp_path: Path) -> None:
    folder = make_model_folder(tmp_path / "model")

    by_environment, model = pooled(folder, POOLING="mean+max")
    by_choice, _ = pooled(folder, "#cls", POOLING="mean+max")

    assert (len(by_environment), len(by_choice)) == (2 * len(WORDS), len(WORDS))
    assert model.name.endswith("#mean+max")


def test_a_model_can_pool_by_mean_and_maximum(tmp_path: Path) -> None:
    modes = {"pooling_mode_max_tokens": True, "pooling_mode_mean_tokens": True}
    folder = make_model_folder(tmp_path / "model", configurations={"1_Pooling/config.json": modes})

    found, model = pooled(folder)

    assert found == [1, 1, 0, 2, 1, 0, 5, 5, 0, 5, 5, 0]
    assert "#" not in model.name


@pytest.mark.parametrize(("choice", "environment"), [("#median", {}), ("", {"POOLING": "median"})])
def test_an_unknown_pooling_is_an_error(tmp_path: Path, choice: str, environment: dict[str, str]) -> None:
    with pytest.raises(EmbeddingError, match="no pooling 'median': choose mean, max, cls, lasttoken, mean"):
        pooled(make_model_folder(tmp_path / "model"), choice, **environment)
