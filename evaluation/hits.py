"""What Retrieve answered, kept in a file, so that a sweep over boosts or weights asks the store once."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final

from evaluation.dataset import DataSet, Query
from evaluation.index import Index
from evaluation.searching import filter_of
from local_bedrock import retrieval
from ragstack_common import filters

UNFILTERED: Final = "none"
MOST_HITS: Final = 100
"""Source: bedrock-agent-runtime, KnowledgeBaseVectorSearchConfiguration$numberOfResults."""

Hits = list[dict[str, Any]]


@dataclass
class HitFile:
    """One line for each query and filter, appended as they come: an interrupted run goes on where it was.

    Attributes:
        path: The file.
        known: What is in it.
    """

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
    condition = filter_of(data, query, kind)
    if kind != UNFILTERED and condition is None:
        return []
    configuration: dict[str, Any] = {"numberOfResults": MOST_HITS, "overrideSearchType": search}
    if condition is not None:
        configuration["filter"] = filters.to_bedrock(filters.parse(condition))
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
