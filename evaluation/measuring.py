"""Every setup of an evaluation, searched and judged."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np
from rich.progress import Progress as Bars
from rich.progress import TaskID

from evaluation import metrics, searching
from evaluation.dataset import DataSet
from evaluation.index import Index, Indexing, serving
from evaluation.metrics import Clusters, Interval, Run, Values
from evaluation.searching import BM25S, KEYWORD, PRIVATE, STACK, Ask, Setup
from ragstack_local.target.connection import Connection

SPREAD_PLACES: Final = 10


class Progress:
    """Bars on the terminal: one for each setup, and one for each ingestion."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._indexing: TaskID | None = None

    @contextmanager
    def bar(self, name: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a bar, which what is yielded advances by one."""
        task = self._bars.add_task(name, total=total, detail="")
        yield lambda: self._bars.advance(task)

    def indexing(self, done: int, total: int) -> None:
        """Show how many documents are searchable."""
        if self._indexing is None or self._bars.tasks[self._indexing].finished:
            if done == total:
                return  # an earlier run ingested everything
            self._indexing = self._bars.add_task("ingestion", total=total, detail="kept for the next run")
        self._bars.update(self._indexing, completed=done)


@dataclass(frozen=True)
class Measured:
    """The figures of one setup; intervals are of clusters of queries, if there are any."""

    setup: Setup
    run: Run
    values: Mapping[str, Values]
    clusters: Clusters | None = None

    @property
    def label(self) -> str:
        """The setup in a few words."""
        return self.run.label

    def interval(self, measure: str) -> Interval:
        """Return the mean over the queries with its 95 % interval."""
        return metrics.mean_interval(self.values[measure], self.clusters)

    def difference(self, baseline: "Measured", measure: str) -> Interval:
        """Return how much better than the baseline it is, query by query."""
        return metrics.difference_interval(self.values[measure], baseline.values[measure], self.clusters)

    def milliseconds(self, percent: float) -> float:
        """Return a percentile of the searches' times."""
        return float(np.percentile([answer.milliseconds for answer in self.run.answers.values()], percent))


@dataclass(frozen=True)
class Plan:
    """What is measured: the first setup is the baseline, and a depth of 100 measures recall there too.

    Attributes:
        spread: An attribute: how many of its values are among the first ten documents is counted.
        cluster: An attribute: queries with the same value are drawn together for the intervals.
    """

    data: DataSet
    setups: Sequence[Setup]
    cache: Path
    depth: int
    stack: Callable[[], Connection]
    spread: str | None = None
    cluster: str | None = None

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that the depth allows."""
        return (*metrics.MEASURES, metrics.DEEP_MEASURE) if self.depth >= 100 else metrics.MEASURES  # noqa: PLR2004

    def measured(self, progress: Progress) -> Iterator[Measured]:
        """Search and judge one setup after the other.

        Raises:
            EvaluationError: A setup cannot be measured; the figures of earlier ones have been yielded.
        """
        clusters = None if self.cluster is None else self.data.clusters(self.cluster)
        with Servers(self.data, self.cache, progress) as servers:
            for setup in self.setups:
                with progress.bar(setup.label, len(self.data.queries)) as advance, self._asked(setup, servers) as ask:
                    found = searching.run(self.data, setup, setup.label, ask, advance)
                yield Measured(setup, found, self._judged(found), clusters)

    def _judged(self, run: Run) -> dict[str, Values]:
        rankings = {query: answer.documents for query, answer in run.answers.items()}
        values = metrics.by_query(self.data.judgments, rankings, self.measures)
        if self.spread is not None:
            counts = [len(self._values_among(documents[:SPREAD_PLACES])) for documents in rankings.values()]
            values[f"different {self.spread}@{SPREAD_PLACES}"] = np.array(counts, dtype=np.float64)
        return values

    def _values_among(self, documents: Sequence[str]) -> set[str]:
        found = (self.data.documents[name].metadata.get(str(self.spread)) for name in documents)
        return {str(value) for value in found if value is not None}

    @contextmanager
    def _asked(self, setup: Setup, servers: "Servers") -> Iterator[Ask]:
        """Prepare the search of a setup for as long as the context lasts."""
        if setup.engine == BM25S:
            from evaluation import bm25_peer  # noqa: PLC0415 - nothing else needs the package

            yield bm25_peer.of_documents(self.data, self.depth)
        elif setup.engine == STACK:
            stack = self.stack()
            if not self.data.has_texts:
                searching.require_documents(self.data, stack)
            client = stack.client("bedrock-agent-runtime")
            yield searching.of_knowledge_base(client, stack.knowledge_base_id, setup, self.depth, self.data)
        elif setup.engine != PRIVATE:
            file = Path(setup.engine)
            in_collection = searching.needs_collection(searching.configuration(file))
            index = servers.index(setup) if in_collection else None
            with searching.of_backend(file, setup, index, self.depth) as ask:
                yield ask
        elif setup.search == KEYWORD:
            index = servers.index(setup)
            servers.close()  # one process at a time has the folder
            with searching.of_keywords(indexing_of(setup), index, self.depth) as ask:
                yield ask
        else:
            index = servers.index(setup)
            client = index.client("bedrock-agent-runtime")
            yield searching.of_knowledge_base(client, index.knowledge_base_id, setup, self.depth, self.data)


class Servers:
    """The private local Bedrocks: one at a time, kept running while setups use the same index."""

    def __init__(self, data: DataSet, cache: Path, progress: Progress) -> None:
        self._data = data
        self._cache = cache
        self._progress = progress
        self._up = ExitStack()
        self._index: tuple[Indexing, Index] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def index(self, setup: Setup) -> Index:
        """Return the index of a setup, served by a local Bedrock."""
        wanted = indexing_of(setup)
        if self._index is None or self._index[0] != wanted:
            self.close()
            found = self._up.enter_context(serving(self._data, wanted, self._cache, self._progress.indexing))
            self._index = wanted, found
        return self._index[1]

    def close(self) -> None:
        """Stop the running one."""
        self._index = None
        self._up.close()


def indexing_of(setup: Setup) -> Indexing:
    """Return how the documents of a setup are indexed."""
    return Indexing(setup.embedding, setup.headers)
