"""Judgments of results and answers, made in the console or over HTTP: ``ragstack judgments``."""

import asyncio
import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragstack_common.core.uris import key_of_uri
from ragstack_common.settings.limits import MAX_RESULTS
from ragstack_common.settings.names import RESERVED_PREFIX, SOURCE_URI_KEY
from ragstack_local.api.calls import run
from ragstack_local.connection_options import ConnectionOptions, with_options
from ragstack_local.errors import NOTHING_FOUND
from ragstack_local.show import display

if TYPE_CHECKING:
    from ragstack_common.services.judgments import Judgment
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
    data = run(_exported(stack.api(), of_all=of_all))
    if not data.grades:
        display.console.print("There are no judgments of documents that searches find: judge results first.")
        raise typer.Exit(NOTHING_FOUND)
    data.write(folder)
    counted = display.counted
    counts = f"{counted(len(data.queries), 'question')} and {counted(data.judged, 'judgment')}"
    texts = f"{counted(len(data.texts), 'document')}"
    display.console.print(f"Wrote {counts} of {texts} to {folder}", soft_wrap=True)
    if data.missing:
        display.console.print(
            f"Left out (no passages found): {', '.join(sorted(data.missing))}", style="yellow", soft_wrap=True
        )
    if not data.relevant:
        display.console.print("No judgment is above 0, so there is nothing to measure yet.", style="yellow")


@dataclass
class _DataSet:
    """Judgments with the texts of their documents, by source."""

    queries: dict[str, "Judgment"] = field(default_factory=dict)
    references: dict[str, str] = field(default_factory=dict)
    grades: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    texts: dict[str, dict[str, Any]] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)

    @property
    def judged(self) -> int:
        """Number of judgments."""
        return sum(map(len, self.grades.values()))

    @property
    def relevant(self) -> list[tuple[str, str]]:
        """Questions with their relevant documents."""
        return [
            (self.queries[query].query, source)
            for query, grades in self.grades.items()
            for source, grade in grades.items()
            if grade > 0
        ]

    def write(self, folder: Path) -> None:
        """Write the files, over those of an earlier export."""
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        queries = (
            {
                "_id": name,
                "text": judgment.query,
                "metadata": {"answer": self.references[name]} if name in self.references else {},
            }
            for name, judgment in self.queries.items()
        )
        _write_lines(folder / "queries.jsonl", queries)
        _write_lines(folder / "corpus.jsonl", self.texts.values())
        lines = [
            f"{query}\t{_document_name(source)}\t{grade}"
            for query, grades in self.grades.items()
            for source, grade in grades.items()
        ]
        (folder / "qrels" / "test.tsv").write_text(
            "\n".join(["query-id\tcorpus-id\tscore", *lines, ""]), encoding="utf-8"
        )
        with (folder / "questions.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("question", "file"), *self.relevant])


async def _exported(api: "HttpOperations", *, of_all: bool) -> _DataSet:
    data = _DataSet()
    found = [judgment async for judgment in _listed(api, of_all=of_all)]
    for judgment in sorted(found, key=lambda each: each.at):
        data.queries[judgment.query_id] = judgment
        if judgment.document is not None and judgment.grade is not None:
            data.grades[judgment.query_id][judgment.document] = judgment.grade
        elif judgment.reference is not None:
            data.references[judgment.query_id] = judgment.reference
    slots = asyncio.Semaphore(8)

    async def read(source: str, query: str) -> None:
        async with slots:
            document = await _document(api, source, query)
        if document is None:
            data.missing.add(source)
        else:
            data.texts[source] = document

    questions = {source: data.queries[query].query for query, grades in data.grades.items() for source in grades}
    await asyncio.gather(*(read(source, query) for source, query in sorted(questions.items())))
    for query, grades in [*data.grades.items()]:
        data.grades[query] = {source: grade for source, grade in grades.items() if source in data.texts}
        if not data.grades[query]:
            del data.grades[query]
    return data


async def _listed(api: "HttpOperations", *, of_all: bool) -> Any:
    from ragstack_common.services.judgments import JudgmentList  # noqa: PLC0415 - imports the AWS SDK

    token: str | None = None
    while True:
        parameters = {"all": "true" if of_all else None, "next_token": token}
        page = await api.request("GET", "/api/judgments", JudgmentList, parameters=parameters)
        for judgment in page.judgments:
            yield judgment
        token = page.next_token
        if token is None:
            return


async def _document(api: "HttpOperations", source: str, query: str) -> dict[str, Any] | None:
    """Return a document's passages, the best first, as a line of the corpus; None if searches find none."""
    from ragstack_common.services.search_models import RetrieveRequest  # noqa: PLC0415 - help does without

    request = RetrieveRequest(
        query=query,
        metadata_filter={SOURCE_URI_KEY: {"$eq": source}},
        filter_mode="strict",
        infer_filter=False,
        deduplicate_by="chunk",
        top_k=MAX_RESULTS,
    )
    results = [each for each in (await api.search(request)).results if each.source == source]
    if not results:
        return None
    attributes = {name: value for name, value in results[0].metadata.items() if not name.startswith(RESERVED_PREFIX)}
    text = "\n\n".join(each.content for each in results)
    title = PurePosixPath(_document_name(source)).stem
    return {"_id": _document_name(source), "title": title, "text": text, "metadata": attributes}


def _document_name(source: str) -> str:
    """Return the key of an S3 URI, and any other source as it is."""
    return key_of_uri(source) or source


def _write_lines(file: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    file.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines), encoding="utf-8")
