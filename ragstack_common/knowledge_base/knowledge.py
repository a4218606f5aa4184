"""The knowledge base: questions in, documents out."""

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from ragstack_common.embedding import Embedding, load
from ragstack_common.errors import InvalidQueryError, RagStackError, loggable
from ragstack_common.knowledge_base.settings import KnowledgeSettings
from ragstack_common.retrieval.models import Ranking, RetrievedChunk, SearchRequest
from ragstack_common.retrieval.rerank import LexicalReranker, Passage

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

    from ragstack_common.retrieval.engines.chroma.collection import Handle

DEFAULT_RESULTS: Final = 5

RERANKED_CANDIDATES: Final = 50
"""Chunks that are looked at a second time; more where more are wanted."""

QUERY_SHOWN: Final = 50
"""Characters of a query in the log. Source: the specification."""

VERSION_KEY: Final = "version"

_DIGITS: Final = re.compile(r"(\d+)")

log = logging.getLogger(__name__)


class KnowledgeBase:
    """A collection that is asked in words. Any thread may use it.

    Where a parameter is None, the environment counts: ``ATLAS_COLLECTION_NAME`` before ``CHROMA_COLLECTION_NAME``,
    ``ATLAS_DB_PATH`` before ``CHROMA_PERSIST_DIRECTORY``, and ``EMBEDDING_MODEL``. A collection that does not exist is
    created. If the folder cannot be opened, the knowledge base is in memory and empty, with a warning.

    Args:
        collection_name: The collection.
        db_path: Folder of the store.
        embedding: What the collection was made with; None takes what the collection records.
        scan_limit: Chunks of the largest collection whose metadata are read for a filter that Chroma cannot express;
            0 refuses such filters.
        environment: Where the variables are read.

    Attributes:
        last_error: Why the last :meth:`retrieve`, :meth:`search_by_topic` or :meth:`get_versions` has nothing to show;
            None where that is the answer. Of several threads, use :meth:`search`, which raises.

    Raises:
        MissingPackageError: Chroma is not installed.
        InvalidRequestError: A collection cannot have this name.
        EmbeddingError: The embedding cannot be had, or is not the one that the collection was made with.
    """

    def __init__(
        self,
        collection_name: str | None = None,
        db_path: str | os.PathLike[str] | None = None,
        *,
        embedding: Embedding | str | None = None,
        scan_limit: int | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        from ragstack_common.knowledge_base.store import open_store  # noqa: PLC0415 - the same
        from ragstack_common.retrieval.engines.chroma import search  # noqa: PLC0415 - an extra, and slow to import
        from ragstack_common.retrieval.engines.chroma.collection import ChromaCollection  # noqa: PLC0415 - the same

        settings = KnowledgeSettings.from_env(environment)
        self.collection_name = collection_name or settings.collection_name
        self.db_path = str(Path(db_path or settings.db_path).expanduser())
        chosen = embedding or settings.embedding
        model = load(chosen) if isinstance(chosen, str) else chosen
        self._store = open_store(Path(self.db_path), self.collection_name, model)
        self._chunks = ChromaCollection(self._store.connection, self.collection_name, model)
        limit = search.DEFAULT_SCAN_LIMIT if scan_limit is None else scan_limit
        self._search = search.CollectionSearch(self._chunks, limit)
        self.last_error: Exception | None = None

    @property
    def chroma_client(self) -> "ClientAPI":
        """Chroma's client of the store."""
        return self._store.client

    @property
    def collection(self) -> "Collection":
        """Chroma's collection; texts that are added to it or asked of it are embedded."""
        return self._store.collection

    @property
    def fallback(self) -> RagStackError | None:
        """Why the store is in memory; None where it is the folder."""
        return self._store.fallback

    @property
    def in_memory(self) -> bool:
        """Whether the folder could not be opened, so that nothing is kept."""
        return self._store.fallback is not None

    def retrieve(
        self,
        query: str,
        n_results: int = DEFAULT_RESULTS,
        version_filter: str | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        filters: Mapping[str, Any] | None = None,
        hybrid: bool = False,
        rerank: bool = False,
        expand: bool = False,
        neighbours: int = 0,
    ) -> list[dict[str, Any]]:
        """Return what answers a query best, best first; an empty list of an error, which ``last_error`` then holds.

        Args:
            query: 1 to 20,000 characters.
            n_results: Documents at most, 1 to 10,000.
            version_filter: The version that they must be of.
            where: What their metadata must match, in Mongo style as Chroma writes it or in Bedrock's form.
            filters: The same under the name that backends give it; of both, both must match.
            hybrid: Whether a keyword search over the whole collection ranks too.
            rerank: Whether phrase, frequency and nearness of the query's words put the best in a new order.
            expand: Whether the first results add to the query, and it is asked again.
            neighbours: Chunks before and after each in its document that are put together with it.

        Returns:
            ``content``, ``metadata`` and ``relevance_score``, 0 to 1, of each.
        """
        ask = partial(
            self.search, query, n_results, version_filter, where=where, filters=filters, hybrid=hybrid, rerank=rerank,
            expand=expand, neighbours=neighbours,
        )  # fmt: skip
        try:
            chunks = ask()
        except Exception as error:  # noqa: BLE001 - the specification wants an empty list of every error
            self.last_error = error
            log.error("Retrieving from the collection %s failed: %s", self.collection_name, loggable(error))  # noqa: TRY400
            log.debug("The query was: %s...", str(query)[:QUERY_SHOWN])
            return []
        self.last_error = None if chunks else self.fallback
        return as_documents(chunks)

    def search(
        self,
        query: str,
        n_results: int = DEFAULT_RESULTS,
        version_filter: str | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        filters: Mapping[str, Any] | None = None,
        hybrid: bool = False,
        rerank: bool = False,
        expand: bool = False,
        neighbours: int = 0,
    ) -> list[RetrievedChunk]:
        """Do what :meth:`retrieve` does, with chunks as backends return them and with errors.

        Raises:
            InvalidRequestError: The query, the number of results or a filter cannot be used.
            ConfigurationError: The embedding is not that of the collection, or cannot be had.
            EmbeddingError: The same, or the model failed.
            RetrievalError: The store cannot be opened or reached, or failed.
        """
        if isinstance(neighbours, bool) or not isinstance(neighbours, int) or neighbours < 0:
            raise InvalidQueryError(f"neighbours must be a whole number of 0 or more, not {neighbours!r}")
        conditions = [part for part in (_of_version(version_filter), where, filters) if part is not None]
        joined = {"$and": conditions} if conditions else None
        request = SearchRequest(query, n_results, filters=joined)
        count = max(RERANKED_CANDIDATES, n_results) if rerank else n_results
        (chunks,) = self._search.several([query], count, request.condition, hybrid=hybrid, expand=expand)
        if rerank:
            chunks = _reranked(query, chunks)[:n_results]
        if neighbours and chunks:
            chunks = self._chunks.run(partial(self._with_neighbours, chunks, neighbours))
        if not chunks and self._chunks.run(lambda handle: handle.collection.count()) == 0:
            log.warning("The collection %s is empty: build it first", self.collection_name)
        return chunks

    def search_by_topic(
        self, topic: str, n_results: int = DEFAULT_RESULTS, version_filter: str | None = None
    ) -> list[dict[str, Any]]:
        """Return documents on a topic: found by its words too, and in an order in which its phrase and headings count.

        Arguments and result are those of :meth:`retrieve`.
        """
        return self.retrieve(topic, n_results, version_filter, hybrid=True, rerank=True)

    def get_versions(self) -> list[str]:
        """Return the versions that chunks have, 2 before 10; an empty list of an error, which ``last_error`` holds."""
        try:
            versions = self._chunks.run(lambda handle: {str(value) for value in self._values(handle, VERSION_KEY)})
        except RagStackError as error:
            self.last_error = error
            log.error("Reading the versions of the collection %s failed: %s", self.collection_name, loggable(error))  # noqa: TRY400
            return []
        self.last_error = None
        return sorted(versions, key=_naturally)

    def close(self) -> None:
        """Close the store and the embedding; a second call does nothing."""
        from ragstack_common.retrieval.engines.chroma.connection import close_client  # noqa: PLC0415 - as in the constructor

        self._chunks.close()
        if not self.in_memory:
            close_client(self._store.client)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _with_neighbours(self, chunks: list[RetrievedChunk], neighbours: int, handle: "Handle") -> list[RetrievedChunk]:
        from ragstack_common.knowledge_base.neighbours import with_neighbours  # noqa: PLC0415 - as in the constructor

        return with_neighbours(self._chunks, handle, chunks, neighbours)

    def _values(self, handle: "Handle", key: str) -> Iterator[Any]:
        for _, _, metadata in self._chunks.rows(handle, documents=False):
            value = metadata.get(key)
            yield from value if isinstance(value, list) else () if value is None else (value,)


def as_documents(chunks: Sequence[RetrievedChunk]) -> list[dict[str, Any]]:
    """Return chunks in the form that the specification gives documents."""
    return [{"content": chunk.content, "metadata": chunk.metadata, "relevance_score": chunk.score} for chunk in chunks]


def _of_version(version: object) -> dict[str, Any] | None:
    """Match a version whether it is stored as a text or as a number."""
    if version is None or version == "":
        return None
    text = str(version)
    return {VERSION_KEY: {"$in": [text, int(text)]} if text.isdecimal() and len(text) < len(str(2**53)) else text}


def _reranked(query: str, chunks: list[RetrievedChunk]) -> list[RetrievedChunk]:
    order = LexicalReranker().order(query, [Passage(chunk.content, chunk.metadata, chunk.score) for chunk in chunks])
    found_by = [chunk.ranking.found_by if chunk.ranking else () for chunk in chunks]
    return [
        chunks[number].ranked(
            Ranking(
                base_score=chunks[number].score,
                score=signals.score,
                found_by=found_by[number],
                signals=signals.as_numbers(),
            )
        )
        for number, signals in order
    ]


def _naturally(text: str) -> list[tuple[bool, int, str]]:
    """Order by the numbers in a text as numbers: 2 before 10."""
    return [(not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in _DIGITS.split(text) if part]
