"""What the benchmark of the local Bedrock measured, and how it is shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Measured:
    """What one size gave: milliseconds by (search, clients), ingestion, memory, and Chroma's own figures."""

    chunks: int
    milliseconds: dict[tuple[str, int], list[float]]
    boto3_milliseconds: list[float]
    documents: int
    ingestion_seconds: float
    stages: dict[str, float]
    memory_mib: float
    peer: dict[str, Any]


def searches(measured: Sequence[Measured], kinds: Sequence[str], clients: Sequence[int]) -> Table:
    shown = Table(title="Retrieve through HTTP: milliseconds p50 / p99")
    shown.add_column("search")
    shown.add_column("chunks", justify="right")
    for number in clients:
        shown.add_column(f"{number} at once", justify="right")
    for size in measured:
        for search in kinds:
            shown.add_row(search, f"{size.chunks:,}", *(p50_p99(size.milliseconds[search, n]) for n in clients))
        shown.add_row("SEMANTIC, boto3", f"{size.chunks:,}", p50_p99(size.boto3_milliseconds))
        recall = f"Chroma, no HTTP (recall {size.peer['recall']:.2f})"
        shown.add_row(recall, f"{size.chunks:,}", *(p50_p99(size.peer["milliseconds"][str(n)]) for n in clients))
        shown.add_section()
    return shown


def ingestions(measured: Sequence[Measured]) -> Table:
    shown = Table(title="Ingestion and memory")
    for heading in ("chunks", "documents/s", "chunks/s", "share of the work", "MiB", "Chroma vectors/s", "Chroma MiB"):
        shown.add_column(heading, justify="right")
    for size in measured:
        stages = {name.removesuffix("_seconds"): s for name, s in size.stages.items() if name.endswith("_seconds")}
        total = sum(stages.values())
        shown.add_row(
            f"{size.chunks:,}",
            f"{size.documents / size.ingestion_seconds:,.0f}",
            f"{size.chunks / size.ingestion_seconds:,.0f}",
            ", ".join(f"{name} {seconds / total:.0%}" for name, seconds in stages.items()),
            f"{size.memory_mib:,.0f}",
            f"{size.chunks / size.peer['add_seconds']:,.0f}",
            f"{size.peer['memory_mib']:,.0f}",
        )
    return shown


def print_reach(console: Console, measured: Sequence[Measured], clients: int) -> None:
    for smaller, larger in pairwise(measured):
        grown = quantile(larger.milliseconds["SEMANTIC", clients], 0.5) / quantile(
            smaller.milliseconds["SEMANTIC", clients], 0.5
        )
        console.print(
            f"{smaller.chunks:,} to {larger.chunks:,} chunks ({larger.chunks / smaller.chunks:.1f} times as many):"
            f" SEMANTIC p50 {grown:.1f} times"
        )


def p50_p99(milliseconds: Sequence[float]) -> str:
    return f"{quantile(milliseconds, 0.5):.1f} / {quantile(milliseconds, 0.99):.1f}"


def quantile(milliseconds: Sequence[float], share: float) -> float:
    ordered = sorted(milliseconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
