"""Measure one search over very many chunks: the local Bedrock's index, Chroma, LanceDB and Qdrant's local mode.

All hold the same vectors: 384 numbers, of unit length, around random centres. Each engine runs in a process of its own,
one after the other, and is searched by one client without HTTP. The local Bedrock's index also has texts of twelve
made-up words, so its build and memory include them, and HYBRID can be measured. Recall compares the ten results with
those of an exact search.

Run: ``python benchmarks/large_index.py [--chunks 1000000] [--engines ...]``. LanceDB and Qdrant are not requirements of
the project; a peer that is not installed is skipped. To measure them, install them elsewhere and name that Python::

    python -m venv FOLDER && FOLDER/bin/pip install lancedb qdrant-client
    python benchmarks/large_index.py --chunks 1000000 --peer-python FOLDER/bin/python

The default size keeps `make bench` short. A million vectors need 1.6 GB of disk for the input, and up to 7 GB of
memory.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
from parts.measuring import percentile, table
from parts.vector_engines import DIMENSION, ENGINES, OURS, QUERIES, RESULTS, VECTORS, Vectors, parts
from rich.console import Console

CENTRES: Final = 1_000
NOISE: Final = 1.0
"""Length of the difference from the centre, which has length 1."""

QUERY_COUNT: Final = 40
SEED: Final = 7


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chunks", type=int, default=50_000, help="(default: %(default)s)")
    parser.add_argument("--engines", nargs="+", default=[*ENGINES], choices=[*ENGINES], help="(default: all)")
    parser.add_argument("--peer-python", default=sys.executable, help="Python that has LanceDB and Qdrant's client")
    parser.add_argument(
        "--build-limit", type=float, default=600.0, help="seconds to add vectors (default: %(default)s)"
    )
    arguments = parser.parse_args()
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_vectors(folder, arguments.chunks)
        exact = nearest(folder)
        for engine in arguments.engines:
            rows += measured(engine, folder, arguments, exact)
            print(json.dumps(rows[-1]), file=sys.stderr)
    columns = ("search", "p50 ms", "p95 ms", "recall", "build s", "MiB", "peak MiB", "remark")
    Console(width=140).print(table(f"{arguments.chunks:,} chunks, one client, ten results", columns, rows))
    return 0


def write_vectors(folder: Path, count: int) -> None:
    random = np.random.default_rng(SEED)
    centres = unit(random.standard_normal((CENTRES, DIMENSION), dtype=np.float32))

    def drawn(rows: int) -> Vectors:
        noise = random.standard_normal((rows, DIMENSION), dtype=np.float32) * np.float32(NOISE / DIMENSION**0.5)
        return unit(centres[random.integers(CENTRES, size=rows)] + noise)

    drawn(QUERY_COUNT).tofile(folder / QUERIES)
    with (folder / VECTORS).open("wb") as file:
        for first in range(0, count, 50_000):
            drawn(min(50_000, count - first)).tofile(file)


def unit(vectors: Vectors) -> Vectors:
    found: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return found


def nearest(folder: Path) -> list[list[int]]:
    """Return the rows of the best results of each query, by comparing with every vector."""
    queries = np.fromfile(folder / QUERIES, dtype=np.float32).reshape(-1, DIMENSION)
    cosines = np.concatenate([queries @ part.T for part in parts(folder)], axis=1)
    found: list[list[int]] = np.argpartition(-cosines, RESULTS, axis=1)[:, :RESULTS].tolist()
    return found


def measured(engine: str, folder: Path, arguments: argparse.Namespace, exact: list[list[int]]) -> list[list[str]]:
    """Run an engine in its own process; return a row for each kind of search."""
    program = Path(__file__).parent / "parts" / "vector_engines.py"
    python = sys.executable if engine in (OURS, "Chroma") else arguments.peer_python
    command = [python, str(program), engine, str(folder), str(arguments.build_limit)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        lines = ended.stderr.strip().splitlines() or ["ended without a message"]
        return [[engine, "", "", "", "", "", "", f"skipped: {lines[-1]}"]]
    figures: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return [
        [
            f"{engine} {name}",
            f"{percentile(search['milliseconds'], 50):.1f}",
            f"{percentile(search['milliseconds'], 95):.1f}",
            f"{recall(search['found'], exact):.3f}" if search["is_by_vector"] else "",
            f"{search['build_seconds']:.0f}",
            f"{search['memory_mib']:,.0f}",
            f"{search['peak_mib']:,.0f}",
            search["remark"],
        ]
        for name, search in figures.items()
    ]


def recall(found: list[list[int]], exact: list[list[int]]) -> float:
    return sum(len({*some} & {*best}) for some, best in zip(found, exact, strict=True)) / (len(exact) * RESULTS)


if __name__ == "__main__":
    sys.exit(main())
