"""Read files with one library, and print their texts, the seconds and the memory as JSON.

Run by ``libraries.py`` in an environment that has the library: ``python table_readers.py LIBRARY FILE...``.
"""

import json
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

Read = Callable[[Path], str]
GROUP = 6
"""The type of grouped shapes in python-pptx."""


def rows_as_markdown(rows: Iterable[Iterable[Any]]) -> str:
    shown = [["" if cell is None else str(cell) for cell in row] for row in rows]
    lines = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in shown]
    return "\n".join([*lines[:1], "|" + "---|" * len(shown[0]), *lines[1:]]) if shown else ""


def ragstack() -> Read:
    from ragstack_common.reading import formats  # noqa: PLC0415
    from ragstack_common.reading.conversion import convert  # noqa: PLC0415

    return lambda file: convert(file.read_bytes(), formats.of_name(file.name)).text


def docling_slim() -> Read:
    # Its DocumentConverter needs PyTorch.
    from docling.backend.html_backend import HTMLDocumentBackend  # noqa: PLC0415
    from docling.backend.msexcel_backend import MsExcelDocumentBackend  # noqa: PLC0415
    from docling.backend.mspowerpoint_backend import MsPowerpointDocumentBackend  # noqa: PLC0415
    from docling.backend.msword_backend import MsWordDocumentBackend  # noqa: PLC0415
    from docling.backend.opendocument_backend import (  # noqa: PLC0415
        OdpDocumentBackend,
        OdsDocumentBackend,
        OdtDocumentBackend,
    )
    from docling.datamodel.base_models import InputFormat  # noqa: PLC0415
    from docling.datamodel.document import InputDocument  # noqa: PLC0415

    backends = {
        ".docx": (InputFormat.DOCX, MsWordDocumentBackend),
        ".html": (InputFormat.HTML, HTMLDocumentBackend),
        ".odp": (InputFormat.ODP, OdpDocumentBackend),
        ".ods": (InputFormat.ODS, OdsDocumentBackend),
        ".odt": (InputFormat.ODT, OdtDocumentBackend),
        ".pptx": (InputFormat.PPTX, MsPowerpointDocumentBackend),
        ".xlsx": (InputFormat.XLSX, MsExcelDocumentBackend),
    }

    def read(file: Path) -> str:
        file_format, backend = backends[file.suffix]
        document = InputDocument(path_or_stream=file, format=file_format, backend=backend)
        return document._backend.convert().export_to_markdown()  # noqa: SLF001 - without the converter

    return read


def docling_rs() -> Read:
    from docling_rs import DocumentConverter  # noqa: PLC0415

    converter = DocumentConverter()
    return lambda file: converter.convert(str(file)).document.export_to_markdown()


def pdf_inspector() -> Read:
    import pdf_inspector as library  # noqa: PLC0415

    return lambda file: library.process_pdf(str(file)).markdown or ""


def liteparse() -> Read:
    from liteparse import LiteParse  # noqa: PLC0415

    parser = LiteParse(ocr_enabled=False, output_format="markdown", quiet=True)
    return lambda file: parser.parse(str(file)).text


def markitdown() -> Read:
    from markitdown import MarkItDown  # noqa: PLC0415

    converter = MarkItDown()
    return lambda file: converter.convert(str(file)).text_content


def python_calamine() -> Read:
    from python_calamine import CalamineWorkbook  # noqa: PLC0415

    def read(file: Path) -> str:
        workbook = CalamineWorkbook.from_path(str(file))
        sheets = ((name, workbook.get_sheet_by_name(name).to_python()) for name in workbook.sheet_names)
        return "\n\n".join(f"## {name}\n\n{rows_as_markdown(rows)}" for name, rows in sheets)

    return read


def openpyxl() -> Read:
    from openpyxl import load_workbook  # noqa: PLC0415

    def read(file: Path) -> str:
        workbook = load_workbook(file, data_only=True)
        return "\n\n".join(f"## {sheet.title}\n\n{rows_as_markdown(sheet.values)}" for sheet in workbook)

    return read


def python_docx() -> Read:
    from docx import Document  # noqa: PLC0415
    from docx.table import Table  # noqa: PLC0415

    def read(file: Path) -> str:
        blocks = []
        for block in Document(str(file)).iter_inner_content():
            if isinstance(block, Table):
                blocks.append(rows_as_markdown([cell.text for cell in row.cells] for row in block.rows))
            else:
                style = block.style.name if block.style else ""
                blocks.append(f"# {block.text}" if style.startswith("Heading") else block.text)
        return "\n\n".join(blocks)

    return read


def python_pptx() -> Read:
    from pptx import Presentation  # noqa: PLC0415

    def texts(shapes: Any) -> Iterator[str]:
        for shape in shapes:
            if shape.shape_type == GROUP:
                yield from texts(shape.shapes)
            elif shape.has_table:
                yield rows_as_markdown([cell.text for cell in row.cells] for row in shape.table.rows)
            elif shape.has_text_frame:
                yield shape.text_frame.text

    return lambda file: "\n\n".join(text for slide in Presentation(str(file)).slides for text in texts(slide.shapes))


READERS = {
    "RAGStack": ragstack,
    "docling-slim": docling_slim,
    "docling-rs": docling_rs,
    "pdf-inspector": pdf_inspector,
    "liteparse": liteparse,
    "markitdown": markitdown,
    "python-calamine": python_calamine,
    "openpyxl": openpyxl,
    "python-docx": python_docx,
    "python-pptx": python_pptx,
}


def peak_mb() -> float:
    """Return the largest memory of this process; what the system counts begins with that of its parent."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    read = READERS[sys.argv[1]]()
    texts, failure = [], ""
    begin = time.process_time()
    for file in sys.argv[2:]:
        try:
            texts.append(read(Path(file)))
        except Exception as error:  # noqa: BLE001 - libraries raise any
            texts.append("")
            failure = f"{type(error).__name__}: {error}"[:200]
    figures = {
        "texts": texts,
        "seconds": time.process_time() - begin,
        "peak_mb": peak_mb(),
        "failure": failure,
    }
    sys.__stdout__.write(f"\n{json.dumps(figures)}\n")


if __name__ == "__main__":
    main()
