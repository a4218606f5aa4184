"""Searches of a data set with each setup: what is opened, asked and judged."""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from rich.progress import Progress as Bars
from rich.progress import TaskID

from evaluation import metrics
from evaluation.dataset import FILTERS, DataSet, EvaluationError, EvaluationQuery
from evaluation.index import Index, Indexing, serving
from evaluation.metrics import PRIMARY, Difference, Interval, Values
from evaluation.setups import MANAGED_BASE, ON_S3_VECTORS, PRIVATE, STACK, Setup
from evaluation.table import Table
from ragstack_common.answers.followup import with_subject
from ragstack_common.answers.models.protocol import ModelMessage
from ragstack_common.core.deadline import wait_for
from ragstack_common.core.errors import RagStackError
from ragstack_common.search import RetrievalBackend, RetrievedChunk, SearchRequest, create_retrieval_backend
from ragstack_common.search.engines.found_store import store_of
from ragstack_common.search.inference import Vocabulary
from ragstack_common.search.naming import QuestionTerms
from ragstack_common.search.rerank.factory import load_reranker
from ragstack_common.search.trust import scalars
from ragstack_common.search.wrappers.reranked import RerankedBackend
from ragstack_common.settings.names import (
    BEDROCK_ENGINE,
    DEFAULT_RERANKER,
    MANAGED,
    NO_RERANKER,
    OPENSEARCH_SERVERLESS,
    S3_VECTORS,
)
from ragstack_local.connection.connection import Connection

FOREIGN_QUESTIONS: Final = 40
"""Questions of each other data set that are asked."""


class Progress:
    """Bars on the terminal: one for each setup, and one for each ingestion."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._indexing: TaskID | None = None

    @contextmanager
    def bar(self, name: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a bar, and yield what advances it by one."""
        task = self._bars.add_task(name, total=total, detail="")
        yield lambda: self._bars.advance(task)

    def indexing(self, done: int, total: int) -> None:
        """Show how many documents are searchable."""
        if self._indexing is None or self._bars.tasks[self._indexing].finished:
            if done == total:
                return  # an earlier run ingested everything
            self._indexing = self._bars.add_task("ingestion", total=total, detail="kept for the next run")
        self._bars.update(self._indexing, completed=done)


