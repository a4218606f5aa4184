"""Tables whose cells are known, in the shapes and the formats that people write, with a question for some cells.

Names of rows are made up, and each is in one table only, so that a question has one right cell in a whole collection.
"""

import calendar
import csv
import html
import io
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from openpyxl import Workbook
from openpyxl.utils import get_column_letter

from ragstack_common.reading import markdown

CONVERTED: Final = ("docx", "pdf")
"""Formats that LibreOffice writes from the web page."""

_SYLLABLES: Final = [
    *("ba", "bel", "cor", "dan", "dor", "el", "fa", "fen", "gal", "gor", "hal", "ha", "is", "jo", "kan", "kel", "la"),
    *("lor", "ma", "mir", "na", "nel", "o", "or", "pa", "pol", "qui", "ra", "ren", "sa", "sol", "ta", "tor", "u", "ul"),
    *("va", "vin", "wen", "xa", "yor", "za", "zen"),
]
_YEARS: Final = ("2023", "2024", "2025", "2026")
_MONTHS: Final = calendar.month_name[1:]


@dataclass(frozen=True)
class Cell:
    """A cell: its text as people see it, its value and number format in a workbook, and how far it reaches."""

    text: str
    value: float | str | None = None
    number_format: str = "General"
    columns: int = 1
    rows: int = 1


@dataclass(frozen=True)
class CellQuestion:
    """A question for one cell.

    Attributes:
        text: The question.
        labels: What identifies its row: the name of the row, and of its group.
        column: The words of its header.
        value: The text of the cell.
    """

    text: str
    labels: tuple[str, ...]
    column: str
    value: str


@dataclass
class MadeTable:
    """A table. In its rows, None is a place that a merged cell covers."""

    name: str
    title: str
    caption: str
    headers: list[list[Cell | None]]
    rows: list[list[Cell | None]] = field(default_factory=list)
    questions: list[CellQuestion] = field(default_factory=list)

    @property
    def grid(self) -> list[list[str]]:
        """The text at each place: a merged cell has it in each."""
        return _filled([*self.headers, *self.rows])

    @property
    def head(self) -> list[str]:
        """The words above each column."""
        rows = _filled(self.headers)
        return [" ".join(dict.fromkeys(filter(None, column))) for column in zip(*rows, strict=True)]


def text(shown: str, columns: int = 1, rows: int = 1) -> Cell:
    return Cell(shown, shown, columns=columns, rows=rows)


def names(random: Random, taken: set[str]) -> Iterator[str]:
    """Yield names that no other table has."""
    while True:
        name = "".join(random.choices(_SYLLABLES, k=4)).capitalize()
        if name not in taken:
            taken.add(name)
            yield name


def euros(random: Random) -> Cell:
    amount = random.randint(1_000, 99_999)
    return Cell(f"€{amount:,}", amount, '"€"#,##0')


def gain_or_loss(random: Random) -> Cell:
    amount = random.randint(100, 99_999) * random.choice((1, -1))
    return Cell(f"({-amount:,})" if amount < 0 else f"{amount:,}", amount, "#,##0;(#,##0)")


def share(random: Random) -> Cell:
    tenths = random.randint(-200, 999)
    return Cell(f"{tenths / 10:.1f}%", tenths / 1000, "0.0%")


def decimal(random: Random) -> Cell:
    hundredths = random.randint(100, 99_999)
    return Cell(f"{hundredths / 100:.2f}", hundredths / 100, "0.00")


def whole(random: Random) -> Cell:
    number = random.randint(10, 9_999)
    return Cell(str(number), number, "0")


def years(random: Random, name: Iterator[str], count: int, made: MadeTable) -> None:
    """Years as columns, amounts with a currency."""
    made.title, made.caption = "Costs by city", "All costs of our offices."
    made.headers = [[text("City"), *(Cell(year, int(year), "0") for year in _YEARS)]]
    for _ in range(count):
        made.rows.append([text(next(name)), *(euros(random) for _ in _YEARS)])
    _ask(made, random, lambda row, column: f"What did {row} cost in {column}?")


def units(random: Random, name: Iterator[str], count: int, made: MadeTable) -> None:
    """Units in the headers, text between the numbers."""
    made.title, made.caption = "Bridges", "Measured by the department of roads."
    made.headers = [[*map(text, ("Bridge", "Length (m)", "Material", "Maximum load (kN)", "Width (m)"))]]
    for _ in range(count):
        material = text(random.choice(("steel", "concrete", "timber", "stone")))
        made.rows.append([text(next(name)), decimal(random), material, whole(random), decimal(random)])
    _ask(made, random, lambda row, column: f"What is the {column.partition(' (')[0].lower()} of the bridge {row}?")


