"""Hostile mails, books, data and markup: nothing is fetched or run, and small files cost little time and memory."""

# ruff: noqa: E501 - files in lines

import base64
import io
import json
import struct
import zipfile

import pytest

from ragstack_common.reading.conversion import convert
from ragstack_common.reading.formats import UnreadableDocument
from tests.ragstack_common.reading.test_hostile_files import watched
from tests.support.book_files import epub, mht
from tests.support.doc_files import P, doc
from tests.support.mail_files import compound_file, compressed, outlook

_PAGE = (
    "<link rel=stylesheet href=http://192.0.2.1/a.css><link rel=stylesheet href=../../../../etc/hostname><style>@import "
    "'http://192.0.2.1/b.css'</style><img src=http://192.0.2.1/p.png><iframe src=file:///etc/hostname></iframe><p>a"
)


@pytest.mark.parametrize(
    ("data", "file_format"),
    [
        (f"Subject: s\nContent-Type: text/html\n\n{_PAGE}".encode(), "eml"),
        (b"Subject: s\nContent-Type: message/external-body; access-type=URL; URL=http://192.0.2.1/x\n\nContent-Type: text/plain\n\n", "eml"),
        (compound_file(outlook({0x37: "s", 0x1013: _PAGE.encode()})), "msg"),
        (mht(_PAGE), "mht"),
        (epub([_PAGE], files={"OEBPS/x": "y"}), "epub"),
        (b"<!DOCTYPE a SYSTEM 'file:///etc/hostname'><a xmlns:xi='http://www.w3.org/2001/XInclude'><xi:include href='/etc/hostname'/><b>a</b></a>", "xml"),
        (b"<?xml-stylesheet href='http://192.0.2.1/x.xsl'?><a>a</a>", "xml"),
        (json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": "open('/etc/hostname')", "outputs": [{"output_type": "display_data", "data": {"text/html": f"<table><tr><td>{_PAGE}"}}]}]}).encode(), "ipynb"),
        (b"{\\rtf1 {\\field{\\*\\fldinst INCLUDETEXT /etc/hostname}{\\fldrslt a}}{\\*\\template http://192.0.2.1/x}}", "rtf"),
        (doc({"body": [P([("\x13INCLUDETEXT /etc/hostname\x14a\x15", b"")])]}), "doc"),
        (b"#+INCLUDE: /etc/hostname\n#+SETUPFILE: http://192.0.2.1/x\n[[file:/etc/hostname]] src_python{print(1)}", "org"),
    ],
)  # fmt: skip
def test_nothing_is_fetched(data: bytes, file_format: str) -> None:
    convert(data, file_format)  # loads the libraries

    with watched() as seen:
        convert(data, file_format)
    assert seen == []


@pytest.mark.slow
def test_a_book_that_unpacks_to_too_much_is_refused() -> None:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(9):
            archive.writestr(f"{number}.xhtml", bytes(64 * 1024**2))

    with pytest.raises(UnreadableDocument, match="unpacks to"):
        convert(written.getvalue(), "epub")


def pieces(count: int) -> bytes:
    """Return a document whose pieces are all the same text."""
    data = bytearray(doc({"body": [P([("x" * 60_000, b"")])]}))
    whole = struct.pack("<II", 0, 60_001)
    at = data.index(b"\x02" + struct.pack("<I", 16) + whole)
    struct.pack_into("<I", data, at + 5 + 4, 60_001 * count)
    return bytes(data)


@pytest.mark.slow
@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("data", "file_format"),
    [
        (b"Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\na\n" * 50_000, "eml"),
        (b"Subject: s\n\n" + b">" * 1_000_000 + b"a", "eml"),
        (b"Subject: " + b"=?utf-8?Q?a?= " * 100_000 + b"\n\na", "eml"),
        (b"Subject: " + b"=?utf-8?Q?" * 100_000 + b"\n\na", "eml"),
        (b"Subject: s\nContent-Type: text/plain; format=flowed\n\n" + b"a \n" * 200_000, "eml"),
        (b"Subject: s\nContent-Type: text/plain" + b"; a*0=b" * 20_000 + b"\n\na", "eml"),
        (b"Subject: s\nContent-Type: application/pkcs7-mime\nContent-Transfer-Encoding: base64\n\n" + base64.b64encode(bytes.fromhex("300b06092a864886f70d010702") + bytes.fromhex("06092a864886f70d010701a080") + b"\x24\x80" * 50_000), "eml"),
        (compound_file(outlook({0x37: "s", 0x1009: compressed(b"{\\rtf1\\fromhtml1 " + b"{\\*\\htmltag <b>}" * 500)})), "msg"),
        (b"{\\rtf1 " + b"\\intbl\\itap2000000000 a\\nestcell" * 2_000 + b"}", "rtf"),
        (b"{\\rtf1 " + b"\\trowd\\cellx1\\intbl a\\cell\\row" * 20_000 + b"}", "rtf"),
        (b'{"a": ' + b"9" * 1_000_000 + b"}", "json"),
        (b'{"a": 1' + b', "a": 1' * 200_000 + b"}", "json"),
        (b"[[]," * 1 + b"[]," * 300_000 + b"[]]", "json"),
        (b"WEBVTT\n\n" + b"00:00.000 --> 00:01.000\na\n\n" * 50_000, "vtt"),
        (b"1\n00:00:00,000 --> 00:00:01,000\n" + b"<" * 300_000, "srt"),
        (b"<a>" + b"<b c='d'>e</b>" * 100_000 + b"</a>", "xml"),
        (b"<a>" + b"x<b/>" * 100_000 + b"</a>", "xml"),
        (b"a\t" * 500_000, "tsv"),
        (pieces(50), "doc"),
    ],
)  # fmt: skip
def test_long_files_end_soon(data: bytes, file_format: str) -> None:
    try:
        convert(data, file_format)
    except (UnreadableDocument, MemoryError):
        return
