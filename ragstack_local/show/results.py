"""How search results are shown: ranked passages, and how the search went."""

from collections.abc import Container, Mapping
from typing import Any, Final

from rich.text import Text

from ragstack_common.text.excerpts import excerpt
from ragstack_common.text.positions import Position
from ragstack_local.connection.roots import Roots
from ragstack_local.show.display import console, counted, print_indented

RESULT_INDENT: Final = 5


def print_results(answer: Mapping[str, Any], query: str, passages: int = 1, roots: Roots | None = None) -> None:
    """Show ranked results and how the search went.

    Args:
        answer: The response of ``POST /api/retrieve``.
        query: Its words choose the excerpt of each passage.
        passages: Maximum passages of each result.
        roots: The keys of local files, to name the file that a result came from.
    """
    _print_best(answer)
    for rank, result in enumerate(answer["results"], start=1):
        head = Text.assemble(f"{rank:>3}  ", (result["source"] or "(no source)", "bold"))
        known = result["metadata"]
        shown = [f"{name}={known[name]}" for name in ("corpus", "version", "topic") if name in known]
        attributes = Text(" ".join(shown), "dim")
        is_one_line = head.cell_len + 2 + attributes.cell_len <= console.width
        # A source is never wrapped: users copy it.
        console.print(Text.assemble(head, "  ", attributes) if is_one_line else head, soft_wrap=True)
        if attributes and not is_one_line:
            print_indented(RESULT_INDENT, (attributes.plain, "dim"))
        print_local_file(result["source"], roots, RESULT_INDENT)
        words, place = _excerpt_and_place(result, query)
        context = place or " · ".join((result.get("context") or "").splitlines())
        if context:
            print_indented(RESULT_INDENT, (context, "italic"))
        print_indented(RESULT_INDENT, words)
        for passage in (result.get("passages") or [])[1:passages]:
            words, place = _excerpt_and_place(passage, query)
            print_indented(9, (place and f"{place}: ", "italic"), words)
    _print_search(answer)


def _print_best(answer: Mapping[str, Any]) -> None:
    best = answer.get("best_relevance")
    if best is not None and answer["answerable"] is False:
        console.print("Probably none of the results is relevant.", style="yellow")
    elif best is not None and not answer["results"]:
        console.print(f"Nothing reaches the minimum (best relevance: {best:.2f}).", style="yellow")


def describe_place(passage: Mapping[str, Any], section: str | None) -> str:
    """Return where a passage is in its document, such as: page 4 > Leave > Parental leave."""
    known = {name: passage[name] for name in Position.model_fields if name in passage}
    return Position(**{**known, "section": section}).place


def _excerpt_and_place(passage: Mapping[str, Any], query: str) -> tuple[str, str]:
    return excerpt(passage["content"], query), describe_place(passage, passage.get("section"))


def _print_search(answer: Mapping[str, Any]) -> None:
    slices = ", ".join(f"{_name(s)} {s['status']} {s['milliseconds']:.0f} ms" for s in answer["slices"])
    found = counted(len(answer["results"]), "result")
    console.print(f"{found} in {answer['milliseconds']:.0f} ms ({slices})", style="dim")
    trusted: dict[str, None] = {}
    for part in answer["slices"]:
        if part.get("reason"):  # the same for each corpus of a balanced search
            which = "Inferred filter" if part["slice"] == "inferred" else "Filter"
            trusted[f"{which} trusted {part['trust']:.2f}. {part['reason']}."] = None
    for line in trusted:
        console.print(line, style="dim")
    if answer.get("corpora"):
        counts = ", ".join(f"{c['name']} {c['results']} of {c['candidates']}" for c in answer["corpora"])
        console.print(f"Corpora, results of candidates: {counts}", style="dim")
    print_remarks(answer)
    print_incomplete(answer)


def print_local_file(source: str | None, roots: Roots | None, indent: int) -> None:
    """Name the file on this machine that a source came from, if it is known."""
    if file := roots and roots.local_file(source):
        console.print(Text(f"{'':{indent}}{file}", "dim"), soft_wrap=True)


def print_hints(request: Container[str]) -> None:
    """Print how to list the allowed values of a request's members, after a search that found nothing."""
    if "corpus_filter" in request:
        console.print("`ragstack corpora` lists the values of --corpus.", style="dim")
    if "version_filter" in request:
        console.print("`ragstack versions` lists the values of --doc-version.", style="dim")


def print_remarks(answer: Mapping[str, Any]) -> None:
    """Print what no searchable document has, and the notes."""
    texts = [each["text"] for each in (answer.get("missing"), *answer.get("notes", ())) if each]
    for text in texts:
        console.print(text, style="yellow", markup=False)


def print_incomplete(answer: Mapping[str, Any]) -> None:
    """Print which slices of the search are missing, if any."""
    if not answer["complete"]:
        console.print("Incomplete: a slice failed or timed out, and its results are missing.", style="yellow")
        for part in answer["slices"]:
            if part["error"]:
                console.print(f"  {_name(part)}: {part['error']}", style="yellow")


def _name(part: Mapping[str, Any]) -> str:
    """Name a part of a search, such as "people: filtered"."""
    return ": ".join(part[key] for key in ("corpus", "backend", "slice") if part[key])
