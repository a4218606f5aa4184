"""Files that are made to do harm: the documents next to them are indexed."""

import re
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from textwrap import indent
from typing import Any, Final

import numpy as np
import pytest
from botocore.response import StreamingBody

from local_bedrock.ingestion import workers
from local_bedrock.reading.chunking import FixedSize
from local_bedrock.reading.parsing import Parser
from ragstack_common.reading import formats
from tests.local_bedrock.support import Source, s3_document, s3_identifier, serving, text_document
from tests.support.pdf_files import pdf
from tests.support.soak import SOAK

MEGABYTE: Final = 1024 * 1024
TIME_LIMIT_SECONDS: Final = 4.0 if SOAK else 2.0
MEMORY_LIMIT: Final = 700 * MEGABYTE
DOCUMENT: Final = b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>%s</w:body></w:document>'
RELATIONS: Final = (
    b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r"'
    b' Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/%s" Target="%s"/></Relationships>'
)
LAUGHS: Final = (
    b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "ha">'
    + b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 12))
    + b"]>"
)


def archive(**entries: bytes) -> bytes:
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in entries.items():
            packed.writestr(name, data)
    return made.getvalue()


def docx(document: bytes) -> bytes:
    return archive(
        **{
            "[Content_Types].xml": b"<Types/>",
            "_rels/.rels": RELATIONS % (b"officeDocument", b"word/document.xml"),
            "word/document.xml": document,
        }
    )


def xlsx(sheet: bytes) -> bytes:
    namespace = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    kinds = b"application/vnd.openxmlformats-officedocument.spreadsheetml."
    return archive(
        **{
            "[Content_Types].xml": b'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            b'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            b'<Override PartName="/xl/workbook.xml" ContentType="%ssheet.main+xml"/>'
            b'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="%sworksheet+xml"/></Types>' % (kinds, kinds),
            "_rels/.rels": RELATIONS % (b"officeDocument", b"xl/workbook.xml"),
            "xl/workbook.xml": b"<workbook %s xmlns:r="
            b'"http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>'
            b'<sheet name="one" sheetId="1" r:id="r"/></sheets></workbook>' % namespace,
            "xl/_rels/workbook.xml.rels": RELATIONS % (b"worksheet", b"worksheets/sheet1.xml"),
            "xl/worksheets/sheet1.xml": sheet.replace(b"<worksheet", b"<worksheet " + namespace, 1),
        }
    )


@cache
def bomb_of_declared_size() -> bytes:
    made = BytesIO()
    with (
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed,
        packed.open("word/document.xml", "w") as entry,
    ):
        for _ in range(600):
            entry.write(bytes(MEGABYTE))
    return made.getvalue()


def bomb_that_lies_about_its_size() -> bytes:
    data = bytearray(bomb_of_declared_size())
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        position = data.index(mark)
        data[position + offset : position + offset + 4] = struct.pack("<I", 1000)
    return bytes(data)


@cache
def bomb_of_half_a_gigabyte() -> bytes:
    """Fewer than 500 KB, within what an archive may declare, and parsed in one call without the interpreter's lock."""
    head, tail = DOCUMENT.split(b"%s")
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("[Content_Types].xml", b"<Types/>")
        packed.writestr("_rels/.rels", RELATIONS % (b"officeDocument", b"word/document.xml"))
        with packed.open("word/document.xml", "w") as entry:
            entry.write(head)
            for _ in range(320):
                entry.write(b"<w:p/>" * (MEGABYTE // 6))
            entry.write(tail)
    return made.getvalue()


def laughing_docx() -> bytes:
    return docx(LAUGHS + DOCUMENT % b"<w:p><w:r><w:t>&a11;</w:t></w:r></w:p>")


def laughing_xlsx() -> bytes:
    cell = b'<row r="1"><c r="A1" t="inlineStr"><is><t>&a11;</t></is></c></row>'
    return xlsx(LAUGHS + b"<worksheet><sheetData>" + cell + b"</sheetData></worksheet>")


def gigantic_sheet() -> bytes:
    rows = b"".join(b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (n, n) for n in range(1, 100_001))
    return xlsx(b'<worksheet><dimension ref="A1:XFD1048576"/><sheetData>' + rows + b"</sheetData></worksheet>")


def pdf_of_many_empty_pages() -> bytes:
    count = 100_000 if SOAK else 2_000
    kids = b" ".join(b"%d 0 R" % number for number in range(3, count + 3))
    pages = b"<< /Type /Pages /Count %d /Kids [%s] /MediaBox [0 0 9 9] >>" % (count, kids)
    return pdf(b"<< /Type /Catalog /Pages 2 0 R >>", pages, *[b"<< /Type /Page /Parent 2 0 R >>"] * count)


def pdf_whose_pages_contain_themselves() -> bytes:
    return pdf(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 2 /Kids [2 0 R 3 0 R] >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>",
        b"<< /Length 4 0 R >>\nstream\nendstream",
    )


def pdf_whose_form_draws_itself() -> bytes:
    draw = b"q /F Do Q"
    form = b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /F 4 0 R >> >> /Length %d >>"
    return pdf(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 5 0 R /Resources << /XObject << /F 4 0 R >> >> >>",
        (form % len(draw * 2)) + b"\nstream\n" + draw * 2 + b"\nendstream",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(draw), draw),
    )


@cache
def pdf_of_a_stream_that_never_ends() -> bytes:
    packed = zlib.compress(b"0 0 m 9 9 l S\n" * 40_000_000, 1)
    return pdf(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed),
    )


