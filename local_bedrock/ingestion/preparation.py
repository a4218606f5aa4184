"""Prepare a submitted document for the index: read, parse, chunk and embed it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from local_bedrock.processes.embedding_processes import Embeddings
from local_bedrock.reading import access_control, chunking, metadata
from local_bedrock.reading.access_control import AccessList
from local_bedrock.reading.chunking import NO_TABLES, Chunk, Pieces
from local_bedrock.reading.metadata import AttributeValue, Record
from local_bedrock.reading.parsing import NO_TEXT, ParsedDocument, Parser
from local_bedrock.reading.sources import Content, ObjectStore, ObjectTooLarge
from local_bedrock.store import resources
from local_bedrock.store.database import Database
from local_bedrock.store.documents import Document, IndexedChunk, ParentChunk, Prepared, indexed_text
from local_bedrock.store.originals import Original
from local_bedrock.store.resources import DataSource, StoredKnowledgeBase
from local_bedrock.store.submissions import Submission
from ragstack_common.core.artefacts import document_of
from ragstack_common.core.uris import s3_urls
from ragstack_common.filters.tree import DATA_SOURCE_KEY
from ragstack_common.ingestion.sidecars import Sidecar
from ragstack_common.reading import formats
from ragstack_common.reading.encodings import charset_of
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.settings.limits import MAX_DOCUMENT_BYTES, MAX_SIDECAR_BYTES
from ragstack_common.settings.names import (
    MANAGED_DATA_SOURCE_KEY,
    MANAGED_LANGUAGE_KEY,
    MANAGED_SOURCE_URI_KEY,
    SOURCE_URI_KEY,
)
from ragstack_common.text import contextual_headers, sections
from ragstack_common.text.positions import Position, page_starts, section_of
from ragstack_common.text.sections import Outline
from ragstack_common.text.tables import TablesInText
from ragstack_common.text.words import detect_language

_Number = TypeVar("_Number", np.float16, np.float32)

EMBEDDED_AT_ONCE: Final = 64

NOT_CRAWLED: Final = "The sync completed with partial failures. Some documents could not be crawled."
"""Failure of a job whose documents lack access control lists, as users report it: it names no document."""

MAX_TITAN_CHARACTERS: Final = 50_000
"""Characters of one text. Source: Amazon Bedrock User Guide, Amazon Titan Text Embeddings models."""


class MetadataUpdateFailed(UnreadableDocument):
    """The content is already indexed, but the new metadata can't be used."""


class NoAccessList(UnreadableDocument):
    """A scanned document of a data source with access control has no access control list, and is not ingested."""


