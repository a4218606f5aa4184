"""The setups that are measured, and the ways to search: as the product does, by BM25 alone, or by any backend."""

import asyncio
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from evaluation.dataset import FILTERS, DataSet, EvaluationError, Query
from evaluation.index import Index, Indexing
from evaluation.metrics import Answer, Run
from local_bedrock.search.ranking import Search, rank, rank_by_words
from local_bedrock.store.database import Database, DataFolderError
from ragstack_common import embedding, filters
from ragstack_common.config import DEFAULT_EMBEDDING, OPENSEARCH_SERVERLESS
from ragstack_common.core.errors import RagStackError
from ragstack_common.embedding import Embedding
from ragstack_common.multislice_retriever import MultiSliceRetriever
from ragstack_common.search.base import RetrievalBackend
from ragstack_common.search.engines.bedrock import BedrockBackend, uri_of
from ragstack_common.search.factory import create_retrieval_backend, register_backend
from ragstack_common.search.inference import Vocabulary, VocabularySource
from ragstack_common.search.models import SearchRequest
from ragstack_common.search.naming import Question
from ragstack_common.search.rerank import LexicalReranker
from ragstack_common.search.trust import members_of
from ragstack_local.target.connection import Connection

Ids = npt.NDArray[np.int64]

KEYWORD: Final = "KEYWORD"
PRIVATE: Final = "private"
STACK: Final = "stack"
BM25S: Final = "bm25s"
"""Engines that are not the file of a configuration."""

DEFAULT_BOOST: Final = 1.25
"""Source: the specification of MultiSliceRetriever, filtered_score_boost."""

COLLECTION_TYPE: Final = "collection"
"""Type, in a backend's configuration, of the knowledge base that holds the data set."""

TIMEOUT_SECONDS: Final = 60.0
"""Nothing is lost to a deadline while quality is measured."""

WRONG_SEED: Final = 20_261_121

Ask = Callable[[str, Mapping[str, Any] | None], Sequence[str]]
"""Takes a query and its metadata filter; returns sources, best first."""


