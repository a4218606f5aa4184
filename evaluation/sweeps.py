"""Sweeps: one parameter after the other over results that are retrieved once, and what the figures say."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from evaluation import metrics
from evaluation.dataset import DataSet
from evaluation.index import Index
from evaluation.metrics import SEED, Clusters, Interval, Values
from evaluation.searching import DEFAULT_BOOST, filter_of
from local_bedrock import search as retrieval
from ragstack_common import embedding, filters
from ragstack_common.filters import Filter
from ragstack_common.reranking_weights import RerankingWeights
from ragstack_common.search import RetrievedChunk
from ragstack_common.search.engines.bedrock import chunk_of
from ragstack_common.search.merge import CANDIDATES_PER_DOCUMENT, merge_slices
from ragstack_common.search.rerank import LexicalReranker, Passage
from ragstack_common.search.rerank.chunks import text_of

UNFILTERED: Final = "none"
RIGHT: Final = "right"
WRONG: Final = "wrong"
RERANKED: Final = "lexical reranker"
MOST_HITS: Final = 100
"""Source: bedrock-agent-runtime, KnowledgeBaseVectorSearchConfiguration$numberOfResults."""

Hits = list[dict[str, Any]]

RESULTS: Final = 10
SLICE: Final = RESULTS * CANDIDATES_PER_DOCUMENT
"""Chunks of each slice, as the product asks for ten documents."""

COSINE_SHARE: Final = "cosine_share"
BOOST: Final = "filtered_score_boost"
CANDIDATES: Final = 50
VECTOR: Final = "reranker.vector"

GRID: Final[Mapping[str, tuple[float, ...]]] = {
    COSINE_SHARE: (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1),
    BOOST: (0.8, 1.0, 1.05, 1.1, 1.15, 1.25, 1.5, 2.0, 3.0, 5.0),
    VECTOR: (0, 0.1, 0.2, 0.3, 0.5, 1, 2, 5),
}
"""What is tried of each parameter where nothing else is asked for, in the order of the sweeps."""

OF_FILTERS: Final = (BOOST,)
OF_HITS: Final = (BOOST, VECTOR)

DEFAULTS: Final = {BOOST: DEFAULT_BOOST, VECTOR: RerankingWeights().vector}

AskedFilters: TypeAlias = Mapping[str, Mapping[str, Filter]]
"""Filters by the id of a query and by kind."""

Ranked = Callable[[str], Sequence[str]]
"""Takes a query's id; returns documents, best first."""


@dataclass
class HitFile:
    """One line for each query and filter, appended as they come: an interrupted run continues."""

    path: Path
    known: dict[tuple[str, str], Hits] = field(default_factory=dict)

    @classmethod
    def of(cls, index_folder: Path, search: str, cosine_share: float | None = None) -> "HitFile":
        """Open the file of an index and a kind of search. A changed ranking or embedding has another file."""
        packages = (Path(package.__path__[0]) for package in (retrieval, embedding))
        sources = [source for folder in packages for source in sorted(folder.glob("*.py"))]
        code = sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
        own = "" if cosine_share is None else f"-{cosine_share:g}"
        found = cls(index_folder / f"hits-{search}{own}-{code}.jsonl")
        found.known.update(_lines(found.path))
        return found

    def fill(
        self, data: DataSet, asked: "AskedFilters", client: Any, index: Index, search: str, advance: Callable[[], None]
    ) -> None:
        """Ask what is not known yet: every query without a filter, and with each kind that it has."""
        with self._appending() as output:
            for query in data.queries:
                for kind, found in {UNFILTERED: None, **asked.get(query.id, {})}.items():
                    if (query.id, kind) not in self.known:
                        hits = _asked(query.text, found, client, index, search)
                        output.write(json.dumps({"query": query.id, "filter": kind, "hits": hits}) + "\n")
                        self.known[query.id, kind] = hits
                advance()

    @contextmanager
    def _appending(self) -> Iterator[IO[str]]:
        """Append lines. A run that was killed may have left a part of one, which this ends."""
        with self.path.open("a", encoding="utf-8") as output:
            if output.tell() and not self.path.read_bytes().endswith(b"\n"):
                output.write("\n")
            yield output


def _asked(query: str, asked: Filter | None, client: Any, index: Index, search: str) -> Hits:
    configuration: dict[str, Any] = {"numberOfResults": MOST_HITS, "overrideSearchType": search}
    if asked is not None:
        configuration["filter"] = filters.to_bedrock(asked)
    answer = client.retrieve(
        knowledgeBaseId=index.knowledge_base_id,
        retrievalQuery={"text": query},
        retrievalConfiguration={"vectorSearchConfiguration": configuration},
    )
    hits: Hits = answer["retrievalResults"]
    return hits


