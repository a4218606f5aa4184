"""A sentence-embedding model in ONNX form, run on the CPU."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from tokenizers import Encoding, Tokenizer

from ragstack_common.core.errors import EmbeddingError
from ragstack_common.embedding import model_folder
from ragstack_common.embedding.model_folder import POOLINGS, ModelFolder, Pooling
from ragstack_common.embedding.protocol import ModelEmbedding, Vectors, cores, scalar

CHARACTERS_PER_TOKEN: Final = 64
"""Characters read for each token that the model takes; hardly any token is longer."""

CHARACTERS_IN_BATCH: Final = 1000
"""About 250 tokens: larger batches leave the processor's cache."""

POOLED_OUTPUTS: Final = ("sentence_embedding", "embedding", "embeddings")
TOKEN_OUTPUTS: Final = ("last_hidden_state", "token_embeddings")
INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids"})

_ERRORS_ONLY: Final = 3
_TEXTS_BY_VALUES: Final = 2
_TEXTS_BY_TOKENS_BY_VALUES: Final = 3


class OnnxEmbedding(ModelEmbedding):
    """A model and its tokenizer.

    One batch for each core at a time. Each text is a batch of its own, unless the model's manifest allows more: a
    quantized model usually scales its numbers by the whole batch, so a text's vector would depend on its neighbours (by
    .02 and more a component). Only short texts gain from batches: texts a second on one core, for 35 tokens 194 alone
    and 262 by fours; for 145 tokens 55 alone, 54 by fours, 41 by 16.

    Texts are truncated at the model's number of tokens. The mean of windows over the whole text was not better:
    nDCG@10 of HYBRID on SciFact .712 instead of .719, for 50 % more tokens.

    Args:
        folder: Contains ``model.onnx``, ``tokenizer.json`` and optionally the model's configuration.
        pooling: Replaces the model's own pooling, and becomes part of the name.

    Raises:
        EmbeddingError: The folder has no usable model, or the model pools itself and *pooling* is given.
    """

    def __init__(self, folder: Path, pooling: Pooling | None = None) -> None:
        self._model = model_folder.read(folder, pooling)
        self._tokenizer = open_tokenizer(self._model)
        self._session = open_session(self._model.model)
        self._inputs = model_inputs(self._session)
        self._output, self._is_pooled = _output(self._session)
        if self._is_pooled and pooling is not None:
            raise EmbeddingError(
                f"The model {self._model.name} pools its tokens itself and cannot pool by {pooling}: leave that"
                " out, or choose a model that returns last_hidden_state"
            )
        self.pooling = "by the model" if self._is_pooled else self._model.pooling
        super().__init__(f"onnx:{self._model.name}", f"onnx:{self._model.name}", cores())

    def _batches(self, texts: Sequence[str]) -> list[list[int]]:
        """Join short texts of similar length."""
        if not self._model.takes_batches:
            return super()._batches(texts)
        batches: list[list[int]] = []
        for place in sorted(range(len(texts)), key=lambda place: len(texts[place])):
            if batches and (len(batches[-1]) + 1) * len(texts[place]) <= CHARACTERS_IN_BATCH:
                batches[-1].append(place)
            else:
                batches.append([place])
        return batches[::-1]  # long ones first, so that both cores end at the same time

    def _vectors(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        prefix = self._model.query_prefix if is_query else self._model.passage_prefix
        longest = CHARACTERS_PER_TOKEN * self._model.max_tokens
        encoded = [self._tokenizer.encode(scalar(f"{prefix}{text}"[:longest])).ids for text in texts]
        ids, mask = np.zeros((2, len(texts), max(map(len, encoded))), dtype=np.int64)
        for row, tokens in enumerate(encoded):
            ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            (found,) = self._session.run([self._output], {name: feed[name] for name in self._inputs})
        except Exception as error:
            raise EmbeddingError(f"The model {self.name} failed ({_first_line(error)})") from error
        if not self._is_pooled:
            rows = zip(found, encoded, strict=True)
            found = [_pooled(row[: len(tokens)], self._model.pooling) for row, tokens in rows]
        return np.asarray(found, dtype=np.float32)


def load(choice: str, default_pooling: str) -> OnnxEmbedding:
    """Load ``FOLDER[#POOLING]``.

    Raises:
        EmbeddingError: The pooling is unknown, or the folder has no usable model.
    """
    folder, _, stated = choice.rpartition("#") if not Path(choice).is_dir() and "#" in choice else (choice, "", "")
    wanted = stated or default_pooling
    pooling = next((known for known in POOLINGS if known == wanted), None)
    if wanted and pooling is None:
        raise EmbeddingError(f"There is no pooling {wanted!r}: choose {', '.join(POOLINGS)}")
    return OnnxEmbedding(Path(folder), pooling)


def _pooled(tokens: Vectors, pooling: Pooling) -> Vectors:
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


def open_tokenizer(model: ModelFolder) -> Tokenizer:
    """Read a model's tokenizer, which truncates at the model's number of tokens.

    Raises:
        EmbeddingError: The file is damaged.
    """
    try:
        tokenizer = Tokenizer.from_file(str(model.tokenizer))
    except Exception as error:  # noqa: BLE001 - the library raises bare exceptions
        raise EmbeddingError(
            f"The tokenizer {model.tokenizer} cannot be read ({_first_line(error)}): download it again"
        ) from None
    tokenizer.enable_truncation(model.max_tokens)
    tokenizer.no_padding()
    return tokenizer


def open_session(model: Path) -> Any:
    """Load a model that uses one core for each call.

    Raises:
        EmbeddingError: The file cannot be loaded.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - the library has an exception for every code of its own
        raise EmbeddingError(f"The model {model} cannot be loaded ({_first_line(error)}): download it again") from None


def model_inputs(session: Any) -> list[str]:
    """Return the names of a text model's inputs.

    Raises:
        EmbeddingError: There are others than :data:`INPUTS`.
    """
    names = [str(node.name) for node in session.get_inputs()]
    unknown = sorted(set(names) - INPUTS)
    if unknown:
        raise EmbeddingError(
            f"The ONNX model asks for {', '.join(unknown)}, which no text model needs: choose one that takes"
            f" {', '.join(sorted(INPUTS))}"
        )
    return names


def pair_feed(pair: Encoding, inputs: Sequence[str]) -> dict[str, Any]:
    """Return the inputs of a model that reads two texts together, as a batch of one."""
    feed = {
        "input_ids": np.array([pair.ids], dtype=np.int64),
        "attention_mask": np.ones((1, len(pair.ids)), dtype=np.int64),
        "token_type_ids": np.array([pair.type_ids], dtype=np.int64),
    }
    return {name: feed[name] for name in inputs}


def _output(session: Any) -> tuple[str, bool]:
    """Return the output to use, and whether it is already one vector for each text."""
    outputs = {str(node.name): len(node.shape) for node in session.get_outputs()}
    for name in POOLED_OUTPUTS:
        if outputs.get(name) == _TEXTS_BY_VALUES:
            return name, True
    for name, rank in outputs.items():
        if rank == _TEXTS_BY_TOKENS_BY_VALUES and (name in TOKEN_OUTPUTS or len(outputs) == 1):
            return name, False
    raise EmbeddingError(
        f"The ONNX model returns {', '.join(outputs)}, none of which is known to hold an embedding: choose a model with"
        f" the output {POOLED_OUTPUTS[0]} or {TOKEN_OUTPUTS[0]}"
    )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
