"""Compare the words of the index with those that a rendering of each file shows.

The readers of the index are checked by programs that share no code with them: LibreOffice prints Word documents and
workbooks, Poppler reads their pages and those of PDF files, and Chromium says what a web page shows. All three come
from the system: ``apt install libreoffice-writer libreoffice-calc poppler-utils chromium``.

A word is lost if a rendering shows it and the index has it nowhere, not even within other letters: pages divide words
at the ends of lines. It is added if the index has it and no rendering shows it. Names of sheets, which are not printed,
do not count, and hyphens neither.

Run: ``python benchmarks/fidelity.py [FOLDER] [--list]``. The exit code is 1 if nothing could be compared.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from parts.measuring import table
from playwright.sync_api import sync_playwright
from rich.console import Console

from ragstack_common.reading import formats
from ragstack_common.reading.conversion import convert
from ragstack_common.reading.formats import UnreadableDocument

PRINTED = ("docx", "xls", "xlsx")
RAISED = re.compile("([\u00b2\u00b3\u00b9\u2070-\u209c])")
WORD = re.compile(r"[^\W_]+")
MOST_SHOWN = 12
SAMPLES = Path(__file__).parents[1] / "samples" / "documents"


@dataclass
class Result:
    """What was found in the files of one format."""

    files: int = 0
    words: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    added: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    seconds: float = 0.0
    bytes: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder",
        type=Path,
        nargs="?",
        default=SAMPLES,
        help="its files are compared, and those of its folders (samples)",
    )
    parser.add_argument("--list", action="store_true", help="list the words that differ in each file")
    chosen = parser.parse_args()
    missing = [program for program in ("soffice", "pdftotext", "chromium") if shutil.which(program) is None]
    if missing:
        sys.exit(f"{', '.join(missing)} is missing: see --help")
    console = Console()
    results: dict[str, Result] = defaultdict(Result)
    files = [file for file in sorted(chosen.folder.rglob("*")) if formats.is_supported(file.name)]
    for file, rendering in rendered(files):
        compare(file, rendering, results[formats.of_name(file.name)], console if chosen.list else None)
    if not results:
        sys.exit(f"{chosen.folder} has no files that can be compared")
    rows = [
        [
            name, str(each.files), str(each.refused), f"{each.words:,}", per_10_000(each.lost, each.words),
            per_10_000(each.added, each.words), f"{each.seconds / max(each.bytes, 1) * 1e6:.2f}",
        ]
        for name, each in sorted(results.items())
    ]  # fmt: skip
    heads = ["format", "files", "not read", "words", "lost / 10,000", "added / 10,000", "s / MB"]
    console.print(table("Words of the index against what renderings show", heads, rows))


def rendered(files: list[Path]) -> Iterator[tuple[Path, str]]:
    """Yield files with the text that a rendering shows."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_context(offline=True).new_page()
        for number, file in enumerate(files):
            kind = formats.of_name(file.name)
            if kind == "pdf":
                yield file, pages(file)
            elif kind in PRINTED and (made := printed(file, Path(folder, str(number)))):
                yield file, pages(made)
            elif kind == "html":
                page.goto(file.absolute().as_uri(), wait_until="domcontentloaded")
                yield file, page.evaluate("document.body.innerText")
        browser.close()


def printed(file: Path, folder: Path) -> Path | None:
    """Return a PDF of an office file; None if LibreOffice does not open it."""
    command = ["soffice", "--headless", "--convert-to", "pdf", "--outdir", str(folder), str(file)]
    subprocess.run(command, check=False, capture_output=True, timeout=120)
    return next(folder.glob("*.pdf"), None)


def pages(file: Path) -> str:
    """Return the text of a PDF as Poppler reads it."""
    command = ["pdftotext", "-enc", "UTF-8", "-nopgbrk", str(file), "-"]
    return subprocess.run(command, check=False, capture_output=True, timeout=120).stdout.decode(errors="replace")


def compare(file: Path, rendering: str, result: Result, console: Console | None) -> None:
    """Add what differs in a file to the result of its format."""
    data = file.read_bytes()
    kind = formats.of_name(file.name)
    result.files += 1
    begin = time.perf_counter()
    try:
        formats.check(data, kind)
        indexed = convert(data, kind)[0]
    except UnreadableDocument as error:
        result.refused += 1
        if console:
            console.print(f"{file}: {error}", markup=False)
        return
    result.seconds += time.perf_counter() - begin
    result.bytes += len(data)
    if kind in formats.WITH_SHEETS:
        indexed = re.sub("^## .*$", "", indexed, flags=re.MULTILINE)
    shown, own = words(rendering), words(indexed)
    lost, added = absent(shown, own), absent(own, shown)
    result.words += sum(shown.values())
    result.lost += lost
    result.added += added
    if console and (lost or added):
        names = [" ".join(name for name, _ in each.most_common(MOST_SHOWN)) for each in (lost, added)]
        console.print(f"{file}: lost [{names[0]}] added [{names[1]}]", markup=False)


def words(text: str) -> Counter[str]:
    """Return the words of a text, with characters above or below the line apart."""
    text = re.sub("[\u00ad\u200b-\u200f\u2060\ufffe\ufeff]|(?<=[^\\W_])[-\u2010](\\s*\n\\s*)?(?=[^\\W_])", "", text)
    return Counter(WORD.findall(unicodedata.normalize("NFKC", RAISED.sub(r" \1 ", text)).casefold()))


def absent(one: Counter[str], other: Counter[str]) -> Counter[str]:
    """Return the words that the other text has nowhere, with how often they are missing."""
    letters = "".join(other)
    joined = "\n".join(other)
    return Counter({word: count for word, count in one.items() if word not in joined and word not in letters})


def per_10_000(differing: Counter[str], total: int) -> str:
    return f"{10_000 * sum(differing.values()) / max(total, 1):.1f}"


if __name__ == "__main__":
    main()
