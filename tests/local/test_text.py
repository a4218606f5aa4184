"""Decoding and formats, without a server."""

import struct
import time
import zipfile
from io import BytesIO

import pytest

from ragstack_local.bedrock.reading import conversion, formats
from ragstack_local.bedrock.reading.formats import UnreadableDocument
from ragstack_local.bedrock.reading.parsing import TIME_LIMIT_SECONDS, Parser


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
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", bytes(1024))
    # What it says of itself counts: to make one that says the truth would take longer than to refuse it.
    data = bytearray(packed.getvalue())
    said = data.index(b"PK\x01\x02") + 24
    data[said : said + 4] = struct.pack("<I", 600 * 1024 * 1024)
    parser = Parser()

    with pytest.raises(UnreadableDocument, match="would unpack to 629,145,600 bytes"):
        parser.parse(bytes(data), "docx")
    parser.close()


def test_a_file_that_takes_too_long_is_given_up_and_the_next_one_is_read() -> None:
    parser = Parser(time_limit_seconds=3)
    nested = b"<html><body>" + b"<div><p>word " * 300_000
    start = time.monotonic()

    with pytest.raises(UnreadableDocument, match=r"The|Reading"):
        parser.parse(nested, "html")
    taken = time.monotonic() - start
    # A new reader starts for the next one, which on a busy machine takes longer than the first one had.
    parser._time_limit_seconds = TIME_LIMIT_SECONDS
    after = parser.parse(b"<p>Herons</p>", "html").text.strip()
    parser.close()

    assert taken < 60
    assert after == "Herons"


def test_the_message_for_an_unknown_type_lists_the_known_ones() -> None:
    with pytest.raises(UnreadableDocument) as caught:
        formats.of_name("s3://bucket/film.mp4")

    assert str(caught.value) == (
        "The file type .mp4 is not supported: use one of csv, doc, docx, html, md, pdf, txt, xls, xlsx."
    )
