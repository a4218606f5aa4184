"""ONNX graphs of sentence-embedding models of the BERT family, built from their weights.

The graph pools and normalizes, unless it returns token vectors. In eight bits it has a quarter of the size
and is twice as fast. Weights are rounded by column, and activations by token while the model runs. The usual
rounding by the whole batch (DynamicQuantizeLinear) doubles the error, and a vector depends on the texts next to it.

Products of integers take less than half of the time, and passes over their results the rest. Therefore operators of
ONNX Runtime do several steps in one pass, and only batches with padded texts add a mask.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from ragstack_common.core.errors import EmbeddingError

OUTPUT: Final = "sentence_embedding"
TOKENS: Final = "last_hidden_state"

PREFIX: Final = "bert."
"""Before the names of weights of models with a head, such as BertForMaskedLM."""

WEIGHT_LEVELS: Final = 63
"""Weights have seven bits: sums of products of two eight-bit numbers overflow on processors without VNNI."""

LEVELS: Final = 127

PARTS: Final = 2
"""Of the heads of attention: 1.5 MB of weights each, for 12 heads and 256 tokens."""

RUNTIME: Final = "com.microsoft"
"""Domain of the operators that only ONNX Runtime has."""

_ZERO: Final = 128
"""Activations are unsigned: ONNX Runtime is seven times slower with two signed factors."""

Array = npt.NDArray[Any]
Weights = Mapping[str, Array]


def read_safetensors(file: Path) -> dict[str, Array]:
    """Map the tensors of a file into memory.

    Source: https://github.com/huggingface/safetensors, "Format".
    """
    with file.open("rb") as opened:
        size = int.from_bytes(opened.read(8), "little")
        header = json.loads(opened.read(size))
    header.pop("__metadata__", None)
    data = np.memmap(file, mode="r", offset=8 + size)
    types = {"F32": "<f4", "I64": "<i8"}
    return {
        name: data[slice(*entry["data_offsets"])].view(types[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
    }


def build(
    weights: Weights, config: Mapping[str, Any], *, is_quantized: bool = True, pools: bool = True
) -> onnx.ModelProto:
    """Build the graph of a ``BertModel`` from weights by the names of PyTorch, and its ``config.json``.

    With *pools*, the output is the mean of the tokens of each text, of unit length.
    """
    usual = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
    if any({"position_embedding_type": "absolute", **config}.get(name) != value for name, value in usual.items()):
        raise EmbeddingError(
            "Only BERT models with the activation gelu and absolute positions can be converted: choose an ONNX model"
        )
    try:
        return _Graph(weights, config, is_quantized).model(pools=pools)
    except KeyError as error:
        raise EmbeddingError(f"The model has no weights {error}: choose an ONNX model") from error


def convert(folder: Path, file: Path) -> None:
    """Convert the ``BertModel`` that sentence-transformers saved in a folder, in 32 bits and without its pooling."""
    config = json.loads((folder / "config.json").read_bytes())
    try:
        found = read_safetensors(folder / "model.safetensors")
    except (KeyError, ValueError) as error:
        raise EmbeddingError(f"The weights in {folder} are not numbers of 32 bits: choose an ONNX model") from error
    weights = {name.removeprefix(PREFIX): value for name, value in found.items()}
    model = build(weights, config, is_quantized=False, pools=False)
    file.parent.mkdir(exist_ok=True)
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    unfinished.write_bytes(model.SerializeToString(deterministic=True))
    unfinished.replace(file)


@dataclass
class _Graph:
    """Nodes and constants, added in the order of the computation; a method returns the name of its result."""

    weights: Weights
    config: Mapping[str, Any]
    is_quantized: bool
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)

    def model(self, *, pools: bool) -> onnx.ModelProto:
        """Build the whole model."""
        hidden, size = self._layers(), self.config["hidden_size"]
        axes = ["batch", "tokens"]
        if pools:
            self._vector(hidden)
            output = helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["batch", size])
        else:
            self._node("Identity", hidden, name=TOKENS)
            output = helper.make_tensor_value_info(TOKENS, TensorProto.FLOAT, [*axes, size])
        graph = helper.make_graph(
            self.nodes,
            "sentence_embedding",
            [
                helper.make_tensor_value_info("input_ids", TensorProto.INT64, axes),
                helper.make_tensor_value_info("attention_mask", TensorProto.INT64, axes),
            ],
            [output],
            list(self.constants.values()),
        )
        # Every version of the package onnx writes the same bytes, whose hash is part of the embedding's name.
        made = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(RUNTIME, 1)],
            ir_version=9,
            producer_name="ragstack",
        )
        made.ClearField("producer_version")
        return made

    def _layers(self) -> str:
        """Return the vectors of the tokens; between the layers, the tokens of all texts are the rows of one matrix."""
        heads, size = self.config["num_attention_heads"], self.config["hidden_size"]
        mask = self._node("Cast", "attention_mask", to=TensorProto.FLOAT)
        self._node("Unsqueeze", mask, self._integers(2), name="mask")
        above = self._node("Unsqueeze", mask, self._integers(1, 2))
        missing = self._node("Sub", self._number(1.0), above)
        self._node("Mul", missing, self._number(-10_000.0), name="bias")
        self._node("Cast", self._node("ReduceMax", missing, keepdims=0), to=TensorProto.BOOL, name="is_padded")
        shape = self._node("Shape", "input_ids")
        self._node("Concat", shape, self._integers(heads, size // heads), axis=0, name="heads")
        hidden = self._node("Reshape", self._embeddings(), self._integers(-1, size))
        for number in range(self.config["num_hidden_layers"]):
            hidden = self._layer(f"encoder.layer.{number}", hidden)
        return self._node("Reshape", hidden, self._node("Concat", shape, self._integers(size), axis=0))

    def _embeddings(self) -> str:
        places = self.weights["embeddings.position_embeddings.weight"]
        # Every token is of the first of two types, so that the type is a part of its place.
        table = self._constant("places", places + self.weights["embeddings.token_type_embeddings.weight"][0])
        length = self._node("Shape", "input_ids", start=1, end=2)
        place = self._node("Slice", table, self._integers(0), length, self._integers(0))
        embedded = self._node("Add", self._words(), place)
        return self._normalized("embeddings.LayerNorm", embedded)

    def _words(self) -> str:
        table = self.weights["embeddings.word_embeddings.weight"]
        if not self.is_quantized:
            return self._node("Gather", self._constant("words", table), "input_ids")
        rounded, scales = _rounded(table.T, LEVELS)
        found = self._node("Gather", self._constant("words", np.ascontiguousarray(rounded.T)), "input_ids")
        scale = self._node("Gather", self._constant("word_scales", scales[:, None]), "input_ids")
        return self._node("Mul", self._node("Cast", found, to=TensorProto.FLOAT), scale)

    def _layer(self, layer: str, hidden: str) -> str:
        size = self.config["hidden_size"]
        names = (f"{layer}.attention.self.{name}" for name in ("query", "key", "value"))
        query, key, value = (
            self._node("Transpose", self._node("Reshape", each, "heads"), perm=perm)
            for each, perm in zip(self._linear(hidden, *names), ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
        )
        parts = zip(*(self._split(each) for each in (query, key, value)), strict=True)
        contexts = [self._node("MatMul", self._attention(query, key), value) for query, key, value in parts]
        context = self._node("Concat", *contexts, axis=1)
        joined = self._node("Reshape", self._node("Transpose", context, perm=[0, 2, 1, 3]), self._integers(-1, size))
        (attended,) = self._linear(joined, f"{layer}.attention.output.dense")
        hidden = self._normalized(f"{layer}.attention.output.LayerNorm", self._node("Add", attended, hidden))
        (wide,) = self._linear(hidden, f"{layer}.intermediate.dense")
        (narrow,) = self._linear(self._node("Gelu", wide, domain=RUNTIME), f"{layer}.output.dense")
        return self._normalized(f"{layer}.output.LayerNorm", self._node("Add", narrow, hidden))

    def _split(self, value: str) -> list[str]:
        """Divide the heads among some parts, whose weights fit into the processor's cache."""
        parts = [f"{value}_{part}" for part in range(gcd(self.config["num_attention_heads"], PARTS))]
        self.nodes.append(helper.make_node("Split", [value], parts, axis=1, num_outputs=len(parts)))
        return parts

    def _attention(self, query: str, key: str) -> str:
        """Return the weight of each token for each other one: 0 for those that fill up a text, if there are any."""
        scale = (self.config["hidden_size"] // self.config["num_attention_heads"]) ** -0.5
        scaled = self._node("MatMul", self._node("Mul", query, self._number(scale)), key)
        name = f"weights_{scaled}"
        masked = [
            helper.make_node("Add", [scaled, "bias"], ["masked"]),
            helper.make_node("Softmax", ["masked"], [name], axis=-1),
        ]
        plain = [helper.make_node("Softmax", [scaled], [name], axis=-1)]
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)]
        then_branch, else_branch = (helper.make_graph(nodes, "weights", [], outputs) for nodes in (masked, plain))
        return self._node("If", "is_padded", then_branch=then_branch, else_branch=else_branch)

    def _vector(self, hidden: str) -> None:
        """Pool by the mean of the tokens, and scale to unit length."""
        axis = self._integers(1)
        summed = self._node("ReduceSum", self._node("Mul", hidden, "mask"), axis, keepdims=0)
        mean = self._node("Div", summed, self._node("ReduceSum", "mask", axis, keepdims=0))
        self._node("Div", mean, self._node("ReduceL2", mean, axis, keepdims=1), name=OUTPUT)

    def _normalized(self, layer: str, value: str) -> str:
        factor = self._constant(f"{layer}.weight", self.weights[f"{layer}.weight"])
        epsilon = self.config["layer_norm_eps"]
        bias = self._constant(f"{layer}.bias", self.weights[f"{layer}.bias"])
        return self._node("LayerNormalization", value, factor, bias, axis=-1, epsilon=epsilon)

    def _linear(self, value: str, *layers: str) -> list[str]:
        """Apply linear layers to the same value."""
        if not self.is_quantized:
            return [
                self._node("Add", self._node("MatMul", value, self._weight(layer)), self._bias(layer))
                for layer in layers
            ]
        zero = self._constant("zero", np.array(_ZERO, np.uint8))
        largest = self._node("ReduceMax", self._node("Abs", value), self._integers(-1), keepdims=0)
        scale = self._node("Mul", largest, self._number(1 / LEVELS))
        zeros = self._node("Expand", zero, self._node("Shape", scale))
        integers = self._node("QuantizeLinear", value, scale, zeros, axis=0)
        column = self._node("Unsqueeze", scale, self._integers(1))
        products = (self._integer_product(integers, zero, layer) for layer in layers)
        return [
            self._node("Add", self._node("Mul", product, column), self._bias(layer))
            for product, layer in zip(products, layers, strict=True)
        ]

    def _integer_product(self, integers: str, zero: str, layer: str) -> str:
        rounded, scales = _rounded(self.weights[f"{layer}.weight"].T, WEIGHT_LEVELS)
        weight, scale = self._constant(f"{layer}.weight", rounded), self._constant(f"{layer}.scales", scales)
        return self._node("MatMulIntegerToFloat", integers, weight, self._number(1.0), scale, zero, domain=RUNTIME)

    def _weight(self, layer: str) -> str:
        return self._constant(f"{layer}.weight", self.weights[f"{layer}.weight"].T)

    def _bias(self, layer: str) -> str:
        # A matrix: ONNX Runtime would join the addition of a vector with GELU, which is slower than both.
        return self._constant(f"{layer}.bias", self.weights[f"{layer}.bias"][None])

    def _node(self, kind: str, *inputs: str, name: str = "", domain: str = "", **attributes: Any) -> str:
        name = name or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], domain=domain, **attributes))
        return name

    def _constant(self, name: str, value: Array) -> str:
        self.constants.setdefault(name, numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def _number(self, value: float) -> str:
        return self._constant(f"number {value}", np.array(value, dtype=np.float32))

    def _integers(self, *values: int) -> str:
        return self._constant(f"integers {values}", np.array(values, dtype=np.int64))


def _rounded(matrix: Array, levels: int) -> tuple[Array, Array]:
    """Return integers from -levels to levels, and the scale of each column."""
    scales = np.maximum(np.abs(matrix).max(axis=0) / levels, 1e-12).astype(np.float32)
    return np.rint(matrix / scales).astype(np.int8), scales
