"""How search results are shown: ranked passages, and a table that explains their ranking."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ragstack_local.display import console, counted

EXCERPT_WORDS: Final = 36
SHORT_WORD: Final = 3
"""Letters; words of this length or less don't choose the excerpt."""

RESULT_INDENT: Final = 12
BAR_CELLS: Final = 6
DOCUMENT_CELLS: Final = 12
SCORE_CELLS: Final = 6

_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_MARKS: Final = re.compile(r"^[#=-]+(?=\s|$)|\|(\s*:?-+:?\s*\|)*", re.MULTILINE)
"""Headings, rules and tables in Markdown."""


def print_results(answer: Mapping[str, Any], query: str) -> None:
    """Show ranked results, each with the excerpt that has most words of the query, and how the search went."""
    for rank, result in enumerate(answer["results"], start=1):
        head = Text.assemble(f"{rank:>3}  {result['score']:.3f}  ", (result["source"] or "(no source)", "bold"))
        known = result["metadata"]
        shown = [f"{name}={known[name]}" for name in ("corpus", "version", "topic") if name in known]
        attributes = Text(" ".join(shown), "dim")
        is_one_line = head.cell_len + 2 + attributes.cell_len <= console.width
        # A source is never wrapped: users copy it.
        console.print(Text.assemble(head, "  ", attributes) if is_one_line else head, soft_wrap=True)
        if attributes and not is_one_line:
            console.print(Padding(attributes, (0, 0, 0, RESULT_INDENT)))
        if result.get("context"):
            context = " · ".join(result["context"].splitlines())
            console.print(Padding(Text(context, "italic"), (0, 0, 0, RESULT_INDENT)))
        console.print(Padding(Text(excerpt(result["content"], query)), (0, 0, 0, RESULT_INDENT)))
    _print_search(answer)


def _print_search(answer: Mapping[str, Any]) -> None:
    """Show how the search went."""
    slices = ", ".join(f"{s['name']} {s['status']} {s['milliseconds']:.0f} ms" for s in answer["slices"])
    found = counted(len(answer["results"]), "result")
    console.print(f"{found} in {answer['milliseconds']:.0f} ms ({slices})", style="dim")
    for part in answer["slices"]:
        if part.get("reason"):
            console.print(f"Filter trusted {part['trust']:.2f}. {part['reason']}.", style="dim")
    if answer.get("corpora"):
        counts = ", ".join(f"{c['name']} {c['results']} of {c['candidates']}" for c in answer["corpora"])
        console.print(f"Corpora, results of candidates: {counts}", style="dim")
    for note in answer.get("notes", ()):
        console.print(note, style="yellow")
    if not answer["complete"]:
        console.print("Incomplete: a slice failed or timed out, and its results are missing.", style="yellow")
        for part in answer["slices"]:
            if part["error"]:
                console.print(f"  {part['name']}: {part['error']}", style="yellow")


def print_explanation(results: Sequence[Mapping[str, Any]]) -> None:
    """Show for each result its slices with its ranks there, base score, signals, boost and score; needs ``explain``."""
    if not results:
        return
    rankings = [result["ranking"] for result in results]
    signals = list(dict.fromkeys(name for ranking in rankings for name in ranking["contributions"]))
    shown = Table(
        box=None,
        header_style="dim",
        pad_edge=False,
        padding=(0, 1, 0, 0),
        title="\nHow the results were ranked",
        title_justify="left",
    )
    shown.add_column("", justify="right", no_wrap=True, min_width=len(str(len(results))))
    # The only column that shrinks on a narrow screen; its lines are cut, not wrapped.
    shown.add_column(Text("document, found by", no_wrap=True, overflow="ellipsis"), min_width=DOCUMENT_CELLS)
    for name in ("base", *signals):
        shown.add_column(name, no_wrap=True, min_width=max(len(name), BAR_CELLS))
    shown.add_column("score", justify="right", no_wrap=True, min_width=SCORE_CELLS)
    for rank, (result, ranking) in enumerate(zip(results, rankings, strict=True), start=1):
        document = PurePosixPath(result["source"] or "(no source)").name
        boost = f"x {ranking['boost']:g}" if ranking["boost"] != 1 else ""
        ranks = ranking.get("ranks") or {}
        found_by = ", ".join(f"{name} {ranks[name]}" if name in ranks else name for name in ranking["slices"])
        shown.add_row(
            str(rank),
            Text.assemble(document, "\n", (found_by, "dim"), no_wrap=True, overflow="ellipsis"),
            _measured(ranking["base_score"]),
            *(_measured(ranking["contributions"].get(name)) for name in signals),
            Text.assemble((f"{ranking['score']:.3f}", "bold"), "\n", (boost, "yellow")),
        )
    console.print(shown)


def bar(share: float, cells: int = BAR_CELLS) -> str:
    """Draw a share from 0 to 1, to an eighth of a character; a share over 0 is never drawn as nothing."""
    eighths = round(min(1.0, max(0.0, share)) * cells * 8)
    eighths = max(eighths, 1) if share > 0 else eighths
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(cells)


def _measured(value: float | None) -> Text:
    if value is None:
        return Text("-", "dim")
    return Text.assemble(f"{value:.2f}\n", (bar(value), "cyan"))


def excerpt(text: str, query: str) -> str:
    """Return the passage, in whole words and without Markdown marks, that has most words of the query."""
    words = _MARKS.sub(" ", text).split()
    wanted = {_bare(word) for word in query.split()}
    hits = [len(_bare(word)) > SHORT_WORD and _bare(word) in wanted for word in words]
    before = EXCERPT_WORDS // 4
    scored = EXCERPT_WORDS - before
    # The last of equally good passages begins with a word of the query; some words before it give context.
    best = max(range(len(words)), key=lambda first: (sum(hits[first : first + scored]), first)) if any(hits) else 0
    start = max(0, best - before)
    cut = " ".join(words[start : start + EXCERPT_WORDS])
    return ("… " if start else "") + cut + (" …" if start + EXCERPT_WORDS < len(words) else "")


def _bare(word: str) -> str:
    return word.casefold().strip(".,;:!?()[]{}\"'`*|#")
