"""Compare the words of the index with those that a rendering of each file shows.

The readers of the index are checked by programs that share no code with them: LibreOffice prints office files, Poppler
reads their pages and those of PDF files, Chromium says what a web page shows, and pandoc reads books, notebooks and
light markup. They come from the system:
``apt install libreoffice-writer libreoffice-calc libreoffice-impress poppler-utils chromium pandoc``.

A word is lost if a rendering shows it and the index has it nowhere, not even within other letters: pages divide words
at the ends of lines. It is added if the index has it and no rendering shows it. Names of sheets, which are not printed,
do not count, and hyphens neither.

Without FOLDER, the files are the samples and those that ``parts/read_files.py`` makes, and their figures are compared
with ``fidelity.json``: the exit code is 1 if one is worse. ``--store`` writes them there. They do not vary with the
same versions of the programs, which that file names.

With ``--compare``, other libraries read the same files, each in its own process. They are installed from PyPI into a
temporary environment, or once into ``--environment FOLDER``. Their memory is that of the whole process.

Run: ``python benchmarks/fidelity.py [FOLDER] [--list] [--store] [--compare]``. The exit code is 1 if nothing could be
compared.
"""

import argparse
import json
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
from typing import Any

from parts import libraries, read_files
from parts.measuring import table
from playwright.sync_api import sync_playwright
from rich.console import Console

from ragstack_common.reading import formats
from ragstack_common.reading.conversion import convert
from ragstack_common.reading.formats import UnreadableDocument

PRINTED = ("doc", "docx", "odp", "ods", "odt", "ppt", "pptx", "rtf", "xls", "xlsb", "xlsx")
BY_PANDOC = ("epub", "ipynb", "org", "rst", "tsv")
SLIDES = ("odp", "ppt", "pptx")
NOT_ON_SLIDES = re.compile(r"^### Notes\n.*?(?=^## Slide|\Z)|^## Slide \d+:?", re.MULTILINE | re.DOTALL)
RAISED = re.compile("([\u00b2\u00b3\u00b9\u2070-\u209c])")
WORD = re.compile(r"[^\W_]+")
MOST_SHOWN = 12
LIBRARIES = {
    "docx": ("docling-slim", "python-docx", "markitdown"),
    "epub": ("markitdown",),
    "html": ("docling-slim", "markitdown"),
    "ipynb": ("markitdown",),
    "odp": ("docling-slim",),
    "ods": ("docling-slim", "python-calamine"),
    "odt": ("docling-slim",),
    "pdf": ("liteparse", "markitdown"),
    "pptx": ("docling-slim", "python-pptx", "markitdown"),
    "xls": ("python-calamine", "markitdown"),
    "xlsb": ("python-calamine",),
    "xlsx": ("docling-slim", "openpyxl", "markitdown"),
}
"""Libraries that read a format."""

PROGRAMS = {"soffice": "--version", "pdftotext": "-v", "chromium": "--version", "pandoc": "--version"}
INSTALL = "apt install libreoffice-writer libreoffice-calc libreoffice-impress poppler-utils chromium pandoc"
FIGURES = Path(__file__).with_suffix(".json")
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
    renderings: dict[Path, str] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="its files are compared, and those of its folders")
    parser.add_argument("--list", action="store_true", help="list the words that differ in each file")
    parser.add_argument("--store", action="store_true", help="store the figures of the files of the repository")
    parser.add_argument("--compare", action="store_true", help="read the files with other libraries too")
    parser.add_argument("--environment", type=Path, help="keep the libraries in this folder")
    chosen = parser.parse_args()
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        sys.exit(f"{', '.join(missing)} is missing: {INSTALL}")
    console = Console()
    listing = console if chosen.list else None
    with tempfile.TemporaryDirectory() as temporary:
        folders = [chosen.folder] if chosen.folder else [SAMPLES, made := Path(temporary, "files")]
        if not chosen.folder:
            made.mkdir()
            read_files.write(made)
        results = compared(folders, listing)
        if not results:
            sys.exit(f"{chosen.folder} has no files that can be compared")
        if chosen.compare:
            environment = chosen.environment or Path(temporary, "environment")
            libraries.installed(environment, console)
            for name, result in sorted(results.items()):
                readers = ("RAGStack", *LIBRARIES.get(name, ()))
                found = [row for each in readers for row in compared_rows(each, name, result, environment, console)]
                heads = ["library", "lost / 10,000", "added / 10,000", "no text", "s / MB", "MB"]
                console.print(table(f"{name}: {result.files} files", heads, found))
    rows = [
        [
            name, str(each.files), str(each.refused), f"{each.words:,}", per_10_000(each.lost, each.words),
            per_10_000(each.added, each.words), f"{each.seconds / max(each.bytes, 1) * 1e6:.2f}",
        ]
        for name, each in sorted(results.items())
    ]  # fmt: skip
    heads = ["format", "files", "not read", "words", "lost / 10,000", "added / 10,000", "s / MB"]
    console.print(table("Words of the index against what renderings show", heads, rows))
    if chosen.store:
        FIGURES.write_text(json.dumps(figures(results), indent=2) + "\n")
    elif not chosen.folder:
        check(figures(results), json.loads(FIGURES.read_text()), console)