@dataclass(frozen=True)
class Preparation:
    """Prepares documents, in any thread; ``with_headers`` indexes every chunk with a contextual header."""

    database: Database
    embeddings: Embeddings
    objects: ObjectStore
    parser: Parser
    with_headers: bool

    def draft(self, submission: Submission, limit: int | None = None) -> Prepared:
        """Read, parse and chunk a document; it has no vectors yet.

        Args:
            submission: The document.
            limit: Maximum bytes of a document that must not take long; None processes every document.

        Raises:
            NotLight: It is larger, takes long to convert, or is a table of records.
            NoAccessList: It has no access control list, and its data source needs one.
            MetadataUpdateFailed: The content is already indexed, and the metadata can't be used.
            UnreadableDocument: The document or its metadata can't be used.
        """
        document = submission.document
        with self.database.read() as view:
            base = resources.find_knowledge_base(view.connection, document.knowledge_base_id)
            source = resources.find_data_source(view.connection, base.id, document.data_source_id)
        content = self._content(submission, limit)
        found, metadata_tag, acl = self._metadata(submission, base, source, content)
        file_format = formats.of_request(submission.request)
        parsed = self.parser.parse(content.data, file_format, content.charset, light=limit is not None)
        strategy = chunking.strategy(source.request.get("vectorIngestionConfiguration"))
        if found.records is not None and limit is not None:
            raise formats.NotLight
        rows = None if found.records is None else _rows(submission, base, parsed, found)
        texts = [parsed.text] if rows is None else [row.text for row in rows]
        places = _Places(parsed, sections.outline(parsed.text if rows is None else ""), file_format)
        tables = TablesInText.of(parsed.text, is_csv=file_format == "csv") if rows is None else NO_TABLES
        chunks: list[IndexedChunk] = []
        parents: list[ParentChunk] = []
        for number, text in enumerate(texts):
            embed = partial(self._embedded, embedding=base.embedding, kind=np.float32)
            pieces = strategy.cut(text, embed, tables)
            _check_length(base, pieces.chunks)
            record = None if rows is None else number
            chunks += self._chunks(document.name, places, found, pieces, len(parents), record)
            parents += [ParentChunk(parent.whole, *places.locate(parent)) for parent in pieces.parents]
        return Prepared(
            chunks,
            base.embedding,
            np.empty((0, base.dimension), np.float16),
            {**found.attributes, **_service_attributes(base, document, texts)},
            content.tag,
            access_control.tag(metadata_tag, submission.request.get("acl")),
            parents,
            [row.attributes for row in rows or ()],
            acl,
            Original.of(submission.request, submission.content) if base.is_managed else None,
        )

    def finished(self, drafts: Sequence[Prepared]) -> list[Prepared]:
        """Embed the chunks of several documents together."""
        done: dict[int, Prepared] = {}
        for name in {draft.embedding for draft in drafts}:
            alike = {place: draft for place, draft in enumerate(drafts) if draft.embedding == name}
            texts = [indexed_text(chunk.header, chunk.text) for draft in alike.values() for chunk in draft.chunks]
            ends = np.cumsum([len(draft.chunks) for draft in alike.values()])
            parts = np.split(self._embedded(texts, name, np.float16), ends[:-1])
            done |= {
                place: replace(draft, vectors=part) for (place, draft), part in zip(alike.items(), parts, strict=True)
            }
        return [done[place] for place in range(len(drafts))]

    def _embedded(self, texts: Sequence[str], embedding: str, kind: type[_Number]) -> npt.NDArray[_Number]:
        model = self.embeddings.named(embedding)
        vectors = np.empty((len(texts), model.dimension), dtype=kind)
        for start in range(0, len(texts), EMBEDDED_AT_ONCE):
            batch = texts[start : start + EMBEDDED_AT_ONCE]
            vectors[start : start + len(batch)] = model.embed(batch)
        return vectors

    def _content(self, submission: Submission, limit: int | None) -> Content:
        if submission.content is not None:
            charset = charset_of(submission.request.get("mimeType"))
            return Content(submission.content, sha256(submission.content).hexdigest(), charset)
        uri = submission.request["uri"]
        formats.of_request(submission.request)
        try:
            return self.objects.read(uri, limit or MAX_DOCUMENT_BYTES)
        except ObjectTooLarge:
            if limit is not None:
                raise formats.NotLight from None
            raise

    def _metadata(
        self, submission: Submission, base: StoredKnowledgeBase, source: DataSource, content: Content
    ) -> tuple[Sidecar, str | None, AccessList | None]:
        """Return the metadata, the ETag of the sidecar, and the access control list: the sidecar's, or as submitted."""
        uri, acl = submission.request.get("metadataUri"), submission.request.get("acl")
        try:
            if uri is None:
                found, tag = metadata.parse_inline(submission.request.get("attributes", ())), None
            else:
                sidecar = self.objects.read(uri, MAX_SIDECAR_BYTES)
                found, tag = metadata.parse_sidecar(sidecar.data, uri), sidecar.tag
                if source.has_access_control:
                    acl = access_control.parse_sidecar(sidecar.data, uri) or acl
            metadata.check_size(found.attributes, base.search)
        except UnreadableDocument as error:
            if source.has_access_control and source.type == "S3":
                # The earlier version has another list, which may no longer hold.
                raise NoAccessList(str(error)) from None
            if content.tag == submission.document.content_tag:
                raise MetadataUpdateFailed(str(error)) from None
            raise
        if source.has_access_control and acl is None:
            if source.type == "S3":
                raise NoAccessList(NOT_CRAWLED)
            acl = access_control.NOBODY
        return found, tag, acl

    def _chunks(
        self, name: str, places: "_Places", found: Sidecar, pieces: Pieces, parents: int, record: int | None
    ) -> list[IndexedChunk]:
        """Return the chunks of a document, or of one record in it; ``parents`` is the number of earlier parents."""
        title = places.parsed.title or places.outline.title
        # The service embeds these attributes, with or without our headers.
        chosen = tuple(f"{key}: {_shown(found.attributes[key])}" for key in found.embedded)
        indexed = []
        for chunk in pieces.chunks:
            path = places.outline.path_at(chunk.start)
            context = (document_of(name), title, path) if self.with_headers else ("", None, ())
            parent = None if chunk.parent is None else parents + chunk.parent
            header = contextual_headers.compose(*context, chosen)
            page, position = places.locate(chunk)
            indexed.append(IndexedChunk(chunk.whole, header, page, parent, record, position))
        return indexed


