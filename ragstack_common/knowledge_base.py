"""A knowledge base in a Chroma collection: search it, format results for a prompt, use it as a node of a graph.

Needs the extra ``chroma``. The nodes are plain functions; LangGraph is not needed to import them.
"""

import asyncio
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, Unpack

from ragstack_common.answers.agent import KnowledgeAgent, format_knowledge_context
from ragstack_common.core.errors import (
    InvalidQueryError,
    RagStackError,
    ServiceUnavailableError,
    needs_extra,
)
from ragstack_common.search.models import RetrievedChunk, SearchRequest
from ragstack_common.search.rerank.chunks import scored
from ragstack_common.search.rerank.lexical import LexicalReranker, Passage
from ragstack_common.search.tracing import Attributes, retrieval_span
from ragstack_common.search.values import natural_order
from ragstack_common.settings.knowledge import KnowledgeSettings

with needs_extra("chroma", "KnowledgeBase"):
    import chromadb

    from ragstack_common.embedding import Embedding, load_recorded
    from ragstack_common.search.engines.chroma.collection import ChromaCollection, Handle
    from ragstack_common.search.engines.chroma.manifest import checked_manifest, chosen_embedding
    from ragstack_common.search.engines.chroma.search import DEFAULT_SCAN_LIMIT, CollectionSearch
    from ragstack_common.search.engines.chroma.store import (
        ClientConnection,
        FolderConnection,
        close_client,
        open_folder,
        translated_errors,
    )

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

__all__ = [
    "DEFAULT_RESULTS",
    "KnowledgeAgent",
    "KnowledgeBase",
    "KnowledgeSettings",
    "aretrieve_knowledge",
    "format_knowledge_context",
    "retrieve_context",
    "retrieve_knowledge",
]

DEFAULT_RESULTS: Final = 5

OPEN_BASES: Final = 8
"""Knowledge bases that the nodes keep open."""

_INDEX: Final = "chunk_index"
_DOCUMENT_KEYS: Final = ("source", "corpus", "version")


def print_warning(text: str) -> None:
    """Print a warning on the standard error, so that it does not mix with a program's output."""
    print(text, file=sys.stderr)  # noqa: T201 - specification 000 prints warnings


def _report(warn: Callable[[str], None], error: Exception, query: object) -> None:
    """Report a failed search in the words of specification 000."""
    warn(f"Error retrieving from knowledge base: {error}")
    warn(f"Query was: {str(query)[:50]}...")


class RetrieveOptions(TypedDict, total=False):
    """Optional arguments of :meth:`KnowledgeBase.retrieve` and :meth:`KnowledgeBase.search`.

    Attributes:
        where: What the metadata must match, in Mongo style as Chroma writes it or in Bedrock's form.
        filters: The same, under the name that backends use. If both are given, both must match.
        hybrid: Whether a keyword search over the whole collection ranks too.
        rerank: Whether the best chunks are reordered by phrase, frequency and proximity of the query's words.
        neighbours: Number of chunks before and after each result that are merged into it.
    """

    where: Mapping[str, Any] | None
    filters: Mapping[str, Any] | None
    hybrid: bool
    rerank: bool
    neighbours: int


