"""A description of a built collection, in two files next to the store: JSON for programs, text for people."""

import os
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

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
    """The contents of a collection, and how they were built."""

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


def write(manifest: Manifest, db_path: Path) -> Path:
    """Write both files, each atomically, and return the path of the text file."""
    path = db_path / FOLDER / f"{manifest.collection}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    text_path = path.with_suffix(".txt")
    for file, text in ((path, manifest.model_dump_json(indent=2) + "\n"), (text_path, manifest.as_text())):
        unfinished = file.with_name(f"{file.name}.{os.getpid()}")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(file)
    return text_path
