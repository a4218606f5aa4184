"""The embeddings by name; only what is chosen is imported."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ragstack_common.config import DEFAULT_EMBEDDING
from ragstack_common.embedding.hashed import HashedEmbedding
from ragstack_common.embedding.protocol import Embedding
from ragstack_common.errors import EmbeddingError, needs_extra

API_KEY_VARIABLE: Final = "RAGSTACK_EMBEDDING_API_KEY"
CACHE_FILE_NAME: Final = "embeddings.sqlite3"
POOLING_VARIABLE: Final = "POOLING"
FORMS: Final = "hashed, fastembed[:MODEL], onnx:FOLDER[#POOLING], openai:URL#MODEL or bedrock:MODEL"


def load(choice: str, cache_folder: Path | None = None, environment: Mapping[str, str] = os.environ) -> Embedding:
    """Return the chosen embedding, ready to embed.

    Args:
        choice: One of :data:`FORMS`.
        cache_folder: Where models remember what they embedded; None remembers nothing. Not touched before the first
            text. ``hashed`` does without: embedding a passage takes .3 ms.
        environment: Holds the key of an ``openai`` server that asks for one, in :data:`API_KEY_VARIABLE`, and how an
            ``onnx`` model pools that is not told it by the choice, in :data:`POOLING_VARIABLE`.

    Raises:
        EmbeddingError: There is no such kind, or its model cannot be had; the message says what to do.
        MissingPackageError: A package that it needs is not installed.
    """
    if choice == DEFAULT_EMBEDDING:
        return HashedEmbedding()
    if cache_folder is None:
        return _model(choice, environment)
    # The file is SQLite's, through apsw, which only the extra local installs.
    with needs_extra("local", "A folder of remembered embeddings"):
        from ragstack_common.embedding.cache import CachedEmbedding  # noqa: PLC0415

    return CachedEmbedding(_model(choice, environment), cache_folder / CACHE_FILE_NAME)


def flag(name: str) -> str:
    """Say with which option an embedding of this name, stored with a knowledge base, is had again."""
    kind, _, model = name.partition(":")
    if kind == "onnx":
        folder, _, rest = model.partition("@")
        _, mark, pooling = rest.partition("#")
        return f"--embedding onnx:FOLDER{mark}{pooling} with the unchanged folder {folder}"
    return f"--embedding openai:URL#{model}" if kind == "openai" else f"--embedding {name}"


def _model(choice: str, environment: Mapping[str, str]) -> Embedding:
    kind, _, argument = choice.partition(":")
    match kind, argument:
        case "fastembed", _:
            from ragstack_common.embedding import fastembed  # noqa: PLC0415 - an extra, and slow to import

            return fastembed.load(argument or fastembed.DEFAULT_MODEL)
        case "onnx", folder if folder:
            return _onnx(folder, environment.get(POOLING_VARIABLE, "").strip())
        case "openai", url if url:
            with needs_extra("local", "The embedding openai"):
                from ragstack_common.embedding import openai  # noqa: PLC0415 - slow to import

            return openai.load(url, environment.get(API_KEY_VARIABLE))
        case "bedrock", model if model:
            from ragstack_common.embedding.bedrock import BedrockEmbedding  # noqa: PLC0415 - makes a client

            return BedrockEmbedding(model)
    raise EmbeddingError(f"There is no embedding {choice!r}: choose {FORMS}")


def _onnx(choice: str, pooling: str) -> Embedding:
    from ragstack_common.embedding.model_folder import POOLINGS  # noqa: PLC0415 - few need it

    with needs_extra("local", "The embedding onnx"):
        from ragstack_common.embedding.onnx import OnnxEmbedding  # noqa: PLC0415 - slow to import

    folder, _, stated = choice.rpartition("#") if not Path(choice).is_dir() and "#" in choice else (choice, "", "")
    wanted = stated or pooling
    chosen = next((known for known in POOLINGS if known == wanted), None)
    if wanted and chosen is None:
        raise EmbeddingError(f"There is no pooling {wanted!r}: choose {', '.join(POOLINGS)}")
    return OnnxEmbedding(Path(folder), chosen)