@dataclass
class Engines:
    """Engines that setups search. The private local Bedrock keeps running while setups use the same index.

    Attributes:
        cache: Folder of the indexes.
        stack: Connects to the running local stack.
    """

    data: DataSet
    cache: Path
    progress: Progress
    stack: Callable[[], Connection]

    def __post_init__(self) -> None:
        self._server = ExitStack()
        self._served: tuple[Indexing, Index] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    @contextmanager
    def opened(self, setup: Setup) -> Iterator[RetrievalBackend]:
        """Open the backend of a setup.

        Raises:
            EvaluationError: The setup does not fit the data set, or its file is not a configuration.
        """
        backend = create_retrieval_backend(self._configuration(setup))
        if setup.rerank != NO_RERANKER:
            weights = {"weights": {"vector": setup.vector}} if setup.rerank == DEFAULT_RERANKER else {}
            backend = RerankedBackend(backend, load_reranker({"type": setup.rerank, **weights}))
        try:
            yield backend
        finally:
            wait_for(backend.close())

    def _index(self, setup: Setup) -> Index:
        """Return the private index of a setup, served by a local Bedrock."""
        if not self.data.has_texts:
            raise EvaluationError(
                f"{self.data.name} has questions and no documents: write engine=stack, or the file of a backend's"
                " configuration"
            )
        indexing = Indexing(setup.embedding, setup.headers, setup.cosine_share, setup.feedback, setup.store)
        if self._served is None or self._served[0] != indexing:
            self._served = None
            self._server.close()
            index = self._server.enter_context(serving(self.data, indexing, self.cache, self.progress.indexing))
            self._served = indexing, index
        return self._served[1]

    def _configuration(self, setup: Setup) -> dict[str, Any]:
        if setup.is_bedrock:
            return self._bedrock(setup)
        file = Path(setup.engine)
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise EvaluationError(f"{file} is not a backend configuration: {error}") from None
        if not isinstance(found, dict):
            raise EvaluationError(f"{file} is not a backend configuration: an object is expected")
        completed: dict[str, Any] = self._with_collection(found, setup)
        return completed

    def _with_collection(self, part: Any, setup: Setup) -> Any:
        """Replace each part of the type ``collection`` by the private knowledge base with the data set.

        A knowledge base of the user's own is searched as its vector store allows.
        """
        if isinstance(part, list):
            return [self._with_collection(each, setup) for each in part]
        if not isinstance(part, dict):
            return part
        if part.get("type") == "collection":
            private = setup.model_copy(update={"engine": PRIVATE})
            return {**self._bedrock(private), **part, "type": BEDROCK_ENGINE}
        if part.get("type") == BEDROCK_ENGINE and "vector_store" not in part:
            part = {**part, "vector_store": store_of(str(part.get("knowledge_base_id")))}
        return {name: self._with_collection(each, setup) for name, each in part.items()}

    def knowledge_base(self, setup: Setup) -> tuple[Callable[[str], Any], str]:
        """Return what makes clients of the local Bedrock of a setup, and the id of its knowledge base."""
        if setup.engine == STACK:
            connection = self.stack()
            if not self.data.has_texts:
                _require_documents(self.data, connection)
            return connection.client, connection.knowledge_base_id
        index = self._index(setup)
        return index.client, index.knowledge_base_id

    def is_managed(self, setup: Setup) -> bool:
        """Whether a setup searches a knowledge base of type MANAGED."""
        return setup.store == MANAGED_BASE or (setup.engine == STACK and self.stack().vector_store == MANAGED)

    def _bedrock(self, setup: Setup) -> dict[str, Any]:
        client, knowledge_base_id = self.knowledge_base(setup)
        # The local Bedrock has every operator.
        store: dict[str, Any] = {"vector_store": OPENSEARCH_SERVERLESS, "search_type": setup.search}
        if setup.store == ON_S3_VECTORS:
            clients = {"index_client": client("s3vectors"), "agent_client": client("bedrock-agent")}
            store = {**store, "vector_store": S3_VECTORS, **clients}
        elif self.is_managed(setup):
            store = {"vector_store": MANAGED}

        async def vocabulary() -> Vocabulary:
            return vocabulary_of(self.data)

        return {
            "type": BEDROCK_ENGINE,
            "knowledge_base_id": knowledge_base_id,
            "client": client("bedrock-agent-runtime"),
            "merge": setup.merge,
            "filtered_score_boost": setup.boost,
            "timeout_seconds": 60.0,  # a timeout would lower the figures
            **store,
            "vocabulary": vocabulary if setup.infer and self.data.has_texts else None,
        }


def vocabulary_of(data: DataSet) -> Vocabulary:
    """Count the values of a collection, as the document registry does."""
    counts: dict[str, Counter[Any]] = defaultdict(Counter)
    for document in data.documents.values():
        for key, value in document.metadata.items():
            counts[key].update(scalars(value))
    return Vocabulary(counts, len(data.documents))


def _require_documents(data: DataSet, stack: Connection) -> None:
    """Check that a running stack has the files that answer the questions."""
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


def filter_of(data: DataSet, query: EvaluationQuery, kind: str) -> dict[str, Any] | None:
    """Return the metadata filter of a query; None if it has none of this kind."""
    values = query.filters.get(kind)
    if values is None and query.attributes and kind in ("right", "wrong"):
        values = query.attributes if kind == "right" else data.wrong_attributes(query, metrics.SEED)
    return {name: {"$eq": value} for name, value in values.items()} if values else None


def require_filters(data: DataSet, kind: str) -> None:
    """Check that the queries have filters of a kind.

    Raises:
        EvaluationError: No query has one.
    """
    if kind != "none" and not any(filter_of(data, query, kind) for query in data.queries):
        kinds = ", ".join(sorted({kind for query in data.queries for kind in query.filters})) or "none"
        raise EvaluationError(
            f"No query of {data.name} has a filter {kind!r}: right and wrong need metadata.filter, and {FILTERS} has"
            f" these kinds: {kinds}"
        )


