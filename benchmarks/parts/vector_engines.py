"""Index vectors with one engine and search them; prints figures as JSON. Needs numpy and that engine only.

Run by ``large_index.py``, with the engine, the folder of the vectors and the seconds for adding them.
"""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
Ask = Callable[[int], Sequence[int]]
"""Searches for the query of this number; returns the rows of the best results."""

DIMENSION: Final = 384
RESULTS: Final = 10
VECTORS: Final = "vectors.f32"
QUERIES: Final = "queries.f32"
ADDED_AT_ONCE: Final = 5_000
OURS: Final = "local Bedrock"
WORDS: Final = 50_000
WORDS_IN_CHUNK: Final = 12
WORDS_IN_QUERY: Final = 8
BASE: Final = "KB12345678"


class Measurement:
    """The figures of one engine, and the vectors to index.

    Args:
        folder: Has the vectors and the queries.
        limit: Seconds to add vectors.
    """

    def __init__(self, folder: Path, limit: float) -> None:
        self.folder = folder
        self.queries = np.fromfile(folder / QUERIES, dtype=np.float32).reshape(-1, DIMENSION)
        self.figures: dict[str, Any] = {}
        self._limit = limit
        self._start = time.perf_counter()

    def parts(self) -> Iterator[tuple[int, Vectors]]:
        """Yield the vectors in parts, each with the number of its first row.

        Raises:
            TimeoutError: The time is over.
        """
        first = 0
        for part in parts(self.folder):
            if (passed := time.perf_counter() - self._start) > self._limit:
                raise TimeoutError(f"{first:,} vectors were added in {passed:.0f} s")
            yield first, part
            first += len(part)

    def search(self, name: str, ask: Ask, remark: str = "", *, is_by_vector: bool = True) -> None:
        """Measure all queries, one after the other, after three that warm up."""
        begun = time.perf_counter()
        for query in range(3):
            ask(query)
        milliseconds, found = [], []
        for query in range(len(self.queries)):
            start = time.perf_counter()
            rows = ask(query)
            milliseconds.append((time.perf_counter() - start) * 1000)
            found.append([int(row) for row in rows])
        self.figures[name] = {
            "build_seconds": begun - self._start,
            "milliseconds": milliseconds,
            "found": found,
            "memory_mib": memory_mib(),
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "remark": remark,
            "is_by_vector": is_by_vector,
        }
        self._start += time.perf_counter() - begun


def parts(folder: Path) -> Iterator[Vectors]:
    """Read the vectors, some thousands at a time."""
    with (folder / VECTORS).open("rb") as file:
        while len(part := np.fromfile(file, dtype=np.float32, count=ADDED_AT_ONCE * DIMENSION)):
            yield part.reshape(-1, DIMENSION)


def memory_mib() -> float:
    """Return the resident memory of this process (Linux)."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1024**2


def local_bedrock(measurement: Measurement, folder: Path) -> None:
    """Index with texts, a thousand chunks to a document, and search as Retrieve does."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # noqa: PLC0415

    from local_bedrock.search import ranking  # noqa: PLC0415
    from local_bedrock.store import documents, resources, submissions  # noqa: PLC0415
    from local_bedrock.store.database import Database  # noqa: PLC0415

    texts = _Texts()
    database = Database(folder)
    base = resources.StoredKnowledgeBase(BASE, "kb", "ACTIVE", "OPENSEARCH_SERVERLESS", "peer", DIMENSION, {}, 0.0, 0.0)
    with database.write() as change:
        resources.add_knowledge_base(change, base)
    for first, part in measurement.parts():
        key = documents.DocumentKey(BASE, "DS12345678", "CUSTOM", str(first))
        chunks = [documents.IndexedChunk(text, "", None) for text in texts.drawn(len(part), WORDS_IN_CHUNK)]
        prepared = documents.Prepared(chunks, "peer", part.astype(np.float16), {})
        with database.write() as change:
            submissions.submit(change, key, submissions.INGEST, now=0.0, request={})
            document = submissions.take_up(change, 0.0)[0].document
            documents.index_document(change, document, prepared, 0.0)
    asked = texts.drawn(len(measurement.queries), WORDS_IN_QUERY)

    def ask(query: int, *, hybrid: bool) -> list[int]:
        search = ranking.Search(asked[query], measurement.queries[query], hybrid)
        with database.read(BASE) as view:
            hits = ranking.rank(view, BASE, search, 0.7).hits(0, RESULTS)
        return [hit.chunk - 1 for hit in hits]

    with threadpool_limits(1, user_api="blas"):  # as its server does
        measurement.search("SEMANTIC", lambda query: ask(query, hybrid=False), "exact, with texts")
        measurement.search("HYBRID", lambda query: ask(query, hybrid=True), "exact, with texts", is_by_vector=False)
    database.close()