def deep_html() -> bytes:
    depth = 100_000 if SOAK else 10_000
    return b"<html><body>" + b"<div>" * depth + b"heron" + b"</div>" * depth + b"</body></html>"


HERON: Final = "Der Reiher steht im flachen Wasser und wartet auf Fische, während die Möwe über ihm schreit. "
TOO_MUCH_MEMORY, TOO_LONG, NO_TEXT = "took too much memory", "took longer than", "contains no text"
ENTITIES: Final = "declares XML entities in .*: save it again"

HOSTILE: Final[dict[str, tuple[Callable[[], bytes], str]]] = {
    "declared.docx": (bomb_of_declared_size, "unpacks to 629,145,600 bytes"),
    "lying.docx": (bomb_that_lies_about_its_size, f"{TOO_MUCH_MEMORY}|is damaged"),
    "laughs.docx": (laughing_docx, ENTITIES),
    "laughs.xlsx": (laughing_xlsx, ENTITIES),
    "gigantic.xlsx": (gigantic_sheet, TOO_LONG),
    "pages.pdf": (pdf_of_many_empty_pages, NO_TEXT),
    "loop.pdf": (pdf_whose_pages_contain_themselves, "is damaged or incomplete"),
    "form.pdf": (pdf_whose_form_draws_itself, TOO_MUCH_MEMORY),
    "deep.html": (deep_html, "INDEXED|nested too deeply"),
    "japanese.txt": (lambda: ("鷺は浅い水の中に立ち、魚を待っている。" * 9).encode("shift_jis"), "INDEXED"),
}


