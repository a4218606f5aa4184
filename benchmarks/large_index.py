"""Measure searches of very many chunks: the local Bedrock, numpy, Chroma, LanceDB, Qdrant, usearch and faiss.

All hold the same vectors of unit length around random centres. Each engine runs in a process of its own, one after the
other, and is searched without HTTP by one client and by several threads at once. Recall compares the ten results with
those of an exact search in 32 bits; the parameter of an approximate search is raised until its recall is at least .99,
and named. Filters admit documents by an attribute. The local Bedrock also holds texts of twelve made-up words, so its
build and memory include them, and HYBRID can be measured.

"CPU" is the processor time on all cores. "of numpy" compares the p50 of one client, and its processor time, with an
exhaustive search with numpy in 32 bits on all cores, which takes turns with it: other load on the machine affects
both. 8 and 32 clients: p50, how many times that of one client it is, and searches in a second; a p50 is short if the
threads of few clients keep the interpreter's lock while the others wait.

Run: ``python benchmarks/large_index.py [--chunks 1000000] [--engines ...]``. The peers except Chroma are not
requirements of the project; one that is not installed is skipped. To measure them, install them elsewhere and name
that Python::

    python -m venv FOLDER && FOLDER/bin/pip install lancedb qdrant-client usearch faiss-cpu threadpoolctl
    python benchmarks/large_index.py --chunks 1000000 --peer-python FOLDER/bin/python

The default size keeps `make bench` short. A million vectors of 384 numbers need 5 GB of disk, and up to 9 GB of memory.
The raw figures are printed to the standard error, one line for each row.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from parts.index_input import write_input
from parts.measuring import percentile, table
from parts.vector_engines import ENGINES, OPENED, OURS
from rich.console import Console

OF_PROJECT = ("numpy", OURS, OPENED, "Chroma")
"""Engines that the project's own Python has."""


def main() -> int:
    choices = [engine for engine in ENGINES if engine != OPENED]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chunks", type=int, default=50_000, help="(default: %(default)s)")
    parser.add_argument("--dimension", type=int, default=384, help="numbers of a vector (default: %(default)s)")
    parser.add_argument("--clients", type=int, nargs="+", default=[8, 32], help="besides one (default: 8 32)")
    parser.add_argument("--engines", nargs="+", default=choices, choices=choices, help="(default: all)")
    parser.add_argument("--peer-python", default=sys.executable, help="Python that has the peers")
    parser.add_argument("--build-limit", type=float, default=600.0, help="seconds to build (default: %(default)s)")
    arguments = parser.parse_args()
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_input(folder, arguments.chunks, arguments.dimension)
        for engine in arguments.engines:
            with tempfile.TemporaryDirectory() as index:
                rows += measured(engine, folder, index, arguments)
    title = f"{arguments.chunks:,} chunks of {arguments.dimension:,} numbers, ten results, times of searches in ms"
    ratios = [f"{clients} clients" for clients in arguments.clients]
    columns = (
        "search",
        "p50",
        "p95",
        "CPU",
        "of numpy",
        *ratios,
        "recall",
        "build s (CPU)",
        "MiB",
        "peak MiB",
        "remark",
    )
    Console(width=200).print(table(title, columns, rows))
    return 0


def measured(engine: str, folder: Path, index: str, arguments: argparse.Namespace) -> list[list[str]]:
    """Run an engine in its own process; return a row for each kind of search."""
    python = sys.executable if engine in OF_PROJECT else arguments.peer_python
    own = [engine, str(folder), index, str(arguments.build_limit), *map(str, arguments.clients)]
    command = [python, "-m", "parts.vector_engines", *own]
    rows: list[list[str]] = []
    added: dict[str, Any] = {}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            figures = json.loads(line)
            if "added" in figures:
                added = figures
                continue
            print(json.dumps({"engine": engine, **figures}), file=sys.stderr)
            rows.append(row(engine, figures))
        ended = process.wait()
        errors.seek(0)
        last = (errors.read().strip().splitlines() or ["ended without a message"])[-1]
    if ended:
        stopped = f"stopped after {arguments.build_limit:.0f} s with {added.get('added', 0):,} chunks added"
        remark = stopped if ended == -signal.SIGALRM else f"skipped: {last}"
        print(json.dumps({"engine": engine, **added, "remark": remark}), file=sys.stderr)
        rows.append([engine, *[""] * (5 + len(arguments.clients)), *(build(added) if added else [""] * 3), remark])
    elif engine == OURS:
        rows += measured(OPENED, folder, index, arguments)
    return rows


def row(engine: str, figures: dict[str, Any]) -> list[str]:
    elapsed, processor = zip(*figures["times"], strict=True)
    p50, processor_p50 = percentile(elapsed, 50), percentile(processor, 50)
    numpy_p50, numpy_processor_p50 = (percentile(times, 50) for times in zip(*figures["numpy_times"], strict=True))
    return [
        f"{engine} {figures['name']}".strip(),
        f"{p50:.1f}",
        f"{percentile(elapsed, 95):.1f}",
        f"{processor_p50:.1f}",
        f"{p50 / numpy_p50:.2f} ({processor_p50 / numpy_processor_p50:.2f})",
        *(
            f"{other['p50']:.1f} ({other['p50'] / p50:.1f}), {other['searches_per_second']:,.0f}"
            for other in figures["at_once"].values()
        ),
        "" if figures["recall"] is None else f"{figures['recall']:.3f}",
        *build(figures),
        figures["remark"],
    ]


def build(figures: dict[str, Any]) -> list[str]:
    seconds = f"{figures['build_seconds']:.0f} ({figures['build_processor_seconds']:.0f})"
    return [seconds, f"{figures['memory_mib']:,.0f}", f"{figures['peak_mib']:,.0f}"]


if __name__ == "__main__":
    sys.exit(main())