class _Texts:
    """Texts of made-up words whose frequencies follow Zipf's law."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(11)
        letters = np.array([*"abcdefghijklmnoprstuvw"])
        self._words = ["".join(self._random.choice(letters, size)) for size in self._random.integers(3, 10, WORDS)]
        weights = 1 / np.arange(10, WORDS + 10)
        self._cumulated = np.cumsum(weights / weights.sum())

    def drawn(self, count: int, words: int) -> list[str]:
        numbers = np.searchsorted(self._cumulated, self._random.random((count, words)) * self._cumulated[-1])
        return [" ".join([self._words[number] for number in text]) for text in numbers.tolist()]


def chroma(measurement: Measurement, folder: Path) -> None:
    import chromadb  # noqa: PLC0415

    collection = chromadb.PersistentClient(str(folder)).create_collection(
        "peer", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
    )
    for first, part in measurement.parts():
        collection.add(ids=[str(first + row) for row in range(len(part))], embeddings=part)

    def ask(query: int) -> list[int]:
        found = collection.query(query_embeddings=[measurement.queries[query]], n_results=RESULTS, include=[])
        return [int(id_) for id_ in found["ids"][0]]

    measurement.search("", ask, f"{chromadb.__version__}, HNSW")


def lancedb(measurement: Measurement, folder: Path) -> None:
    import lancedb as engine  # type: ignore[import-not-found]  # noqa: PLC0415
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415

    kind = pa.schema([("id", pa.int64()), ("vector", pa.list_(pa.float32(), DIMENSION))])

    def batches() -> Iterator[Any]:
        for first, part in measurement.parts():
            ids = pa.array(np.arange(first, first + len(part)))
            rows = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), DIMENSION)
            yield pa.RecordBatch.from_arrays([ids, rows], schema=kind)

    held = engine.connect(str(folder)).create_table("peer", batches(), schema=kind)

    def ask(query: int) -> list[int]:
        search = held.search(measurement.queries[query]).distance_type("cosine").limit(RESULTS).select(["id"])
        return search.to_arrow()["id"].to_pylist()  # type: ignore[no-any-return]

    measurement.search("flat", ask, f"{engine.__version__}, exact, reads a file")
    held.create_index(metric="cosine", index_type="IVF_PQ")
    measurement.search("IVF_PQ", ask, f"{engine.__version__}, default parameters")


def qdrant(measurement: Measurement, _folder: Path) -> None:
    from importlib.metadata import version  # noqa: PLC0415

    from qdrant_client import QdrantClient, models  # type: ignore[import-not-found]  # noqa: PLC0415

    client = QdrantClient(":memory:")
    client.create_collection("peer", models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE))
    for first, part in measurement.parts():
        ids = list(range(first, first + len(part)))
        client.upsert("peer", models.Batch.model_construct(ids=ids, vectors=part.tolist()))

    def ask(query: int) -> list[int]:
        found = client.query_points("peer", measurement.queries[query].tolist(), limit=RESULTS, with_payload=False)
        return [point.id for point in found.points]

    measurement.search("local mode", ask, f"{version('qdrant-client')}, exact, in memory")


ENGINES: Final[dict[str, Callable[[Measurement, Path], None]]] = {
    OURS: local_bedrock,
    "Chroma": chroma,
    "LanceDB": lancedb,
    "Qdrant": qdrant,
}


def main() -> int:
    engine, folder, limit = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        measurement = Measurement(Path(folder), float(limit))
        ENGINES[engine](measurement, Path(name))
    print(json.dumps(measurement.figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
