"""The protocol of embeddings."""

import os
import sys
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from ragstack_common.errors import EmbeddingError

Vectors = npt.NDArray[np.float32]

MODEL_FUSION_WEIGHT: Final = 0.5
"""Fusion weight of sentence-embedding models, measured with all-MiniLM-L6-v2 in eight bits.

nDCG@10 of BM25, vectors and HYBRID: SciFact .688, .642, .707; passages of 400 characters .659, .569, .660; CACM .500,
.415, .530. Chosen on the first two; docs/EVALUATION.md compares other weights.
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
        dimension: Length of a vector.
        fusion_weight: Weight of a rank among the vectors in a fusion with BM25, which has 1. Over 0.
    """

    name: str
    description: str
    dimension: int
    fusion_weight: float

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

        Raises:
            As :meth:`embed`.
        """
        (vector,) = self.embed([text])
        return np.asarray(vector, dtype=np.float32)

    def close(self) -> None:
        """Abandon calls in progress, and release threads, processes and files."""
        return


def unit(vectors: npt.ArrayLike, *, rows: int, dimension: int | None, source: str) -> Vectors:
    """Check a model's output, and scale every row to unit length.

    Args:
        vectors: One row for each text.
        rows: Number of texts.
        dimension: Expected length of a row; None accepts any.
        source: The model, for error messages.

    Raises:
        EmbeddingError: The number or length of rows is wrong, or a value is not a finite number.
    """
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
