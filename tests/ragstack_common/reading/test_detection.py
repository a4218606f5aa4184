"""The content of a file decides its format, whatever its name says."""

# ruff: noqa: E501 - signatures

import gzip
import io
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.reading import formats
from ragstack_common.reading.encodings import decoded
from tests.support.damaged_files import SEEDS
from tests.support.office_files import compound

NAMES = ("a", "a.bin", "a.doc", "a.pdf", "a.xls", "a.docx", "a.png", "a.eml")
MAIL = (
    "Received: from a.example\r\nFrom: Ana <ana@a.example>\r\nTo: b@b.example\r\nSubject: Leave\r\n\r\nThirty days.\r\n"
)


def zipped(*parts: tuple[str, str]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, content in parts:
            archive.writestr(name, content)
    return written.getvalue()


def tarred() -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"))
    return written.getvalue()


def types(main: str) -> bytes:
    return zipped(
        ("[Content_Types].xml", f'<Types><Override PartName="/x" ContentType="application/{main}"/></Types>'), ("x", "")
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("file_format", ["docx", "html", "rtf", "xls", "xlsx"])
def test_the_seeds_of_readers_are_recognized(file_format: str, name: str) -> None:
    assert formats.of_content(SEEDS[file_format], name) == file_format


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("data", "file_format"),
    [
        (types("vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"), "docx"),
        (types("vnd.ms-word.document.macroEnabled.main+xml"), "docx"),
        (types("vnd.openxmlformats-officedocument.spreadsheetml.template.main+xml"), "xlsx"),
        (types("vnd.ms-excel.sheet.macroEnabled.main+xml"), "xlsx"),
        (types("vnd.ms-excel.sheet.binary.macroEnabled.main"), "xlsb"),
        (types("vnd.openxmlformats-officedocument.presentationml.slideshow.main+xml"), "pptx"),
        (zipped(("mimetype", "application/vnd.oasis.opendocument.text"), ("content.xml", "")), "odt"),
        (zipped(("mimetype", "application/vnd.oasis.opendocument.spreadsheet-template")), "ods"),
        (zipped(("META-INF/manifest.xml", '<m media-type="application/vnd.oasis.opendocument.presentation"/>')), "odp"),
        (zipped(("mimetype", "application/epub+zip"), ("META-INF/container.xml", "")), "epub"),
        (zipped(("META-INF/container.xml", ""), ("a.xhtml", "")), "epub"),
        (compound("WordDocument", b"a"), "doc"),
        (compound("Book", b"a"), "xls"),
        (compound("PowerPoint Document", b"a"), "ppt"),
        (compound("__properties_version1.0", b"a"), "msg"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "pdf"),
        (b"\x89PNG\r\n\x1a\n....", "png"),
        (b"\xff\xd8\xff\xe0....", "jpg"),
        (b"GIF89a....", "gif"),
        (b"MM\x00*....", "tiff"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "webp"),
        (b"\xef\xbb\xbf{\\rtf1 a}", "rtf"),
        (MAIL.encode(), "eml"),
        (MAIL.encode("utf-16"), "eml"),
        (MAIL.encode("utf-16-be"), "eml"),
        (b"From a@a.example Mon Jan  5 2026\n" + MAIL.encode(), "eml"),
        (b"From: <Saved by Blink>\r\nSubject: a\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related;\r\n\tboundary=b\r\n\r\n--b", "mht"),
        (b"\n<!-- x --><!DOCTYPE html><p>a", "html"),
        (b'<?xml version="1.0"?>\n<!DOCTYPE html><html>', "html"),
        (b"<table><tr><td>a</table>", "html"),
        ('<?xml version="1.0" encoding="utf-16"?><a/>'.encode("utf-16"), "xml"),
        (b"<feed xmlns='a'><entry/></feed>\n", "xml"),
        (b'{"cells": [], "metadata": {}, "nbformat": 4}', "ipynb"),
        (b'[{"a": 1.50}]', "json"),
        (b'{"a": 1}\n{"a": 2}\n', "jsonl"),
        (b"\xef\xbb\xbfWEBVTT - a\n\n00:01.000 --> 00:02.000\na\n", "vtt"),
        (b"1\r\n00:00:01,000 --> 00:00:02,000\r\na\r\n", "srt"),
        (b"a\tb\n1\t2\n", "tsv"),
        (b"a,b\n1,2\n3,4\n", "csv"),
        ("Привет, мир. Как дела?".encode("cp1251"), "txt"),
        ("日本語の文章です。".encode("shift_jis"), "txt"),
        ("Größe".encode("utf-16-le"), "txt"),
        (b"[1] A paper.\n[2] Another one.", "txt"),
        (b"{draft} a text", "txt"),
        (b"Note: nothing\n\nSubject: to change", "txt"),
    ],
)  # fmt: skip
def test_the_content_decides(data: bytes, file_format: str, name: str) -> None:
    assert formats.of_content(data, name) == file_format


@pytest.mark.parametrize("file_format", ["md", "csv", "rst", "org", "tsv", "srt"])
@pytest.mark.parametrize(
    "text", ["a, b", "<div align=center>\n\n# Title\n</div>", '{"a": 1}', "Date: today\nSubject: x\n\ntext"]
)
def test_the_extension_decides_between_kinds_of_text(text: str, file_format: str) -> None:
    assert formats.of_content(text.encode(), f"A.{file_format.upper()}") == file_format


@pytest.mark.parametrize("name", ["a.md", "a.csv", "a.txt"])
def test_a_page_is_one_with_any_extension(name: str) -> None:
    assert formats.of_content(b"<!doctype html><html><p>Not found", name) == "html"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (gzip.compress(b"a"), "an archive"),
        (zipped(("a.txt", "a")), "an archive"),
        (tarred(), "an archive"),
        (zipped(("Index/Document.iwa", "a")), "Pages, Numbers or Keynote"),
        (b"\x00\x00\x00\x20ftypisom" + bytes(9), "a video"),
        (b"\x00\x00\x00\x20ftypheic" + bytes(9), "a HEIC image"),
        (b"\x1aE\xdf\xa3" + bytes(9), "a video"),
        (b"ID3\x04" + bytes(9), "a sound file"),
        (b"MZ\x90\x00" + bytes(9), "a program"),
        (b"\x78\x9f\x3e\x22" + bytes(9), "a winmail.dat file of Outlook"),
        (bytes(range(256)) * 9, "in an unknown format"),
        (compound("VisioDocument", b"a"), "of another program"),
    ],
)
@pytest.mark.parametrize("name", ["a", "a.docx", "a.txt"])
def test_what_is_not_read_is_named(data: bytes, what: str, name: str) -> None:
    with pytest.raises(formats.UnreadableDocument, match=f"{what}.* is not supported: use one of txt, .*epub"):
        formats.of_content(data, name)


