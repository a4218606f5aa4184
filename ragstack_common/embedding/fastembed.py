"""Models of the package fastembed, downloaded at the first use."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from ragstack_common.embedding.protocol import MODEL_FUSION_WEIGHT, Embedding, EmbeddingClosed, Vectors, unit
from ragstack_common.errors import EmbeddingError, needs_extra

if TYPE_CHECKING:
    from fastembed import TextEmbedding

DEFAULT_MODEL: Final = "BAAI/bge-small-en-v1.5"
CACHE_VARIABLE: Final = "FASTEMBED_CACHE_PATH"
DEFAULT_CACHE: Final = Path("~/.cache/ragstack/models")
"""fastembed's own default is in the folder for temporary files."""


class FastEmbedding(Embedding):
    """A model of fastembed, which adds prefixes and truncates long texts as the model needs."""

    fusion_weight = MODEL_FUSION_WEIGHT

    def __init__(self, model: "TextEmbedding") -> None:
        self._model = model
        self._closed = False
        self.name = f"fastembed:{model.model_name}"
        self.description = self.name
        self.dimension = model.embedding_size

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, one by one, each on all cores."""
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        # Larger batches change the vectors: a quantized model scales its numbers by the whole batch.
        found = self._model.passage_embed([_scalar(text) for text in texts], batch_size=1)
        for row, vector in enumerate(found):
            if self._closed:
                raise EmbeddingClosed
            vectors[row] = vector
        return unit(vectors, rows=len(texts), dimension=self.dimension, source=self.name)

    def embed_query(self, text: str) -> Vectors:
        """Embed a query."""
        found = list(self._model.query_embed(_scalar(text)))
        (vector,) = unit(found, rows=1, dimension=self.dimension, source=self.name)
        return np.asarray(vector)

    def close(self) -> None:
        """Abandon all texts that have not started."""
        self._closed = True


def load(name: str) -> FastEmbedding:
    """Load a model from the cache, or download it.

    Raises:
        MissingPackageError: fastembed is not installed.
        EmbeddingError: The model is unknown, or cannot be downloaded.
    """
    with needs_extra("semantic", "The embedding fastembed"):
        from fastembed import TextEmbedding  # noqa: PLC0415 - an extra
        from loguru import logger  # noqa: PLC0415 - comes with it
    known = {description["model"].lower(): description for description in TextEmbedding.list_supported_models()}
    description = known.get(name.lower())
    if description is None:
        raise EmbeddingError(
            f"fastembed does not know the model {name}. It knows for example {DEFAULT_MODEL}; all of them:"
            " python -c \"import fastembed; print(*[m['model'] for m in"
            ' fastembed.TextEmbedding.list_supported_models()])"'
        )
    cache = Path(os.environ.get(CACHE_VARIABLE) or DEFAULT_CACHE.expanduser())
    # It logs a model that is not in the cache as an error.
    logger.disable("fastembed")
    try:
        return FastEmbedding(TextEmbedding(description["model"], cache_dir=str(cache), local_files_only=True))
    except Exception:  # noqa: BLE001 - fastembed raises the errors of all its sources: the model is not in the cache
        _ask_hub(description["model"], description["sources"]["hf"], cache)
    finally:
        logger.enable("fastembed")
    try:
        return FastEmbedding(TextEmbedding(description["model"], cache_dir=str(cache)))
    except Exception as error:
        raise _unobtainable(description["model"], cache, error) from error


def _ask_hub(model: str, repository: str | None, cache: Path) -> None:
    """Check that the hub can be reached: fastembed itself retries for most of a minute."""
    if repository is None:
        return
    from huggingface_hub import HfApi  # noqa: PLC0415 - comes with fastembed

    try:
        HfApi().model_info(repository, timeout=10.0)
    except Exception as error:
        raise _unobtainable(model, cache, error) from error


def _unobtainable(model: str, cache: Path, error: Exception) -> EmbeddingError:
    reason = next(iter(str(error).splitlines()), "") or type(error).__name__
    return EmbeddingError(
        f"The model {model} is not in {cache} and cannot be downloaded ({reason}). Start once with access to"
        f" huggingface.co, or copy that folder from another machine (the variable {CACHE_VARIABLE} selects another"
        " folder); or use --embedding onnx:FOLDER with a model that you have, or --embedding hashed, which needs none"
    )


def _scalar(text: str) -> str:
    # Tokenizers accept only Unicode scalar values.
    return text.encode("utf-8", "replace").decode("utf-8")
