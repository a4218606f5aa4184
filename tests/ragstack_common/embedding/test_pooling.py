"""Another pooling than the model's own, where the model pools its tokens itself."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from ragstack_common.embedding import EmbeddingError, embedding_choice, flag, load
from ragstack_common.embedding.bert import build
from ragstack_common.embedding.model_folder import POOLINGS, Pooling
from ragstack_common.embedding.onnx import OnnxEmbedding
from tests.support.bert_models import WORDS as BERT_WORDS
from tests.support.bert_models import config, embedded_by_numpy, random_weights, write_model
from tests.support.embedding_models import WORDS, add_minilm, make_model_folder, shared_sentence_model

TEXTS = ("heron", "heron heron bridge", "question of a bridge", "")
HIDDEN = np.random.default_rng(5).normal(size=(len(WORDS), 4)).astype(np.float32)

Nodes = Sequence[NodeProto]


def node(kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(kind, inputs, [output], **attributes)


def masked_mean() -> Nodes:
    """The mean as sentence-transformers exports it: the mask is expanded to the size of the tokens."""
    return (
        node("Mul", ["hidden", "expanded"], "weighted"),
        node("ReduceSum", ["weighted", "one"], "summed", keepdims=0),
        node("ReduceSum", ["expanded", "one"], "counted", keepdims=0),
        node("Div", ["summed", "counted"], "mean"),
    )


def normalized_mean() -> Nodes:
    return (
        *masked_mean()[:-1],
        node("Div", ["summed", "counted"], "unscaled"),
        node("ReduceL2", ["unscaled", "one"], "length", keepdims=1),
        node("Div", ["unscaled", "length"], "mean"),
    )


def masked_maximum() -> Nodes:
    return (
        node("Sub", ["expanded", "ones"], "missing"),
        node("Mul", ["missing", "large"], "bias"),
        node("Add", ["hidden", "bias"], "weighted"),
        node("ReduceMax", ["weighted", "one"], "max", keepdims=0),
    )


def first_token() -> Nodes:
    return (node("Gather", ["hidden", "zero"], "cls", axis=1),)


GRAPHS: dict[str, tuple[Pooling, Callable[[], Nodes]]] = {
    "mean": ("mean", masked_mean),
    "normalized mean": ("mean", normalized_mean),
    "maximum": ("max", masked_maximum),
    "first token": ("cls", first_token),
}


def make_pooled(folder: Path, nodes: Nodes, *, with_tokens: bool = False) -> Path:
    """Write a model that pools hidden vectors of the words itself."""
    make_model_folder(folder)
    output = nodes[-1].output[0]
    before = (
        node("Gather", ["table", "input_ids"], "hidden"),
        node("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT),
        node("Unsqueeze", ["mask", "two"], "column"),
        node("Shape", ["hidden"], "shape"),
        node("Expand", ["column", "shape"], "expanded"),
    )
    constants = {
        "table": HIDDEN,
        "zero": np.int64(0),
        "one": np.array([1]),
        "two": np.array([2]),
        "ones": np.float32(1),
        "large": np.float32(1e9),
        "dense": np.random.default_rng(1).normal(size=(4, 4)).astype(np.float32),
    }
    outputs: dict[str, list[str | int | None]] = {"sentence_embedding": ["b", 4]}
    if with_tokens:
        outputs["token_embeddings"] = ["b", "s", 4]
    renamed = [node("Identity", [output], "sentence_embedding"), node("Identity", ["hidden"], "token_embeddings")]
    graph = helper.make_graph(
        [*before, *nodes, *renamed],
        "pooled",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "s"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder


def plain(folder: Path, pooling: Pooling) -> OnnxEmbedding:
    """Return the model of the same vectors that does not pool."""
    nodes = [node("Gather", ["table", "input_ids"], "last_hidden_state")]
    make_model_folder(folder)
    graph = helper.make_graph(
        nodes,
        "plain",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["b", "s"])],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["b", "s", 4])],
        [numpy_helper.from_array(HIDDEN, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return OnnxEmbedding(folder, pooling)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("with_tokens", [False, True])
@pytest.mark.parametrize("kind", GRAPHS)
def test_every_pooling_replaces_that_of_the_graph(
    tmp_path: Path, kind: str, with_tokens: bool, pooling: Pooling
) -> None:
    own, nodes = GRAPHS[kind]
    folder = make_pooled(tmp_path / "model", nodes(), with_tokens=with_tokens)

    model, unchanged = OnnxEmbedding(folder, pooling), OnnxEmbedding(folder)

    assert np.allclose(model.embed(TEXTS), plain(tmp_path / "plain", pooling).embed(TEXTS), atol=1e-6)
    assert model.name == (unchanged.name if pooling == own else f"{unchanged.name}#{pooling}")


def test_a_model_with_a_layer_after_the_pooling_says_how_to_export_it(tmp_path: Path) -> None:
    nodes = (*masked_mean(), node("MatMul", ["mean", "dense"], "projected"))
    folder = make_pooled(tmp_path / "model", nodes)

    assert OnnxEmbedding(folder).dimension == 4
    with pytest.raises(EmbeddingError, match=r"leave the pooling out, or export the model with the output last_hidden"):
        OnnxEmbedding(folder, "mean+max")


@pytest.mark.parametrize("is_quantized", [False, True])
def test_a_converted_model_pools_by_mean_and_maximum(tmp_path: Path, is_quantized: bool) -> None:
    """Models that were added before need no second conversion."""
    about = config()
    weights = random_weights(about, seed=3)
    write_model(tmp_path / "model", about, weights)
    (tmp_path / "model" / "model.onnx").write_bytes(
        build(weights, about, is_quantized=is_quantized).SerializeToString()
    )
    text = " ".join(BERT_WORDS[3:9])

    own, both = OnnxEmbedding(tmp_path / "model"), OnnxEmbedding(tmp_path / "model", "mean+max")

    (vector,), (joined,) = own.embed([text]), both.embed([text])
    mean = joined[: own.dimension]
    assert both.dimension == 2 * own.dimension
    assert np.allclose(mean / np.linalg.norm(mean), vector, atol=1e-5)
    assert (joined[own.dimension :] >= mean - 1e-6).all()


def test_minilm_pools_by_mean_and_maximum() -> None:
    model = shared_sentence_model("mean+max")

    first, second, third = model.embed(["A cat sleeps.", "A kitten is asleep.", "Interest rates rose."])

    assert (model.dimension, model.pooling) == (768, "mean+max")
    assert first @ second > first @ third


def test_a_model_that_was_added_takes_a_pooling_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_minilm(tmp_path / "cache", make_pooled(tmp_path / "model", masked_mean()))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    by_choice = load("minilm#mean+max", environment={})
    by_variable = load("minilm", environment={"POOLING": "mean+max"})

    assert by_choice.dimension == by_variable.dimension == 8
    assert by_choice.name == by_variable.name
    assert embedding_choice(by_choice.name) == "minilm#mean+max"
    assert flag(by_choice.name) == "--embedding minilm#mean+max"
    assert load("minilm", environment={"POOLING": "mean"}).name == load("minilm", environment={}).name


def sentence_transformers(folder: Path, *kinds: str, prefix: str = "", **changes: Any) -> tuple[Path, Any]:
    """Write a model as sentence-transformers saves it; return its folder and its weights."""
    about = config() | changes
    weights = random_weights(config(), seed=3)
    write_model(folder, about, {f"{prefix}{name}": value for name, value in weights.items()})
    modules = [{"idx": n, "type": f"sentence_transformers.models.{kind}"} for n, kind in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder, weights


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_a_bert_of_sentence_transformers_is_converted_once(tmp_path: Path, prefix: str) -> None:
    folder, weights = sentence_transformers(tmp_path / "model", "Transformer", "Pooling", "Normalize", prefix=prefix)
    words = BERT_WORDS[3:9]

    first = OnnxEmbedding(folder)
    written = (folder / "onnx" / "model.onnx").stat()
    again, both = OnnxEmbedding(folder), OnnxEmbedding(folder, "mean+max")

    expected = embedded_by_numpy(weights, config(), list(range(3, 9)))
    assert np.allclose(first.embed([" ".join(words)])[0], expected, atol=1e-4)
    assert (folder / "onnx" / "model.onnx").stat() == written
    assert (again.name, both.dimension) == (first.name, 2 * first.dimension)


@pytest.mark.parametrize(
    ("kinds", "changes"),
    [
        ((), {}),  # such as a cross-encoder
        (("Transformer", "Pooling", "Dense"), {}),
        (("Transformer", "Pooling"), {"model_type": "roberta"}),
        (("Transformer", "Pooling"), {"position_embedding_type": "relative_key"}),
        (("Transformer", "Pooling"), {"num_hidden_layers": 3}),
    ],
)
def test_another_model_of_sentence_transformers_says_how_to_export_it(
    tmp_path: Path, kinds: tuple[str, ...], changes: dict[str, Any]
) -> None:
    folder, _ = sentence_transformers(tmp_path / "model", *kinds, **changes)

    with pytest.raises(EmbeddingError, match=r"has the weights of a model, but no model\.onnx\. Export it"):
        OnnxEmbedding(folder)
    assert not (folder / "onnx" / "model.onnx").exists()


def test_damaged_weights_are_not_converted(tmp_path: Path) -> None:
    folder, _ = sentence_transformers(tmp_path / "model", "Transformer", "Pooling")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])

    with pytest.raises(EmbeddingError, match="Export it"):
        OnnxEmbedding(folder)