class Setup(BaseModel):
    """One way to search.

    Attributes:
        search: KEYWORD is the local Bedrock's BM25 alone, which no request to Bedrock asks for.
        embedding: As `ragstack bedrock` takes it.
        headers: Whether chunks are indexed with contextual headers.
        rerank: The reranker.
        filter: none, right (the query's own attributes), wrong (other values), or a kind in ``filters.jsonl``.
        slices: multislice searches with and without the filter at once; filtered only with it.
        merge: How multislice merges the two lists.
        boost: Factor on the scores of filtered hits, with merge=boost.
        infer: Whether attribute values that a query names become a preference: no, yes (with the values of the
            collection, as the product takes them from its registry), or hits (with those of the first hits, as without
            a registry). The product's default is yes.
        normalized: Whether the scores of each search are spread over 0 to 1, as some hybrid engines do.
        engine: private (a local Bedrock of its own), stack (the running local stack), bm25s (another program as the
            reference), or the file of a retrieval backend's configuration.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    search: Literal["HYBRID", "SEMANTIC", "KEYWORD"] = "HYBRID"
    embedding: str = DEFAULT_EMBEDDING
    headers: bool = True
    rerank: Literal["none", "lexical"] = "none"
    filter: str = "none"
    slices: Literal["multislice", "filtered"] = "multislice"
    merge: Literal["trust", "boost"] = "trust"
    boost: float = Field(DEFAULT_BOOST, gt=0, allow_inf_nan=False)
    infer: Literal["no", "yes", "hits"] = "no"
    normalized: bool = False
    engine: str = PRIVATE

    @model_validator(mode="after")
    def _options_go_together(self) -> Self:
        if self.search == KEYWORD and (self.rerank, self.slices, self.engine) != ("none", "multislice", PRIVATE):
            raise ValueError("KEYWORD is the private local Bedrock's BM25 alone: without reranker and slices")
        if self.rerank != "none" and self.engine not in (PRIVATE, STACK):
            raise ValueError("a backend's configuration decides how it reranks: leave rerank out")
        if self.infer == "yes" and self.engine not in (PRIVATE, STACK):
            raise ValueError("a backend's configuration has no document registry: write infer=hits")
        if self.normalized and (self.search == KEYWORD or self.engine not in (PRIVATE, STACK)):
            raise ValueError("only scores of a knowledge base's searches are normalized")
        return self

    @classmethod
    def of(cls, **options: Any) -> Self:
        """Check the options.

        Raises:
            EvaluationError: There is no such option, or it cannot have the value.
        """
        try:
            return cls.model_validate(options)
        except ValidationError as error:
            problem = error.errors()[0]
            raise EvaluationError(
                ": ".join(map(str, (*problem["loc"], problem["msg"].removeprefix("Value error, "))))
            ) from None

    def changed(self, changes: str) -> Self:
        """Return the setup with some options changed.

        Args:
            changes: For example ``search=SEMANTIC,rerank=lexical,headers=no``.

        Raises:
            EvaluationError: There is no such option, or it cannot have the value.
        """
        parts = (part.strip().partition("=") for part in changes.split(",") if part.strip())
        return type(self).of(**self.model_dump() | {name: value for name, _, value in parts})

    @property
    def label(self) -> str:
        """Describe the setup in a few words."""
        shown = [self.search, _short(self.embedding)] if self.engine in (PRIVATE, STACK) else [Path(self.engine).stem]
        shown = [KEYWORD] if self.search == KEYWORD else shown
        shown += ["running stack"] if self.engine == STACK else []
        shown += [] if self.headers else ["no headers"]
        shown += ["normalized"] if self.normalized else []
        shown += [] if self.rerank == "none" else [f"{self.rerank} reranker"]
        if self.filter != "none":
            shown += [f"{self.filter} filter"]
            merged = "trust" if self.merge == "trust" else f"boost {self.boost:g}"
            shown += [merged if self.slices == "multislice" else "filtered slice alone"]
        shown += {"no": [], "yes": ["inferred filter"], "hits": ["filter inferred from hits"]}[self.infer]
        return ", ".join(shown)


def _short(embedding: str) -> str:
    kind, _, place = embedding.partition(":")
    return place.rstrip("/").rpartition("/")[2] if kind == "onnx" else embedding


@dataclass(frozen=True)
class LocalRankings:
    """A data folder that no local Bedrock uses at the moment."""

    embedding: Embedding
    database: Database
    knowledge_base_id: str
    names: Mapping[int, str]

    @classmethod
    @contextmanager
    def of(cls, indexing: Indexing, index: Index) -> Iterator["LocalRankings"]:
        """Open the folder of an index.

        Raises:
            EvaluationError: A local Bedrock uses it.
            EmbeddingError: The embedding cannot be had.
        """
        model = embedding.load(indexing.embedding, index.folder)
        try:
            database = Database(index.folder)
        except DataFolderError as error:
            model.close()
            raise EvaluationError(str(error)) from error
        try:
            with database.read() as view:
                chunks = "SELECT c.id, d.name FROM chunk c JOIN document d ON d.id = c.document_id"
                names = {int(row[0]): str(row[1]) for row in view.connection.execute(chunks)}
            yield cls(model, database, index.knowledge_base_id, names)
        finally:
            database.close()
            model.close()

    def by_share(self, text: str, shares: Iterable[float]) -> dict[float, Ids]:
        """Return the chunks that a HYBRID search finds with each share of the cosine, best first."""
        search = Search(text, self.embedding.embed_query(text), hybrid=True)
        with self.database.read(self.knowledge_base_id) as view:
            return {share: rank(view, self.knowledge_base_id, search, share).chunks for share in shares}

    def by_words(self, text: str, metadata_filter: Mapping[str, Any] | None = None) -> Ids:
        """Return the chunks that a query finds by BM25 alone, best first; nothing is embedded."""
        parsed = None if metadata_filter is None else filters.parse(metadata_filter)
        search = Search(text, np.empty(0, dtype=np.float32), hybrid=True, filters=parsed)
        with self.database.read(self.knowledge_base_id) as view:
            return rank_by_words(view, self.knowledge_base_id, search)

    def documents(self, chunks: Ids) -> list[str]:
        """Return the documents of chunks, each once, at its best rank."""
        return list(dict.fromkeys(self.names[chunk] for chunk in chunks.tolist()))


def filter_of(data: DataSet, query: Query, kind: str) -> dict[str, Any] | None:
    """Return the metadata filter of a query; None if it has none of this kind."""
    values = query.filters.get(kind)
    if values is None and query.attributes and kind in ("right", "wrong"):
        values = query.attributes if kind == "right" else data.wrong_attributes(query, WRONG_SEED)
    return {name: {"$eq": value} for name, value in values.items()} if values else None


def run(data: DataSet, setup: Setup, label: str, ask: Ask, advance: Callable[[], None]) -> Run:
    """Ask every query, one after the other.

    Raises:
        EvaluationError: A query failed, or the setup wants filters and no query has one.
    """
    if setup.filter != "none" and not any(filter_of(data, query, setup.filter) for query in data.queries):
        kinds = ", ".join(sorted({kind for query in data.queries for kind in query.filters})) or "none"
        raise EvaluationError(
            f"No query of {data.name} has a filter {setup.filter!r}: right and wrong need metadata.filter,"
            f" and {FILTERS} has these kinds: {kinds}"
        )
    answers = {}
    for query in data.queries:
        metadata_filter = filter_of(data, query, setup.filter)
        start = time.perf_counter()
        try:
            sources = ask(query.text, metadata_filter)
        except RagStackError as error:
            raise EvaluationError(f"The query {query.id} of {data.name} failed: {error}") from error
        milliseconds = (time.perf_counter() - start) * 1000
        answers[query.id] = Answer(data.documents_of(sources), milliseconds)
        advance()
    return Run(label, answers)


def vocabulary_of(data: DataSet) -> Vocabulary:
    """Count the values of a collection, as the document registry does."""
    counts: dict[str, Counter[Any]] = defaultdict(Counter)
    for document in data.documents.values():
        for key, value in document.metadata.items():
            counts[key].update(members_of(value))
    return Vocabulary(counts, len(data.documents))


def inferred_for(data: DataSet) -> int:
    """Count the queries of which a filter is inferred."""
    vocabulary = vocabulary_of(data)
    return sum(vocabulary.infer(Question(query.text)) is not None for query in data.queries)


def always(vocabulary: Vocabulary) -> VocabularySource:
    """Return a source that knows this vocabulary."""

    async def known() -> Vocabulary:
        return vocabulary

    return known


def require_documents(data: DataSet, stack: Connection) -> None:
    """Check that a running stack has the files that answer the questions.

    Raises:
        EvaluationError: It lacks one, so that no search could find it.
    """
    ids = {"knowledgeBaseId": stack.knowledge_base_id, "dataSourceId": stack.data_source_id}
    pages = stack.client("bedrock-agent").get_paginator("list_knowledge_base_documents").paginate(**ids)
    identifiers = (detail["identifier"] for page in pages for detail in page["documentDetails"])
    held = data.documents_of([each["s3"]["uri"] if "s3" in each else each["custom"]["id"] for each in identifiers])
    missing = sorted({*data.documents} - {*held})
    if missing:
        raise EvaluationError(
            f"The knowledge base has no document {', '.join(missing[:5])}{' ...' if missing[5:] else ''}: correct the"
            f" names in {data.name}, or ingest them"
        )


class Normalized:
    """A client whose searches have scores from 0, the last, to 1, the first."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def retrieve(self, **request: Any) -> dict[str, Any]:
        """Search."""
        answer: dict[str, Any] = self._client.retrieve(**request)
        results = answer["retrievalResults"]
        scores = [result["score"] for result in results]
        lowest, spread = min(scores, default=0.0), max(scores, default=0.0) - min(scores, default=0.0)
        for result in results:
            result["score"] = (result["score"] - lowest) / spread if spread else 1.0
        return answer


