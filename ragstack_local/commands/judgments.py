"""Judgments of results and answers, made in the console or over HTTP: ``ragstack judgments``."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragstack_local.api.calls import run
from ragstack_local.connection_options import ConnectionOptions, with_options
from ragstack_local.errors import NOTHING_FOUND
from ragstack_local.show import display

if TYPE_CHECKING:
    from ragstack_local.api.http_operations import HttpOperations

judgments = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=__doc__)


@judgments.command()
@with_options
def export(
    stack: ConnectionOptions,
    folder: Annotated[Path, typer.Argument(help="A new folder, or an earlier export.", show_default=False)],
    of_all: Annotated[
        bool, typer.Option("--all", help="Those of all callers, which takes the right operate; the newest counts.")
    ] = False,
) -> None:
    """Write your judgments as a data set for `ragstack eval`.

    The folder has BEIR's form: queries.jsonl, corpus.jsonl with the passages of the judged documents, and
    qrels/test.tsv. Its questions.csv names the relevant documents; with --setup engine=stack, `ragstack eval search`
    measures the running stack by it, with all of the stack's documents.

    Example:  ragstack judgments export judged

    Then:  ragstack eval search judged
    """
    from ragstack_common.services.judged_file_models import (  # noqa: PLC0415 - help does without
        CORPUS,
        FILES,
        QRELS,
        QUERIES,
        QUESTIONS,
    )

    files, left_out = run(_exported(stack.api(), of_all=of_all))
    count = {name: text.count("\n") for name, text in files.items()}
    if not count[CORPUS]:
        display.console.print("There are no judgments of documents that searches find: judge results first.")
        raise typer.Exit(NOTHING_FOUND)
    for name in FILES:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(files[name], encoding="utf-8", newline="")
    counted = display.counted
    counts = f"{counted(count[QUERIES], 'question')} and {counted(count[QRELS] - 1, 'judgment')}"
    display.console.print(f"Wrote {counts} of {counted(count[CORPUS], 'document')} to {folder}", soft_wrap=True)
    if left_out:
        display.console.print(f"Left out (no passages found): {', '.join(left_out)}", style="yellow", soft_wrap=True)
    if not files[QUESTIONS].partition("\n")[2]:
        display.console.print("No judgment is above 0, so there is nothing to measure yet.", style="yellow")


async def _exported(api: "HttpOperations", *, of_all: bool) -> tuple[Mapping[str, str], list[str]]:
    """Return the text of each file, and the documents that no search finds."""
    from ragstack_common.services.judged_file_models import JudgedFiles  # noqa: PLC0415 - as above

    files: dict[str, str] = defaultdict(str)
    left_out: list[str] = []
    token: str | None = None
    while True:
        parameters = {"all": "true" if of_all else None, "next_token": token}
        page = await api.request("GET", "/api/judgments/export", JudgedFiles, parameters=parameters)
        for name, text in page.files.items():
            files[name] += text
        left_out += page.left_out
        token = page.next_token
        if token is None:
            return files, left_out