def losses(random: Random, name: Iterator[str], count: int, made: MadeTable) -> None:
    """Negative numbers in parentheses."""
    made.title, made.caption = "Operating profit", "In thousands of dollars."
    made.headers = [[*map(text, ("Division", "Q1 2025", "Q2 2025", "Q3 2025", "Q4 2025"))]]
    for _ in range(count):
        made.rows.append([text(next(name)), *(gain_or_loss(random) for _ in range(4))])
    _ask(made, random, lambda row, column: f"What was the operating profit of {row} in {column}?")


def shares(random: Random, name: Iterator[str], count: int, made: MadeTable) -> None:
    """Percentages."""
    made.title, made.caption = "Survey of suppliers", "Shares of all answers."
    made.headers = [[*map(text, ("Supplier", "Satisfied", "Growth", "Returned"))]]
    for _ in range(count):
        made.rows.append([text(next(name)), *(share(random) for _ in range(3))])
    asked = {
        "Satisfied": "What share is satisfied with {}?",
        "Growth": "What is the growth of {}?",
        "Returned": "What share was returned to {}?",
    }
    _ask(made, random, lambda row, column: asked[column].format(row))


def two_headers(random: Random, name: Iterator[str], count: int, made: MadeTable) -> None:
    """Two rows of headers, of which the upper one is merged across columns."""
    made.title, made.caption = "Revenue and headcount", "By subsidiary."
    parts = ("Revenue", "Headcount")
    made.headers = [
        [text("Subsidiary", rows=2), *(cell for year in _YEARS[1:] for cell in (text(year, columns=2), None))],
        [None, *(text(part) for _ in _YEARS[1:] for part in parts)],
    ]
    for _ in range(count):
        row: list[Cell | None] = [text(next(name))]
        row += [cell for _ in _YEARS[1:] for cell in (euros(random), whole(random))]
        made.rows.append(row)

    def asked(row: str, column: str) -> str:
        year, part = column.split()
        return f"What was the {part.lower()} of {row} in {year}?"

    _ask(made, random, asked)


_EXPENSES: Final = ("Rent", "Salaries", "Travel", "Insurance", "Repairs")


