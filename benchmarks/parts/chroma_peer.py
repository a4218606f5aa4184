"""Chroma's embedded client over the vectors of a local Bedrock's file; a task as JSON in, figures as JSON out."""

import json
import resource
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import apsw
import chromadb
import numpy as np

from local_bedrock.store.condition import FILE_NAME
from ragstack_common import embedding

ADDED_AT_ONCE: Final = 5_000


def main() -> int:
    task = json.load(sys.stdin)
    vectors = stored_vectors(Path(task["folder"]) / FILE_NAME)
    queries = embedding.load(task["embedding"]).embed(task["queries"])
    with tempfile.TemporaryDirectory() as folder:
        collection = chromadb.PersistentClient(folder).create_collection(
            "peer", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )
        start = time.perf_counter()
        for first in range(0, len(vectors), ADDED_AT_ONCE):
            part = vectors[first : first + ADDED_AT_ONCE]
            collection.add(ids=[str(first + row) for row in range(len(part))], embeddings=part)
        add_seconds = time.perf_counter() - start

        def ask(query: Any) -> tuple[float, list[str]]:
            begun = time.perf_counter()
            found = collection.query(query_embeddings=[query], n_results=task["results"])["ids"][0]
            return (time.perf_counter() - begun) * 1000, found

        milliseconds, found = {}, []
        for clients in task["clients"]:
            with ThreadPoolExecutor(clients) as pool:
                list(pool.map(ask, queries[: 2 * clients]))
                asked = list(pool.map(ask, queries))
            milliseconds[clients] = [taken for taken, _ in asked]
            found = [ids for _, ids in asked]
    nearest = np.argsort(-(queries @ vectors.T), axis=1)[:, : task["results"]]
    hits = [len({*map(int, ids)} & {*exact.tolist()}) for ids, exact in zip(found, nearest, strict=True)]
    figures = {
        "chunks": len(vectors),
        "add_seconds": add_seconds,
        "milliseconds": milliseconds,
        "recall": sum(hits) / (len(hits) * task["results"]),
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(figures))
    return 0


def stored_vectors(file: Path) -> Any:
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    values = [row[0] for row in connection.execute("SELECT value FROM full_vector ORDER BY chunk_id")]
    return np.frombuffer(b"".join(values), dtype="<f2").reshape(len(values), -1).astype(np.float32)


if __name__ == "__main__":
    sys.exit(main())
