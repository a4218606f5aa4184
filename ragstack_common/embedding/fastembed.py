"""Models of the package fastembed, downloaded at the first use."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from ragstack_common.core.errors import EmbeddingError, needs_extra
from ragstack_common.embedding.protocol import ModelEmbedding, Vectors, scalar

if TYPE_CHECKING:
    from fastembed import TextEmbedding

DEFAULT_MODEL: Final = "BAAI/bge-small-en-v1.5"
CACHE_VARIABLE: Final = "FASTEMBED_CACHE_PATH"


class FastEmbedding(ModelEmbedding):
    """A model of fastembed, which adds prefixes and truncates long texts as the model needs.

    Texts are embedded one by one, each on all cores: a quantized model scales its numbers by the whole batch, so that
    larger batches change the vectors.
    """

    def __init__(self, model: "TextEmbedding") -> None:
        self._model = model
        super().__init__(f"fastembed:{model.model_name}", f"fastembed:{model.model_name}", workers=1)

    def _vectors(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        embed = self._model.query_embed if is_query else self._model.passage_embed
        return np.array(list(embed([scalar(text) for text in texts])))


def load(name: str) -> FastEmbedding:
    """Load a model from the cache, or download it."""
    with needs_extra("semantic", "The embedding fastembed"):
        from fastembed import TextEmbedding  # noqa: PLC0415 - an extra
        from huggingface_hub import HfApi  # noqa: PLC0415 - comes with it
        from loguru import logger  # noqa: PLC0415 - comes with it
    known = {description["model"].lower(): description for description in TextEmbedding.list_supported_models()}
    if name.lower() not in known:
        raise EmbeddingError(
            f"fastembed does not know the model {name}: choose one of"
            f" fastembed.TextEmbedding.list_supported_models(), such as {DEFAULT_MODEL}"
        )
    model, repository = known[name.lower()]["model"], known[name.lower()]["sources"]["hf"]
    # fastembed's own default is in the folder for temporary files.
    cache = Path(os.environ.get(CACHE_VARIABLE) or "~/.cache/ragstack/models").expanduser()
    logger.disable("fastembed")  # it logs a model that is not in the cache as an error
    with suppress(Exception):  # fastembed raises the errors of all its sources
        return FastEmbedding(TextEmbedding(model, cache_dir=str(cache), local_files_only=True))
    try:
        if repository:
            HfApi().model_info(repository, timeout=10.0)  # fastembed itself retries for most of a minute
        return FastEmbedding(TextEmbedding(model, cache_dir=str(cache)))
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise EmbeddingError(
            f"The model {model} is not in {cache} and cannot be downloaded ({reason}). Start once with access to"
            f" huggingface.co, or copy that folder from another machine (the variable {CACHE_VARIABLE} selects another"
            " folder); or use --embedding onnx:FOLDER with a model that you have, or --embedding hashed"
        ) from error
