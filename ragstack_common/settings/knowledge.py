"""The settings of a knowledge base in Chroma."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field

from ragstack_common.settings.base import Settings
from ragstack_common.settings.model_cache import KNOWN
from ragstack_common.settings.names import DEFAULT_EMBEDDING


def _embedding(value: Any) -> Any:
    without_argument = (DEFAULT_EMBEDDING, "fastembed", *KNOWN)  # these names never mean a folder
    is_folder = isinstance(value, str) and value not in without_argument and Path(value).is_dir()
    return f"onnx:{value}" if is_folder else value


EmbeddingOrFolder = Annotated[str, BeforeValidator(_embedding)]


class KnowledgeSettings(Settings):
    """Where a knowledge base in Chroma is."""

    collection_name: str = Field(
        "atlas_knowledge_base",
        validation_alias=AliasChoices("ATLAS_COLLECTION_NAME", "CHROMA_COLLECTION_NAME"),
        description="the collection",
    )
    db_path: str = Field(
        "~/atlas_chroma_db",
        validation_alias=AliasChoices("ATLAS_DB_PATH", "CHROMA_PERSIST_DIRECTORY"),
        description="the folder of the store",
    )
    embedding: EmbeddingOrFolder | None = Field(
        None,
        validation_alias="EMBEDDING_MODEL",
        description="embedding, as `--embedding` takes it, or the folder of an ONNX model; by default the collection's",
    )
    pooling: str | None = Field(
        None, description="how an ONNX model pools the vectors of tokens; by default as the collection was built"
    )
    chunk_size: int | None = Field(
        None, ge=100, le=100_000, description="maximum characters of a chunk; a search checks that it was built so"
    )
    chunk_overlap: int | None = Field(
        None, ge=0, le=50_000, description="maximum characters that a chunk repeats; a search checks it too"
    )


def with_pooling(embedding: str, pooling: str | None) -> str:
    """Add a pooling to a model in ONNX form that names none."""
    has_own = embedding in KNOWN or (embedding.startswith("onnx:") and "#" not in embedding)
    return f"{embedding}#{pooling}" if has_own and pooling else embedding
