"""The ways to ask: as the product does, by its keyword ranking alone, by another program, by any backend."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from evaluation.dataset import DataSet, Query
from evaluation.errors import EvaluationError
from evaluation.index import Index, Indexing
from evaluation.local_rankings import LocalRankings
from evaluation.runs import Answer, Run, documents_of
from evaluation.setups import Setup
from ragstack_common.config import OPENSEARCH_SERVERLESS
from ragstack_common.errors import RagStackError
from ragstack_common.multislice_retriever import MultiSliceRetriever
from ragstack_common.retrieval.base import RetrievalBackend
from ragstack_common.retrieval.engines.bedrock import BedrockBackend, uri_of
from ragstack_common.retrieval.factory import create_retrieval_backend, register_backend
from ragstack_common.retrieval.models import SearchRequest
from ragstack_common.retrieval.rerank import LexicalReranker

COLLECTION_TYPE: Final = "collection"
"""Type, in a backend's configuration, of the knowledge base that holds the data set."""

TIMEOUT_SECONDS: Final = 60.0
"""Nothing is lost to a deadline while quality is measured."""

WRONG_SEED: Final = 20_261_121

Ask = Callable[[str, Mapping[str, Any] | None], Sequence[str]]
"""Takes a query and its metadata filter; returns sources, best first."""


def filter_of(data: DataSet, query: Query, kind: str) -> dict[str, Any] | None:
    """Return the metadata filter of a query: none, the right one, or a wrong one; None too where none is known."""
    if kind == "none" or not query.attributes:
        return None
    values = query.attributes if kind == "right" else data.wrong_attributes(query, WRONG_SEED)
    return {name: {"$eq": value} for name, value in values.items()}


def run(data: DataSet, setup: Setup, label: str, ask: Ask, advance: Callable[[], None]) -> Run:
    """Ask every query, one after the other.

    Raises:
        EvaluationError: A query failed, or the setup wants filters and no query has one.
    """
    if setup.filter != "none" and not any(query.attributes for query in data.queries):
        raise EvaluationError(f"No query of {data.name} says which attributes are right (metadata.filter)")
    answers = {}
    for query in data.queries:
        condition = filter_of(data, query, setup.filter)
        start = time.perf_counter()
        try:
            sources = ask(query.text, condition)
        except RagStackError as error:
            raise EvaluationError(f"The query {query.id} of {data.name} failed: {error}") from error
        milliseconds = (time.perf_counter() - start) * 1000
        answers[query.id] = Answer(documents_of(sources, data.documents), milliseconds)
        advance()
    return Run(label, answers)


def of_knowledge_base(client: Any, knowledge_base_id: str, setup: Setup, results: int) -> Ask:
    """Ask as the query function does.

    Args:
        client: A boto3 client of bedrock-agent-runtime.
        knowledge_base_id: What is searched.
        setup: How.
        results: Documents wanted, 1 to 100.
    """
    retriever = MultiSliceRetriever(
        client,
        TIMEOUT_SECONDS,
        enabled=setup.slices == "multislice",
        filtered_score_boost=setup.boost,
        search_type=setup.search,
    )
    reranker = LexicalReranker() if setup.rerank == "lexical" else None

    def ask(query: str, condition: Mapping[str, Any] | None) -> list[str]:
        found = retriever.search(query, knowledge_base_id, None, condition, results, reranker=reranker)
        if not found.complete:
            raise EvaluationError("; ".join(f"{part.name}: {part.error}" for part in found.slices if part.error))
        return [uri_of(result) or "" for result in found.results]

    return ask


@contextmanager
def of_keywords(indexing: Indexing, index: Index, results: int) -> Iterator[Ask]:
    """Ask the full-text index alone; the local Bedrock that filled it must have ended."""
    with LocalRankings.of(indexing, index) as rankings:

        def ask(query: str, condition: Mapping[str, Any] | None) -> list[str]:
            return rankings.documents(rankings.by_words(query, condition))[:results]

        yield ask


@contextmanager
def of_backend(file: Path, setup: Setup, index: Index | None, results: int) -> Iterator[Ask]:
    """Ask a backend that a configuration describes.

    Args:
        file: JSON for :func:`~ragstack_common.retrieval.factory.create_retrieval_backend`; the type ``collection`` is
            the private knowledge base with the data set.
        setup: Whether filters are soft (multislice) or hard (filtered).
        index: The private knowledge base, where the configuration has that type.
        results: Documents wanted.

    Raises:
        EvaluationError: The file is no configuration.
    """
    if index is not None:
        client = index.client("bedrock-agent-runtime")
        base = index.knowledge_base_id
        known = {"client": client, "vector_store": OPENSEARCH_SERVERLESS}  # the local Bedrock has every operator
        register_backend(COLLECTION_TYPE, lambda **more: BedrockBackend(base, **{**known, **more}))
    backend = create_retrieval_backend(configuration(file))
    with closing(asyncio.new_event_loop()) as loop:

        def ask(query: str, condition: Mapping[str, Any] | None) -> list[str]:
            return loop.run_until_complete(_search(backend, query, condition, setup, results))

        try:
            yield ask
        finally:
            loop.run_until_complete(backend.close())


def configuration(file: Path) -> dict[str, Any]:
    """Read a backend's configuration.

    Raises:
        EvaluationError: The file is no configuration.
    """
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EvaluationError(f"{file} is no configuration of a backend: {error}") from None
    if not isinstance(found, dict):
        raise EvaluationError(f"{file} is no configuration of a backend: an object is expected")
    return found


def needs_collection(config: Any) -> bool:
    """Tell whether a configuration has the private knowledge base in it."""
    parts = config.values() if isinstance(config, dict) else config if isinstance(config, list) else ()
    is_it = isinstance(config, dict) and config.get("type") == COLLECTION_TYPE
    return is_it or any(needs_collection(part) for part in parts)


async def _search(
    backend: RetrievalBackend, query: str, condition: Mapping[str, Any] | None, setup: Setup, results: int
) -> list[str]:
    soft, hard = (condition, None) if setup.slices == "multislice" else (None, condition)
    request = SearchRequest(query, results, filters=hard, metadata_filter=soft, deduplicate_by="document")
    outcome = await backend.search(request)
    if not outcome.complete:
        raise EvaluationError("; ".join(f"{part.name}: {part.error}" for part in outcome.parts if part.error))
    return [chunk.source for chunk in outcome.chunks]