def of_knowledge_base(client: Any, knowledge_base_id: str, setup: Setup, results: int, data: DataSet) -> Ask:
    """Ask as the query function does."""
    if setup.normalized:
        client = Normalized(client)
    retriever = MultiSliceRetriever(
        client,
        TIMEOUT_SECONDS,
        enabled=setup.slices == "multislice",
        filtered_score_boost=setup.boost,
        merge=setup.merge,
        search_type=setup.search,
        vocabulary=always(vocabulary_of(data)) if setup.infer == "yes" and data.has_texts else None,
    )
    reranker = LexicalReranker() if setup.rerank == "lexical" else None

    def ask(query: str, metadata_filter: Mapping[str, Any] | None) -> list[str]:
        found = retriever.search(
            query,
            knowledge_base_id,
            None,
            metadata_filter,
            results,
            reranker=reranker,
            infer_filter=setup.infer != "no",
        )
        if not found.complete:
            raise EvaluationError("; ".join(f"{part.name}: {part.error}" for part in found.slices if part.error))
        return [uri_of(result) or "" for result in found.results]

    return ask


@contextmanager
def of_keywords(indexing: Indexing, index: Index, results: int) -> Iterator[Ask]:
    """Ask BM25 alone; the local Bedrock that filled it must have ended."""
    with LocalRankings.of(indexing, index) as rankings:

        def ask(query: str, metadata_filter: Mapping[str, Any] | None) -> list[str]:
            return rankings.documents(rankings.by_words(query, metadata_filter))[:results]

        yield ask


