"""A classifier in ONNX form that decides whether a passage entails a sentence, run on this machine's processor."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from tokenizers import Encoding

from ragstack_common.answers.answer import Verdict
from ragstack_common.answers.models.protocol import Passage
from ragstack_common.core.deadline import in_thread
from ragstack_common.core.errors import EmbeddingError
from ragstack_common.embedding import model_folder
from ragstack_common.embedding.protocol import cores, scalar
from ragstack_common.embedding.sessions import model_inputs, open_session, open_tokenizer, pair_feed

OUTPUT: Final = "logits"
ENTAILMENT: Final = "entailment"
OTHERS: Final = ({"neutral", "contradiction"}, {"not_entailment"})
"""The other classes of models with three and with two."""

SPECIAL_TOKENS: Final = 4
"""Most that a tokenizer adds to a pair."""


class EntailmentJudge:
    """A model for natural language inference: a passage is the premise, a sentence the hypothesis.

    A sentence is supported if a part of one cited passage entails it, and otherwise not supported, whether the passages
    are neutral or contradict it. It takes no sum of two passages. A passage that is longer than the model takes is read
    in parts that overlap by half; a sentence is cut at half of what the model takes. Each pair runs alone on one core,
    because quantized models scale their numbers by the whole batch; all cores work in parallel.

    Args:
        folder: Holds ``model.onnx``, ``tokenizer.json``, and ``config.json`` with ``id2label``.

    Raises:
        EmbeddingError: The folder has no usable model, or its classes are others.
    """

    def __init__(self, folder: Path) -> None:
        self._model = model_folder.read(folder)
        self._tokenizer = open_tokenizer(self._model)
        self._tokenizer.no_truncation()
        self._session = open_session(self._model.model)
        self._inputs = model_inputs(self._session)
        labels = _labels(folder)
        self._entailment = labels.index(ENTAILMENT)
        shapes = {str(node.name): node.shape for node in self._session.get_outputs()}
        if shapes.get(OUTPUT, [None])[-1] != len(labels):
            raise EmbeddingError(f"The model {self._model.name} does not return {OUTPUT} of its {len(labels)} classes")
        self._threads = ThreadPoolExecutor(cores(), thread_name_prefix="entailment")

    async def verdicts(
        self, sentences: Sequence[tuple[str, Sequence[int]]], passages: Sequence[Passage]
    ) -> Mapping[int, Verdict]:
        """Judge each sentence against each passage that it cites.

        Raises:
            EmbeddingError: The model failed.
        """
        contents = {passage.number: passage.chunk.content for passage in passages}
        return await in_thread(partial(self._verdicts, sentences, contents))

    def _verdicts(
        self, sentences: Sequence[tuple[str, Sequence[int]]], contents: Mapping[int, str]
    ) -> Mapping[int, Verdict]:
        pairs = [
            (place, pair)
            for place, (sentence, cited) in enumerate(sentences)
            for number in cited
            for pair in self._pairs(contents[number], sentence)
        ]
        entailed = self._threads.map(self._entails, [pair for _, pair in pairs])
        supported = {place for (place, _), entails in zip(pairs, entailed, strict=True) if entails}
        return {place: "supported" if place in supported else "not supported" for place, _ in pairs}

    def _pairs(self, passage: str, sentence: str) -> list[Encoding]:
        """Encode a sentence with each part of a passage."""
        encode = partial(self._tokenizer.encode, add_special_tokens=False)
        passage, sentence = scalar(passage), scalar(sentence)
        places = encode(sentence).offsets[: self._model.max_tokens // 2]
        hypothesis = sentence[: places[-1][1]] if places else ""
        window = max(2, self._model.max_tokens - len(places) - SPECIAL_TOKENS)
        tokens = encode(passage).offsets
        starts = range(0, max(1, len(tokens) - window // 2), window // 2) if len(tokens) > window else range(1)
        parts = [tokens[start : start + window] for start in starts]
        premises = [passage[part[0][0] : part[-1][1]] for part in parts if part]
        return [self._tokenizer.encode(premise, hypothesis) for premise in premises]

    def _entails(self, pair: Encoding) -> bool:
        try:
            (found,) = self._session.run([OUTPUT], pair_feed(pair, self._inputs))
        except Exception as error:
            raise EmbeddingError(f"The model {self._model.name} failed ({error})") from error
        logits = np.asarray(found, dtype=np.float64).reshape(-1)
        if not np.isfinite(logits).all():
            raise EmbeddingError(f"The model {self._model.name} returned no numbers")
        return int(logits.argmax()) == self._entailment


def _labels(folder: Path) -> list[str]:
    """Return the names of the classes in their order."""
    try:
        config: Any = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        named = {int(number): str(label).lower() for number, label in config["id2label"].items()}
        labels = [named[number] for number in range(len(named))]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        labels = []
    if labels.count(ENTAILMENT) != 1 or set(labels) - {ENTAILMENT} not in OTHERS:
        raise EmbeddingError(
            f"The file {folder / 'config.json'} must have id2label with the classes entailment, neutral and"
            f" contradiction, or entailment and not_entailment: choose a model for natural language inference"
        )
    return labels
