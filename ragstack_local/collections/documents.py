"""A file as the chunks of a collection."""

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from local_bedrock.reading import metadata
from local_bedrock.reading.parsing import Parser
from ragstack_common.core.uris import SIDECAR_SUFFIX
from ragstack_common.reading import formats
from ragstack_common.settings.limits import MAX_DOCUMENT_BYTES
from ragstack_common.text.sections import outline
from ragstack_local.collections.windows import CHUNK_OVERLAP, CHUNK_SIZE, windows
from ragstack_local.files.uploads import LocalFile

BUILT_AS: Final = "built_as"
"""The plan's corpus, by which a later build finds the chunks of a file, whatever corpus its sidecar sets."""

_VERSION: Final = re.compile(r"(?:^|/)[vV](\d+(?:\.\d+)*)(?=/)")


@dataclass(frozen=True)
class BuildPlan:
    """How files become chunks.

    Attributes:
        corpus: Corpus of files whose sidecar sets none.
        embedding: Name of the embedding.
        version: Version of files whose sidecar sets none; None takes it from the path, as in ``docs/v3/intro.md``.
        chunk_size: Maximum characters of a chunk.
        chunk_overlap: Maximum characters that a chunk repeats from the previous one.
        embedding_choice: The embedding as ``--embedding`` takes it.
    """

    corpus: str
    embedding: str
    version: str | None = None
    chunk_size: int = CHUNK_SIZE
    chunk_overlap: int = CHUNK_OVERLAP
    embedding_choice: str = field(default="", repr=False)  # chunks do not depend on where the model is


@dataclass(frozen=True)
class Piece:
    """A chunk without its vector."""

    id: str
    text: str
    metadata: dict[str, Any]


@dataclass(frozen=True)
class Content:
    """A file's bytes, and those of its sidecar."""

    data: bytes
    sidecar: bytes | None
    fingerprint: str


def parse_version(source: str) -> str | None:
    """Return the version in a path: the innermost of its folders v1, v2.1 and so on."""
    found = _VERSION.findall(source)
    return found[-1] if found else None


def read(file: LocalFile, plan: BuildPlan) -> Content:
    """Read a file.

    Raises:
        OSError: It cannot be read.
        UnreadableDocument: It is too large.
    """
    size = file.path.stat().st_size
    if size > MAX_DOCUMENT_BYTES:
        raise formats.UnreadableDocument(formats.too_large(size))
    data = file.path.read_bytes()
    sidecar = file.sidecar.read_bytes() if file.sidecar else None
    digest = hashlib.sha256(repr((plan, file.key, sidecar)).encode("utf-8", "surrogateescape"))
    digest.update(data)
    return Content(data, sidecar, digest.hexdigest()[:32])


def to_pieces(file: LocalFile, content: Content, plan: BuildPlan, parser: Parser) -> list[Piece]:
    """Parse and cut a file.

    Raises:
        UnreadableDocument: It, or its sidecar, cannot be used; the message says why.
    """
    parsed = parser.parse(content.data, formats.of_name(file.path.name))
    headings = outline(parsed.text)
    name = PurePosixPath(file.key).name
    title = parsed.title or headings.title or PurePosixPath(name).stem
    cut = list(windows(parsed.text, plan.chunk_size, plan.chunk_overlap))
    common = {
        "version": plan.version or parse_version(file.key) or "current",
        "corpus": plan.corpus,
        **_attributes(file, content),
        BUILT_AS: plan.corpus,
        "path": file.key,
        "source": file.key,
        "file_name": name,
        "file_hash": content.fingerprint,
        "chunk_count": len(cut),
    }
    pieces = []
    for number, window in enumerate(cut):
        path, page = headings.path_at(window.start), parsed.page_at(window.start)
        own = {
            "section_title": path[-1] if path else title,
            "chunk_size": len(window.text),
            "chunk_index": number,
            "start_index": window.start,
            **({} if page is None else {"page": page}),
        }
        pieces.append(Piece(f"{content.fingerprint}-{number:06d}", window.text, common | own))
    return pieces


def _attributes(file: LocalFile, content: Content) -> dict[str, Any]:
    if content.sidecar is None:
        return {}
    found = metadata.parse_sidecar(content.sidecar, file.key + SIDECAR_SUFFIX).attributes
    # Chroma rejects empty lists; for its filters one equals an absent attribute.
    return {name: value for name, value in found.items() if value != []}
