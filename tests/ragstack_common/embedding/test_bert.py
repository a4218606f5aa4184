"""ONNX graphs of BERT models."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common.core.errors import EmbeddingError
from ragstack_common.embedding import bert
from ragstack_common.embedding.bert import build, read_safetensors
from tests.support.bert_models import WORDS, config, embedded_by_numpy, random_weights, write_model

Texts = list[list[int]]
TEXTS = st.lists(st.lists(st.integers(0, len(WORDS) - 1), min_size=1, max_size=20), min_size=1, max_size=3)


def embed(model: Any, texts: Texts) -> Any:
    longest = max(map(len, texts))
    ids = np.array([[*text, *[0] * (longest - len(text))] for text in texts])
    mask = np.array([[1] * len(text) + [0] * (longest - len(text)) for text in texts])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (vectors,) = session.run([bert.OUTPUT], {"input_ids": ids, "attention_mask": mask})
    return vectors


@given(TEXTS, st.integers(0, 2**32 - 1), st.sampled_from([(1, 1, 8), (2, 2, 16), (3, 4, 16)]))
@settings(max_examples=25)
def test_a_graph_computes_what_numpy_does(texts: Texts, seed: int, shape: tuple[int, int, int]) -> None:
    layers, heads, size = shape
    description = config(layers=layers, heads=heads, size=size)
    weights = random_weights(description, seed)

    found = embed(build(weights, description, is_quantized=False), texts)

    assert np.allclose(found, [embedded_by_numpy(weights, description, text) for text in texts], atol=2e-4)


@given(TEXTS, st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_eight_bits_change_a_vector_little(texts: Texts, seed: int) -> None:
    weights = random_weights(config(), seed)

    found = embed(build(weights, config()), texts)

    exact = np.array([embedded_by_numpy(weights, config(), text) for text in texts])
    assert np.einsum("ij,ij->i", found, exact).min() > 0.97


@given(TEXTS, st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_a_vector_does_not_depend_on_the_other_texts_of_its_batch(texts: Texts, seed: int) -> None:
    model = build(random_weights(config(), seed), config())

    together = embed(model, texts)

    assert np.allclose(together, np.concatenate([embed(model, [text]) for text in texts]), atol=1e-6)


def test_a_graph_is_valid_and_always_the_same() -> None:
    weights = random_weights(config(), 1)
    first, second = (build(weights, config()).SerializeToString(deterministic=True) for _ in range(2))

    onnx.checker.check_model(first, full_check=True)

    assert first == second


def test_weights_are_read_from_their_file(tmp_path: Path) -> None:
    weights = random_weights(config(), 1)
    write_model(tmp_path / "model", config(), weights)

    found = read_safetensors(tmp_path / "model" / "model.safetensors")

    assert found.keys() == weights.keys()
    assert all(np.array_equal(found[name], weights[name]) for name in weights)


def test_another_architecture_is_refused() -> None:
    with pytest.raises(EmbeddingError, match="Only BERT"):
        build({}, {**config(), "model_type": "modernbert"})
    with pytest.raises(EmbeddingError, match="has no weights"):
        build({}, config())