def test_an_encrypted_document_is_named_so() -> None:
    with pytest.raises(formats.UnreadableDocument, match=r"^The \.xlsx file is protected by a password"):
        formats.of_content(compound("EncryptedPackage", b"a"), "a.xlsx")


@pytest.mark.parametrize("data", [b"", b" \r\n\t"])
def test_an_empty_file_is_named_so(data: bytes) -> None:
    with pytest.raises(formats.UnreadableDocument, match="The file is empty"):
        formats.of_content(data, "a.txt")


@pytest.mark.parametrize("file_format", ["docx", "xlsx"])
def test_a_package_that_ends_early_is_left_to_its_reader(file_format: str) -> None:
    data = SEEDS[file_format]

    assert formats.of_content(data[: len(data) * 3 // 4], "a.bin") == file_format


@given(st.binary(min_size=1), st.sampled_from(["", "a.docx", "a.doc", "a.json", "a.eml", "a.txt"]))
def test_any_bytes_have_a_format_or_a_reason(data: bytes, name: str) -> None:
    try:
        found = formats.of_content(data, name)
    except formats.UnreadableDocument:
        return
    assert found in formats.FORMATS


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_text_in_utf_16_is_read_without_a_mark(encoding: str) -> None:
    assert decoded("Thirty days, größer €5.".encode(encoding)) == "Thirty days, größer €5."
