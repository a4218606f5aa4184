"""An embedding that remembers what it embedded."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from ragstack_common.embedding.protocol import Embedding, Vectors
from ragstack_common.embedding.vector_file import VectorFile

QUERIES_KEPT: Final = 1_000
TEXTS_AT_ONCE: Final = 256
"""Embedded and then kept: what is lost when the process ends in the middle of a long document."""

_KEY_BYTES: Final = 16


class CachedEmbedding(Embedding):
    """Asks a model for every passage once, and for the last few questions once.

    Vectors have the precision of the index, whether they were remembered or not, so that nothing depends on it.
    A blank text is the zero vector, which finds nothing.

    Args:
        model: Slow, or paid for by the call.
        path: File of the passages.
    """

    def __init__(self, model: Embedding, path: Path) -> None:
        self.name, self.description = model.name, model.description
        self.dimension, self.fusion_weight = model.dimension, model.fusion_weight
        self._model = model
        self._file = VectorFile(path)
        self._query = lru_cache(maxsize=QUERIES_KEPT)(self._embedded_query)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages that were not embedded before."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            some = texts[start : start + TEXTS_AT_ONCE]
            keys = [self._key(text) if text.strip() else None for text in some]
            text_of = {key: text for key, text in zip(keys, some, strict=True) if key is not None}
            values = self._values(text_of)
            for row, key in enumerate(keys, start):
                if key is not None:
                    vectors[row] = values[key]
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Embed a question that was not asked lately."""
        return self._query(text) if text.strip() else np.zeros(self.dimension, dtype=np.float32)

    def close(self) -> None:
        """Close the model and the file."""
        self._model.close()
        self._file.close()

    def _values(self, text_of: dict[bytes, str]) -> dict[bytes, npt.NDArray[np.float16]]:
        size = np.dtype("<f2").itemsize * self.dimension
        found = {key: value for key, value in self._file.find(list(text_of)).items() if len(value) == size}
        missing = [key for key in text_of if key not in found]
        if missing:
            embedded = self._model.embed([text_of[key] for key in missing]).astype("<f2")
            made = {key: row.tobytes() for key, row in zip(missing, embedded, strict=True)}
            self._file.store(made)
            found.update(made)
        return {key: np.frombuffer(value, dtype="<f2") for key, value in found.items()}

    def _embedded_query(self, text: str) -> Vectors:
        vector = self._model.embed_query(text)
        vector.setflags(write=False)
        return vector

    def _key(self, text: str) -> bytes:
        named = f"{self.name}\0{text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(named, digest_size=_KEY_BYTES).digest()