class KnowledgeBase:
    """A collection to search. Any thread may use it.

    For parameters that are None, the environment counts: ``ATLAS_COLLECTION_NAME`` before ``CHROMA_COLLECTION_NAME``,
    ``ATLAS_DB_PATH`` before ``CHROMA_PERSIST_DIRECTORY``, and ``EMBEDDING_MODEL``. A collection that does not exist is
    created. If the folder cannot be opened, the knowledge base is in memory and empty, with a warning.

    Args:
        embedding: The collection's embedding; None uses the recorded one, and for a new collection the default:
            ``RAGSTACK_EMBEDDING``, MiniLM if it was added, otherwise ``hashed``.
        scan_limit: Size of the largest collection whose metadata are read for a filter that Chroma cannot express;
            0 rejects such filters.
        warn: Gets warnings, and what failed in :meth:`retrieve`: the error and the beginning of the query, which may
            be private. By default they are printed on the standard error.

    Attributes:
        collection: Chroma's collection. It embeds the texts that it is given.
        fallback: Why the store is in memory; None if it is the folder.
        last_error: Why the last :meth:`retrieve`, :meth:`search_by_topic` or :meth:`get_versions` failed; None if it
            did not. With several threads, use :meth:`search`, which raises.

    Raises:
        MissingPackageError: Chroma is not installed.
        InvalidRequestError: The collection's name is not valid.
        EmbeddingError: The embedding cannot be loaded, or the collection was made with another one.
    """

    chroma_client: "ClientAPI"
    collection: "Collection"

    def __init__(
        self,
        collection_name: str | None = None,
        db_path: str | os.PathLike[str] | None = None,
        *,
        embedding: Embedding | str | None = None,
        scan_limit: int = DEFAULT_SCAN_LIMIT,
        environment: Mapping[str, str] | None = None,
        warn: Callable[[str], None] = print_warning,
    ) -> None:
        self._warn = warn
        settings = KnowledgeSettings.from_env(os.environ if environment is None else environment)
        self.collection_name = collection_name or settings.collection_name
        self.db_path = str(Path(db_path or settings.db_path).expanduser().absolute())
        built = checked_manifest(settings, self.collection_name, Path(self.db_path))
        chosen = embedding or chosen_embedding(settings, built)
        model = load_recorded(chosen) if isinstance(chosen, str) else chosen
        self.fallback: RagStackError | None = None
        self.last_error: Exception | None = None
        self._chunks = ChromaCollection(FolderConnection(Path(self.db_path)), self.collection_name, model)
        try:
            with translated_errors(f"the folder {self.db_path}"):
                self.chroma_client = open_folder(Path(self.db_path))
                self.collection = self._chunks.get_or_create(self.chroma_client)
        except ServiceUnavailableError as error:
            warn(f"Warning: the store cannot be opened, so the knowledge base is in memory and empty: {error}")
            self.fallback = error
            with translated_errors("memory"):
                memory = self.chroma_client = chromadb.EphemeralClient()
                self._chunks = ChromaCollection(ClientConnection("memory", lambda: memory), self.collection_name, model)
                self.collection = self._chunks.get_or_create(memory)
        self._search = CollectionSearch(self._chunks, scan_limit)

    @property
    def in_memory(self) -> bool:
        """Whether the folder could not be opened, so that nothing is stored."""
        return self.fallback is not None

    def retrieve(
        self,
        query: str,
        n_results: int = DEFAULT_RESULTS,
        version_filter: str | None = None,
        **options: Unpack[RetrieveOptions],
    ) -> list[dict[str, Any]]:
        """Return the best documents for a query, best first. After an error the list is empty; see ``last_error``.

        Args:
            query: 1 to 20,000 characters.
            n_results: Maximum number of documents, 1 to 10,000.
            version_filter: Version that they must have.
            options: See :class:`RetrieveOptions`.

        Returns:
            ``content``, ``metadata`` and ``relevance_score`` (0 to 1) of each.
        """
        try:
            chunks = self.search(query, n_results, version_filter, **options)
        except Exception as error:  # noqa: BLE001 - specification 000 returns an empty list after every error
            self.last_error = error
            _report(self._warn, error, query)
            return []
        self.last_error = None if chunks else self.fallback
        return _documents(chunks)

    def search(
        self,
        query: str,
        n_results: int = DEFAULT_RESULTS,
        version_filter: str | None = None,
        **options: Unpack[RetrieveOptions],
    ) -> list[RetrievedChunk]:
        """Search as :meth:`retrieve` does, but return chunks and raise errors.

        Raises:
            InvalidRequestError: The query, the number of results or a filter is not valid.
            ConfigurationError: The embedding is not that of the collection, or cannot be loaded.
            EmbeddingError: The same, or the model failed.
            RetrievalError: The store cannot be opened or reached, or failed.
        """
        neighbours, rerank = options.get("neighbours", 0), options.get("rerank", False)
        if isinstance(neighbours, bool) or not isinstance(neighbours, int) or neighbours < 0:
            raise InvalidQueryError(f"neighbours must be a whole number of 0 or more, not {neighbours!r}")
        sources = (_version_filter(version_filter), options.get("where"), options.get("filters"))
        filters = [part for part in sources if part is not None]
        request = SearchRequest(query, n_results, filters={"$and": filters} if filters else None)
        count = max(50, n_results) if rerank else n_results  # chunks that the reranker orders
        hybrid = options.get("hybrid", False)
        attributes: Attributes = {
            "collection_name": self.collection_name,
            "large_retrieval_size": count,
            "rerank": rerank,
        }
        with retrieval_span("knowledge_base", request, lambda: attributes) as span:
            (chunks,) = self._search.several([query], count, request.restriction, hybrid=hybrid)
            if rerank:
                chunks = _reranked(query, chunks)[:n_results]
            if neighbours and chunks:
                chunks = self._chunks.run(partial(self._with_neighbours, chunks, neighbours))
            span.found(chunks)
        if not chunks and self._chunks.run(lambda handle: handle.collection.count()) == 0:
            self._warn(f"Warning: the collection {self.collection_name} is empty: build it first")
        return chunks

    def search_by_topic(
        self, topic: str, n_results: int = DEFAULT_RESULTS, version_filter: str | None = None
    ) -> list[dict[str, Any]]:
        """Call :meth:`retrieve` with keyword search and reranking, so that the topic's phrase and headings count."""
        return self.retrieve(topic, n_results, version_filter, hybrid=True, rerank=True)

    def get_versions(self) -> list[str]:
        """Return the versions of all chunks, 2 before 10. After an error the list is empty; see ``last_error``."""
        try:
            found = self._chunks.run(
                lambda handle: [data.get("version") for _, _, data in self._chunks.rows(handle, documents=False)]
            )
        except RagStackError as error:
            self.last_error = error
            self._warn(f"Error reading versions from knowledge base: {error}")
            return []
        self.last_error = None
        lists = [value if isinstance(value, list) else [value] for value in found if value is not None]
        return sorted({str(version) for versions in lists for version in versions}, key=natural_order)

    def close(self) -> None:
        """Close the store and the embedding. Further calls have no effect."""
        self._chunks.close()
        if not self.in_memory:
            close_client(self.chroma_client)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _with_neighbours(self, chunks: list[RetrievedChunk], neighbours: int, handle: Handle) -> list[RetrievedChunk]:
        """Merge each chunk with its neighbours; drop chunks that are part of a better one's window.

        Chunks without ``chunk_index`` stay as they are.
        """
        seen: dict[tuple[Any, ...], set[int]] = defaultdict(set)
        results = []
        for chunk in chunks:
            number = chunk.metadata.get(_INDEX)
            if isinstance(number, bool) or not isinstance(number, int):
                results.append(chunk)
                continue
            document = tuple(chunk.metadata.get(key) for key in _DOCUMENT_KEYS)
            if number not in seen[document]:
                window = self._window(handle, chunk, number, neighbours)
                seen[document] |= {int(part.metadata[_INDEX]) for part in window}
                results.append(_merged(chunk, window))
        return results

    def _window(self, handle: Handle, chunk: RetrievedChunk, number: int, neighbours: int) -> list[RetrievedChunk]:
        """Return the chunk and its neighbours, as far as they follow each other without a gap."""
        document = [{key: value} for key in _DOCUMENT_KEYS if (value := chunk.metadata.get(key)) is not None]
        numbers = list(range(max(0, number - neighbours), number + neighbours + 1))
        found = self._chunks.matching(handle, {"$and": [*document, {_INDEX: {"$in": numbers}}]}) if document else []
        by_number = {int(part.metadata[_INDEX]): part for part in found} | {number: chunk}
        first = last = number
        while first - 1 in by_number:
            first -= 1
        while last + 1 in by_number:
            last += 1
        return [by_number[place] for place in range(first, last + 1)]