def merged_groups(random: Random, name: Iterator[str], count: int, made: MadeTable) -> None:
    """Groups of rows with the same labels, whose name is a merged cell."""
    made.title, made.caption = "Expenses of branches", "Actual amounts."
    made.headers = [[*map(text, ("Branch", "Expense", "2024", "2025"))]]
    for _ in range(max(1, count // len(_EXPENSES))):
        first: Cell | None = text(next(name), rows=len(_EXPENSES))
        for expense in _EXPENSES:
            made.rows.append([first, text(expense), euros(random), euros(random)])
            first = None
    _ask(made, random, _about_group, group=0)


def blank_groups(random: Random, name: Iterator[str], count: int, made: MadeTable) -> None:
    """Groups of rows with the same labels, whose name is in their first row only."""
    made.title, made.caption = "Expenses of plants", "Actual amounts."
    made.headers = [[*map(text, ("Plant", "Expense", "2024", "2025"))]]
    for _ in range(max(1, count // len(_EXPENSES))):
        first = next(name)
        for expense in _EXPENSES:
            made.rows.append([text(first), text(expense), euros(random), euros(random)])
            first = ""
    _ask(made, random, _about_group, group=0)


def sections(random: Random, name: Iterator[str], count: int, made: MadeTable) -> None:
    """Groups of rows with the same labels, below a row that only names them."""
    made.title, made.caption = "Expenses of shops", "Actual amounts."
    made.headers = [[*map(text, ("Expense", "2024", "2025"))]]
    for _ in range(max(1, count // (len(_EXPENSES) + 1))):
        made.rows.append([text(next(name)), text(""), text("")])
        made.rows += [[text(expense), euros(random), euros(random)] for expense in _EXPENSES]
    _ask(made, random, _about_group, group=0)


def wide(random: Random, name: Iterator[str], count: int, made: MadeTable) -> None:
    """More columns than a chunk has room for: a month in each."""
    made.title, made.caption = "Rainfall", "In millimetres, by station."
    months = [f"{month} {year}" for year in _YEARS for month in _MONTHS]
    made.headers = [[text("Station"), *map(text, months)]]
    for _ in range(count):
        made.rows.append([text(next(name)), *(decimal(random) for _ in months)])
    _ask(made, random, lambda row, column: f"How much rain fell at the station {row} in {column}?")


SHAPES: Final[Sequence[Callable[[Random, Iterator[str], int, MadeTable], None]]] = (
    years, units, losses, shares, two_headers, merged_groups, blank_groups, sections, wide,
)  # fmt: skip

_QUESTIONS: Final = 6


def _about_group(row: str, column: str) -> str:
    group, expense = row.split("/")
    return f"What did {group} spend on {expense.lower()} in {column}?"


def _ask(made: MadeTable, random: Random, asked: Callable[[str, str], str], group: int | None = None) -> None:
    """Ask for cells at random; *group* is the column with the names of groups."""
    head, grid = made.head, made.grid[len(made.headers) :]
    groups, name = [], ""
    for row in grid:
        name = row[group] or name if group is not None and (row[group] not in _EXPENSES) else name
        groups.append(name)
    label = 1 if head[1] == "Expense" else 0
    places = [place for place, row in enumerate(grid) if all(row[1:])]
    for place in random.sample(places, min(_QUESTIONS, len(places))):
        row = grid[place]
        numeric = [column for column in range(label + 1, len(row)) if any(map(str.isdigit, row[column]))]
        column = random.choice(numeric)
        labels = (row[label],) if group is None else (groups[place], row[label])
        made.questions.append(CellQuestion(asked("/".join(labels), head[column]), labels, head[column], row[column]))


def made_tables(shape: int, count: int, seed: int, taken: set[str]) -> MadeTable:
    """Return a table of a shape with about *count* rows; *taken* are the names that others have."""
    random = Random(seed)
    make = SHAPES[shape]
    made = MadeTable(f"{make.__name__.replace('_', '-')}-{count}", "", "", [])
    make(random, names(random, taken), count, made)
    return made


def _filled(rows: Sequence[Sequence[Cell | None]]) -> list[list[str]]:
    width = len(rows[0])
    filled = [[""] * width for _ in rows]
    for top, row in enumerate(rows):
        for left, cell in enumerate(row):
            for below in range(cell.rows if cell else 0):
                for right in range(cell.columns if cell else 0):
                    filled[top + below][left + right] = cell.text if cell else ""
    return filled


def write(made: MadeTable, file_format: str) -> bytes:
    """Write a table in a format that needs no other program: csv, html, md or xlsx."""
    writers = {"csv": _csv, "html": _html, "md": _md, "xlsx": _xlsx}
    return writers[file_format](made)


def _csv(made: MadeTable) -> bytes:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([made.head, *made.grid[len(made.headers) :]])
    return written.getvalue().encode()


def _md(made: MadeTable) -> bytes:
    rows = markdown.table([made.head, *made.grid[len(made.headers) :]])
    return "\n".join([f"# {made.title}", "", made.caption, "", *rows, ""]).encode()


def _html(made: MadeTable) -> bytes:
    def line(row: Sequence[Cell | None], tag: str) -> str:
        cells = (
            f"<{tag} colspan={cell.columns} rowspan={cell.rows}>{html.escape(cell.text)}</{tag}>"
            for cell in row
            if cell
        )
        return f"<tr>{''.join(cells)}</tr>"

    head = "".join(line(row, "th") for row in made.headers)
    body = "\n".join(line(row, "td") for row in made.rows)
    page = (
        f"<!DOCTYPE html><html><head><meta charset=utf-8><title>{made.title}</title></head><body><h1>{made.title}</h1>"
        f"<p>{made.caption}</p><table border=1><thead>{head}</thead><tbody>{body}</tbody></table></body></html>"
    )
    return page.encode()


def _xlsx(made: MadeTable) -> bytes:
    workbook = Workbook()
    sheet = workbook.active
    sheet.title = made.title
    sheet.append([made.caption])
    for number, row in enumerate([*made.headers, *made.rows], start=2):
        for column, cell in enumerate(row, start=1):
            if cell is None or cell.value in (None, ""):
                continue
            written = sheet.cell(number, column, cell.value)
            written.number_format = cell.number_format
            if cell.columns > 1 or cell.rows > 1:
                end = f"{get_column_letter(column + cell.columns - 1)}{number + cell.rows - 1}"
                sheet.merge_cells(f"{written.coordinate}:{end}")
    stream = io.BytesIO()
    workbook.save(stream)
    return stream.getvalue()


def converted(pages: Sequence[Path], folder: Path) -> None:
    """Write a docx and a pdf next to each web page with LibreOffice, which repeats the header on each page."""
    office = ["soffice", f"-env:UserInstallation={(folder / 'office').as_uri()}", "--headless", "--convert-to"]
    steps: list[tuple[list[str], list[Path]]] = [
        (["docx:MS Word 2007 XML", "--outdir", str(folder), "--infilter=HTML (StarWriter)"], [*pages]),
        (["pdf", "--outdir", str(folder)], [page.with_suffix(".docx") for page in pages]),
    ]
    for arguments, files in steps:
        subprocess.run([*office, *arguments, *map(str, files)], check=True, capture_output=True, timeout=900)
