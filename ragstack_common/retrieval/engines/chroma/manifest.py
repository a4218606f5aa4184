"""What a collection was built from and how, in a file beside the store: for programs as JSON, for people as text."""

import os
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragstack_common.embedding import Embedding
from ragstack_common.errors import ConfigurationError, DimensionMismatchError, EmbeddingError

FOLDER: Final = "manifests"
"""In the folder of the store."""


class Counts(BaseModel):
    """How much of something there is."""

    model_config = ConfigDict(frozen=True)

    documents: int = 0
    chunks: int = 0


class Failure(BaseModel):
    """A file that could not be built, and why. What was built of it earlier is still there."""

    model_config = ConfigDict(frozen=True)

    source: str
    reason: str


class Manifest(BaseModel):
    """What a collection holds, and how it came to it.

    Attributes:
        collection: Its name.
        embedding: Name of the embedding.
        dimension: Length of the vectors.
        space: Distance of the index: cosine, l2 or ip.
        chunk_size: Characters of a chunk at most.
        chunk_overlap: Characters at most that a chunk repeats of the one before.
        contextual_headers: Whether file name and heading are embedded with every chunk.
        built_at: When, in ISO 8601 with the time zone.
        total: Of the whole collection.
        corpora: By corpus.
        versions: By version.
        last_run: Files that were added, updated, removed, unchanged and failed.
        failures: The files that failed.
    """

    model_config = ConfigDict(frozen=True)

    collection: str
    embedding: str
    dimension: int
    space: str
    chunk_size: int
    chunk_overlap: int
    contextual_headers: bool = True
    built_at: str
    total: Counts
    corpora: dict[str, Counts] = Field(default_factory=dict)
    versions: dict[str, Counts] = Field(default_factory=dict)
    last_run: dict[str, int] = Field(default_factory=dict)
    failures: tuple[Failure, ...] = ()

    def check(self, embedding: Embedding) -> None:
        """Refuse a query that does not fit the store.

        Raises:
            EmbeddingError: It is embedded with another model.
            DimensionMismatchError: Its vectors have another length.
        """
        if embedding.name != self.embedding:
            raise EmbeddingError(
                f"The collection {self.collection} was built with the embedding {self.embedding}, not with "
                f"{embedding.name}: use that one, or build the collection anew"
            )
        if embedding.dimension != self.dimension:
            raise DimensionMismatchError(
                f"The collection {self.collection} was built with vectors of {self.dimension} dimensions; "
                f"{embedding.name} has {embedding.dimension}: its model has changed, so build the collection anew"
            )

    def as_text(self) -> str:
        """Show it to people, one setting or count on a line."""
        lines = [
            f"collection = {self.collection}",
            f"built_at = {self.built_at}",
            f"embedding = {self.embedding} ({self.dimension} dimensions, {self.space})",
            f"chunk_size = {self.chunk_size}",
            f"chunk_overlap = {self.chunk_overlap}",
            f"contextual_headers = {str(self.contextual_headers).lower()}",
            f"documents = {self.total.documents}",
            f"chunks = {self.total.chunks}",
        ]
        for kind, counted in (("corpus", self.corpora), ("version", self.versions)):
            lines += [f"{kind} {name}: {of.documents} documents, {of.chunks} chunks" for name, of in counted.items()]
        lines += [f"last run, {name}: {number}" for name, number in self.last_run.items()]
        lines += [f"failed: {failure.source}: {failure.reason}" for failure in self.failures]
        return "\n".join(lines) + "\n"


def path_of(db_path: Path, collection: str) -> Path:
    """Return where the manifest for programs is; the one for people ends in ``.txt`` instead."""
    return db_path / FOLDER / f"{collection}.json"


def write(manifest: Manifest, db_path: Path) -> Path:
    """Write both files, each at once.

    Returns:
        The one for people.
    """
    path = path_of(db_path, manifest.collection)
    path.parent.mkdir(parents=True, exist_ok=True)
    for file, text in ((path, manifest.model_dump_json(indent=2) + "\n"), (_text_path(path), manifest.as_text())):
        unfinished = file.with_name(f"{file.name}.{os.getpid()}")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(file)
    return _text_path(path)


def read(db_path: Path, collection: str) -> Manifest | None:
    """Read the manifest of a collection; None of one that has none, as others build collections too.

    Raises:
        ConfigurationError: The file is not a manifest.
    """
    path = path_of(db_path, collection)
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise ConfigurationError(f"{path} is no manifest: build the collection again ({error})") from error


def _text_path(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".json") + ".txt")
