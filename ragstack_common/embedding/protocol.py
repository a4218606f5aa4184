"""The protocol of embeddings."""

import os
import sys
from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from ragstack_common.core.errors import EmbeddingError
from ragstack_common.settings.search import MODEL_COSINE_SHARE

Vectors = npt.NDArray[np.float32]

MODEL_FUSION_WEIGHT: Final = 0.5
"""Fusion weight of sentence-embedding models, measured with all-MiniLM-L6-v2 in eight bits.

nDCG@10 of BM25, vectors and both, fused by rank: SciFact .688, .642, .707; passages of 400 characters .659, .569, .660;
CACM .500, .415, .530. Chosen on the first two.
"""


class EmbeddingClosed(EmbeddingError):  # noqa: N818 - not an error of the text
    """The embedding was closed before it embedded the texts."""

    def __init__(self) -> None:
        super().__init__("The embedding was closed, because its process is stopping")


class Embedding(Protocol):
    """Turns texts into vectors of unit length, or zero if a text has no meaning to it. Any thread may use it.

    Attributes:
        name: The model, independent of its folder or address; stored with every knowledge base.
        description: The name and the location, for the start message.
        cosine_share: Share of the cosine in a score of cosine and BM25, 0 to 1.
        fusion_weight: Weight of the vectors where there is no such score: of a rank in a fusion with BM25, which has 1.
            Over 0.
        pooling: How the vectors of tokens become one, if that is known; shown in spans.
    """

    name: str
    description: str
    dimension: int
    cosine_share: float
    fusion_weight: float
    pooling: str = "unknown"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages.

        Returns:
            Shape ``(len(texts), dimension)``.

        Raises:
            EmbeddingError: The model failed; the message says what to do.
            EmbeddingClosed: It was closed meanwhile.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """Embed a query, which some models treat differently from passages.

        Returns:
            Shape ``(dimension,)``.
        """
        (vector,) = self.embed([text])
        return np.asarray(vector, dtype=np.float32)

    def close(self) -> None:
        """Abandon calls in progress, and release threads, processes and files."""
        return


class ModelEmbedding(Embedding):
    """Base of models: batches of *texts_in_call* passages in several workers, checks of the output, and closing.

    A subclass needs :meth:`_vectors`.
    """

    cosine_share = MODEL_COSINE_SHARE
    fusion_weight = MODEL_FUSION_WEIGHT
    texts_in_call = 1

    def __init__(self, name: str, description: str, workers: int) -> None:
        self.name = name
        self.description = description
        self._closed = False
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="embedding")
        found = self._vectors(["A text that shows how long a vector is."], is_query=False)
        self.dimension = unit(found, rows=1, dimension=None, source=description).shape[1]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, several at once."""
        batches = self._batches(texts)
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        try:
            calls = self._threads.map(self._checked, [[texts[place] for place in batch] for batch in batches])
            for batch, found in zip(batches, calls, strict=True):
                vectors[batch] = found
        except (CancelledError, RuntimeError):
            if self._closed:
                raise EmbeddingClosed from None
            raise
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Embed a query in the calling thread, so that it does not wait for passages."""
        return np.asarray(self._checked([text], is_query=True)[0])

    def close(self) -> None:
        """Abandon calls that have not started."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _batches(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the positions of the texts of each call."""
        places = list(range(len(texts)))
        return [places[start : start + self.texts_in_call] for start in range(0, len(texts), self.texts_in_call)]

    def _checked(self, texts: Sequence[str], *, is_query: bool = False) -> Vectors:
        found = self._vectors(texts, is_query=is_query)
        return unit(found, rows=len(texts), dimension=self.dimension, source=self.description)

    @abstractmethod
    def _vectors(self, texts: Sequence[str], *, is_query: bool) -> npt.ArrayLike:
        """Return one vector of any length for each text of a batch."""


def scalar(text: str) -> str:
    """Replace lone surrogates: tokenizers accept only Unicode scalar values."""
    return text.encode("utf-8", "replace").decode("utf-8")


def unit(vectors: npt.ArrayLike, *, rows: int, dimension: int | None, source: str) -> Vectors:
    """Check a model's output, one row for each text, and scale every row to unit length."""
    try:
        found = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError):
        raise EmbeddingError(f"{source} did not return one list of numbers for each text") from None
    if found.ndim != 2 or len(found) != rows or found.shape[1] == 0:  # noqa: PLR2004 - a table
        raise EmbeddingError(f"{source} returned an array of shape {found.shape} for {rows} texts")
    if dimension is not None and found.shape[1] != dimension:
        raise EmbeddingError(
            f"{source} returned vectors of {found.shape[1]} dimensions where it returned {dimension} before: "
            "its model has changed, so start with a new data folder"
        )
    if not np.isfinite(found).all():
        raise EmbeddingError(f"{source} returned a vector with values that are not finite numbers")
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(found / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
