"""Files become Markdown in a process of its own, which has neither a network nor endless memory."""

import time
from io import BytesIO
from pathlib import Path
from typing import Final

import pytest
from PIL import Image

from ragstack_common.reading.conversion import ReadText
from ragstack_common.reading.converting import ConvertingProcess, in_markdown
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.ocr.layout import FoundLine, FoundWord, Quad, recognized_page
from ragstack_common.reading.ocr.words import RecognizedPage
from tests.support.pdf_files import pages, text

MEMORY_LIMIT = 1024**3


def picture() -> bytes:
    written = BytesIO()
    Image.new("RGB", (200, 100), "white").save(written, "PNG")
    return written.getvalue()


def test_the_format_is_that_of_the_content() -> None:
    process = ConvertingProcess(MEMORY_LIMIT)
    try:
        assert process.convert(b"* Plans\n\nWe build.", "notes.org").text == "# Plans\n\nWe build."
        assert process.convert(pages(text((700, 12, b"(Inside)"))), "report.bin").text == "## Page 1\n\nInside"
        with pytest.raises(UnreadableDocument, match="which is not supported"):
            process.convert(b"\x1a\x45\xdf\xa3" + bytes(200), "film.mkv")
    finally:
        process.close()


def test_a_mail_brings_its_attachments() -> None:
    mail = (
        b"Subject: Offer\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nSee the file.\n--b\n"
        b"Content-Type: text/csv\nContent-Disposition: attachment; filename=a.csv\n\nprice\n12\n--b--\n"
    )
    process = ConvertingProcess(MEMORY_LIMIT)
    try:
        found = process.convert(mail, "offer.eml")
    finally:
        process.close()

    assert found.text.startswith("# Offer\n")
    assert [each.name for each in found.attachments] == ["a.csv"]


def test_a_picture_without_recognition_says_what_to_do() -> None:
    process = ConvertingProcess(MEMORY_LIMIT)
    try:
        with pytest.raises(UnreadableDocument, match="its text needs recognition"):
            process.convert(picture(), "scan.png")
    finally:
        process.close()


def test_a_service_recognizes_pictures_outside_of_the_process() -> None:
    asked: list[tuple[int, bytes]] = []

    def recognize(number: int, data: bytes) -> RecognizedPage:
        asked.append((number, data[:4]))
        corners = Quad((10.0, 10.0), (90.0, 10.0), (90.0, 30.0), (10.0, 30.0))
        word = FoundWord("Rent", corners, 0.93)
        return recognized_page(number, [FoundLine((word,), corners, 0.93)], (1000, 1000), "service")

    process = ConvertingProcess(MEMORY_LIMIT, "textract", recognize)
    try:
        found = process.convert(picture(), "scan.png")
    finally:
        process.close()

    assert asked == [(1, b"\x89PNG")]
    assert found.text == "## Page 1 (read from an image)\n\nRent"
    assert found.depends_on_recognition
    assert [page.confidence for page in found.recognized] == [pytest.approx(0.93)]


def test_pages_keep_their_numbers_and_lines_are_no_headings() -> None:
    found = in_markdown(ReadText("# 12 of 30\f\fEnd\f", "Report"))

    assert found.text == "# Report\n\n## Page 1\n\n\\# 12 of 30\n\n## Page 3\n\nEnd"


def test_a_file_without_text_is_refused() -> None:
    with pytest.raises(UnreadableDocument, match="no text"):
        in_markdown(ReadText("\f \f"))


CONNECTS: Final = """
import socket, threading, time
from pathlib import Path

def connect():
    asked, told = Path(__file__).with_name("ask"), Path(__file__).with_name("told")
    while not asked.exists():
        time.sleep(0.01)
    try:
        socket.create_connection(("127.0.0.1", 9), 1)
    except Exception as error:
        told.write_text(f"{type(error).__name__}: {error}")

threading.Thread(target=connect, daemon=True).start()
"""
"""What a file might make a library do: it runs in the process, because Python imports a module of this name."""


def test_what_reads_files_has_no_network(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(CONNECTS)
    process = ConvertingProcess(MEMORY_LIMIT, folders=[str(tmp_path)])
    try:
        process.convert(b"* Plans", "notes.org")
        (tmp_path / "ask").touch()
        end = time.monotonic() + 20
        while not (told := tmp_path / "told").exists() and time.monotonic() < end:
            time.sleep(0.01)
    finally:
        process.close()

    assert told.read_text() == "PermissionError: a process that reads files has no network"