def retrieve_knowledge(
    state: Mapping[str, Any],
    query: str | None = None,
    collection_name: str | None = None,
    db_path: str | None = None,
) -> dict[str, Any]:
    """Add documents for the user's question to the state of a graph.

    Args:
        state: Its ``messages`` are dicts, pairs of role and text, or LangChain's message objects.
        query: The question; None uses the last message of the user.
        collection_name: See :class:`KnowledgeBase`.
        db_path: See :class:`KnowledgeBase`.

    Returns:
        The whole state, with the documents in ``["context"]["documents"]``. If the search failed, there are no
        documents, and ``["context"]["retrieval_error"]`` says why.
    """
    return {**state, **retrieve_context(state, query, collection_name, db_path)}


def retrieve_context(
    state: Mapping[str, Any],
    query: str | None = None,
    collection_name: str | None = None,
    db_path: str | None = None,
) -> dict[str, Any]:
    """Return only ``context`` of :func:`retrieve_knowledge`, for graphs whose other channels add their updates."""
    context = {name: value for name, value in (state.get("context") or {}).items() if name != "retrieval_error"}
    question = query or _last_question(state.get("messages") or ())
    if not question:
        print_warning("Warning: there is no question in the state: give a query, or a message of the user")
        return {"context": {**context, "documents": []}}
    problem: Exception | None
    try:
        base = _opened(collection_name, db_path)
        documents, problem = _documents(base.search(question)), base.fallback
    except Exception as error:  # noqa: BLE001 - a graph continues without knowledge, and can see why
        _report(print_warning, error, question)
        documents, problem = [], error
    return {"context": {**context, "documents": documents, **({"retrieval_error": str(problem)} if problem else {})}}


