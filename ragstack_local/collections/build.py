"""Update a collection from a folder: add new files, replace changed ones, remove deleted ones."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from local_bedrock.reading.parsing import Parser
from ragstack_common.core.errors import ConfigurationError
from ragstack_common.embedding import Embedding, EmbeddingError
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.search.engines.chroma import manifest
from ragstack_common.search.engines.chroma.collection import INDEX, get_or_create, recorded_embedding
from ragstack_common.search.engines.chroma.manifest import Counts, Failure, Manifest
from ragstack_common.search.engines.chroma.search import contextual_header
from ragstack_common.search.engines.chroma.store import close_client, open_folder, translated_errors
from ragstack_local.collections.documents import BUILT_AS, BuildPlan, Piece, read, to_pieces
from ragstack_local.files.uploads import LocalFile, unreadable

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

PIECES_AT_ONCE: Final = 256
"""Chunks that are embedded and added in one call."""

PAGE: Final = 2_000


@dataclass
class Report:
    """Results of a build."""

    files: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    manifest: Manifest | None = None
    manifest_path: Path | None = None


@dataclass(frozen=True)
class _Built:
    """A file's chunks in the collection by fingerprint, and how many each fingerprint should have."""

    chunks: Counter[str] = field(default_factory=Counter)
    whole: dict[str, int] = field(default_factory=dict)

    def is_finished(self, fingerprint: str) -> bool:
        return self.whole.get(fingerprint) == self.chunks[fingerprint]


def build(
    files: Sequence[LocalFile],
    db_path: Path,
    collection_name: str,
    plan: BuildPlan,
    embedding: Embedding,
    *,
    folder_name: str | None = None,
    unread: Mapping[str, str] | None = None,
    done: Callable[[str], None] = lambda _outcome: None,
    clock: Callable[[], float] = time.time,
) -> Report:
    """Bring a collection up to date with files, and write its manifest.

    New chunks are added before the old ones are removed, so that a search always finds the file and an interrupted
    build can be run again. A file that fails keeps its earlier chunks.

    Args:
        files: The documents.
        db_path: Folder of the database; created if missing.
        collection_name: Created if missing.
        plan: How files become chunks.
        embedding: Embeds the chunks.
        folder_name: First part of the files' keys. Other documents below it in the plan's corpus are removed from the
            collection; None removes nothing.
        unread: Keys of files and folders that cannot be read, with the reasons. They are reported as failed, and the
            collection keeps their chunks.
        done: Called after each file with its result.
        clock: Seconds since 1970.

    Raises:
        ConfigurationError: The collection was not built by this function.
        EmbeddingError: It was built with another embedding, or the model cannot be loaded.
        RetrievalError: The store cannot be opened, or failed.
    """
    with translated_errors(f"the folder {db_path}"):
        client = open_folder(db_path)
        try:
            collection = get_or_create(client, collection_name, embedding)
            if recorded_embedding(collection) is None:
                raise ConfigurationError(
                    f"The collection {collection.name} was not built here and does not record its embedding: "
                    "choose another name"
                )
            report = _update(collection, files, plan, embedding, folder_name, unread or {}, done)
            report.manifest = _manifest(collection, plan, embedding, report, clock())
        finally:
            close_client(client)
    report.manifest_path = manifest.write(report.manifest, db_path)
    return report


def _update(
    collection: "Collection",
    files: Sequence[LocalFile],
    plan: BuildPlan,
    embedding: Embedding,
    folder_name: str | None,
    unread: Mapping[str, str],
    done: Callable[[str], None],
) -> Report:
    built = _built(collection, plan.corpus)
    report, parser = Report(), Parser()
    try:
        for file in files:
            try:
                outcome = _bring(collection, file, built.get(file.key, _Built()), plan, embedding, parser)
            except (UnreadableDocument, EmbeddingError, OSError) as error:
                reason = unreadable(error) if isinstance(error, OSError) else str(error)
                report.failures.append(Failure(source=file.key, reason=reason))
                outcome = "failed"
            report.files[outcome] += 1
            done(outcome)
    finally:
        parser.close()
    if folder_name is not None:
        present = {file.key for file in files} | unread.keys()
        below_unread = tuple(f"{key}/" for key in unread)
        for source in sorted(built.keys() - present):
            if source.startswith(f"{folder_name}/") and not source.startswith(below_unread):
                collection.delete(where={"$and": [{"source": source}, {BUILT_AS: plan.corpus}]})
                report.files["removed"] += 1
                done("removed")
    for key, reason in unread.items():
        report.failures.append(Failure(source=key, reason=reason))
        report.files["failed"] += 1
    return report


