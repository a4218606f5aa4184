"""A sentence-embedding model in ONNX form, run on the CPU."""

from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from tokenizers import Encoding, Tokenizer

from ragstack_common.embedding import model_folder
from ragstack_common.embedding.model_folder import POOLINGS, ModelFolder, Pooling
from ragstack_common.embedding.protocol import MODEL_FUSION_WEIGHT, Embedding, EmbeddingClosed, Vectors, cores, unit
from ragstack_common.errors import EmbeddingError

CHARACTERS_PER_TOKEN: Final = 64
"""Characters read for each token that the model takes; hardly any token is longer."""

POOLED_OUTPUTS: Final = ("sentence_embedding", "embedding", "embeddings")
TOKEN_OUTPUTS: Final = ("last_hidden_state", "token_embeddings")
INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids"})
PROBE: Final = "A text that shows how long a vector is."

_ERRORS_ONLY: Final = 3
_TEXTS_BY_VALUES: Final = 2
_TEXTS_BY_TOKENS_BY_VALUES: Final = 3


class OnnxEmbedding(Embedding):
    """A model and its tokenizer.

    Each text is a batch of its own, one for each core at a time: a quantized model scales its numbers by the whole
    batch, so a text's vector would depend on its neighbours (by .02 and more a component). Batches are not faster:
    passages of 400 characters a second on two cores, 211 alone, 210 by fours of similar length, 148 by 64; 125 by fours
    if both cores share each batch.

    Texts are truncated at the model's number of tokens. The mean of windows over the whole text was not better:
    nDCG@10 of HYBRID on SciFact .712 instead of .719, for 50 % more tokens.

    Args:
        folder: Contains ``model.onnx``, ``tokenizer.json`` and optionally the model's configuration.
        pooling: Replaces the model's own pooling, and becomes part of the name.

    Raises:
        EmbeddingError: The folder has no usable model, or the model pools itself and *pooling* is given.
    """

    fusion_weight = MODEL_FUSION_WEIGHT

    def __init__(self, folder: Path, pooling: Pooling | None = None) -> None:
        self._model = model_folder.read(folder, pooling)
        self.name = f"onnx:{self._model.name}"
        self.description = self.name
        self._tokenizer = open_tokenizer(self._model)
        self._session = open_session(self._model.model)
        self._inputs = model_inputs(self._session)
        self._output, self._is_pooled = _output(self._session)
        if self._is_pooled and pooling is not None:
            raise EmbeddingError(
                f"The model {self._model.name} pools its tokens itself and cannot pool by {pooling}: leave that"
                " out, or choose a model that returns last_hidden_state"
            )
        self._closed = False
        self._threads = ThreadPoolExecutor(cores(), thread_name_prefix="embedding")
        self.dimension = len(self._run(self._encoded([PROBE])[0]))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages on all cores."""
        encoded = self._encoded([self._model.passage_prefix + text for text in texts])
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        try:
            for row, found in enumerate(self._threads.map(self._run, encoded)):
                vectors[row] = found
        except (CancelledError, RuntimeError):
            if self._closed:
                raise EmbeddingClosed from None
            raise
        return unit(vectors, rows=len(texts), dimension=self.dimension, source=self.name)

    def embed_query(self, text: str) -> Vectors:
        """Embed a query in the calling thread, so that it does not wait for passages."""
        found = self._run(self._encoded([self._model.query_prefix + text])[0])
        (vector,) = unit([found], rows=1, dimension=self.dimension, source=self.name)
        return np.asarray(vector)

    def close(self) -> None:
        """Abandon all texts that have not started."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _encoded(self, texts: Sequence[str]) -> list[Encoding]:
        longest = CHARACTERS_PER_TOKEN * self._model.max_tokens
        # The tokenizer accepts only Unicode scalar values.
        return self._tokenizer.encode_batch(
            [text[:longest].encode("utf-8", "replace").decode("utf-8") for text in texts]
        )

    def _run(self, text: Encoding) -> Vectors:
        ids = np.array([text.ids], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        try:
            (found,) = self._session.run([self._output], {name: feed[name] for name in self._inputs})
        except Exception as error:
            raise EmbeddingError(f"The model {self.name} failed ({_first_line(error)})") from error
        return np.asarray(found[0] if self._is_pooled else _pooled(found[0], self._model.pooling), dtype=np.float32)


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