@contextmanager
def of_backend(file: Path, setup: Setup, index: Index | None, results: int) -> Iterator[Ask]:
    """Ask a backend that a configuration describes.

    Args:
        file: As :func:`backend_of` takes it.
        setup: Whether filters are soft (multislice) or hard (filtered).
        index: As :func:`backend_of` takes it.
        results: Documents wanted.

    Raises:
        EvaluationError: The file is not a configuration.
    """
    backend = backend_of(file, index)
    with closing(asyncio.new_event_loop()) as loop:

        def ask(query: str, metadata_filter: Mapping[str, Any] | None) -> list[str]:
            return loop.run_until_complete(_search(backend, query, metadata_filter, setup, results))

        try:
            yield ask
        finally:
            loop.run_until_complete(backend.close())


def backend_of(file: Path, index: Index | None) -> RetrievalBackend:
    """Make the backend that a configuration describes.

    Args:
        file: JSON for :func:`~ragstack_common.search.factory.create_retrieval_backend`; the type ``collection`` is
            the private knowledge base with the data set.
        index: The private knowledge base, where the configuration has that type.

    Raises:
        EvaluationError: The file is not a configuration.
    """
    if index is not None:
        client = index.client("bedrock-agent-runtime")
        base = index.knowledge_base_id
        known = {"client": client, "vector_store": OPENSEARCH_SERVERLESS}  # the local Bedrock has every operator
        register_backend(COLLECTION_TYPE, lambda **more: BedrockBackend(base, **{**known, **more}))
    return create_retrieval_backend(configuration(file))


def configuration(file: Path) -> dict[str, Any]:
    """Read a backend's configuration.

    Raises:
        EvaluationError: The file is not a configuration.
    """
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EvaluationError(f"{file} is not a backend configuration: {error}") from None
    if not isinstance(found, dict):
        raise EvaluationError(f"{file} is not a backend configuration: an object is expected")
    return found


def needs_collection(config: Any) -> bool:
    """Return whether a configuration uses the private knowledge base."""
    parts = config.values() if isinstance(config, dict) else config if isinstance(config, list) else ()
    is_it = isinstance(config, dict) and config.get("type") == COLLECTION_TYPE
    return is_it or any(needs_collection(part) for part in parts)


async def _search(
    backend: RetrievalBackend, query: str, metadata_filter: Mapping[str, Any] | None, setup: Setup, results: int
) -> list[str]:
    soft, hard = (metadata_filter, None) if setup.slices == "multislice" else (None, metadata_filter)
    request = SearchRequest(
        query,
        results,
        filters=hard,
        metadata_filter=soft,
        deduplicate_by="document",
        infer_filter=setup.infer != "no",
    )
    outcome = await backend.search(request)
    if not outcome.complete:
        raise EvaluationError("; ".join(f"{part.name}: {part.error}" for part in outcome.parts if part.error))
    return [chunk.source for chunk in outcome.chunks]
