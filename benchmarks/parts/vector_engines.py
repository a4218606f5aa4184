"""Index vectors with one engine and search them. Needs numpy, threadpoolctl and that engine only.

Run by ``large_index.py``, with the engine, the folder of the input, an empty folder for the index, the seconds to build
it and the numbers of clients.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from itertools import islice
from os import cpu_count
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from parts.exhaustive_search import ExhaustiveSearch
from parts.index_input import (
    CHUNKS_IN_DOCUMENT,
    FILTERS,
    RESULTS,
    Vectors,
    group,
    map_vectors,
)
from parts.index_measurement import Effort, Measurement, memory

OURS: Final = "local Bedrock"
OPENED: Final = "local Bedrock, opened"
BASE: Final = "KB12345678"

GROUPS: Final = {every: f"group_of_{every}" for every in FILTERS[1:]}
"""The attributes of the filters, each of which admits the value 0."""

EFFORTS: Final = (16, 32, 64, 128, 256, 512, 1024)
"""Values of the parameter of an approximate search: candidates of HNSW, or partitions of IVF."""

CONNECTIVITY: Final = 16
"""Neighbours of a node of HNSW, for all engines."""

RESCORED: Final = 100
"""Candidates of 8 bits that are scored again in 32 bits."""


def _attributes(row: int) -> dict[str, int]:
    return {name: group(row, every) for every, name in GROUPS.items()}


def exhaustive(measurement: Measurement, _folder: Path) -> None:
    held = ExhaustiveSearch(measurement.folder)
    measurement.search("", lambda query: held.nearest(measurement.queries[query]), f"{np.__version__}, exact")


def local_bedrock(measurement: Measurement, folder: Path) -> None:
    """Index with texts, a hundred chunks to a document, and search as Retrieve does."""
    from local_bedrock.store import documents, resources, submissions  # noqa: PLC0415
    from local_bedrock.store.database import Database  # noqa: PLC0415

    database = Database(folder)
    dimension = measurement.queries.shape[1]
    base = resources.StoredKnowledgeBase(BASE, "kb", "ACTIVE", "OPENSEARCH_SERVERLESS", "peer", dimension, {}, 0.0, 0.0)
    with database.write() as change:
        resources.add_knowledge_base(change, base)
    with (measurement.folder / "texts.txt").open(encoding="ascii") as texts:
        for first, part in measurement.parts():
            with database.write() as change:
                for start in range(0, len(part), CHUNKS_IN_DOCUMENT):
                    vectors = part[start : start + CHUNKS_IN_DOCUMENT].astype(np.float16)
                    chunks = [documents.IndexedChunk(text[:-1], "", None) for text in islice(texts, len(vectors))]
                    key = documents.DocumentKey(BASE, "DS12345678", "CUSTOM", str(first + start))
                    submissions.submit(change, key, submissions.INGEST, now=0.0, request={})
                    document = submissions.take_up(change, 0.0)[0].document
                    prepared = documents.Prepared(chunks, "peer", vectors, _attributes(first + start))
                    documents.index_document(change, document, prepared, 0.0)
    _search_local_bedrock(measurement, partial(_asking(measurement), database), "exact, with texts", FILTERS)
    database.close()


def local_bedrock_opened(measurement: Measurement, folder: Path) -> None:
    """Search an index that another process built."""
    from local_bedrock.store.database import Database  # noqa: PLC0415

    ask = _asking(measurement)
    start = time.perf_counter()
    database = Database(folder)
    ask(database, 0, is_hybrid=True)
    remark = f"first search after {time.perf_counter() - start:.2f} s, with {memory()['memory_mib']:,.0f} MiB"
    _search_local_bedrock(measurement, partial(ask, database), remark, FILTERS[:1])
    database.close()


def _asking(measurement: Measurement) -> Callable[..., list[int]]:
    from local_bedrock.search import ranking  # noqa: PLC0415
    from ragstack_common.filters import Clause, Operator  # noqa: PLC0415

    texts = (measurement.folder / "queries.txt").read_text(encoding="ascii").splitlines()

    def ask(database: Any, query: int, *, is_hybrid: bool, with_feedback: bool = False, every: int = 1) -> list[int]:
        filters = Clause(Operator.EQUALS, GROUPS[every], 0) if every > 1 else None
        vector = measurement.queries[query]
        search = ranking.Search(texts[query], vector, is_hybrid, filters, with_feedback=with_feedback)
        with database.read(BASE) as view:
            hits = ranking.rank(view, BASE, search, 0.7, RESULTS).hits()
        return [hit.chunk - 1 for hit in hits]

    return ask


def _search_local_bedrock(
    measurement: Measurement, ask: Callable[..., list[int]], remark: str, filters: Sequence[int]
) -> None:
    with threadpool_limits(1, user_api="blas"):  # as its server does
        for name in ("SEMANTIC", "HYBRID", "HYBRID, feedback"):
            for every in filters:
                is_hybrid, with_feedback = name != "SEMANTIC", name == "HYBRID, feedback"
                asked = partial(ask, is_hybrid=is_hybrid, with_feedback=with_feedback, every=every)
                measurement.search(name, asked, remark, every=every, by_vector=not is_hybrid)


def chroma(measurement: Measurement, folder: Path) -> None:
    import chromadb  # noqa: PLC0415

    client: Any = chromadb.PersistentClient(str(folder))
    collection = client.create_collection(
        "peer", embedding_function=None, configuration={"hnsw": {"space": "cosine", "max_neighbors": CONNECTIVITY}}
    )
    for first, part in measurement.parts():
        ids = range(first, first + len(part))
        collection.add(ids=[*map(str, ids)], embeddings=part, metadatas=[*map(_attributes, ids)])

    def ask(query: int, every: int) -> list[int]:
        where: Any = {GROUPS[every]: 0} if every > 1 else None
        found = collection.query(
            query_embeddings=[measurement.queries[query]], n_results=RESULTS, where=where, include=[]
        )
        return [int(id_) for id_ in found["ids"][0]]

    def choose(candidates: int) -> None:
        # An index that is open keeps the former value.
        nonlocal client, collection
        collection.modify(configuration={"hnsw": {"ef_search": candidates}})
        client.close()
        client = chromadb.PersistentClient(str(folder))
        collection = client.get_collection("peer", embedding_function=None)

    for every in FILTERS:
        effort = Effort("ef", EFFORTS, choose)
        measurement.search("HNSW", partial(ask, every=every), chromadb.__version__, every=every, effort=effort)


def lancedb(measurement: Measurement, folder: Path) -> None:
    import lancedb as engine  # type: ignore[import-not-found]  # noqa: PLC0415
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415
    from lancedb.index import Bitmap, IvfPq  # type: ignore[import-not-found]  # noqa: PLC0415

    dimension = measurement.queries.shape[1]
    numbers = [(name, pa.int64()) for name in ("id", *GROUPS.values())]
    kind = pa.schema([*numbers, ("vector", pa.list_(pa.float32(), dimension))])

    def batches() -> Iterator[Any]:
        for first, part in measurement.parts():
            ids = np.arange(first, first + len(part))
            columns = [ids, *(group(ids, every) for every in GROUPS)]
            rows = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), dimension)
            yield pa.RecordBatch.from_arrays([*map(pa.array, columns), rows], schema=kind)

    held = engine.connect(str(folder)).create_table("peer", batches(), schema=kind)
    for name in GROUPS.values():
        held.create_index(name, config=Bitmap())
    probes = 0

    def ask(query: int, every: int) -> list[int]:
        search = held.search(measurement.queries[query]).distance_type("cosine").limit(RESULTS)
        if every > 1:
            search = search.where(f"{GROUPS[every]} = 0")
        if probes:
            search = search.nprobes(probes).refine_factor(probes)
        return search.select(["id", "_distance"]).to_arrow()["id"].to_pylist()  # type: ignore[no-any-return]

    def choose(count: int) -> None:
        nonlocal probes
        probes = count

    for every in FILTERS:
        remark = f"{engine.__version__}, exact, reads a file"
        measurement.search("flat", partial(ask, every=every), remark, every=every)
    held.create_index("vector", config=IvfPq(distance_type="cosine"))
    for every in FILTERS:
        effort = Effort("nprobes and refine factor", EFFORTS, choose)
        measurement.search("IVF_PQ", partial(ask, every=every), engine.__version__, every=every, effort=effort)


def qdrant(measurement: Measurement, _folder: Path) -> None:
    from qdrant_client import QdrantClient, models  # type: ignore[import-not-found]  # noqa: PLC0415

    client = QdrantClient(":memory:")
    dimension = measurement.queries.shape[1]
    client.create_collection("peer", models.VectorParams(size=dimension, distance=models.Distance.COSINE))
    for first, part in measurement.parts():
        ids = list(range(first, first + len(part)))
        payloads = [*map(_attributes, ids)]
        client.upsert("peer", models.Batch.model_construct(ids=ids, vectors=part.tolist(), payloads=payloads))

    def ask(query: int, every: int) -> list[int]:
        allowed = None
        if every > 1:
            match = models.FieldCondition(key=GROUPS[every], match=models.MatchValue(value=0))
            allowed = models.Filter(must=[match])
        found = client.query_points(
            "peer", measurement.queries[query].tolist(), query_filter=allowed, limit=RESULTS, with_payload=False
        )
        return [point.id for point in found.points]

    for every in FILTERS:
        remark = f"{version('qdrant-client')}, exact, in memory"
        measurement.search("local mode", partial(ask, every=every), remark, every=every)


def usearch_quantized(measurement: Measurement, _folder: Path) -> None:
    from usearch.index import MetricKind, search  # type: ignore[import-not-found]  # noqa: PLC0415

    full = map_vectors(measurement.folder)
    codes = np.empty(full.shape, dtype=np.int8)
    for first, part in measurement.parts():
        codes[first : first + len(part)] = _eight_bits(part)

    def ask(query: int) -> list[int]:
        vector = measurement.queries[query]
        found = search(codes, _eight_bits(vector), RESCORED, MetricKind.Cos, exact=True)
        return _rescored(full, found.keys, vector)

    measurement.search("", ask, f"{version('usearch')}, scores {RESCORED} again")


def usearch_hnsw(measurement: Measurement, _folder: Path) -> None:
    from usearch.index import Index, MetricKind  # noqa: PLC0415

    index = Index(ndim=measurement.queries.shape[1], metric=MetricKind.Cos, dtype="f16", connectivity=CONNECTIVITY)
    for first, part in measurement.parts():
        index.add(np.arange(first, first + len(part)), part)

    def ask(query: int) -> list[int]:
        return index.search(measurement.queries[query], RESULTS).keys.tolist()  # type: ignore[no-any-return]

    def choose(candidates: int) -> None:
        index.expansion_search = candidates

    measurement.search("", ask, f"{version('usearch')}, 16 bits", effort=Effort("ef", EFFORTS, choose))


def faiss_quantized(measurement: Measurement, _folder: Path) -> None:
    import faiss  # noqa: PLC0415

    dimension = measurement.queries.shape[1]
    full = map_vectors(measurement.folder)
    # A search for one vector uses one core of an index, so each core has an index.
    shards: Any = faiss.IndexShards(dimension, True, True)  # type: ignore[call-arg]  # noqa: FBT003 - threads, successive ids
    of_cores: list[Any] = [
        faiss.IndexScalarQuantizer(dimension, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)
        for _ in range(cpu_count() or 1)
    ]
    for first, part in measurement.parts():
        for of_core in of_cores:
            if not of_core.is_trained:
                of_core.train(part)
        of_cores[first * len(of_cores) // len(full)].add(part)
    for of_core in of_cores:
        shards.add_shard(of_core)

    def ask(query: int) -> list[int]:
        vector = measurement.queries[query]
        return _rescored(full, shards.search(vector[None], RESCORED)[1][0], vector)

    measurement.search("", ask, f"{faiss.__version__}, scores {RESCORED} again")


def faiss_hnsw(measurement: Measurement, _folder: Path) -> None:
    import faiss  # noqa: PLC0415

    index: Any = faiss.IndexHNSWFlat(measurement.queries.shape[1], CONNECTIVITY, faiss.METRIC_INNER_PRODUCT)
    for _, part in measurement.parts():
        index.add(part)

    def ask(query: int) -> list[int]:
        return index.search(measurement.queries[query][None], RESULTS)[1][0].tolist()  # type: ignore[no-any-return]

    def choose(candidates: int) -> None:
        index.hnsw.efSearch = candidates

    measurement.search("", ask, f"{faiss.__version__}, 32 bits", effort=Effort("ef", EFFORTS, choose))


def _eight_bits(vectors: Vectors) -> npt.NDArray[np.int8]:
    """Return vectors of about the same directions; the length of each makes the best use of eight bits."""
    return np.rint(vectors * (127 / np.abs(vectors).max(axis=-1, keepdims=True))).astype(np.int8)  # type: ignore[no-any-return]


def _rescored(full: Vectors, candidates: npt.NDArray[Any], query: Vectors) -> list[int]:
    rows = candidates.astype(np.int64)
    return rows[np.argsort(-(full[rows] @ query))[:RESULTS]].tolist()  # type: ignore[no-any-return]


ENGINES: Final[dict[str, Callable[[Measurement, Path], None]]] = {
    "numpy": exhaustive,
    OURS: local_bedrock,
    OPENED: local_bedrock_opened,
    "Chroma": chroma,
    "LanceDB": lancedb,
    "Qdrant": qdrant,
    "usearch 8 bits": usearch_quantized,
    "usearch HNSW": usearch_hnsw,
    "faiss 8 bits": faiss_quantized,
    "faiss HNSW": faiss_hnsw,
}


def main() -> None:
    engine, folder, index, limit, *clients = sys.argv[1:]
    ENGINES[engine](Measurement(Path(folder), float(limit), [*map(int, clients)]), Path(index))


if __name__ == "__main__":
    main()