def _bring(
    collection: "Collection", file: LocalFile, built: _Built, plan: BuildPlan, embedding: Embedding, parser: Parser
) -> str:
    content = read(file, plan)
    if built.is_finished(content.fingerprint):
        outcome = "unchanged"
    else:
        pieces = to_pieces(file, content, plan, parser)
        _add(collection, pieces, embedding)
        outcome = "updated" if built.chunks else "added"
    for old in built.chunks.keys() - {content.fingerprint}:
        collection.delete(where={"$and": [{"source": file.key}, {BUILT_AS: plan.corpus}, {"file_hash": old}]})
    return outcome


def _add(collection: "Collection", pieces: Sequence[Piece], embedding: Embedding) -> None:
    for start in range(0, len(pieces), PIECES_AT_ONCE):
        some = pieces[start : start + PIECES_AT_ONCE]
        headed = [f"{contextual_header(piece.metadata)}\n\n{piece.text}" for piece in some]
        # Put over what an interrupted build left; the metadata are the same then.
        collection.upsert(
            ids=[piece.id for piece in some],
            documents=[piece.text for piece in some],
            metadatas=[piece.metadata for piece in some],
            embeddings=embedding.embed(headed),
        )


def _built(collection: "Collection", corpus: str) -> dict[str, _Built]:
    found: dict[str, _Built] = defaultdict(_Built)
    for metadata in _metadata(collection, {BUILT_AS: corpus}):
        entry, fingerprint = found[str(metadata.get("source"))], str(metadata.get("file_hash"))
        entry.chunks[fingerprint] += 1
        entry.whole[fingerprint] = int(metadata.get("chunk_count") or 0)
    return dict(found)


def _metadata(collection: "Collection", where: dict[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    offset = 0
    while True:
        page = collection.get(where=where, limit=PAGE, offset=offset, include=["metadatas"])
        yield from (dict(metadata or {}) for metadata in page["metadatas"] or [])
        if len(page["ids"]) < PAGE:
            return
        offset += PAGE


def _manifest(
    collection: "Collection", plan: BuildPlan, embedding: Embedding, report: Report, seconds: float
) -> Manifest:
    """Count the collection's actual content."""
    found = [
        ((each.get("corpus"), each.get("source")), str(each.get("corpus", "")), str(each.get("version", "")))
        for each in _metadata(collection)
    ]
    total = Counts(documents=len({document for document, _, _ in found}), chunks=len(found))
    return Manifest(
        collection=collection.name,
        embedding=embedding.name,
        embedding_choice=plan.embedding_choice,
        pooling=embedding.name.partition("#")[2] or None,
        dimension=embedding.dimension,
        space=str(INDEX["space"]),
        chunk_size=plan.chunk_size,
        chunk_overlap=plan.chunk_overlap,
        built_at=datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds"),
        total=total,
        corpora=_counts((corpus, document) for document, corpus, _ in found),
        versions=_counts((version, document) for document, _, version in found),
        last_run={name: report.files[name] for name in ("added", "updated", "unchanged", "failed", "removed")},
        failures=tuple(report.failures),
    )


def _counts(chunks: Iterable[tuple[str, Any]]) -> dict[str, Counts]:
    found: dict[str, list[Any]] = defaultdict(list)
    for value, document in chunks:
        found[value].append(document)
    return {
        value: Counts(documents=len(set(documents)), chunks=len(documents))
        for value, documents in sorted(found.items())
    }
