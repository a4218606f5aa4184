"""How results came to their places, as a table."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from rich.table import Table
from rich.text import Text

BAR_CELLS: Final = 6
DOCUMENT_CELLS: Final = 12
SCORE_CELLS: Final = 6
EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


def table(results: Sequence[Mapping[str, Any]]) -> Table:
    """Show for each result who found it, its base score, its boost, each signal of the reranker, and its score.

    Args:
        results: Of an answer that was asked for with ``explain``.
    """
    rankings = [result["ranking"] for result in results]
    signals = list(dict.fromkeys(name for ranking in rankings for name in ranking["signals"]))
    shown = Table(
        box=None,
        header_style="dim",
        pad_edge=False,
        padding=(0, 1, 0, 0),
        title="How the results were ranked",
        title_justify="left",
    )
    shown.add_column("", justify="right", no_wrap=True, min_width=len(str(len(results))))
    # The one column that gives way on a narrow screen; its lines are cut, not wrapped.
    shown.add_column(Text("document, found by", no_wrap=True, overflow="ellipsis"), min_width=DOCUMENT_CELLS)
    for name in ("base", *signals):
        shown.add_column(name, no_wrap=True, min_width=max(len(name), BAR_CELLS))
    shown.add_column("score", justify="right", no_wrap=True, min_width=SCORE_CELLS)
    for rank, (result, ranking) in enumerate(zip(results, rankings, strict=True), start=1):
        document = PurePosixPath(result["source"] or "(no source)").name
        boost = (f"x {ranking['boost']:g}", "yellow" if ranking["boost"] != 1 else "dim")
        shown.add_row(
            str(rank),
            Text.assemble(document, "\n", (", ".join(ranking["slices"]), "dim"), no_wrap=True, overflow="ellipsis"),
            _measured(ranking["base_score"]),
            *(_measured(ranking["signals"].get(name)) for name in signals),
            Text.assemble((f"{ranking['score']:.3f}", "bold"), "\n", boost),
        )
    return shown


def bar(share: float, cells: int = BAR_CELLS) -> str:
    """Draw a share from 0 to 1, to an eighth of a character; what is over 0 is never drawn as nothing."""
    eighths = round(min(1.0, max(0.0, share)) * cells * 8)
    eighths = max(eighths, 1) if share > 0 else eighths
    full, rest = divmod(eighths, 8)
    return ("█" * full + (EIGHTHS[rest] if rest else "")).ljust(cells)


def _measured(value: float | None) -> Text:
    """Write a value, and draw it on a line of its own below."""
    if value is None:
        return Text("-", "dim")
    return Text.assemble(f"{value:.2f}\n", (bar(value), "cyan"))
