"""Embeddings by name. Only the chosen one is imported."""

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from ragstack_common.core.addresses import EMBEDDING_KEY_VARIABLE
from ragstack_common.core.errors import EmbeddingError, needs_extra
from ragstack_common.embedding.hashed import HashedEmbedding
from ragstack_common.embedding.protocol import Embedding, Vectors
from ragstack_common.settings import model_cache
from ragstack_common.settings.model_cache import KNOWN
from ragstack_common.settings.names import DEFAULT_EMBEDDING

POOLING_VARIABLE: Final = "POOLING"
FORMS: Final = (
    "hashed, minilm[#POOLING], granite[#POOLING], fastembed[:MODEL], onnx:FOLDER[#POOLING], openai:URL#MODEL or"
    " bedrock:MODEL"
)


def load(choice: str, cache_folder: Path | None = None, environment: Mapping[str, str] | None = None) -> Embedding:
    """Load an embedding.

    Args:
        choice: One of :data:`FORMS`.
        cache_folder: Where embedded texts are cached; None caches nothing. It is first used with the first text.
            ``hashed`` has no cache, because it embeds a passage in 0.3 ms.
        environment: Environment variables: :data:`EMBEDDING_KEY_VARIABLE` for an ``openai`` server with authentication,
            and :data:`POOLING_VARIABLE` for a model in ONNX form if the choice does not name the pooling. None uses
            the variables of the process.

    Raises:
        EmbeddingError: The kind is unknown, or its model cannot be loaded; the message says what to do.
        MissingPackageError: A required package is not installed.
    """
    if choice == DEFAULT_EMBEDDING:
        return HashedEmbedding()
    if environment is None:
        environment = os.environ
    if cache_folder is None:
        return _model(choice, environment)
    with needs_extra("local", "A cache of embeddings"):
        from ragstack_common.embedding.cache import CachedEmbedding  # noqa: PLC0415 - imports apsw, an extra

    return CachedEmbedding(_model(choice, environment), cache_folder / "embeddings.sqlite3")


def load_recorded(choice: str) -> Embedding:
    """Load an embedding whose choice was recorded: :data:`POOLING_VARIABLE` does not apply."""
    return load(choice, environment={name: text for name, text in os.environ.items() if name != POOLING_VARIABLE})


def embedding_choice(name: str) -> str | None:
    """Return the choice of the embedding with this name; None if its folder or address is not known."""
    kind, _, model = name.partition(":")
    if kind == "onnx":
        folder, _, rest = model.partition("@")
        known = model_cache.name_of_folder(folder)
        _, mark, pooling = rest.partition("#")
        return known and f"{known}{mark}{pooling}"
    if kind == "bedrock":
        return name.partition("@")[0]  # after it, what a local Bedrock has under the name of the model
    return None if kind == "openai" else name


def flag(name: str) -> str:
    """Return the command-line option that loads an embedding by the name that a knowledge base stores."""
    if choice := embedding_choice(name):
        return f"--embedding {choice}"
    kind, _, model = name.partition(":")
    if kind == "openai":
        return f"--embedding openai:URL#{model}"
    folder, _, rest = model.partition("@")
    _, mark, pooling = rest.partition("#")
    return f"--embedding onnx:FOLDER{mark}{pooling} with the unchanged folder {folder}"


class QueryEmbedding:
    """Embeds queries and caches the most recent ones. Any thread may use it."""

    def __init__(self, embedding: Embedding | str) -> None:
        self.model = load(embedding) if isinstance(embedding, str) else embedding
        self._embed = lru_cache(maxsize=1_000)(self.model.embed_query)

    def several(self, queries: Sequence[str]) -> list[Vectors]:
        """Embed queries: vectors of shape ``(dimension,)``, of unit length or zero."""
        return [self._embed(query) for query in queries]

    def close(self) -> None:
        """Close the model."""
        self.model.close()


def _model(choice: str, environment: Mapping[str, str]) -> Embedding:
    kind, _, argument = choice.partition(":")
    known, mark, pooling = choice.partition("#")
    if known in KNOWN:
        kind, argument = "onnx", f"{model_cache.added_folder(known)}{mark}{pooling}"
    match kind, argument:
        case "fastembed", _:
            from ragstack_common.embedding import fastembed  # noqa: PLC0415 - an extra, and slow to import

            return fastembed.load(argument or fastembed.DEFAULT_MODEL)
        case "onnx", folder if folder:
            with needs_extra("local", "The embedding onnx"):
                from ragstack_common.embedding import onnx  # noqa: PLC0415 - slow to import

            return onnx.load(folder, environment.get(POOLING_VARIABLE, "").strip())
        case "openai", url if url:
            with needs_extra("local", "The embedding openai"):
                from ragstack_common.embedding import openai  # noqa: PLC0415 - slow to import

            return openai.load(url, environment.get(EMBEDDING_KEY_VARIABLE))
        case "bedrock", model if model:
            from ragstack_common.embedding.bedrock import BedrockEmbedding  # noqa: PLC0415 - imports boto3

            return BedrockEmbedding(model)
    raise EmbeddingError(f"There is no embedding {choice!r}: choose {FORMS}")
