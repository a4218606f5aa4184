"""Sentence-embedding models in the user's cache, by name; `ragstack model add` puts them there.

A model is a folder in ONNX form with a manifest. It is renamed into place when it is complete, so a folder with a
manifest can be used.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

from ragstack_common.core.errors import EmbeddingError
from ragstack_common.settings.names import DEFAULT_EMBEDDING

MANIFEST: Final = "manifest.json"
TAKES_BATCHES: Final = "takes_batches"
"""Member of the manifest: a text's vector does not depend on the other texts of its batch."""

AUTOMATIC: Final = "auto"
"""Chooses MiniLM if it is in the cache and can run, and ``hashed`` otherwise."""

EMBEDDING_VARIABLE: Final = "RAGSTACK_EMBEDDING"
"""Chooses the embedding of new collections and stacks."""

MINILM: Final = "minilm"

RUNTIME: Final = ("onnxruntime", "tokenizers")
"""Packages that run a model of the cache; the extra ``milvus`` has neither."""


@dataclass(frozen=True)
class KnownModel:
    """A published model that can be added by name. Its folder in the cache is part of the embedding's name."""

    name: str
    folder: str
    title: str
    languages: str
    licence: str
    dimension: int
    max_tokens: int
    pooling: Literal["mean", "cls"]


KNOWN: Final[Mapping[str, KnownModel]] = {
    model.name: model
    for model in (
        KnownModel(
            name=MINILM,
            folder="minilm-int8",
            title="sentence-transformers/all-MiniLM-L6-v2",
            languages="English",
            licence="Apache-2.0",
            dimension=384,
            max_tokens=256,
            pooling="mean",
        ),
        KnownModel(
            name="granite",
            folder="granite-multilingual",
            title="ibm-granite/granite-embedding-97m-multilingual-r2",
            languages="many languages",
            licence="Apache-2.0",
            dimension=384,
            max_tokens=512,
            pooling="cls",
        ),
    )
}


def models_folder() -> Path:
    """Return the folder of all models: ``ragstack/models`` in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # Source: XDG Base Directory Specification, which ignores relative paths.
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "ragstack" / "models"


def folder_of(name: str) -> Path:
    """Return the folder of a known model, whether it is there or not; raises EmbeddingError."""
    if name not in KNOWN:
        raise EmbeddingError(
            f"There is no model {name!r} to add: choose {' or '.join(KNOWN)}. A model of your own needs no step:"
            " use --embedding onnx:FOLDER"
        )
    return models_folder() / KNOWN[name].folder


def is_added(name: str) -> bool:
    """Whether a known model is in the cache."""
    return (folder_of(name) / MANIFEST).is_file()


def added_folder(name: str) -> Path:
    """Return the folder of a known model.

    Raises:
        EmbeddingError: The model is not in the cache, or the name is unknown.
    """
    if not is_added(name):
        raise EmbeddingError(
            f"The model {name} is not in {models_folder()}: run `ragstack model add {name}`, or use --embedding"
            f" {DEFAULT_EMBEDDING}"
        )
    return folder_of(name)


def manifest(name: str) -> Mapping[str, Any]:
    """Read the manifest of a model in the cache; raises EmbeddingError."""
    found: Mapping[str, Any] = json.loads((added_folder(name) / MANIFEST).read_text(encoding="utf-8"))
    return found


def chosen(choice: str) -> str:
    """Return the embedding of a choice that may be :data:`AUTOMATIC`."""
    if choice != AUTOMATIC:
        return choice
    # An environment with fewer extras than the one that added the model may lack what runs it.
    can_run = all(find_spec(package) for package in RUNTIME)
    return MINILM if can_run and is_added(MINILM) else DEFAULT_EMBEDDING


def default_embedding() -> str:
    """Return the embedding of what is new: that of :data:`EMBEDDING_VARIABLE`, or the automatic one."""
    return chosen(os.environ.get(EMBEDDING_VARIABLE) or AUTOMATIC)


def name_of_folder(folder: str) -> str | None:
    """Return the known model with this folder in the cache."""
    return next((model.name for model in KNOWN.values() if model.folder == folder), None)