def _lines(path: Path) -> Iterator[tuple[tuple[str, str], Hits]]:
    if not path.exists():
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                entry: Mapping[str, Any] = json.loads(line)
            except ValueError:
                continue  # the end of a run that was killed: it is asked again
            yield (entry["query"], entry["filter"]), entry["hits"]


@dataclass(frozen=True)
class Sweep:
    """One parameter and what came out for each of its values.

    Attributes:
        parameter: Its name.
        default: What the product has.
        values: What was tried, ascending; the default is among them.
        lines: By name and value nDCG@10 of every query.
        decisive: The line by which the best value is chosen.
    """

    parameter: str
    default: float
    values: tuple[float, ...]
    lines: Mapping[str, Mapping[float, Values]]
    decisive: str

    @property
    def figures(self) -> Mapping[float, Values]:
        """The decisive line."""
        return self.lines[self.decisive]

    def baseline_of(self, line: str) -> Values:
        """Return what a line is compared with in a picture: itself at the default where lines are different questions.

        Lines that answer the same queries in different ways are all compared with the decisive one.
        """
        return self.lines[line if self.parameter in OF_FILTERS else self.decisive][self.default]


def values_of(parameter: str, chosen: Sequence[float], default: float) -> tuple[float, ...]:
    """Return what is tried of a parameter: the chosen values or the grid's, and the default."""
    return tuple(sorted({*(chosen or GRID[parameter]), default}))


def filters_of(data: DataSet) -> AskedFilters:
    """Return the filters of each query that has some, by kind: right, and others."""
    others = sorted({kind for query in data.queries for kind in query.filters} - {RIGHT}) or [WRONG]
    found: dict[str, dict[str, Filter]] = {}
    for query in data.queries:
        given = {kind: filter_of(data, query, kind) for kind in (RIGHT, *others)}
        kinds = {kind: filters.parse(source) for kind, source in given.items() if source is not None}
        if kinds:
            found[query.id] = kinds
    return found


class HitSweeps:
    """Sweeps over Retrieve's answers.

    Args:
        data: The judged queries.
        hits: What was retrieved for them.
        asked: The filters of each query.
        wrong_share: Share of the filters that are assumed to be of the other kinds, each equally often.
    """

    def __init__(self, data: DataSet, hits: HitFile, asked: AskedFilters, wrong_share: float) -> None:
        self._data = data
        self._hits = hits.known
        self._asked = asked
        self._wrong_share = wrong_share
        self._texts = {query.id: query.text for query in data.queries}
        self._first = cache(self._read)
        self._best = cache(self._deduplicated)

    def sweep(self, parameter: str, values: Sequence[float], advance: Callable[[], None]) -> Sweep:
        """Vary one parameter.

        Args:
            parameter: A name in :data:`OF_HITS`.
            values: What is tried; the default is among them.
            advance: Is called for each value.
        """
        lines: dict[str, dict[float, Values]] = {}
        for value in values:
            if parameter == BOOST:
                found = self._with_filters(partial(self._boosted, value))
            else:
                found = {RERANKED: self._judged(partial(self._reranked, value))}
                found["no reranker"] = self._judged(self._found)
            for name, figures in found.items():
                lines.setdefault(name, {})[value] = figures
            advance()
        return Sweep(parameter, DEFAULTS[parameter], tuple(values), lines, next(iter(lines)))

    def _with_filters(self, ranked: Callable[[str, str], Sequence[str]]) -> dict[str, Values]:
        """Judge a ranking with each kind of filter, and the mixture of them, which decides."""
        kinds = sorted({kind for found in self._asked.values() for kind in found} - {RIGHT})
        figures = {kind: self._judged(partial(ranked, kind)) for kind in (RIGHT, *kinds)}
        right, *wrong = figures.values()
        share = self._wrong_share
        mixed = (1 - share) * right + share * np.mean(wrong, axis=0)
        own = {f"{kind} filter": found for kind, found in figures.items()}
        return {f"{share:.0%} of the filters wrong": mixed, **own}

    def _boosted(self, boost: float, kind: str, query: str) -> Sequence[str]:
        slices = {name: self._first(query, name) for name in (kind, UNFILTERED) if (query, name) in self._hits}
        return self._documents(merge_slices(slices, {kind: boost}, "document"))

    def _found(self, query: str) -> Sequence[str]:
        return self._documents(self._best(query, CANDIDATES))

    def _reranked(self, weight: float, query: str) -> Sequence[str]:
        chunks = self._best(query, CANDIDATES)
        passages = [Passage(text_of(chunk), chunk.metadata, chunk.score) for chunk in chunks]
        order = LexicalReranker(RerankingWeights(vector=weight)).order(self._texts[query], passages)
        return self._documents(chunks[number] for number, _ in order)

    def _documents(self, chunks: Iterable[RetrievedChunk]) -> Sequence[str]:
        # The chunks are of different documents.
        return self._data.documents_of([chunk.source for chunk in islice(chunks, RESULTS)])

    def _deduplicated(self, query: str, candidates: int) -> list[RetrievedChunk]:
        found = _chunks(self._hits[query, UNFILTERED][:candidates])
        return [*merge_slices({UNFILTERED: found}, None, "document")]

    def _read(self, query: str, kind: str) -> list[RetrievedChunk]:
        return _chunks(self._hits[query, kind][:SLICE])

    def _judged(self, ranked: Ranked) -> Values:
        return judged(self._data, ranked)


