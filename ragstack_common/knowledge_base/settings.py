"""Where a knowledge base is, by the environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

COLLECTION_VARIABLES: Final = ("ATLAS_COLLECTION_NAME", "CHROMA_COLLECTION_NAME")
PATH_VARIABLES: Final = ("ATLAS_DB_PATH", "CHROMA_PERSIST_DIRECTORY")
EMBEDDING_VARIABLE: Final = "EMBEDDING_MODEL"
"""What texts are embedded with, as ``--embedding`` takes it; the folder of an ONNX model alone will do."""

DEFAULT_COLLECTION: Final = "atlas_knowledge_base"
DEFAULT_PATH: Final = "~/atlas_chroma_db"

MODEL_FILE: Final = "model.onnx"


@dataclass(frozen=True)
class KnowledgeSettings:
    """Where a knowledge base is.

    Attributes:
        collection_name: The collection.
        db_path: The folder of the store.
        embedding: What texts are embedded with; None takes what the collection records.
    """

    collection_name: str = DEFAULT_COLLECTION
    db_path: str = DEFAULT_PATH
    embedding: str | None = None

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "KnowledgeSettings":
        """Read the variables; of two that mean the same, the first of its tuple that is set counts."""
        embedding = env.get(EMBEDDING_VARIABLE, "").strip() or None
        if embedding is not None and (Path(embedding) / MODEL_FILE).is_file():
            embedding = f"onnx:{embedding}"
        return cls(
            _first(env, COLLECTION_VARIABLES) or DEFAULT_COLLECTION,
            _first(env, PATH_VARIABLES) or DEFAULT_PATH,
            embedding,
        )


def _first(env: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := env.get(name, "").strip())), None)
