"""How the ranking of results is explained in a terminal: a sentence for each, and bars that add up to its score."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Any, Final

from rich.text import Text

from ragstack_local.show.display import console, print_indented

INDENT: Final = 4
GAP: Final = 3
LABEL_CELLS: Final = 11
VALUE_CELLS: Final = 5
MIN_HALF: Final = 30
"""Cells of a column with bars; a narrower terminal shows one column below the other."""


MEASURED: Final = "measured"
ADDED: Final = "adds up to the score"

_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


def print_explanation(results: Sequence[Mapping[str, Any]]) -> None:
    """Explain each result in a sentence, with bars for what was measured and what its score consists of."""
    if not results:
        return
    console.print("\nHow the results were ranked", style="italic")
    width = min(2 * 48 + GAP, console.width - INDENT)
    half = (width - GAP) // 2
    together = half >= MIN_HALF
    cells = half if together else max(LABEL_CELLS + VALUE_CELLS + 3, width)
    if together and any(result["ranking"].get("contributions") for result in results):
        console.print(Text(f"{'':{INDENT}}{MEASURED:{half + GAP}}{ADDED}", "dim"))
    for rank, result in enumerate(results, start=1):
        ranking = result["ranking"]
        _print_head(rank, result, ranking, INDENT + width)
        if ranking.get("reason"):
            print_indented(INDENT, f"{ranking['reason']}.")
        measured = [_line(name, value, cells) for name, value in _measured(result, ranking).items()]
        added = [_line(name, value, cells) for name, value in _added(ranking).items()]
        if together:
            empty = Text(" " * half)
            for left, right in zip_longest(measured, added):
                line = Text.assemble(" " * INDENT, left or empty, " " * GAP, right or "")
                line.rstrip()
                console.print(line, no_wrap=True)
        else:
            for title, lines in ((MEASURED, measured), (ADDED, added)):
                if lines:
                    console.print(Text(f"{'':{INDENT}}{title}", "dim"))
                for line in lines:
                    line.rstrip()
                    console.print(Text.assemble(" " * INDENT, line), no_wrap=True, overflow="crop")


def bar(share: float, cells: int) -> str:
    """Draw a share from 0 to 1, to an eighth of a character; a share over 0 is never drawn as nothing."""
    eighths = round(min(1.0, max(0.0, share)) * cells * 8)
    eighths = max(eighths, 1) if share > 0 else eighths
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(cells)


def _print_head(rank: int, result: Mapping[str, Any], ranking: Mapping[str, Any], width: int) -> None:
    document = Text(PurePosixPath(result["source"] or "(no source)").name, "bold")
    found_by = Text(", ".join(ranking["found_by"]), "dim")
    score = f"{ranking['score']:.3f}"
    left = max(1, width - INDENT - len(score) - 1)
    title = Text.assemble(document, "  ", found_by)
    title.truncate(left, overflow="ellipsis", pad=True)
    console.print(Text.assemble(f"{rank:>2}  ", title, " ", (score, "bold")), no_wrap=True, overflow="crop")


def _measured(result: Mapping[str, Any], ranking: Mapping[str, Any]) -> dict[str, float]:
    measured = {**(ranking.get("signals") or {}), "engine": ranking["base_score"]}
    relevance = result.get("relevance")
    return measured if relevance is None else {"relevance": relevance, **measured}


def _added(ranking: Mapping[str, Any]) -> dict[str, float]:
    added: dict[str, float] = ranking.get("contributions") or {}
    if ranking.get("reranked_from") is None:
        return added
    # The reranker's signal "vector" is the score of the search, which is not the engine's signal of this name.
    return {"search" if name == "vector" else name: value for name, value in added.items()}


def _line(name: str, value: float, cells: int) -> Text:
    """Write a name, its value and a bar; a value outside 0 to 1, such as BM25, has no bar."""
    label = Text(name.replace("_", " "), "dim")
    label.truncate(LABEL_CELLS, overflow="ellipsis", pad=True)
    drawn = bar(value, cells - LABEL_CELLS - VALUE_CELLS - 2) if 0 <= value <= 1 else ""
    line = Text.assemble(label, f" {value:>{VALUE_CELLS}.2f} ", (drawn, "cyan"))
    line.truncate(cells, pad=True)
    return line
