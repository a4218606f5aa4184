"""Build the pdf and docx files of the sample handbook, the files of ``more_formats``, and the data set's corpus.

The built files are committed, so that users need none of the libraries. Building twice gives the same bytes: every
date inside the files is fixed.
"""

import argparse
import csv
import io
import json
import random
import re
import sys
import textwrap
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
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

MORE_FORMATS: Final = {
    "sources/office-in-porto.txt": "more_formats/office-in-porto.pptx",
    "sources/coffee-machines.txt": "more_formats/coffee-machines.eml",
    "sources/warehouse-lease.txt": "more_formats/warehouse-lease.pdf",
}

ATTACHMENT: Final = "maintenance-contract.docx"

SCANNED_DPI: Final = 150
SCANNED_COLUMNS: Final = 68

CORPUS: Final = "judged/corpus.jsonl"
SIDECAR: Final = ".metadata.json"
INSTALL: Final = "pip install reportlab==5.1.0 python-docx==1.2.0 python-pptx==1.0.2 pillow==13.0.0 matplotlib==3.11.2"


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
    """Read the few marks that the sources use: ``#``, ``##``, ``-``, ``>`` for a note, and rows between ``|``."""
    table: list[tuple[str, ...]] = []
    for line in [*source.splitlines(), ""]:
        if line.startswith("|"):
            table.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
            continue
        if table:
            yield Block("table", tuple(table))
            table = []
        for mark, kind in (("## ", "heading"), ("# ", "title"), ("- ", "item"), ("> ", "note"), ("", "text")):
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


def build_pptx(blocks: Sequence[Block]) -> bytes:
    """Write a title slide, then a slide for each heading, with the notes of its speaker."""
    from pptx import Presentation  # noqa: PLC0415 - --help works without it
    from pptx.util import Inches  # noqa: PLC0415

    presentation = Presentation()
    title_slide, content_slide, _, _, _, title_only, *_ = presentation.slide_layouts
    for slide_blocks in divided(blocks, "title", "heading"):
        title, *content = slide_blocks
        table = next((block.rows for block in content if block.kind == "table"), None)
        layout = title_slide if title.kind == "title" else title_only if table else content_slide
        slide = presentation.slides.add_slide(layout)
        slide.shapes.title.text = title.text
        lines = [block.text for block in content if block.kind in ("item", "text")]
        if lines:
            slide.placeholders[1].text = "\n".join(lines)
        if table:
            columns, height = len(table[0]), Inches(0.5 * len(table))
            shape = slide.shapes.add_table(len(table), columns, Inches(0.5), Inches(1.8), Inches(9), height)
            for cell, text in zip(shape.table.iter_cells(), (text for row in table for text in row), strict=True):
                cell.text = text
        slide.notes_slide.notes_text_frame.text = "\n".join(block.text for block in content if block.kind == "note")
    properties = presentation.core_properties
    properties.title, properties.author, properties.last_modified_by = blocks[0].text, AUTHOR, AUTHOR
    properties.created = properties.modified = WRITTEN
    saved = io.BytesIO()
    presentation.save(saved)
    return _with_fixed_dates(saved.getvalue())


def build_mail(blocks: Sequence[Block]) -> bytes:
    """Write a mail, to which the document that follows it in the source is attached."""
    (subject, *paragraphs), attached = divided(blocks, "title")
    mail = EmailMessage(SMTP)
    mail["Subject"] = subject.text
    mail["From"] = "Marta Nunes <facilities@quillmere.example>"
    mail["To"] = "Everybody <everybody@quillmere.example>"
    mail["Date"] = WRITTEN.replace(tzinfo=UTC)
    mail["Message-ID"] = "<coffee-machines@quillmere.example>"
    mail.set_content("\n\n".join(block.text for block in paragraphs) + "\n", cte="quoted-printable")
    maintype, _, subtype = "application/vnd.openxmlformats-officedocument.wordprocessingml.document".partition("/")
    mail.add_attachment(build_docx(attached), maintype=maintype, subtype=subtype, filename=ATTACHMENT)
    mail.set_boundary("quillmere-instruments")
    return mail.as_bytes()


def build_scan(blocks: Sequence[Block]) -> bytes:
    """Write a typed page as a scanner sees it: grey, grainy and a little askew. The PDF has no text."""
    import matplotlib  # noqa: ICN001, PLC0415 - for its fonts; --help works without it
    from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont  # noqa: PLC0415

    size = round(8.27 * SCANNED_DPI), round(11.69 * SCANNED_DPI)  # A4
    page = Image.new("L", size, 238)
    typewriter = str(Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSansMono.ttf"))
    font = ImageFont.truetype(typewriter, SCANNED_DPI // 7, layout_engine=ImageFont.Layout.BASIC)
    text = "\n\n".join(textwrap.fill(block.text, SCANNED_COLUMNS) for block in blocks)
    ImageDraw.Draw(page).multiline_text((SCANNED_DPI, SCANNED_DPI), text, fill=45, font=font, spacing=10)
    page = page.rotate(0.6, Image.Resampling.BICUBIC, fillcolor=225).filter(ImageFilter.GaussianBlur(0.6))
    # Source: the documentation of random promises the same numbers in each version for a seed.
    grain = Image.frombytes("L", size, random.Random(1).randbytes(size[0] * size[1]))  # noqa: S311 - not a secret
    page = ImageChops.add(page, grain.point(lambda value: value // 16), offset=-8)
    pdf = io.BytesIO()
    date = WRITTEN.timetuple()
    page.save(pdf, "PDF", resolution=SCANNED_DPI, quality=30, creationDate=date, modDate=date)
    return pdf.getvalue()


def divided(blocks: Sequence[Block], *kinds: str) -> list[list[Block]]:
    """Divide blocks in front of those of these kinds, of which the first block is one."""
    parts: list[list[Block]] = []
    for block in blocks:
        if block.kind in kinds:
            parts.append([])
        parts[-1].append(block)
    return parts


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

    def document(source: str, build: Callable[[Sequence[Block]], bytes]) -> bytes:
        return build(tuple(parse((HERE / source).read_text(encoding="utf-8"))))

    handbook = {".pdf": build_pdf, ".docx": build_docx}
    others = {".pptx": build_pptx, ".eml": build_mail, ".pdf": build_scan}
    documents = {
        built: partial(document, source, build_of[Path(built).suffix])
        for files, build_of in ((BUILT_FILES, handbook), (MORE_FORMATS, others))
        for source, built in files.items()
    }
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
