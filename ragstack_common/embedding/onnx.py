"""A sentence-embedding model in ONNX form, run on the CPU."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ragstack_common.core.errors import EmbeddingError
from ragstack_common.embedding import model_folder
from ragstack_common.embedding.model_folder import POOLINGS, Pooling
from ragstack_common.embedding.pooling import TEXTS_BY_TOKENS_BY_VALUES, find_token_vectors, pooled
from ragstack_common.embedding.protocol import ModelEmbedding, Vectors, cores, scalar
from ragstack_common.embedding.sessions import (
    CHARACTERS_PER_TOKEN,
    first_line,
    model_inputs,
    open_session,
    open_tokenizer,
)

CHARACTERS_IN_BATCH: Final = 1000
"""About 250 tokens: larger batches leave the processor's cache."""

POOLED_OUTPUTS: Final = ("sentence_embedding", "embedding", "embeddings")
TOKEN_OUTPUTS: Final = ("last_hidden_state", "token_embeddings")


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
        EmbeddingError: The folder has no usable model, or it pools its tokens in a way that cannot be replaced.
    """

    def __init__(self, folder: Path, pooling: Pooling | None = None) -> None:
        self._model = model_folder.read(folder, pooling)
        self._tokenizer = open_tokenizer(self._model)
        self._session = open_session(self._model.model)
        self._inputs = model_inputs(self._session)
        self._output, self._is_pooled = _output(self._session)
        is_own = pooling is None or self._model.stated_poolings == {pooling}
        if self._is_pooled and pooling is not None:
            texts = ("A text that shows how tokens are pooled.", "Another one, which is longer than the first.")
            tokens = find_token_vectors(self._model.model, self._output, *self._feed(texts))
            is_own = tokens.pooling == pooling
            if not is_own:
                self._session, self._output, self._is_pooled = tokens.session, tokens.output, False
        self.pooling = "by the model" if self._is_pooled else self._model.pooling
        name = f"onnx:{self._model.name}" + ("" if is_own else f"#{pooling}")
        super().__init__(name, name, cores())

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
        feed, lengths = self._feed([f"{prefix}{text}" for text in texts])
        try:
            (found,) = self._session.run([self._output], feed)
        except Exception as error:
            raise EmbeddingError(f"The model {self.name} failed ({first_line(error)})") from error
        if not self._is_pooled:
            rows = zip(found, lengths, strict=True)
            found = [pooled(row[:length], self._model.pooling) for row, length in rows]
        return np.asarray(found, dtype=np.float32)

    def _feed(self, texts: Sequence[str]) -> tuple[dict[str, Any], list[int]]:
        """Return the inputs of the model, and the number of tokens of each text."""
        longest = CHARACTERS_PER_TOKEN * self._model.max_tokens
        encoded = [self._tokenizer.encode(scalar(text[:longest])).ids for text in texts]
        ids, mask = np.zeros((2, len(texts), max(map(len, encoded))), dtype=np.int64)
        for row, tokens in enumerate(encoded):
            ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return {name: feed[name] for name in self._inputs}, list(map(len, encoded))


def load(choice: str, default_pooling: str) -> OnnxEmbedding:
    """Load ``FOLDER[#POOLING]``."""
    folder, _, stated = choice.rpartition("#") if not Path(choice).is_dir() and "#" in choice else (choice, "", "")
    name = stated or default_pooling
    pooling = next((known for known in POOLINGS if known == name), None)
    if name and pooling is None:
        raise EmbeddingError(f"There is no pooling {name!r}: choose {', '.join(POOLINGS)}")
    return OnnxEmbedding(Path(folder), pooling)


def _output(session: Any) -> tuple[str, bool]:
    """Return the output to use, and whether it is already one vector for each text."""
    outputs = {str(node.name): len(node.shape) for node in session.get_outputs()}
    for name in POOLED_OUTPUTS:
        if outputs.get(name) == 2:  # noqa: PLR2004 - texts by values
            return name, True
    for name, rank in outputs.items():
        if rank == TEXTS_BY_TOKENS_BY_VALUES and (name in TOKEN_OUTPUTS or len(outputs) == 1):
            return name, False
    raise EmbeddingError(
        f"The ONNX model returns {', '.join(outputs)}, none of which is known to hold an embedding: choose a model with"
        f" the output {POOLED_OUTPUTS[0]} or {TOKEN_OUTPUTS[0]}"
    )
