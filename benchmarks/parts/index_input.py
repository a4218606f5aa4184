"""What the engines of ``large_index.py`` index and are asked: made by it, read by each engine. Needs numpy only."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Vectors: TypeAlias = npt.NDArray[np.float32]

RESULTS: Final = 10
CHUNKS_IN_DOCUMENT: Final = 100
ADDED_AT_ONCE: Final = 5_000
"""Chunks in a part: whole documents."""

FILTERS: Final = (1, 10, 100)
"""A filter admits every nth document; 1 is a search without one."""

CENTRES: Final = 1_000
NOISE: Final = 1.0
"""Length of the difference from the centre, which has length 1."""

QUERIES: Final = 40
WORDS: Final = 50_000
WORDS_IN_CHUNK: Final = 12
WORDS_IN_QUERY: Final = 8


def write_input(folder: Path, count: int, dimension: int) -> None:
    """Write vectors, texts, queries, and for each filter the rows of the best results, found in 32 bits."""
    random = np.random.default_rng(7)
    centres = _unit(random.standard_normal((CENTRES, dimension), dtype=np.float32))
    texts = _Texts()

    def drawn(rows: int) -> Vectors:
        noise = random.standard_normal((rows, dimension), dtype=np.float32) * np.float32(NOISE / dimension**0.5)
        return _unit(centres[random.integers(CENTRES, size=rows)] + noise)

    queries = drawn(QUERIES)
    np.save(folder / "queries.npy", queries)
    texts.write(folder / "queries.txt", QUERIES, WORDS_IN_QUERY)
    texts.write(folder / "texts.txt", count, WORDS_IN_CHUNK)
    with (folder / "vectors.f32").open("wb") as file:
        for first in range(0, count, ADDED_AT_ONCE):
            drawn(min(ADDED_AT_ONCE, count - first)).tofile(file)
    cosines = np.concatenate([queries @ part.T for _, part in read_vectors(folder)], axis=1)
    for every in FILTERS:
        allowed = np.flatnonzero(group(np.arange(count), every) == 0)
        best = np.argsort(-cosines[:, allowed], axis=1)[:, :RESULTS]
        np.save(folder / f"nearest-{every}.npy", allowed[best])


def read_vectors(folder: Path) -> Iterator[tuple[int, Vectors]]:
    """Yield the vectors in parts, each with the number of its first row; not mapped, which would count as memory."""
    dimension = read_queries(folder).shape[1]
    first = 0
    with (folder / "vectors.f32").open("rb") as file:
        while len(part := np.fromfile(file, dtype=np.float32, count=ADDED_AT_ONCE * dimension)):
            yield first, part.reshape(-1, dimension)
            first += len(part) // dimension


def map_vectors(folder: Path) -> Vectors:
    """Return all vectors, each of which is read when it is used."""
    dimension = read_queries(folder).shape[1]
    return np.memmap(folder / "vectors.f32", dtype=np.float32, mode="r").reshape(-1, dimension)


def read_queries(folder: Path) -> Vectors:
    queries: Vectors = np.load(folder / "queries.npy")
    return queries


def group(rows: Any, every: int) -> Any:
    """Return the value of the attribute of rows by which a filter admits every nth document: those with 0."""
    return rows // CHUNKS_IN_DOCUMENT % every


def _unit(vectors: Vectors) -> Vectors:
    found: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return found


class _Texts:
    """Texts of made-up words whose frequencies follow Zipf's law."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(11)
        letters = np.array([*"abcdefghijklmnoprstuvw"])
        self._words = ["".join(self._random.choice(letters, size)) for size in self._random.integers(3, 10, WORDS)]
        weights = 1 / np.arange(10, WORDS + 10)
        self._cumulated = np.cumsum(weights / weights.sum())

    def write(self, path: Path, count: int, words: int) -> None:
        """Write one text to a line."""
        with path.open("w", encoding="ascii") as file:
            for first in range(0, count, ADDED_AT_ONCE):
                drawn = self._random.random((min(ADDED_AT_ONCE, count - first), words)) * self._cumulated[-1]
                texts: list[list[Any]] = np.searchsorted(self._cumulated, drawn).tolist()
                file.writelines(" ".join([self._words[number] for number in text]) + "\n" for text in texts)
