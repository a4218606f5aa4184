"""Sweeps: one parameter after the other over results that are retrieved once, and what the figures say."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from evaluation import metrics
from evaluation.dataset import DataSet, Query
from evaluation.index import Index
from evaluation.metrics import SEED, Interval, Values, documents_of
from evaluation.searching import DEFAULT_BOOST, filter_of
from local_bedrock import retrieval
from ragstack_common import filters
from ragstack_common.retrieval import RetrievedChunk
from ragstack_common.retrieval.engines.bedrock import chunk_of
from ragstack_common.retrieval.merge import CANDIDATES_PER_DOCUMENT, merge_slices
from ragstack_common.retrieval.rerank import LexicalReranker, Passage, RerankingWeights
from ragstack_common.retrieval.rerank.chunks import text_of

UNFILTERED: Final = "none"
MOST_HITS: Final = 100
"""Source: bedrock-agent-runtime, KnowledgeBaseVectorSearchConfiguration$numberOfResults."""

Hits = list[dict[str, Any]]

RESULTS: Final = 10
DEFAULT_CANDIDATES: Final = RESULTS * CANDIDATES_PER_DOCUMENT
RERANK: Final = "rerank_"

BOOST: Final = "filtered_score_boost"
CANDIDATES: Final = "candidates"
COSINE_SHARE: Final = "cosine_share"

GRID: Final[Mapping[str, tuple[float, ...]]] = {
    BOOST: (0.8, 1.0, 1.05, 1.1, 1.15, 1.25, 1.5, 2.0, 3.0, 5.0),
    CANDIDATES: (10, 20, 30, 40, 60, 80, 100),
    f"{RERANK}phrase": (0, 0.1, 0.25, 0.5, 0.75, 1, 2),
    f"{RERANK}frequency": (0, 0.1, 0.2, 0.3, 0.5, 1, 2),
    f"{RERANK}proximity": (0, 0.1, 0.2, 0.3, 0.5, 1),
    f"{RERANK}metadata": (0, 0.1, 0.25, 0.5, 1),
    f"{RERANK}vector": (0, 0.1, 0.2, 0.3, 0.5, 1, 2, 5),
    COSINE_SHARE: (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1),
}
"""What is tried of each parameter where nothing else is asked for."""

OF_HITS: Final = tuple(name for name in GRID if name != COSINE_SHARE)

Ranked = Callable[[str], Sequence[str]]
"""Takes a query's id; returns documents, best first."""


@dataclass
class HitFile:
    """One line for each query and filter, appended as they come: an interrupted run continues."""

    path: Path
    known: dict[tuple[str, str], Hits] = field(default_factory=dict)

    @classmethod
    def of(cls, index_folder: Path, search: str) -> "HitFile":
        """Open the file of an index and a kind of search. A changed ranking has another file."""
        sources = sorted(Path(retrieval.__file__).parent.glob("*.py"))
        code = sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
        found = cls(index_folder / f"hits-{search}-{code}.jsonl")
        found.known.update(_lines(found.path))
        return found

    def fill(
        self, data: DataSet, kinds: tuple[str, ...], client: Any, index: Index, search: str, advance: Callable[[], None]
    ) -> None:
        """Ask what is not known yet: every query with each kind of filter."""
        with self._appending() as output:
            for query in data.queries:
                for kind in kinds:
                    if (query.id, kind) not in self.known:
                        hits = _asked(data, query, kind, client, index, search)
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


