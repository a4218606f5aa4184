"""Files that are made to do harm: the documents next to them are indexed."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import Any, Final

import numpy as np
import pytest
from botocore.response import StreamingBody

from local_bedrock.ingestion import workers
from local_bedrock.reading.chunking import FixedSize
from local_bedrock.reading.parsing import Parser
from ragstack_common.ingestion.requests import text_document
from ragstack_common.reading import formats
from tests.local_bedrock.support import Source, s3_document, s3_identifier, serving
from tests.support.hostile_files import (
    MEGABYTE,
    bomb_of_declared_size,
    bomb_of_half_a_gigabyte,
    bomb_that_lies_about_its_size,
    deep_html,
    gigantic_sheet,
    laughing_docx,
    laughing_xlsx,
    pdf_of_a_stream_that_never_ends,
    pdf_of_many_empty_pages,
    pdf_whose_form_draws_itself,
    pdf_whose_pages_contain_themselves,
    xlsx,
)
from tests.support.soak import SOAK

TIME_LIMIT_SECONDS: Final = 4.0 if SOAK else 2.0
MEMORY_LIMIT: Final = 700 * MEGABYTE
HERON: Final = "Der Reiher steht im flachen Wasser und wartet auf Fische, während die Möwe über ihm schreit. "
TOO_MUCH_MEMORY, TOO_LONG, NO_TEXT = "took too much memory", "took longer than", "contains no text"
ENTITIES: Final = "declares XML entities in .*: save it again"

HOSTILE: Final[dict[str, tuple[Callable[[], bytes], str]]] = {
    "declared.docx": (bomb_of_declared_size, "unpacks to 629,145,600 bytes"),
    "lying.docx": (bomb_that_lies_about_its_size, f"{TOO_MUCH_MEMORY}|is damaged"),
    "laughs.docx": (laughing_docx, ENTITIES),
    "laughs.xlsx": (laughing_xlsx, ENTITIES),
    # A fast machine reads its 100,000 cells in time; what matters is that it ends.
    "gigantic.xlsx": (gigantic_sheet, "INDEXED"),
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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="macOS bounds no address space: the peak there is a matter of time")
@pytest.mark.parametrize(
    ("bomb", "file_format"), [(pdf_of_a_stream_that_never_ends, "pdf"), (bomb_of_half_a_gigabyte, "docx")]
)
def test_no_reader_exceeds_its_memory(bomb: Callable[[], bytes], file_format: str, tmp_path: Path) -> None:
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


@pytest.mark.slow
def test_files_that_take_long_do_not_delay_small_ones(
    s3: Any, bucket: str, tmp_path: Path, s3_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "WORKERS", 1)  # so that one slow file occupies them
    bomb = slow_sheet()
    assert len(bomb) < 100_000
    text = HERON * (MEGABYTE // len(HERON.encode()) + 2)
    page = b"<html><body><h1>Herons</h1><p>The heron stands in shallow water.</p></body></html>"
    objects = {"one.xlsx": bomb, "two.xlsx": bomb, "large.txt": text.encode()}
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


@pytest.mark.slow
@pytest.mark.parametrize(("line", "megabytes"), [("h", 40), ("heron; ", 5)])
def test_one_endless_line_is_cut_into_chunks(line: str, megabytes: int) -> None:
    data = line.encode() * (megabytes * MEGABYTE // SHARE // len(line.encode()))

    parsed = Parser().parse(data, "csv")
    pieces = FixedSize().cut(parsed.text, lambda texts: np.zeros((len(texts), 1), dtype=np.float32))

    assert max(len(chunk.text) for chunk in pieces.chunks) <= 6 * 300
    assert pieces.chunks[-1].start + len(pieces.chunks[-1].text) == len(parsed.text.rstrip())