def _chunks(hits: Hits) -> list[RetrievedChunk]:
    return [chunk_of(hit) for hit in hits]


def of_cosine_share(data: DataSet, default: float, found: Mapping[str, Mapping[float, Sequence[str]]]) -> Sweep:
    """Vary the share of the cosine in the local Bedrock's HYBRID search.

    Args:
        data: The judged queries.
        default: The embedding's own share.
        found: By query and share, the documents, best first.
    """

    def ranked(share: float, query: str) -> Sequence[str]:
        return found[query][share][:RESULTS]

    values = tuple(next(iter(found.values())))
    figures = {value: judged(data, partial(ranked, value)) for value in values}
    return Sweep(COSINE_SHARE, default, values, {"HYBRID": figures}, "HYBRID")


def judged(data: DataSet, ranked: Ranked) -> Values:
    """Return nDCG@10 of every query."""
    rankings = {query.id: ranked(query.id) for query in data.queries}
    return np.asarray(metrics.by_query(data.judgments, rankings, (metrics.PRIMARY,))[metrics.PRIMARY])


@dataclass(frozen=True)
class Verdict:
    """The best value of one parameter.

    Attributes:
        sweep: What was tried.
        best: The value with the highest mean over all queries; of equals the one next to the default.
        gain: Its difference to the default over the queries that chose it, which flatters it.
        choices: The values that each half of the queries chooses.
        held_out: Difference to the default where each query is judged by the value that the other half chose. This is
            what new queries can expect.
    """

    sweep: Sweep
    best: float
    gain: Interval
    choices: tuple[float, float]
    held_out: Interval

    @classmethod
    def of(cls, sweep: Sweep, clusters: Clusters | None = None, *, seed: int = SEED) -> "Verdict":
        """Choose the best value, and judge the choice on queries that had no part in it.

        Args:
            sweep: What was tried.
            clusters: Queries with the same number are in the same half, and are drawn together.
            seed: Of the division into halves.
        """
        figures, baseline = sweep.figures, sweep.figures[sweep.default]
        best = _best(sweep.default, figures, np.ones(len(baseline), dtype=np.bool_))
        first_half = _half(np.arange(len(baseline)) if clusters is None else clusters, seed)
        of_first = _best(sweep.default, figures, first_half)
        of_second = _best(sweep.default, figures, ~first_half)
        unseen = np.where(first_half, figures[of_second], figures[of_first])
        return cls(
            sweep,
            best,
            metrics.difference_interval(figures[best], baseline, clusters),
            (of_first, of_second),
            metrics.difference_interval(unseen, baseline, clusters),
        )

    @property
    def is_better(self) -> bool:
        """Whether the best value is better than the default also for queries that had no part in its choice."""
        return self.best != self.sweep.default and self.held_out.low > 0

    @property
    def word(self) -> str:
        """The conclusion in a word or two."""
        if self.best == self.sweep.default:
            return "keep"
        if self.is_better:
            return f"{self.best:g} is better"
        return "overfitted" if self.gain.excludes_zero else "no difference"

    @property
    def text(self) -> str:
        """The conclusion in a sentence."""
        return {
            "keep": "the default is the best of these values",
            "overfitted": f"{self.best:g} fits these queries; for those that did not choose it the gain may be chance",
            "no difference": "no value differs from the default beyond chance",
        }.get(self.word, f"{self.best:g} is better than the default, also for queries that did not choose it")


def _best(default: float, figures: Mapping[float, Values], of: npt.NDArray[np.bool_]) -> float:
    if not of.any():
        return default
    return max(figures, key=lambda value: (round(float(figures[value][of].mean()), 9), -abs(value - default)))


def _half(clusters: Clusters, seed: int) -> npt.NDArray[np.bool_]:
    """Choose half of the clusters, and return which queries are in it."""
    numbers = np.unique(clusters)
    chosen = np.random.default_rng(seed).permutation(numbers)[: len(numbers) // 2]
    return np.isin(clusters, chosen)
