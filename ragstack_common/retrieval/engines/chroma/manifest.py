"""A description of a built collection, in two files next to the store: JSON for programs, text for people."""

import os
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragstack_common.embedding import Embedding
from ragstack_common.errors import ConfigurationError, DimensionMismatchError, EmbeddingError

FOLDER: Final = "manifests"


class Counts(BaseModel):
    """Numbers of documents and chunks."""

    model_config = ConfigDict(frozen=True)

    documents: int = 0
    chunks: int = 0


class Failure(BaseModel):
    """A file that could not be built. Chunks of an earlier build of it remain."""

    model_config = ConfigDict(frozen=True)

    source: str
    reason: str


class Manifest(BaseModel):
    """The contents of a collection, and how they were built.

    Attributes:
        collection: Its name.
        embedding: Name of the embedding.
        dimension: Length of the vectors.
        space: Distance of the index: cosine, l2 or ip.
        chunk_size: Maximum characters of a chunk.
        chunk_overlap: Maximum characters that a chunk repeats of the previous one.
        contextual_headers: Whether each chunk is embedded with its file name and heading.
        built_at: ISO 8601 with the time zone.
        total: Counts of the whole collection.
        corpora: Counts by corpus.
        versions: Counts by version.
        last_run: Numbers of files added, updated, removed, unchanged and failed.
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
        """Check that queries embedded with *embedding* fit the collection.

        Raises:
            EmbeddingError: The collection was built with another model.
            DimensionMismatchError: The vectors differ in length.
        """
        if embedding.name != self.embedding:
            raise EmbeddingError(
                f"The collection {self.collection} was built with the embedding {self.embedding}, not with "
                f"{embedding.name}: use that one, or rebuild the collection"
            )
        if embedding.dimension != self.dimension:
            raise DimensionMismatchError(
                f"The collection {self.collection} was built with vectors of {self.dimension} dimensions; "
                f"{embedding.name} has {embedding.dimension}: its model has changed, so rebuild the collection"
            )

    def as_text(self) -> str:
        """Format for people, one setting or count a line."""
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
    """Return the path of the JSON file; the text file ends in ``.txt`` instead."""
    return db_path / FOLDER / f"{collection}.json"


def write(manifest: Manifest, db_path: Path) -> Path:
    """Write both files, each atomically, and return the path of the text file."""
    path = path_of(db_path, manifest.collection)
    path.parent.mkdir(parents=True, exist_ok=True)
    text_path = path.with_suffix(".txt")
    for file, text in ((path, manifest.model_dump_json(indent=2) + "\n"), (text_path, manifest.as_text())):
        unfinished = file.with_name(f"{file.name}.{os.getpid()}")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(file)
    return text_path


def read(db_path: Path, collection: str) -> Manifest | None:
    """Read the manifest of a collection; None if it has none because another program built it.

    Raises:
        ConfigurationError: The file is not a manifest.
    """
    path = path_of(db_path, collection)
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise ConfigurationError(f"{path} is not a manifest: rebuild the collection ({error})") from error
