"""Decoding and formats, without a server."""

import time
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from ragstack_local.bedrock.reading import conversion, formats
from ragstack_local.bedrock.reading.formats import UnreadableDocument
from ragstack_local.bedrock.reading.parsing import Parser


@pytest.mark.parametrize(
    ("encoding", "mark"), [("utf-8", b""), ("utf-8-sig", b""), ("utf-16", b""), ("cp1252", b""), ("utf-32", b"")]
)
def test_a_text_is_read_in_its_encoding(encoding: str, mark: bytes) -> None:
    text = "Größe und Übermut tun selten gut. Die Füße trägt er über die Brücke."

    parsed = Parser().parse(mark + text.encode(encoding), "txt")

    assert parsed.text == text


@pytest.mark.parametrize(
    ("found", "kept"), [("a \ud83d\ude00 b", "a 😀 b"), ("a \ud83d b", "a \ufffd b"), ("plain", "plain")]
)
def test_halves_of_characters_are_put_together_or_replaced(found: str, kept: str) -> None:
    assert conversion._whole(found) == kept


def test_a_zip_bomb_is_refused_before_it_unpacks() -> None:
    data = BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("word/document.xml", "w") as entry:
        for _ in range(600):
            entry.write(bytes(1024 * 1024))
    parser = Parser()

    with pytest.raises(UnreadableDocument, match="would unpack to"):
        parser.parse(data.getvalue(), "docx")
    parser.close()


def test_a_file_that_takes_too_long_is_given_up_and_the_next_one_is_read() -> None:
    parser = Parser(time_limit_seconds=3)
    nested = b"<html><body>" + b"<div><p>word " * 300_000
    start = time.monotonic()

    with pytest.raises(UnreadableDocument, match=r"The|Reading"):
        parser.parse(nested, "html")
    taken = time.monotonic() - start
    after = parser.parse(b"<p>Herons</p>", "html")
    parser.close()

    assert taken < 10
    assert after.text.strip() == "Herons"


def test_the_message_for_an_unknown_type_lists_the_known_ones() -> None:
    with pytest.raises(UnreadableDocument) as caught:
        formats.of_name("s3://bucket/film.mp4")

    assert str(caught.value) == (
        "The file type .mp4 is not supported: use one of csv, doc, docx, html, md, pdf, txt, xls, xlsx."
    )


def test_every_shared_file_is_indexed_or_fails_with_a_reason(shared_data: Path) -> None:
    parser = Parser()
    files = [path for path in sorted((shared_data / "files").rglob("*")) if 0 < path.stat().st_size < 40_000]
    outcomes, reasons = [], []

    for path in files:
        if not path.is_file():
            continue
        try:
            parsed = parser.parse(path.read_bytes(), formats.of_name(path.name))
            outcomes.append(len(parsed.text) > 0)
        except UnreadableDocument as error:
            reasons.append(str(error))
    parser.close()

    assert sum(outcomes) > 50
    assert all(reason.endswith(".") for reason in reasons)
    assert not [reason for reason in reasons if "ended its reader" in reason]