async def aretrieve_knowledge(
    state: Mapping[str, Any],
    query: str | None = None,
    collection_name: str | None = None,
    db_path: str | None = None,
) -> dict[str, Any]:
    """Call :func:`retrieve_knowledge` in a thread."""
    return await asyncio.to_thread(retrieve_knowledge, state, query, collection_name, db_path)


def _opened(collection_name: str | None, db_path: str | None) -> KnowledgeBase:
    base = _kept(collection_name, db_path, KnowledgeSettings.from_env(os.environ))
    if base.in_memory:
        _kept.cache_clear()  # try the folder again at the next question
    return base


@lru_cache(maxsize=OPEN_BASES)
def _kept(collection_name: str | None, db_path: str | None, _settings: KnowledgeSettings) -> KnowledgeBase:
    """Open a knowledge base, again if the settings have changed."""
    return KnowledgeBase(collection_name, db_path)


def _last_question(messages: Sequence[Any]) -> str | None:
    for message in reversed(messages):
        if isinstance(message, Mapping):
            role, content = message.get("role", message.get("type")), message.get("content")
        elif isinstance(message, tuple) and len(message) == 2:  # noqa: PLR2004 - role and text
            role, content = message
        else:
            role, content = getattr(message, "type", None), getattr(message, "content", None)
        if role in ("user", "human") and (text := _text(content)):
            return text
    return None


def _text(content: Any) -> str:
    """Return the text of a message, whose content may be a list of blocks such as images."""
    if isinstance(content, str):
        return content.strip()
    blocks = content if isinstance(content, list | tuple) else ()
    texts = [block.get("text", "") if isinstance(block, Mapping) else block for block in blocks]
    return "\n".join(text for text in texts if isinstance(text, str)).strip()


def _documents(chunks: Sequence[RetrievedChunk]) -> list[dict[str, Any]]:
    return [{"content": chunk.content, "metadata": chunk.metadata, "relevance_score": chunk.score} for chunk in chunks]


def _version_filter(version: object) -> dict[str, Any] | None:
    """Match a version stored as a text or as a number."""
    if version is None or version == "":
        return None
    text = str(version)
    return {"version": {"$in": [text, int(text)]} if text.isdecimal() and len(text) < len(str(2**53)) else text}


def _reranked(query: str, chunks: list[RetrievedChunk]) -> list[RetrievedChunk]:
    order = LexicalReranker().order(query, [Passage(chunk.content, chunk.metadata, chunk.score) for chunk in chunks])
    return [scored(chunks, number, signals.score, signals.contributions) for number, signals in order]


def _merged(chunk: RetrievedChunk, window: Sequence[RetrievedChunk]) -> RetrievedChunk:
    text = window[0].content
    for earlier, later in pairwise(window):
        text = _joined(text, earlier, later)
    numbers = [int(window[0].metadata[_INDEX]), int(window[-1].metadata[_INDEX])]
    return chunk.model_copy(update={"content": text, "metadata": {**chunk.metadata, "chunk_indexes": numbers}})


def _joined(text: str, earlier: RetrievedChunk, later: RetrievedChunk) -> str:
    """Append a chunk without the beginning that it repeats, if attributes say where the chunks start."""
    start, next_start = earlier.metadata.get("start_index"), later.metadata.get("start_index")
    if isinstance(start, int) and isinstance(next_start, int):
        repeated = start + len(earlier.content) - next_start
        return text + later.content[repeated:] if repeated >= 0 else f"{text}\n\n{later.content}"
    return f"{text}\n\n{later.content}"