@pytest.fixture
def source(tmp_path: Path, s3_url: str, bucket: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    """A data source of a local Bedrock that has little patience and memory."""
    impatient = partial(Parser, time_limit_seconds=TIME_LIMIT_SECONDS, memory_limit=MEMORY_LIMIT)
    monkeypatch.setattr(workers, "Parser", impatient)
    with serving(tmp_path, s3_endpoint=s3_url) as bedrock:
        yield bedrock.s3_source(bedrock.knowledge_base("hostile"), bucket)


def batches(names: list[str]) -> list[list[str]]:
    return [names[start : start + 10] for start in range(0, len(names), 10)]


def test_hostile_files_fail_alone_and_with_a_reason(s3: Any, bucket: str, source: Source) -> None:
    names = [*HOSTILE, *(f"harmless-{number}.txt" for number in range(5))]
    for name in names:
        body = HOSTILE[name][0]() if name in HOSTILE else HERON.encode()
        s3.put_object(Bucket=bucket, Key=name, Body=body)

    for batch in batches(names):
        source.ingest(*(s3_document(bucket, name) for name in batch))
    settled = {
        detail["identifier"]["s3"]["uri"].rpartition("/")[2]: detail
        for batch in batches(names)
        for detail in source.settled(*(s3_identifier(bucket, name) for name in batch))
    }

    outcomes = {name: detail.get("statusReason", detail["status"]) for name, detail in settled.items()}
    # On a busy machine any of them may take too long, which is an end like the others.
    unexpected = {
        name: outcomes[name]
        for name, (_, words) in HOSTILE.items()
        if not re.search(f"{words}|{TOO_LONG}", outcomes[name])
    }
    assert unexpected == {}
    assert {outcomes[name] for name in names if name not in HOSTILE} == {"INDEXED"}
    assert all(outcome == "INDEXED" or outcome.endswith(".") for outcome in outcomes.values())


@pytest.mark.skipif(sys.platform != "linux", reason="macOS bounds no address space: the peak there is a matter of time")
@pytest.mark.parametrize(
    ("bomb", "file_format"), [(pdf_of_a_stream_that_never_ends, "pdf"), (bomb_of_half_a_gigabyte, "docx")]
)
def test_no_reader_takes_more_memory_than_it_may(bomb: Callable[[], bytes], file_format: str, tmp_path: Path) -> None:
    file = tmp_path / "bomb"
    file.write_bytes(bomb())
    # A process of its own: the peak of this one's children is that of every test before.
    program = (
        "import resource, sys\n"
        "from local_bedrock.reading.parsing import Parser, UnreadableDocument\n"
        f"parser = Parser(memory_limit={MEMORY_LIMIT})\n"
        f"try: parser.parse(open(sys.argv[1], 'rb').read(), {file_format!r})\n"
        "except UnreadableDocument as error: print(error)\n"
        "print(parser.parse(b'<p>heron</p>', 'html').text)\n"
        "parser.close()\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)\n"
        "print([line for line in open('/proc/self/status') if line.startswith('VmHWM')][0].split()[1] + '000')\n"
    )
    script = tmp_path / "read.py"
    script.write_text(f"if __name__ == '__main__':\n{indent(program, '    ')}")

    ended = subprocess.run([sys.executable, script, file], capture_output=True, text=True, check=True)

    assert file.stat().st_size < 3 * MEGABYTE
    reason, next_file, reader, reading = ended.stdout.splitlines()
    assert TOO_MUCH_MEMORY in reason
    assert next_file == "heron"
    assert int(reader) < MEMORY_LIMIT
    assert int(reading) < 200 * MEGABYTE


def slow_sheet() -> bytes:
    """Keeps its reader busy for longer than the test takes, in less than 100 KB."""
    row = b"<row>" + b"<c><v>1</v></c>" * 100 + b"</row>"
    return xlsx(b"<worksheet><sheetData>" + row * 5_000 + b"</sheetData></worksheet>")


def test_files_that_take_long_do_not_delay_small_ones(s3: Any, bucket: str, tmp_path: Path, s3_url: str) -> None:
    bomb = slow_sheet()
    assert len(bomb) < 100_000
    text = HERON * (MEGABYTE // len(HERON.encode()) + 2)
    page = b"<html><body><h1>Herons</h1><p>The heron stands in shallow water.</p></body></html>"
    objects = {"one.xlsx": bomb, "two.xlsx": bomb, "three.xlsx": bomb, "large.txt": text.encode()}
    objects |= {"small.txt": HERON.encode(), "small.html": page}
    for name, body in objects.items():
        s3.put_object(Bucket=bucket, Key=name, Body=body)

    with serving(tmp_path, s3_endpoint=s3_url) as bedrock:
        base = bedrock.knowledge_base("delayed")
        source, inline = bedrock.s3_source(base, bucket), bedrock.custom_source(base)
        source.ingest(*(s3_document(bucket, name) for name in objects))
        small = [
            *source.settled(s3_identifier(bucket, "small.txt")),
            *source.settled(s3_identifier(bucket, "small.html")),
        ]
        note = inline.ingested(text_document("note", "The heron stands in shallow water."))
        others = source.details(*(s3_identifier(bucket, name) for name in ("one.xlsx", "two.xlsx", "large.txt")))

    assert [detail["status"] for detail in (*small, *note)] == ["INDEXED"] * 3
    # A large text waits for a worker of its own kind.
    assert {detail["status"] for detail in others} <= {"STARTING", "PENDING", "IN_PROGRESS"}


@pytest.mark.parametrize(
    ("module", "name", "limit"),
    [(formats, "MAX_PLAIN_BYTES", 1000), (formats, "MAX_LIGHT_BYTES", 1000), (workers, "EMBEDDED_AT_ONCE", 1)],
)
def test_a_text_too_large_for_its_worker_or_batch_is_indexed(
    s3: Any, bucket: str, source: Source, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, limit: int
) -> None:
    monkeypatch.setattr(module, name, limit)
    names = [f"{number}.txt" for number in range(12)]
    for number, key in enumerate(names):
        s3.put_object(Bucket=bucket, Key=key, Body=(HERON * (1 + number % 2 * 20)).encode())

    source.ingest(*(s3_document(bucket, key) for key in names[:10]))
    source.ingest(*(s3_document(bucket, key) for key in names[10:]))
    settled = [detail for each in names for detail in source.settled(s3_identifier(bucket, each))]

    assert {detail["status"] for detail in settled} == {"INDEXED"}


def test_an_object_of_more_megabytes_than_are_read_is_not_begun(
    s3: Any, bucket: str, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    original = StreamingBody.read

    def counted(body: StreamingBody, amount: int | None = None) -> bytes:
        data = original(body, amount)
        read.append(len(data))
        return data

    s3.put_object(Bucket=bucket, Key="nothing.txt", Body=bytes(51 * MEGABYTE))
    monkeypatch.setattr(StreamingBody, "read", counted)

    settled = source.ingested(s3_document(bucket, "nothing.txt"))

    assert settled[0]["status"] == "FAILED"
    assert "the maximum is 52,428,800" in settled[0]["statusReason"]
    assert sum(read) == 0


# What takes longer than the length would say shows in a part of the largest file, too.
SHARE: Final = 1 if SOAK else 5


@pytest.mark.parametrize(("line", "megabytes"), [("h", 40), ("heron; ", 5)])
def test_one_endless_line_is_cut_into_chunks(line: str, megabytes: int) -> None:
    data = line.encode() * (megabytes * MEGABYTE // SHARE // len(line.encode()))

    parsed = Parser().parse(data, "csv")
    pieces = FixedSize().cut(parsed.text, lambda texts: np.zeros((len(texts), 1), dtype=np.float32))

    assert max(len(chunk.text) for chunk in pieces.chunks) <= 6 * 300
    assert pieces.chunks[-1].start + len(pieces.chunks[-1].text) == len(parsed.text.rstrip())
