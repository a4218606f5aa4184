"""Compare the cells that libraries read from files with known tables.

The tables are made: see ``parts/made_tables.py``. LibreOffice writes the Word and PDF files
(``apt install libreoffice-writer-nogui libreoffice-calc-nogui``). The libraries are installed from PyPI into a
temporary environment, or once into ``--environment FOLDER``; those that cannot be installed are named.

- as shown: F1 of the cells with the names of their row and column, character by character
- value: the same with numbers compared by value, so that 0.125 is 12.5%
- heading: share of the files whose title is a heading or the name of a sheet

Run: ``python benchmarks/cells.py [--rows 300] [--environment FOLDER]``.
"""

import argparse
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from parts import libraries
from parts.made_tables import SHAPES, MadeTable, converted, made_tables, write
from parts.measuring import table
from rich.console import Console

from ragstack_common.text.tables import cells

READERS = {
    "xlsx": ("RAGStack", "docling-slim", "docling-rs", "python-calamine", "openpyxl", "markitdown"),
    "docx": ("RAGStack", "docling-slim", "docling-rs", "python-docx", "markitdown"),
    "html": ("RAGStack", "docling-slim", "docling-rs", "markitdown"),
    "pdf": ("RAGStack", "pdf-inspector", "liteparse", "docling-rs", "markitdown"),
}
SEED = 11

Cell = tuple[tuple[str, ...], str, str]
"""The names of the row, the name of the column, and the text."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300, help="rows of each table (300)")
    parser.add_argument("--environment", type=Path, help="keep the libraries in this folder")
    chosen = parser.parse_args()
    if shutil.which("soffice") is None:
        sys.exit("soffice is missing: see --help")
    console = Console(width=180)
    with tempfile.TemporaryDirectory(prefix="ragstack-cells-") as folder:
        environment = chosen.environment or Path(folder, "environment")
        missing = libraries.installed(environment, console)
        taken: set[str] = set()
        made = [made_tables(number, chosen.rows, SEED, taken) for number in range(len(SHAPES))]
        files = written(made, Path(folder))
        for file_format, readers in READERS.items():
            rows = [
                row
                for library in readers
                if library not in missing
                for row in measured(library, made, files[file_format], environment, console)
            ]
            title = (
                f"{file_format}: {len(made)} tables of {chosen.rows} rows, {sum(map(size, files[file_format])):,} bytes"
            )
            columns = ("library", "as shown", "value", *(shape.__name__.replace("_", " ") for shape in SHAPES))
            console.print(table(title, (*columns, "heading", "seconds", "MB"), rows))


def size(file: Path) -> int:
    return file.stat().st_size


def written(made: Sequence[MadeTable], folder: Path) -> dict[str, list[Path]]:
    """Write each table in each format."""
    files: dict[str, list[Path]] = {name: [] for name in READERS}
    for one in made:
        for file_format in ("xlsx", "html"):
            files[file_format].append(folder / f"{one.name}.{file_format}")
            files[file_format][-1].write_bytes(write(one, file_format))
    converted(files["html"], folder)
    for file_format in ("docx", "pdf"):
        files[file_format] = [file.with_suffix(f".{file_format}") for file in files["html"]]
    return files


def measured(
    library: str, made: Sequence[MadeTable], files: Sequence[Path], environment: Path, console: Console
) -> Iterator[list[str]]:
    """Yield the row of a library, or nothing if it read no file."""
    found = libraries.read(library, files, environment, console)
    if found is None:
        return
    exact = [f1(expected(one), read(one, text)) for one, text in zip(made, found["texts"], strict=True)]
    value = [
        f1(map(by_value, expected(one)), map(by_value, read(one, text)))
        for one, text in zip(made, found["texts"], strict=True)
    ]
    headings = sum(
        re.search(rf"^#+ \**{re.escape(one.title)}\**$", text, re.MULTILINE) is not None
        for one, text in zip(made, found["texts"], strict=True)
    )
    means = (f"{sum(each) / len(each):.3f}" for each in (exact, value))
    yield [
        library, *means, *(f"{one:.2f}" for one in exact), f"{headings / len(made):.2f}", f"{found['seconds']:.1f}",
        f"{found['peak_mb']:.0f}",
    ]  # fmt: skip


def expected(made: MadeTable) -> list[Cell]:
    names = label_columns(made)
    return [
        (tuple(row[:names]), made.head[place], text)
        for row in made.grid[len(made.headers) :]
        for place, text in enumerate(row)
        if place >= names and text
    ]


def label_columns(made: MadeTable) -> int:
    return 2 if made.head[1] == "Expense" else 1


def read(made: MadeTable, text: str) -> list[Cell]:
    """Return the cells of the tables of a Markdown text; the first row of each is its header."""
    names, found = label_columns(made), list[Cell]()
    head: list[str] = []
    for line in text.splitlines():
        row = [" ".join(re.sub(r"\\(.)", r"\1", cell).replace("**", "").split()) for cell in cells(line)]
        if "|" not in line:
            head = []
        elif re.fullmatch(r"[\s|:-]+", line):
            continue
        elif not head:
            # A title in the first row is not the header.
            head = row if sum(map(bool, row)) > 1 and len(set(row)) > 1 else []
        else:
            found += [
                (tuple(row[:names]), head[place], cell)
                for place, cell in enumerate(row[: len(head)])
                if place >= names and cell
            ]
    return found


def by_value(cell: Cell) -> Cell:
    """Return a cell whose number is written in one way."""
    text = cell[2]
    number = re.fullmatch(r"(\(?)[^\d(-]*(-?[\d,]*\.?\d+)\s?(%?)\)?", text)
    if number is None:
        return cell
    value = float(number[2].replace(",", "")) * (0.01 if number[3] else 1) * (-1 if number[1] else 1)
    return cell[0], cell[1].removesuffix(".0"), f"{value:.6g}"


def f1(one: Iterator[Cell] | Sequence[Cell], other: Iterator[Cell] | Sequence[Cell]) -> float:
    wanted, found = Counter(one), Counter(other)
    shared = (wanted & found).total()
    return 2 * shared / max(1, wanted.total() + found.total())


if __name__ == "__main__":
    main()