def found_chunks(backend: RetrievalBackend, request: SearchRequest) -> list[RetrievedChunk]:
    """Search; a failed part of a search is an error, because its figures would mislead."""
    outcome = wait_for(backend.search(request))
    if not outcome.complete:
        raise EvaluationError("; ".join(f"{part.name}: {part.error}" for part in outcome.parts if part.error))
    for note in outcome.notes:
        if note.kind == "words":
            raise EvaluationError(note.text)
    return outcome.chunks


@dataclass(frozen=True)
class Measured:
    """Results of one setup.

    Attributes:
        rankings: Documents, best first, by query.
        values: For each measure a figure of every query.
        milliseconds: The time of each search.
        clusters: Those of the data set.
    """

    setup: Setup
    rankings: Mapping[str, Sequence[str]]
    values: Mapping[str, Values]
    milliseconds: Sequence[float]
    clusters: Sequence[int]

    def interval(self, measure: str) -> Interval:
        """Return the mean over the queries with its 95 % interval."""
        return metrics.mean_interval(self.values[measure], self.clusters)

    def difference(self, baseline: "Measured", measure: str = PRIMARY) -> Difference:
        """Return how much better than the baseline it is, query by query."""
        return metrics.difference_interval(self.values[measure], baseline.values[measure], self.clusters)


def measured(engines: Engines, setups: Sequence[Setup], depth: int = 10) -> Iterator[Measured]:
    """Search and judge one setup after the other.

    Raises:
        EvaluationError: A setup cannot be measured; the figures of earlier ones have been yielded.
    """
    data = engines.data
    names = (*metrics.MEASURES, metrics.DEEP_MEASURE) if depth >= 100 else metrics.MEASURES  # noqa: PLR2004
    for setup in setups:
        require_filters(data, setup.filter)
        rankings, times = {}, []
        with engines.progress.bar(setup.label, len(data.queries)) as advance, engines.opened(setup) as backend:
            for query in data.queries:
                asked = filter_of(data, query, setup.filter)
                soft, hard = (asked, None) if setup.filter_mode == "prefer" else (None, asked)
                before = [ModelMessage.user(query.before)] if setup.rewrite and query.before is not None else []
                request = SearchRequest(
                    with_subject(query.text, before) or query.text,
                    depth,
                    filters=hard,
                    metadata_filter=soft,
                    deduplicate_by="document",
                    infer_filter=setup.infer,
                )
                start = time.perf_counter()
                try:
                    chunks = found_chunks(backend, request)
                except RagStackError as error:
                    raise EvaluationError(f"The query {query.id} of {data.name} failed: {error}") from error
                times.append((time.perf_counter() - start) * 1000)
                rankings[query.id] = data.documents_of([chunk.source for chunk in chunks])
                advance()
        yield Measured(setup, rankings, metrics.by_query(data.judgments, rankings, names), times, data.clusters)


def table(data: DataSet, found: Sequence[Measured]) -> Table:
    """Return a row for each setup; the differences are to the first."""
    baseline = found[0]
    others = [name for name in baseline.values if name != PRIMARY]
    headings = ["setup", PRIMARY, *(metrics.TITLES[name] for name in others), "Δ", "p50 ms", "p95 ms"]
    rows = [
        [
            one.setup.label,
            one.interval(PRIMARY),
            *(float(one.values[name].mean()) for name in others),
            None if one is baseline else one.difference(baseline),
            *(round(float(np.percentile(one.milliseconds, percent))) for percent in (50, 95)),
        ]
        for one in found
    ]
    notes = []
    if any(one.setup.infer for one in found) and data.has_texts:
        vocabulary = vocabulary_of(data)
        named = sum(vocabulary.infer(QuestionTerms(query.text)) is not None for query in data.queries)
        notes.append(f"Queries that name values of the collection:  {named} of {len(data.queries)}")
    return Table(data.title, headings, rows, [PRIMARY], notes)


def details(found: Sequence[Measured]) -> list[dict[str, Any]]:
    """Return the options, the figures and the documents of every query, as JSON."""
    return [
        {
            "label": one.setup.label,
            "options": one.setup.model_dump(),
            "by_query": {name: [round(float(v), 6) for v in values] for name, values in one.values.items()},
            "rankings": one.rankings,
        }
        for one in found
    ]
