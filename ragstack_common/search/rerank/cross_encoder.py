"""A cross-encoder in ONNX form, run on this machine's processor."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from tokenizers import Encoding

from ragstack_common.core.deadline import in_thread
from ragstack_common.core.errors import EmbeddingError
from ragstack_common.embedding import model_folder
from ragstack_common.embedding.protocol import cores, scalar
from ragstack_common.embedding.sessions import CHARACTERS_PER_TOKEN, model_inputs, open_session, open_tokenizer
from ragstack_common.search.models import RetrievedChunk
from ragstack_common.search.rerank.chunks import by_score, reranked_text

OUTPUT: Final = "logits"

_ONE_CLASS: Final = 1
_TWO_CLASSES: Final = 2


class CrossEncoderReranker:
    """A model that reads the query and a text together, and scores the text's relevance.

    The score is the sigmoid of the model's logit; for a model with two classes, the probability of the second. Long
    texts are cut at the end, the query never is. Each pair runs alone on one core, because quantized models scale
    their numbers by the whole batch; all cores work in parallel.

    Args:
        folder: Holds ``model.onnx`` and ``tokenizer.json``, and the model's configuration where it has one.

    Raises:
        EmbeddingError: The folder has no usable model, or the model returns no relevance.
    """

    name = "cross_encoder"
    max_chunks = 1_000

    def __init__(self, folder: str) -> None:
        self._model = model_folder.read(Path(folder))
        self._tokenizer = open_tokenizer(self._model)
        self._tokenizer.enable_truncation(self._model.max_tokens, strategy="only_second")
        self._session = open_session(self._model.model)
        self._inputs = model_inputs(self._session)
        self._output = _output(self._session, self._model.name)
        self._threads = ThreadPoolExecutor(cores(), thread_name_prefix="cross-encoder")

    async def rerank(self, query: str, chunks: Sequence[RetrievedChunk]) -> list[RetrievedChunk]:
        """Order chunks by the model's relevance scores."""
        scores = await in_thread(partial(self._scores, query, [reranked_text(chunk) for chunk in chunks]))
        return by_score(chunks, scores, self.name)

    async def close(self) -> None:
        """Cancel the pairs that have not begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _scores(self, query: str, texts: Sequence[str]) -> list[float]:
        longest = CHARACTERS_PER_TOKEN * self._model.max_tokens
        try:
            pairs = self._tokenizer.encode_batch([(scalar(query), scalar(text[:longest])) for text in texts])
        except Exception as error:  # the library raises bare exceptions, such as for a query longer than the model
            raise EmbeddingError(f"The reranker {self._model.name} cannot read the query ({error})") from error
        return list(self._threads.map(self._score, pairs))

    def _score(self, pair: Encoding) -> float:
        feed = {
            "input_ids": np.array([pair.ids], dtype=np.int64),
            "attention_mask": np.ones((1, len(pair.ids)), dtype=np.int64),
            "token_type_ids": np.array([pair.type_ids], dtype=np.int64),
        }
        try:
            (found,) = self._session.run([self._output], {name: feed[name] for name in self._inputs})
        except Exception as error:
            raise EmbeddingError(f"The reranker {self._model.name} failed ({error})") from error
        return _probability(np.asarray(found, dtype=np.float64).reshape(-1), self._model.name)


def _probability(logits: Any, name: str) -> float:
    if logits.size not in (_ONE_CLASS, _TWO_CLASSES) or not np.isfinite(logits).all():
        raise EmbeddingError(f"The reranker {name} returned {logits.size} values, not a relevance")
    difference = float(logits[0] if logits.size == _ONE_CLASS else logits[1] - logits[0])
    return (1 + math.tanh(difference / 2)) / 2  # the sigmoid function, which cannot overflow


def _output(session: Any, name: str) -> str:
    outputs = {str(node.name): node.shape for node in session.get_outputs()}
    chosen = OUTPUT if OUTPUT in outputs else next(iter(outputs)) if len(outputs) == 1 else None
    if chosen is None or outputs[chosen][-1:] not in ([_ONE_CLASS], [_TWO_CLASSES]):
        raise EmbeddingError(
            f"The model {name} returns {', '.join(f'{key} {shape}' for key, shape in outputs.items())}: a cross-encoder"
            f" returns {OUTPUT} of one or two values for each text"
        )
    return chosen
