"""What every embedding is, and how it fails.

EmbeddingClosed is the EmbeddingError of a text that was not embedded because the embedding was closed.
"""

import os
import sys
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from ragstack_common.errors import EmbeddingError

Vectors = npt.NDArray[np.float32]

MODEL_FUSION_WEIGHT: Final = 0.5
"""Of a sentence-embedding model; all-MiniLM-L6-v2 in eight bits stands for those that were not measured.

nDCG@10 of BM25, of the vectors, and of HYBRID: SciFact .688, .642, .707; passages of 400 characters .659, .569, .660;
CACM .500, .415, .530. Chosen on the first two; docs/EVALUATION.md has what other weights make of them.
"""


class EmbeddingClosed(EmbeddingError):  # noqa: N818 - not an error of the text
    """The embedding was closed before the texts were embedded."""

    def __init__(self) -> None:
        super().__init__("The embedding was closed, as the local Bedrock is being stopped")


class Embedding(Protocol):
    """Turns texts into vectors of unit length; a text that says nothing may be the zero vector. Any thread may call it.

    Attributes:
        name: Names the model, whatever folder or address it came from; stored with every knowledge base.
        description: The name and where the model is, for the line that is said at start.
        dimension: Length of a vector.
        fusion_weight: What a rank among the vectors counts beside the same rank in BM25, over 0.
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
            EmbeddingClosed: It was closed in the meantime.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """Embed a question, which some models want marked as one.

        Returns:
            Shape ``(dimension,)``.

        Raises:
            As :meth:`embed`.
        """
        (vector,) = self.embed([text])
        return np.asarray(vector, dtype=np.float32)

    def close(self) -> None:
        """Give up what is under way, and release threads, processes and files."""
        return


def unit(vectors: npt.ArrayLike, *, rows: int, dimension: int | None, source: str) -> Vectors:
    """Check what a model returned, and scale every row to unit length.

    Args:
        vectors: One row for each text.
        rows: Texts that were sent.
        dimension: Expected length of a row; None takes what comes.
        source: The model, as the error shall name it.

    Raises:
        EmbeddingError: The rows differ in number, in length, or hold something else than finite numbers.
    """
    try:
        found = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError):
        raise EmbeddingError(f"{source} returned something else than one list of numbers for each text") from None
    if found.ndim != 2 or len(found) != rows or found.shape[1] == 0:  # noqa: PLR2004 - a table
        raise EmbeddingError(f"{source} returned an array of shape {found.shape} for {rows} texts")
    if dimension is not None and found.shape[1] != dimension:
        raise EmbeddingError(
            f"{source} returned vectors of {found.shape[1]} dimensions where it returned {dimension} before: "
            "its model has changed, so start with a new data folder"
        )
    if not np.isfinite(found).all():
        raise EmbeddingError(f"{source} returned a vector with values that are not numbers")
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(found / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def cores() -> int:
    """Return how many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
