"""The models that the package fastembed knows; it downloads one when it is first used, and keeps it."""

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
"""fastembed's own default lies in the folder for temporary files, and is lost with it."""

HUB_LIMIT_SECONDS: Final = 10.0
TEXTS_IN_BATCH: Final = 1
"""A quantized model scales its numbers by the whole batch: a text's vector would depend on its neighbours."""


class FastEmbedding(Embedding):
    """A model of fastembed, which marks questions and passages as the model wants them, and cuts long texts.

    Args:
        model: Loaded.
    """

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
        found = self._model.passage_embed([_scalar(text) for text in texts], batch_size=TEXTS_IN_BATCH)
        for row, vector in enumerate(found):
            if self._closed:
                raise EmbeddingClosed
            vectors[row] = vector
        return unit(vectors, rows=len(texts), dimension=self.dimension, source=self.name)

    def embed_query(self, text: str) -> Vectors:
        """Embed a question."""
        found = list(self._model.query_embed(_scalar(text)))
        (vector,) = unit(found, rows=1, dimension=self.dimension, source=self.name)
        return np.asarray(vector)

    def close(self) -> None:
        """Give up what is under way, once the text that has begun is done."""
        self._closed = True


def load(name: str) -> FastEmbedding:
    """Load a model from the cache, or download it.

    Raises:
        MissingPackageError: fastembed is not installed.
        EmbeddingError: fastembed does not know the model, or cannot get it.
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
    # It logs as an error what is none here.
    logger.disable("fastembed")
    try:
        return FastEmbedding(TextEmbedding(description["model"], cache_dir=str(cache), local_files_only=True))
    except Exception:  # noqa: BLE001 - fastembed raises what each of its sources raises: it is not in the cache
        _ask_hub(description["model"], description["sources"]["hf"], cache)
    finally:
        logger.enable("fastembed")
    try:
        return FastEmbedding(TextEmbedding(description["model"], cache_dir=str(cache)))
    except Exception as error:
        raise _unobtainable(description["model"], cache, error) from error


def _ask_hub(model: str, repository: str | None, cache: Path) -> None:
    """Find out in one question whether the hub can be reached: fastembed itself tries for most of a minute."""
    if repository is None:
        return
    from huggingface_hub import HfApi  # noqa: PLC0415 - comes with fastembed

    try:
        HfApi().model_info(repository, timeout=HUB_LIMIT_SECONDS)
    except Exception as error:
        raise _unobtainable(model, cache, error) from error


def _unobtainable(model: str, cache: Path, error: Exception) -> EmbeddingError:
    reason = next(iter(str(error).splitlines()), "") or type(error).__name__
    return EmbeddingError(
        f"The model {model} is not in {cache} and cannot be downloaded ({reason}). Start once with access to"
        f" huggingface.co, or copy that folder from a machine that has it (the variable {CACHE_VARIABLE} names another"
        " one); or start with --embedding onnx:FOLDER for a model that you have, or --embedding hashed, which needs"
        " none"
    )


def _scalar(text: str) -> str:
    # Tokenizers take Unicode scalar values only.
    return text.encode("utf-8", "replace").decode("utf-8")
