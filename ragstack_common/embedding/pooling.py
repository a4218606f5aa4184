"""How the vectors of tokens become one, and where they are in an ONNX model that pools them itself.

A tensor of the graph holds them if pooling it gives what the model returns, which two texts of different length show.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ragstack_common.core.errors import EmbeddingError, needs_extra
from ragstack_common.embedding.model_folder import POOLINGS, Pooling
from ragstack_common.embedding.protocol import Vectors
from ragstack_common.embedding.sessions import first_line, open_session

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

MAX_TENSORS: Final = 64
"""Tensors before the output that are tried; poolings of published models have fewer than twenty."""

MIN_COSINE: Final = 0.999
"""Minimum cosine of the model's vector and a pooled one; half precision costs less than .0001."""

TEXTS_BY_TOKENS_BY_VALUES: Final = 3


@dataclass(frozen=True)
class TokenVectors:
    """The vectors of tokens: a session whose only output they are, its name, and how the model pools them."""

    session: Any
    output: str
    pooling: Pooling


def pooled(tokens: Vectors, pooling: Pooling) -> Vectors:
    """Pool the vectors of a text's tokens into one."""
    match pooling:
        case "mean":
            return np.asarray(tokens.mean(axis=0))
        case "max":
            return np.asarray(tokens.max(axis=0))
        case "mean+max":
            return np.concatenate([tokens.mean(axis=0), tokens.max(axis=0)])
        case "cls":
            return np.asarray(tokens[0])
        case "lasttoken":
            return np.asarray(tokens[-1])


def find_token_vectors(model: Path, output: str, feed: Mapping[str, Any], lengths: Sequence[int]) -> TokenVectors:
    """Find the vectors of tokens that a model pools into an output.

    *feed* has the inputs of texts with different numbers of tokens, the *lengths*.
    """
    with needs_extra("local", "Another pooling of a model"):
        import onnx  # noqa: PLC0415 - slow to import

    graph = onnx.load(model, load_external_data=False)
    names = list(_before(graph.graph, output))
    try:
        expected, *found = _with_outputs(graph, [output, *names], model).run(None, dict(feed))
    except Exception as error:
        raise EmbeddingError(f"The model {model} failed ({first_line(error)})") from error
    for name, tensor in zip(names, found, strict=True):
        if (pooling := _pooling(tensor, lengths, expected)) is not None:
            return TokenVectors(_with_outputs(graph, [name], model), name, pooling)
    raise EmbeddingError(
        f"The model {model} pools its tokens itself, and none of its tensors holds their vectors: leave the pooling"
        " out, or export the model with the output last_hidden_state (`optimum-cli export onnx --library transformers"
        " --task feature-extraction`)"
    )


def _before(graph: "GraphProto", output: str) -> Iterator[str]:
    """Yield the tensors that an output is computed from, nearest first, unless they depend on the mask alone."""
    from_texts = {"input_ids"}
    for node in graph.node:
        if not from_texts.isdisjoint(node.input):
            from_texts.update(node.output)
    needed, left = {output}, MAX_TENSORS
    for node in reversed(graph.node):
        if left and not needed.isdisjoint(node.output):
            needed.update(node.input)
            for name in from_texts.intersection(node.output) - {output, ""}:
                left -= 1
                yield name


def _with_outputs(model: "ModelProto", names: Sequence[str], file: Path) -> Any:
    """Load a model that returns these tensors only."""
    changed = type(model)()
    changed.CopyFrom(model)
    del changed.graph.output[:]
    for name in names:
        changed.graph.output.add(name=name)  # ONNX Runtime infers the type
    return open_session(file, changed.SerializeToString())


def _pooling(tensor: Any, lengths: Sequence[int], expected: Vectors) -> Pooling | None:
    """Return the pooling that turns a tensor into the model's vectors, or None."""
    if not (
        isinstance(tensor, np.ndarray)
        and tensor.ndim == TEXTS_BY_TOKENS_BY_VALUES
        and tensor.shape[:2] == (len(lengths), max(lengths))
        and np.issubdtype(tensor.dtype, np.floating)
    ):
        return None
    for pooling in POOLINGS:
        made = [pooled(row[:length], pooling) for row, length in zip(tensor, lengths, strict=True)]
        if made[0].shape == expected[0].shape and all(map(_is_parallel, made, expected)):
            return pooling
    return None


def _is_parallel(first: Vectors, second: Vectors) -> bool:
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    return lengths > 0 and float(np.dot(first, second)) >= MIN_COSINE * lengths
