"""The main job, from an empty machine to ranked answers."""

import json
import time
from pathlib import Path
from typing import Any, Final

from rich.markup import escape

from ragstack_local import display
from ragstack_local.awaiting import FOUND
from ragstack_local.connection import Connection
from ragstack_local.ingest import ingest, note_passed_over
from ragstack_local.search import Caller
from ragstack_local.stack.errors import StackError
from ragstack_local.uploads import select

INDEXING_SECONDS: Final = 300.0


def run_demo(connection: Connection, root: Path) -> None:
    """Upload the handbook of samples/ and the project's docs/, wait until they are searchable, and ask.

    Raises:
        StackError: A document is not searchable, or a question did not find what answers it.
        ApiError: A query failed.
    """
    handbook = select([root / "samples" / "documents"], prefix="samples")
    docs = select([root / "docs"])
    note_passed_over(handbook)
    note_passed_over(docs)
    statuses = ingest(connection, [*handbook.files, *docs.files], INDEXING_SECONDS).statuses
    if any(status not in FOUND for status in statuses.values()):
        display.print_unsearchable(statuses)
        raise StackError(f"Not every document became searchable: {display.summary(statuses)}")
    caller = Caller.of(connection)
    missed = [
        question["text"]
        for question in json.loads((root / "samples" / "questions.json").read_text(encoding="utf-8"))
        if not _ask(caller, question)
    ]
    if missed:
        raise StackError(f"No document that answers was found for: {'; '.join(missed)}")


def _ask(caller: Caller, question: dict[str, Any]) -> bool:
    """Ask one question, show the answer, and tell whether the documents that answer it are where they should be."""
    body: dict[str, Any] = {"query": question["text"], "top_k": 3}
    if question.get("filter"):
        body["metadata_filter"] = question["filter"]
    display.console.print()
    shown = f"  [cyan]filter {escape(json.dumps(body['metadata_filter']))}[/]" if "metadata_filter" in body else ""
    display.console.print(f"[bold cyan]? {escape(question['text'])}[/]{shown}")
    start = time.perf_counter()
    answer = caller.retrieve(body)
    display.print_results(answer, body["query"])
    display.console.print(f"[dim]{(time.perf_counter() - start) * 1000:.0f} ms through API Gateway[/]")
    best = answer["results"][: question["within"]]
    return all(any(result["source"].endswith(name) for result in best) for name in question["expected"])
