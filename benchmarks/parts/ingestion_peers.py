"""Add chunks and their vectors to a store; prints seconds of the clock and of the processor as JSON.

Run by ``embedding.py`` with the store and a folder. Needs numpy and that store only.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

CHUNKS: Final = "chunks.json"
VECTORS: Final = "vectors.f32"
ADDED_AT_ONCE: Final = 64
"""Chunks in a call, as many as the local Bedrock embeds at once."""

Batch = tuple[list[str], list[str], Any]
"""Ids, texts and vectors."""


def chroma(batches: Iterator[Batch], folder: str) -> None:
    import chromadb  # noqa: PLC0415

    collection = chromadb.PersistentClient(folder).create_collection("peer", embedding_function=None)
    for ids, texts, vectors in batches:
        collection.add(ids=ids, documents=texts, embeddings=vectors)


def lancedb(batches: Iterator[Batch], folder: str) -> None:
    import lancedb as engine  # type: ignore[import-not-found]  # noqa: PLC0415

    held = None
    connection = engine.connect(folder)
    for batch in batches:
        rows = [dict(zip(("id", "text", "vector"), row, strict=True)) for row in zip(*batch, strict=True)]
        if held is None:
            held = connection.create_table("peer", rows)
        else:
            held.add(rows)
    assert held is not None
    held.create_fts_index("text")


STORES: Final = {"Chroma": chroma, "LanceDB": lancedb}


def main() -> None:
    store, given = sys.argv[1], Path(sys.argv[2])
    texts = json.loads((given / CHUNKS).read_text())
    vectors = np.fromfile(given / VECTORS, dtype=np.float32).reshape(len(texts), -1)

    def batches() -> Iterator[Batch]:
        for first in range(0, len(texts), ADDED_AT_ONCE):
            part = slice(first, first + ADDED_AT_ONCE)
            yield [str(first + number) for number in range(len(texts[part]))], texts[part], vectors[part]

    with tempfile.TemporaryDirectory() as folder:
        start, processor = time.perf_counter(), time.process_time()
        STORES[store](batches(), folder)
        print(json.dumps([time.perf_counter() - start, time.process_time() - processor]))


if __name__ == "__main__":
    main()
