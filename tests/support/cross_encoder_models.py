"""Models that read query and text together: tiny, real, and to be seen through."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from tests.support.embedding_models import (
    _FLOAT,
    _INT64,
    _block,
    _number,
    _text,
    _value,
)

VOCABULARY = ("[CLS]", "[SEP]", "[UNK]", "heron", "bridge", "question", "river", "bank")
BIAS = 2.0
"""A text with no word of the query has the logit -2, one with two common words 0."""


def make_cross_encoder_folder(folder: Path, *, classes: int = 1, output: str = "logits", max_tokens: int = 64) -> Path:
    """Write a model whose logit is the number of pairs of equal words in query and text, less the bias.

    Args:
        folder: Where to.
        classes: Values for each pair of texts: of two, the second is the logit, and the first is 0.
        output: Name of the output.
        max_tokens: What it takes.
    """
    folder.mkdir(parents=True)
    words = len(VOCABULARY)
    ordinary = np.array([[word[0] != "["] for word in VOCABULARY], dtype=np.float32)
    weights = np.concatenate([np.zeros((words, classes - 1), dtype=np.float32), ordinary], axis=1)
    bias = np.array([0.0] * (classes - 1) + [BIAS], dtype=np.float32)
    nodes = [
        _node("Gather", ["table", "input_ids"], "tokens"),
        _node("Cast", ["token_type_ids"], "of_text", to=_FLOAT),
        _node("Unsqueeze", ["of_text", "last_axis"], "mask"),
        _node("Mul", ["tokens", "mask"], "text_tokens"),
        _node("Sub", ["tokens", "text_tokens"], "query_tokens"),
        _node("ReduceSum", ["text_tokens", "token_axis"], "text_words", keepdims=0),
        _node("ReduceSum", ["query_tokens", "token_axis"], "query_words", keepdims=0),
        _node("Mul", ["text_words", "query_words"], "common"),
        _node("MatMul", ["common", "weights"], "pairs"),
        _node("Sub", ["pairs", "bias"], output),
    ]
    constants = {
        "table": np.eye(words, dtype=np.float32),
        "weights": weights,
        "bias": bias,
        "last_axis": np.array([2]),
        "token_axis": np.array([1]),
    }
    inputs = ("input_ids", "attention_mask", "token_type_ids")
    (folder / "model.onnx").write_bytes(_graph(nodes, constants, inputs, output, ("b", classes)))
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 0), ("[SEP]", 1)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": max_tokens}))
    return folder


def _graph(
    nodes: Sequence[bytes],
    constants: Mapping[str, Any],
    inputs: Sequence[str],
    output: str,
    shape: Sequence[str | int],
) -> bytes:
    """Encode a model. Source of the field numbers: onnx.proto of the ONNX project."""
    graph = b"".join(_block(1, node) for node in nodes) + _text(2, "graph")
    for name, values in constants.items():
        kind = _FLOAT if values.dtype == np.float32 else _INT64
        dimensions = b"".join(_number(1, size) for size in values.shape)
        graph += _block(5, dimensions + _number(2, kind) + _text(8, name) + _block(9, values.tobytes()))
    for name in inputs:
        graph += _block(11, _value(name, _INT64, ("b", "s")))
    graph += _block(12, _value(output, _FLOAT, shape))
    return _number(1, 8) + _block(8, _text(1, "") + _number(2, 17)) + _block(7, graph)


def _node(operator: str, inputs: Sequence[str], output: str, **attributes: int) -> bytes:
    node = b"".join(_text(1, name) for name in inputs) + _text(2, output) + _text(4, operator)
    for name, value in attributes.items():
        node += _block(5, _text(1, name) + _number(3, value) + _number(20, 2))
    return node
