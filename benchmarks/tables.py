"""Ask for single cells of tables, and check the row that is cited and the quotation.

The tables are made: see ``parts/made_tables.py``. They have 10 to 5,000 rows, in seven formats, and are indexed by one
local Bedrock together. Word and PDF files are written by LibreOffice
(``apt install libreoffice-writer-nogui libreoffice-calc-nogui``); without it, they are left out.

- found: the row of the cell is in a passage that the answer is made from
- cited: it is in a passage that is cited, or shown as closest
- cell: a line of the answer has the name of the row and the cell
- with header: and it, or a line before it, has the words above the column of the cell

Run: ``python benchmarks/tables.py [--embedding minilm] [--formats xlsx,csv] [--small] [--list]``.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from parts.made_tables import CONVERTED, SHAPES, CellQuestion, MadeTable, converted, made_tables, write
from parts.measuring import CREDENTIALS, local_bedrock, table
from rich.console import Console

from evaluation.judge import chosen_model
from local_bedrock.creation import create_knowledge_base
from ragstack_common.access.callers import OPERATOR
from ragstack_common.core.deadline import wait_for
from ragstack_common.reading.formats import MEDIA_TYPES
from ragstack_common.search import create_retrieval_backend
from ragstack_common.services.ask import AskService
from ragstack_common.services.ask_models import AskRequest, AskResponse
from ragstack_common.services.search import QueryService
from ragstack_common.settings.search import QuerySettings

SIZES = {
    "xlsx": (10, 300, 5_000),
    "csv": (10, 300, 5_000),
    "md": (10, 300),
    "html": (10, 300),
    "docx": (10, 300),
    "pdf": (10, 300),
}
WIDEST = 300
"""Most rows of a table with many columns."""

MEASURES = ("found", "cited", "cell", "with header")
SEED = 7


@dataclass(frozen=True)
class Asked:
    """A question, where its cell is, and what the answer has of it."""

    shape: str
    size: int
    file_format: str
    question: CellQuestion
    answer: AskResponse

    @property
    def found(self) -> bool:
        return any(self._has_row(source.content or "") for source in self.answer.sources)

    @property
    def cited(self) -> bool:
        return any(self._has_row(source.content or "") for source in self.answer.sources if source.cited)

    @property
    def cell(self) -> bool:
        return any(self._is_cell(line) for line in self.answer.answer.splitlines())

    @property
    def with_header(self) -> bool:
        lines = self.answer.answer.splitlines()
        return any(
            self._is_cell(line) and self._has("\n".join(lines[: number + 1]), self.question.column)
            for number, line in enumerate(lines)
        )

    @property
    def values(self) -> list[bool]:
        """Each measure."""
        return [self.found, self.cited, self.cell, self.with_header]

    def _has_row(self, passage: str) -> bool:
        """Whether a line has the cell and the label of its row, and the passage the name of its group."""
        *groups, label = self.question.labels
        return all(self._has(passage, group) for group in groups) and any(
            self._has(line, label) and self._has(line, self.question.value) for line in passage.splitlines()
        )

    def _is_cell(self, line: str) -> bool:
        return all(self._has(line, part) for part in (*self.question.labels, self.question.value))

    def _has(self, text: str, words: str) -> bool:
        return has_words("\n".join(map(as_cells, text.split("\n"))) if self.file_format == "csv" else text, words)


def has_words(line: str, words: str) -> bool:
    """Whether a line has some words one after the other, not as parts of others: 12 is not in 12.5 or -12."""
    pattern = r"[\s|]+".join(map(re.escape, words.split()))
    return re.search(rf"(?<![\w.,(-]){pattern}(?![\w)%]|[.,]\d)", line) is not None


def as_cells(line: str) -> str:
    """Return a row of a CSV file with bars between its cells, without the quotation marks of an answer around it."""
    line = re.sub(r"^[\"“]|[\"”](?= \[\d)", "", line)
    quoted = re.sub('"[^"]*"', lambda found: found[0].replace(",", "\0"), line)
    return re.sub(r",(?=\S)", " | ", quoted).replace("\0", ",")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedding", default="minilm", help="as in `ragstack bedrock` (minilm)")
    parser.add_argument("--small", action="store_true", help="only tables of at most 300 rows")
    parser.add_argument("--formats", default=",".join(SIZES), help="of the tables (all)")
    parser.add_argument("--list", action="store_true", help="print each question whose answer lacks the cell")
    chosen = parser.parse_args()
    os.environ |= CREDENTIALS
    console = Console(width=120)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="ragstack-tables-") as folder:
        documents = list(written(Path(folder), chosen.formats.split(","), small=chosen.small))
        with local_bedrock(Path(folder, "index"), "--embedding", chosen.embedding) as (url, _):
            base = indexed(url, documents)
            console.print(f"{len(documents)} tables are indexed after {time.perf_counter() - began:.0f} s")
            asked = list(answers(url, base, documents))
    if chosen.list:
        for one in asked:
            if not one.with_header:
                shown = dict(zip(MEASURES, one.values, strict=True))
                console.print(f"{one.file_format} {one.size} {one.shape}: {one.question}\n  {shown}", markup=False)
                console.print(one.answer.answer[:600], style="dim", markup=False)
    for title, key in (("format", "file_format"), ("rows", "size"), ("shape", "shape")):
        console.print(figures(title, key, asked))
    if not asked:
        sys.exit("no question was asked")


def written(folder: Path, formats: Sequence[str], *, small: bool) -> Iterator[tuple[str, MadeTable, str, bytes]]:
    """Yield documents: shape, table, format and content."""
    taken: set[str] = set()
    has_office = shutil.which("soffice") is not None
    pages: list[tuple[str, MadeTable, str, Path]] = []
    for file_format in formats:
        for count in (size for size in SIZES[file_format] if not small or size <= WIDEST):
            for number, shape in enumerate(SHAPES):
                name = shape.__name__.replace("_", " ")
                if name == "wide" and count > WIDEST:
                    continue
                made = made_tables(number, count, SEED, taken)
                if file_format not in CONVERTED:
                    yield name, made, file_format, write(made, file_format)
                elif has_office:
                    page = folder / f"{made.name}-{file_format}.html"
                    page.write_bytes(write(made, "html"))
                    pages.append((name, made, file_format, page))
    if pages:
        converted([page for *_, page in pages], folder)
    for name, made, file_format, page in pages:
        yield name, made, file_format, page.with_suffix(f".{file_format}").read_bytes()


def indexed(url: str, documents: Sequence[tuple[str, MadeTable, str, bytes]]) -> str:
    """Index the documents, and return the id of the knowledge base."""
    agent: Any = boto3.client("bedrock-agent", endpoint_url=url)
    base = create_knowledge_base(agent, "tables")
    source = agent.create_data_source(knowledgeBaseId=base, name="tables", dataSourceConfiguration={"type": "CUSTOM"})[
        "dataSource"
    ]["dataSourceId"]
    ids = {"knowledgeBaseId": base, "dataSourceId": source}
    for _, made, file_format, data in documents:
        content = {"mimeType": MEDIA_TYPES[f".{file_format}"], "data": data}
        custom = {
            "customDocumentIdentifier": {"id": f"{made.name}.{file_format}"},
            "sourceType": "IN_LINE",
            "inlineContent": {"type": "BYTE", "byteContent": content},
        }
        document = {"content": {"dataSourceType": "CUSTOM", "custom": custom}}
        agent.ingest_knowledge_base_documents(**ids, documents=[document])
    while True:
        listed = agent.get_paginator("list_knowledge_base_documents").paginate(**ids)
        details = [detail for page in listed for detail in page["documentDetails"]]
        if failed := [detail for detail in details if detail["status"] == "FAILED"]:
            sys.exit(f"not indexed: {failed}")
        if len(details) == len(documents) and all(detail["status"] == "INDEXED" for detail in details):
            return base
        time.sleep(0.5)


def answers(url: str, base: str, documents: Sequence[tuple[str, MadeTable, str, bytes]]) -> Iterator[Asked]:
    """Ask every question, as the API does."""
    backend = create_retrieval_backend(
        {
            "type": "bedrock",
            "knowledge_base_id": base,
            "client": boto3.client("bedrock-agent-runtime", endpoint_url=url),
            "search_type": "HYBRID",
            "timeout_seconds": 60.0,
            "vector_store": "OPENSEARCH_SERVERLESS",
        }
    )
    settings, provider = chosen_model(None, {})
    searches = QueryService(QuerySettings.from_env({"KNOWLEDGE_BASE_ID": base}), backend)
    with closing(searches):
        service = AskService(settings, searches, provider)
        for shape, made, file_format, _ in documents:
            for question in made.questions:
                answer = wait_for(service.ask(AskRequest(question=question.text), OPERATOR))
                yield Asked(shape, int(made.name.rpartition("-")[2]), file_format, question, answer)


def figures(title: str, key: str, asked: Sequence[Asked]) -> Any:
    """Return the shares of each group."""
    groups: dict[Any, list[Asked]] = defaultdict(list)
    for one in asked:
        groups[getattr(one, key)].append(one)
    rows = [[str(name), str(len(group)), *shares(group)] for name, group in groups.items()]
    return table(
        f"Cells by {title}", (title, "questions", *MEASURES), [*rows, ["all", str(len(asked)), *shares(asked)]]
    )


def shares(asked: Sequence[Asked]) -> list[str]:
    return [f"{sum(values) / len(asked):.2f}" for values in zip(*(one.values for one in asked), strict=True)]


if __name__ == "__main__":
    main()
