"""The embeddings that a knowledge base can use, behind one small protocol."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ragstack_local.bedrock.hashed import HashedEmbedding
from ragstack_local.bedrock.options import DEFAULT_EMBEDDING


class EmbeddingError(Exception):
    """An embedding cannot be had, or is not the one that the data was indexed with."""


class Embedding(Protocol):
    """Turns texts into vectors of unit length.

    Attributes:
        name: As it was chosen; stored with every knowledge base.
        dimension: Length of a vector.
        fusion_weight: What a rank among the vectors counts beside the same rank in BM25, over 0.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def dimension(self) -> int: ...  # noqa: D102
    @property
    def fusion_weight(self) -> float: ...  # noqa: D102

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return an array of shape ``(len(texts), dimension)``."""
        ...


def load(name: str) -> Embedding:
    """Return the embedding of this name.

    Raises:
        EmbeddingError: There is none.
    """
    if name == DEFAULT_EMBEDDING:
        return HashedEmbedding()
    raise EmbeddingError(f"There is no embedding {name!r}: choose {DEFAULT_EMBEDDING!r}")