def _asked(data: DataSet, query: Query, kind: str, client: Any, index: Index, search: str) -> Hits:
    metadata_filter = filter_of(data, query, kind)
    if kind != UNFILTERED and metadata_filter is None:
        return []
    configuration: dict[str, Any] = {"numberOfResults": MOST_HITS, "overrideSearchType": search}
    if metadata_filter is not None:
        configuration["filter"] = filters.to_bedrock(filters.parse(metadata_filter))
    answer = client.retrieve(
        knowledgeBaseId=index.knowledge_base_id,
        retrievalQuery={"text": query.text},
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
        return self.lines[line if self.parameter == BOOST else self.decisive][self.default]


def values_of(parameter: str, chosen: Sequence[float], default: float) -> tuple[float, ...]:
    """Return what is tried of a parameter: the chosen values or the grid's, and the default."""
    return tuple(sorted({*(chosen or GRID[parameter]), default}))


class HitSweeps:
    """Sweeps over Retrieve's answers."""

    def __init__(self, data: DataSet, hits: HitFile, wrong_share: float) -> None:
        self._data = data
        self._hits = hits.known
        self._wrong_share = wrong_share

    def boost(self, chosen: Sequence[float]) -> Sweep:
        """Vary the factor on the scores of filtered hits."""
        values = values_of(BOOST, chosen, DEFAULT_BOOST)
        right = {value: self._boosted("right", value) for value in values}
        wrong = {value: self._boosted("wrong", value) for value in values}
        mixed = f"{self._wrong_share:.0%} of the filters wrong"
        share = self._wrong_share
        expected = {value: (1 - share) * right[value] + share * wrong[value] for value in values}
        lines = {mixed: expected, "every filter right": right, "every filter wrong": wrong}
        return Sweep(BOOST, DEFAULT_BOOST, values, lines, mixed)

    def candidates(self, chosen: Sequence[float]) -> Sweep:
        """Vary how many chunks are looked at for ten documents, with and without the lexical reranker."""
        values = values_of(CANDIDATES, chosen, DEFAULT_CANDIDATES)
        reranker = LexicalReranker()
        reranked = {value: self._judged(partial(self._reranked, int(value), reranker)) for value in values}
        found = {value: self._judged(partial(self._found, int(value))) for value in values}
        name = "lexical reranker"
        return Sweep(CANDIDATES, DEFAULT_CANDIDATES, values, {name: reranked, "as retrieved": found}, name)

    def weight(self, parameter: str, chosen: Sequence[float]) -> Sweep:
        """Vary one weight of the lexical reranker; the others stay at their defaults."""
        name = parameter.removeprefix(RERANK)
        defaults = RerankingWeights()
        default = float(getattr(defaults, name))
        values = values_of(parameter, chosen, default)
        rerankers = {value: LexicalReranker(replace(defaults, **{name: value})) for value in values}
        figures = {
            value: self._judged(partial(self._reranked, DEFAULT_CANDIDATES, reranker))
            for value, reranker in rerankers.items()
        }
        unranked = self._judged(partial(self._found, DEFAULT_CANDIDATES))
        lines = {"lexical reranker": figures, "no reranker": dict.fromkeys(values, unranked)}
        return Sweep(parameter, default, values, lines, "lexical reranker")

    def _boosted(self, kind: str, boost: float) -> Values:
        def ranked(query: str) -> Sequence[str]:
            filtered = _chunks(self._hits[query, kind][:DEFAULT_CANDIDATES])
            slices = {kind: filtered, UNFILTERED: self._unfiltered(query, DEFAULT_CANDIDATES)}
            return self._documents(slices, {kind: boost})

        return self._judged(ranked)

    def _found(self, candidates: int, query: str) -> Sequence[str]:
        return self._documents({UNFILTERED: self._unfiltered(query, candidates)})

    def _reranked(self, candidates: int, reranker: LexicalReranker, query: str) -> Sequence[str]:
        chunks = [*merge_slices({UNFILTERED: self._unfiltered(query, candidates)}, deduplicate_by="document")]
        passages = [Passage(text_of(chunk), chunk.metadata, chunk.score) for chunk in chunks]
        return self._named([chunks[number].source for number, _ in reranker.order(self._texts[query], passages)])

    def _documents(
        self, slices: Mapping[str, Sequence[RetrievedChunk]], boosts: Mapping[str, float] | None = None
    ) -> Sequence[str]:
        return self._named([chunk.source for chunk in merge_slices(slices, boosts, "document")])

    def _named(self, sources: Sequence[str]) -> Sequence[str]:
        return documents_of(sources, self._data.documents)[:RESULTS]

    def _unfiltered(self, query: str, candidates: int) -> list[RetrievedChunk]:
        return _chunks(self._hits[query, UNFILTERED][:candidates])

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return {query.id: query.text for query in self._data.queries}

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
    def of(cls, sweep: Sweep, seed: int = SEED) -> "Verdict":
        """Choose the best value, and judge the choice on queries that had no part in it."""
        figures, baseline = sweep.figures, sweep.figures[sweep.default]
        best = _best(sweep.default, figures, np.ones(len(baseline), dtype=np.bool_))
        first_half = _half(len(baseline), seed)
        of_first = _best(sweep.default, figures, first_half)
        of_second = _best(sweep.default, figures, ~first_half)
        unseen = np.where(first_half, figures[of_second], figures[of_first])
        return cls(
            sweep,
            best,
            metrics.difference_interval(figures[best], baseline),
            (of_first, of_second),
            metrics.difference_interval(unseen, baseline),
        )

    @property
    def word(self) -> str:
        """The conclusion in a word or two."""
        if self.best == self.sweep.default:
            return "keep"
        if self.held_out.low > 0:
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


def _half(size: int, seed: int) -> npt.NDArray[np.bool_]:
    chosen = np.zeros(size, dtype=np.bool_)
    chosen[np.random.default_rng(seed).permutation(size)[: size // 2]] = True
    return chosen