def compared_rows(library: str, kind: str, result: Result, environment: Path, console: Console) -> Iterator[list[str]]:
    """Yield the row of a library for the files of a format, or nothing if it read none."""
    files = [*result.renderings]
    found = libraries.read(library, files, environment, console)
    if found is None:
        return
    lost: Counter[str] = Counter()
    added: Counter[str] = Counter()
    total = 0
    for file, text in zip(files, found["texts"], strict=True):
        shown, own = words(result.renderings[file]), words(without_names(text, kind))
        total += sum(shown.values())
        lost += absent(shown, own)
        added += absent(own, shown)
    size = sum(file.stat().st_size for file in files)
    yield [
        library, per_10_000(lost, total), per_10_000(added, total), str(found["texts"].count("")),
        f"{found['seconds'] / size * 1e6:.2f}", f"{found['peak_mb']:.0f}",
    ]  # fmt: skip


def without_names(text: str, kind: str) -> str:
    """Return a text without names that are not printed: of sheets, of slides and of their notes."""
    if kind in formats.WITH_SHEETS:
        return re.sub("^## .*$", "", text, flags=re.MULTILINE)
    return NOT_ON_SLIDES.sub("", text) if kind in SLIDES else text


def figures(results: dict[str, Result]) -> dict[str, Any]:
    """Return what is stored."""
    versions = {}
    for program, option in PROGRAMS.items():
        shown = subprocess.run([program, option], check=False, capture_output=True, text=True)
        found = re.search(r"\d+(\.\d+)+", shown.stdout + shown.stderr)
        versions[program] = found[0] if found else ""
    formats_read = {
        name: {"words": each.words, "lost": each.lost.total(), "added": each.added.total(), "not read": each.refused}
        for name, each in sorted(results.items())
    }
    return {"programs": versions, "formats": formats_read}


def check(measured: dict[str, Any], stored: dict[str, Any], console: Console) -> None:
    """Exit with 1 if a figure is worse than the stored one."""
    worse: list[str] = []
    other: list[str] = []
    for name, before in stored["formats"].items():
        now = measured["formats"].get(name)
        if now is None:
            worse.append(f"{name}: no file was compared")
            continue
        for figure in ("lost", "added", "not read"):
            if now[figure] != before[figure]:
                (worse if now[figure] > before[figure] else other).append(
                    f"{name}: {figure} {before[figure]} → {now[figure]}"
                )
        if now["words"] != before["words"]:
            other.append(f"{name}: words {before['words']} → {now['words']}")
    if other:
        console.print(f"Changed: {'; '.join(other)}. --store stores the figures.", markup=False)
    if worse:
        if measured["programs"] != stored["programs"]:
            console.print(f"The stored figures are from other versions: {stored['programs']}.", markup=False)
        sys.exit(f"Worse than stored: {'; '.join(worse)}. --list lists the words.")


def compared(folders: list[Path], listing: Console | None) -> dict[str, Result]:
    """Return what was found in the files of folders, by format."""
    results: dict[str, Result] = defaultdict(Result)
    files = [file for folder in folders for file in sorted(folder.rglob("*")) if formats.is_supported(file.name)]
    for file, rendering in rendered(files):
        compare(file, rendering, results[formats.of_name(file.name)], listing)
    return results


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
            elif kind in BY_PANDOC and (shown := read_by_pandoc(file, kind)):
                yield file, shown
            elif kind == "html":
                page.goto(file.absolute().as_uri(), wait_until="domcontentloaded")
                shown = page.evaluate("document.body.innerText")
                if file.name.startswith(read_files.PRINTED):
                    file = file.with_suffix(".pdf")  # noqa: PLW2901 - what is read of the page
                    page.pdf(path=file)
                yield file, shown
        browser.close()


def printed(file: Path, folder: Path) -> Path | None:
    """Return a PDF of an office file; None if LibreOffice does not open it, or not in a minute."""
    profile = f"-env:UserInstallation={(folder.parent / 'profile').as_uri()}"
    # timeout ends the processes that soffice starts, too.
    command = [
        "timeout",
        "-s",
        "KILL",
        "60",
        "soffice",
        profile,
        "--headless",
        "--convert-to",
        "pdf",
        "--outdir",
        str(folder),
    ]
    subprocess.run([*command, str(file)], check=False, capture_output=True)
    return next(folder.glob("*.pdf"), None)


def read_by_pandoc(file: Path, kind: str) -> str:
    """Return what pandoc reads of a file; empty if it does not read it."""
    command = ["pandoc", "--from", kind, "--to", "plain", "--wrap", "none", "--sandbox", str(file)]
    return subprocess.run(command, check=False, capture_output=True, timeout=120).stdout.decode(errors="replace")


def pages(file: Path) -> str:
    """Return the text of a PDF as Poppler reads it."""
    command = ["pdftotext", "-enc", "UTF-8", "-nopgbrk", str(file), "-"]
    return subprocess.run(command, check=False, capture_output=True, timeout=120).stdout.decode(errors="replace")


def compare(file: Path, rendering: str, result: Result, console: Console | None) -> None:
    """Add what differs in a file to the result of its format."""
    data = file.read_bytes()
    kind = formats.of_name(file.name)
    result.files += 1
    result.renderings[file] = rendering
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
    shown, own = words(rendering), words(without_names(indexed, kind))
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
