"""Build the pdf and docx files of the sample handbook, and the corpus of the sample data set.

The built files are committed, so that users need none of the libraries. Building twice gives the same bytes: every
date inside the files is fixed.
"""

import argparse
import csv
import io
import json
import re
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from ragstack_common.reading.html import pages

HERE: Final = Path(__file__).parent
AUTHOR: Final = "Quillmere Instruments"
WRITTEN: Final = datetime(2026, 1, 5, 9, 0)  # noqa: DTZ001 - the formats store no time zone

BUILT_FILES: Final = {
    "sources/security-incident-response.txt": "documents/engineering/security-incident-response.pdf",
    "sources/gateway-installation.txt": "documents/product/gateway-installation.pdf",
    "sources/expenses-and-travel.txt": "documents/people/expenses-and-travel.docx",
    "sources/data-retention.txt": "documents/engineering/data-retention.docx",
}

CORPUS: Final = "judged/corpus.jsonl"
SIDECAR: Final = ".metadata.json"
INSTALL: Final = "pip install reportlab==5.1.0 python-docx==1.2.0"


@dataclass(frozen=True)
class Block:
    """A part of a document."""

    kind: str
    rows: tuple[tuple[str, ...], ...]

    @property
    def text(self) -> str:
        """The text of a block that is not a table."""
        return self.rows[0][0]


def parse(source: str) -> Iterator[Block]:
    """Read the few marks that the sources use: ``#``, ``##``, ``-``, and rows between ``|``."""
    table: list[tuple[str, ...]] = []
    for line in [*source.splitlines(), ""]:
        if line.startswith("|"):
            table.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
            continue
        if table:
            yield Block("table", tuple(table))
            table = []
        for mark, kind in (("## ", "heading"), ("# ", "title"), ("- ", "item"), ("", "text")):
            if line.startswith(mark):
                if text := line.removeprefix(mark).strip():
                    yield Block(kind, ((text,),))
                break


def build_pdf(blocks: Sequence[Block]) -> bytes:
    """Lay the blocks out on A4, uncompressed so that the bytes depend on no zlib version. Tables are for docx only."""
    from reportlab.lib import pagesizes, styles  # noqa: PLC0415 - --help works without it
    from reportlab.platypus import Paragraph, SimpleDocTemplate  # noqa: PLC0415

    sheet = styles.getSampleStyleSheet()
    style_of = {"title": "Title", "heading": "Heading2", "item": "Bullet", "text": "BodyText"}
    story = [
        Paragraph(
            escape(block.text),
            sheet[style_of[block.kind]],
            bulletText="-" if block.kind == "item" else None,  # a bullet sign does not survive every parser
        )
        for block in blocks
    ]
    pdf = io.BytesIO()
    SimpleDocTemplate(
        pdf,
        pagesize=pagesizes.A4,
        title=blocks[0].text,
        author=AUTHOR,
        invariant=1,
        pageCompression=0,
    ).build(story)
    return pdf.getvalue()


def build_docx(blocks: Sequence[Block]) -> bytes:
    """Write the blocks with Word's built-in styles."""
    from docx import Document  # noqa: PLC0415 - --help works without it
    from docx.oxml import OxmlElement  # noqa: PLC0415

    style_of = {"title": "Heading 1", "heading": "Heading 2", "item": "List Bullet", "text": "Normal"}
    document = Document()
    for block in blocks:
        if block.kind == "table":
            table = document.add_table(rows=0, cols=len(block.rows[0]), style="Table Grid")
            for row in block.rows:
                for cell, text in zip(table.add_row().cells, row, strict=True):
                    cell.text = text
            heading = table.rows[0]._tr.get_or_add_trPr()  # noqa: SLF001 - python-docx has no public way
            heading.append(OxmlElement("w:tblHeader"))
        else:
            document.add_paragraph(block.text, style=style_of[block.kind])
    properties = document.core_properties
    properties.title, properties.author, properties.last_modified_by = blocks[0].text, AUTHOR, AUTHOR
    properties.comments = ""
    properties.created = properties.modified = WRITTEN
    saved = io.BytesIO()
    document.save(saved)
    return _with_fixed_dates(saved.getvalue())


def _with_fixed_dates(archive: bytes) -> bytes:
    """Write a zip archive again with one date for all its members."""
    rewritten = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as source, zipfile.ZipFile(rewritten, "w") as copy:
        for name in source.namelist():
            member = zipfile.ZipInfo(name, WRITTEN.timetuple()[:6])
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3  # Unix, wherever it is built
            copy.writestr(member, source.read(name))
    return rewritten.getvalue()


def build_corpus() -> bytes:
    """Write each section of the handbook as one line of BEIR's ``corpus.jsonl``, with its document's attributes.

    Sections, and not documents, are what questions are judged against: the handbook has only 15 documents.
    """
    sources = {built.removeprefix("documents/"): source for source, built in BUILT_FILES.items()}
    lines = []
    for path in sorted((HERE / "documents").rglob("*")):
        if path.is_dir() or path.name.endswith(SIDECAR):
            continue
        name = path.relative_to(HERE / "documents").as_posix()
        attributes = json.loads(path.with_name(path.name + SIDECAR).read_text(encoding="utf-8"))["metadataAttributes"]
        for heading, title, text in sections(path, HERE / sources[name] if name in sources else path):
            entry = {
                "_id": f"{path.parent.name}/{slug(path.stem)}#{slug(heading)}",
                "title": title,
                "text": text,
                "metadata": attributes,
            }
            lines.append(json.dumps(entry, ensure_ascii=False) + "\n")
    return "".join(lines).encode()


def sections(path: Path, source: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the heading, the title and the text of each section; a table of prices has one for each row."""
    if path.suffix == ".csv":
        with source.open(encoding="utf-8", newline="") as rows:
            for row in csv.DictReader(rows):
                yield row["sku"], row["product"], "; ".join(f"{key}: {value}" for key, value in row.items())
        return
    text = source.read_text(encoding="utf-8")
    if path.suffix == ".html":
        text = pages.read(source.read_bytes()).text
    first, *others = re.split(r"^## ", text, flags=re.MULTILINE)
    title, _, introduction = first.strip().removeprefix("# ").partition("\n")
    yield "introduction", title, introduction.strip()
    for other in others:
        heading, _, body = other.partition("\n")
        yield heading.strip(), f"{title}: {heading.strip()}", body.strip()


def slug(heading: str) -> str:
    """Write a heading as the fragment of a link."""
    return re.sub(r"[^\w]+", "-", heading.lower()).strip("-")


def builders() -> dict[str, Callable[[], bytes]]:
    """Return what builds each committed file."""

    def document(source: str, suffix: str) -> bytes:
        build = {".pdf": build_pdf, ".docx": build_docx}[suffix]
        return build(tuple(parse((HERE / source).read_text(encoding="utf-8"))))

    documents = {built: partial(document, source, Path(built).suffix) for source, built in BUILT_FILES.items()}
    return {**documents, CORPUS: build_corpus}


def main() -> int:
    """Build every file; with --check, list the committed files that are out of date."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=f"Only this script needs them: {INSTALL}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a built file is out of date")
    check = parser.parse_args().check

    stale = []
    for name, build in builders().items():
        path = HERE / name
        try:
            built = build()
        except ModuleNotFoundError as error:
            print(f"{error.name} is not installed: {INSTALL}", file=sys.stderr)
            return 2
        if check:
            stale += [name] if not path.exists() or path.read_bytes() != built else []
        else:
            path.write_bytes(built)
            print(f"{name}: {len(built):,} bytes")
    for name in stale:
        print(f"{name} differs from its source; run python samples/build.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