@dataclass(frozen=True)
class _Places:
    """The places of the chunks in their document."""

    parsed: ParsedDocument
    outline: Outline
    file_format: str

    def locate(self, chunk: Chunk) -> tuple[int | None, dict[str, str | int]]:
        """Return the page on which a chunk begins, and the rest of its position as metadata."""
        end = chunk.start + len(chunk.text)
        page, last_page = self.parsed.page_at(chunk.start), self.parsed.page_at(end - 1)
        path = self.outline.path_within(chunk.start, end)
        position = Position(
            last_page=None if last_page == page else last_page,
            sheet=path[0] if path and self.file_format in formats.WITH_SHEETS else None,
            section=section_of(path) if self.file_format not in formats.WITHOUT_HEADINGS else None,
        )
        return page, position.own_metadata() | page_starts(self.parsed.page_starts, chunk.start, end)


def _service_attributes(
    base: StoredKnowledgeBase, document: Document, texts: Sequence[str]
) -> dict[str, AttributeValue]:
    """Return the attributes that the service adds to those of the document."""
    if not base.is_managed:
        return {SOURCE_URI_KEY: document.name, DATA_SOURCE_KEY: document.data_source_id}
    language = detect_language(*texts)
    # Users report the form without the Region.
    _with_region, url = s3_urls(document.name, "us-east-1")
    return {
        MANAGED_SOURCE_URI_KEY: url if document.type == "S3" else document.name,
        MANAGED_DATA_SOURCE_KEY: document.data_source_id,
        **({MANAGED_LANGUAGE_KEY: language} if language else {}),
    }


def _rows(submission: Submission, base: StoredKnowledgeBase, parsed: ParsedDocument, found: Sidecar) -> list[Record]:
    """Read the records of a CSV file.

    Raises:
        UnreadableDocument: It has no records, doesn't match its sidecar, or a record has too many attributes.
    """
    assert found.records is not None
    if formats.of_request(submission.request) != "csv":
        raise UnreadableDocument("The metadata file describes records, which only a .csv file has.")
    rows = metadata.read_records(parsed.text, found.records)
    if not rows:
        raise UnreadableDocument(NO_TEXT)
    for row in rows:
        metadata.check_size({**found.attributes, **row.attributes}, base.search)
    return rows


def _check_length(base: StoredKnowledgeBase, chunks: Sequence[Chunk]) -> None:
    """Refuse chunks that are too long for the knowledge base's embedding model on AWS."""
    longest = max((len(chunk.whole) for chunk in chunks), default=0)
    if "titan-embed" in base.embedding_model and longest > MAX_TITAN_CHARACTERS:
        raise UnreadableDocument(
            f"A chunk of the file has {longest:,} characters; the embedding model of the knowledge base takes at most"
            f" {MAX_TITAN_CHARACTERS:,}: split the file, or choose a chunking strategy with smaller chunks."
        )


def _shown(value: AttributeValue) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)
