"""A submitted document made ready for the index: read, parsed, cut into chunks, embedded."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ragstack_local.bedrock import chunking, context, formats, metadata
from ragstack_local.bedrock.embedding import Embedding
from ragstack_local.bedrock.metadata import Metadata
from ragstack_local.bedrock.parsing import ParsedDocument, Parser
from ragstack_local.bedrock.sources import Content, ObjectStore
from ragstack_local.bedrock.store import resources
from ragstack_local.bedrock.store.database import Database
from ragstack_local.bedrock.store.documents import AttributeValue, IndexedChunk, Submission
from ragstack_local.bedrock.store.resources import DataSource

EMBEDDED_AT_ONCE: Final = 64


@dataclass(frozen=True)
class Prepared:
    """A document as the index takes it; the tags are the ETags of content and sidecar."""

    chunks: list[IndexedChunk]
    vectors: npt.NDArray[np.float16]
    attributes: dict[str, AttributeValue]
    content_tag: str | None
    metadata_tag: str | None


class Preparation:
    """Prepares documents, in any thread."""

    def __init__(self, database: Database, embedding: Embedding, objects: ObjectStore, parser: Parser) -> None:
        self._database = database
        self._embedding = embedding
        self._objects = objects
        self._parser = parser

    def prepare(self, submission: Submission) -> Prepared:
        """Turn a submission into what the index takes.

        Raises:
            UnreadableDocument: The document or its metadata cannot be used.
        """
        document = submission.document
        with self._database.read() as view:
            source = resources.find_data_source(view.connection, document.knowledge_base_id, document.data_source_id)
        content = self._content(submission)
        found, metadata_tag = self._metadata(submission.request)
        parsed = self._parser.parse(content.data, _format(submission))
        chunks = _chunks(document.name, parsed, found, source)
        vectors = np.empty((len(chunks), self._embedding.dimension), dtype=np.float16)
        for start in range(0, len(chunks), EMBEDDED_AT_ONCE):
            batch = chunks[start : start + EMBEDDED_AT_ONCE]
            vectors[start : start + len(batch)] = self._embedding.embed(
                [f"{chunk.header}\n{chunk.text}" for chunk in batch]
            )
        attributes = {
            **found.attributes,
            metadata.SOURCE_URI: document.name,
            metadata.DATA_SOURCE_ID: document.data_source_id,
        }
        return Prepared(chunks, vectors, attributes, content.tag or None, metadata_tag)

    def _content(self, submission: Submission) -> Content:
        if submission.content is not None:
            return Content(submission.content, "")
        uri = submission.request["uri"]
        formats.of_name(uri)
        return self._objects.read(
            uri, limit=formats.LARGEST_DOCUMENT, too_large="At most 50 MB a document can be ingested:"
        )

    def _metadata(self, request: Any) -> tuple[Metadata, str | None]:
        uri = request.get("metadataUri")
        if uri is None:
            return metadata.of_inline(request.get("attributes", ())), None
        sidecar = self._objects.read(
            uri, limit=metadata.LARGEST_SIDECAR, too_large="A metadata file has at most 10 KB:"
        )
        return metadata.of_sidecar(sidecar.data, uri), sidecar.tag


def _format(submission: Submission) -> str:
    stated = submission.request.get("format")
    if stated is not None:
        return str(stated)
    mime_type = submission.request.get("mimeType")
    return formats.of_mime_type(mime_type) if mime_type else formats.of_name(submission.request["uri"])


def _chunks(name: str, parsed: ParsedDocument, found: Metadata, source: DataSource) -> list[IndexedChunk]:
    outline = context.outline(parsed.text)
    title = parsed.title or (outline.paths[0][0] if outline.paths else None)
    chosen = tuple(f"{key}: {_shown(found.attributes[key])}" for key in found.embedded)
    size = chunking.strategy(source.request.get("vectorIngestionConfiguration"))
    return [
        IndexedChunk(
            text=chunk.text,
            header=context.header(name, title, outline.path_at(chunk.start), chosen),
            page=chunking.page_of(chunk.start, parsed.page_starts),
        )
        for chunk in chunking.chunks(parsed.text, size)
    ]


def _shown(value: AttributeValue) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)
