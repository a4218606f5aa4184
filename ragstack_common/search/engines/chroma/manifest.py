"""A description of a built collection, in two files next to the store: JSON for programs, text for people.

Searches read it, so that they embed questions as the collection was built, without settings of their own.
"""

import os
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragstack_common.core.addresses import EMBEDDING_KEY_VARIABLE
from ragstack_common.core.errors import ConfigurationError
from ragstack_common.settings.knowledge import KnowledgeSettings, with_pooling
from ragstack_common.settings.model_cache import KNOWN

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
        embedding: Its name, which the collection records too.
        embedding_choice: The same as ``--embedding`` takes it, with the folder or address of the model; empty in
            manifests of earlier versions.
        pooling: How the embedding pools the vectors of tokens; None for the model's own way.
    """

    model_config = ConfigDict(frozen=True)

    collection: str
    embedding: str
    embedding_choice: str = ""
    pooling: str | None = None
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

    def as_text(self) -> str:
        """Format for people, one setting or count a line."""
        lines = [
            f"collection = {self.collection}",
            f"built_at = {self.built_at}",
            f"embedding = {self.embedding} ({self.dimension} dimensions, {self.space})",
            f"pooling = {self.pooling or 'as the model'}",
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


def manifest_path(collection: str, db_path: Path) -> Path:
    """Return the path of the JSON file."""
    return db_path / FOLDER / f"{collection}.json"


def read(collection: str, db_path: Path) -> Manifest | None:
    """Read the manifest of a collection; None if it has none, or if the file cannot be opened."""
    path = manifest_path(collection, db_path)
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except OSError:
        return None
    except ValidationError as error:
        raise ConfigurationError(f"The manifest {path} cannot be read: run `ragstack build` again") from error


def checked_manifest(settings: KnowledgeSettings, collection: str, db_path: Path) -> Manifest | None:
    """Read the manifest of a collection, and raise ConfigurationError if the settings contradict it."""
    built = read(collection, db_path)
    if built is None:
        return None
    pairs = {
        # Only the model tells whether its own pooling is the one in the settings.
        "POOLING": (settings.pooling if built.pooling else None, built.pooling),
        "CHUNK_SIZE": (settings.chunk_size, built.chunk_size),
        "CHUNK_OVERLAP": (settings.chunk_overlap, built.chunk_overlap),
    }
    for variable, (setting, found) in pairs.items():
        if setting is not None and setting != found:
            raise ConfigurationError(
                f"{variable}={setting} contradicts the collection {built.collection}, which was built with"
                f" {found}: unset {variable}, or run `ragstack build` with it"
            )
    return built


def chosen_embedding(settings: KnowledgeSettings, built: Manifest | None) -> str | None:
    """Return the embedding of the settings, or of the manifest, as ``--embedding`` takes it; None if neither has one.

    What the settings leave out is as the collection was built.
    """
    named = settings.embedding or (built and recorded_choice(built))
    if not named:
        return None
    chosen = with_pooling(named, settings.pooling)
    if built is None:
        return chosen
    model, _, pooling = built.embedding.partition("#")
    folder = KNOWN[chosen].folder if chosen in KNOWN else Path(chosen.removeprefix("onnx:")).resolve().name
    return with_pooling(chosen, pooling) if model.startswith(f"onnx:{folder}@") else chosen


def recorded_choice(built: Manifest) -> str:
    """Return the embedding that a manifest names, as ``--embedding`` takes it; empty if it names none.

    Raises:
        ConfigurationError: It is one of a server, to which a key of the environment would be sent, or in a folder that
            is not there.
    """
    choice = built.embedding_choice
    folder = choice.removeprefix("onnx:").removesuffix(f"#{built.pooling}")
    if choice.startswith("onnx:") and not Path(folder).is_dir():
        raise ConfigurationError(
            f"The manifest of {built.collection} names the embedding {choice}, and there is no such folder: set"
            f" EMBEDDING_MODEL=onnx:FOLDER, with the folder that the model {Path(folder).name} is in now"
        )
    if choice.startswith("openai:") and os.environ.get(EMBEDDING_KEY_VARIABLE):
        raise ConfigurationError(
            f"The manifest of {built.collection} names the embedding {choice}, and {EMBEDDING_KEY_VARIABLE} is sent"
            f" only to a server that you name: set EMBEDDING_MODEL={choice}, or unset the key"
        )
    return choice


def write(manifest: Manifest, db_path: Path) -> Path:
    """Write both files, each atomically, and return the path of the text file."""
    path = manifest_path(manifest.collection, db_path)
    _replace(path, manifest.model_dump_json(indent=2) + "\n")
    return write_text(manifest, path.parent)


def write_text(manifest: Manifest, folder: Path) -> Path:
    """Write the text file into a folder, atomically, and return its path."""
    path = folder / f"{manifest.collection}.txt"
    _replace(path, manifest.as_text())
    return path


def _replace(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(file)
