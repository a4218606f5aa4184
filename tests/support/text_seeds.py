"""A file of each format that is text or a mail, which has what its reader tells apart."""

# ruff: noqa: E501 - files in lines

from collections.abc import Callable, Mapping
from typing import Final

from ragstack_common.reading.html import books
from ragstack_common.reading.mail import archives, eml, msg
from ragstack_common.reading.plain import json_files, markup, notebooks, org, separated, subtitles
from ragstack_common.reading.word import word97
from tests.support.book_files import epub, mht
from tests.support.doc_files import HIDDEN, IN_TABLE, SPECIAL, P, doc, item_of, row_of
from tests.support.mail_files import compound_file, compressed, outlook


def _read_rst(data: bytes) -> str:
    from ragstack_common.reading.plain import restructured  # noqa: PLC0415 - docutils takes time, and few tests need it

    return restructured.read(data)


READERS: Final[Mapping[str, Callable[[bytes], object]]] = {
    "doc": word97.read,
    "eml": eml.read,
    "epub": books.read,
    "ipynb": notebooks.read,
    "json": json_files.read,
    "mht": archives.read,
    "msg": msg.read,
    "org": org.read,
    "rst": _read_rst,
    "tsv": separated.read,
    "vtt": subtitles.read,
    "xml": markup.read,
}
_EML: Final = (
    b'Subject: =?utf-8?Q?gr=C3=B6?= =?cp1251?B?4g==?=\nFrom: "Lopez, Ana" <ana@a.example>\nDate: Mon, 5 Jan 2026 09:05:00 +0100\n'
    b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=m\n\n--m\nContent-Type: multipart/alternative; boundary=a\n\n--a\n"
    b"Content-Type: text/plain; charset=utf-8; format=flowed; delsp=yes\nContent-Transfer-Encoding: quoted-printable\n\n> gr=C3=B6 \n> b\n"
    b'--a\nContent-Type: multipart/related; boundary=r; start="<s>"\n\n--r\nContent-Type: text/html; charset=iso-8859-1\nContent-ID: <s>\n'
    b"Content-Transfer-Encoding: base64\n\nPHA+YTxpbWcgc3JjPWNpZDpwPg==\n--r\nContent-Type: image/png; name=p.png\nContent-ID: <p>\n\nx\n--r--\n"
    b"--a--\n--m\nContent-Type: message/rfc822\n\nSubject: in\n\nb\n--m\nContent-Type: message/delivery-status\n\nA: b\n\nC: d\n--m\n"
    b"Content-Type: application/pdf\nContent-Disposition: attachment; filename*0*=utf-8''a%C3; filename*1*=%A4.pdf\n\nx\n--m\n"
    b"Content-Type: application/pkcs7-mime\nContent-Transfer-Encoding: base64\n\n"
    b"MCUGCSqGSIb3DQEHAqAYMBYCAQExADAPBgkqhkiG9w0BBwGgAgQA\n--m--\n"
)
_MSG: Final = compound_file(
    outlook(
        {
            0x37: "s",
            0x0C1A: "Ana",
            0x1000: "a",
            0x1009: compressed(rb"{\rtf1\fromhtml1 {\*\htmltag64 <p>}\htmlrtf x\htmlrtf0 a\'f6\par}"),
        },
        {0x39: 10**17, 0x3FDE: 1252},
        recipients=[({0x3001: "b", 0x39FE: "b@b.example"}, 2)],
        files=[{0x3707: "a.txt", 0x3701: b"x"}, {0x3701: outlook({0x37: "t", 0x1013: b"<p>b"}, inner=True)}],
    )
)
_EPUB: Final = epub(
    [
        "<html><head><link rel='stylesheet' href='a.css'/></head><body><p class='a'>One</p><p>b</p></body></html>",
        "<h1>Two</h1>",
    ],
    contents={0: "One", 1: "Two"},
    files={
        "OEBPS/a.css": ".b { display: none }",
        "META-INF/encryption.xml": "<a><EncryptedData><CipherReference URI='f'/></EncryptedData></a>",
    },
)
_MHT: Final = mht(
    "<link rel=stylesheet href=a.css><p>a",
    [("text/css", "http://a.example/a.css", "b{display:none}"), ("text/html", "cid:f", "<p>f")],
)
_IPYNB: Final = (
    b'{"nbformat": 4, "metadata": {"title": "t", "kernelspec": {"language": "r"}}, "cells": [{"cell_type": "markdown",\n"source": ["# a"]},\n'
    b'{"cell_type": "code", "source": "x", "outputs": [{"output_type": "stream", "text": "a\\rb\\u001b[0m"},\n{"output_type": "error",\n'
    b'"traceback": ["t"]},\n{"output_type": "display_data", "data": {"text/html": "<table><tr><td>a<td>b<tr><td>c"}}]}],\n"worksheets": [{"cells": []}]}'
)
_DOC: Final = doc(
    {
        "body": [
            P([("Title", b"")], style=1), P([("a", HIDDEN), ("\x13", SPECIAL), ("PAGE", b""), ("\x14", SPECIAL), ("1\x15\x02", SPECIAL)], item_of(1)),
            P([("c", b"")], IN_TABLE, end="\x07"), P([("d", b"")], IN_TABLE, end="\x07"), P([], row_of(500, 900), end="\x07"),
            P([("e", b"")], IN_TABLE, end="\x07"), P([], row_of(900), end="\x07"),
        ],
        "footnotes": [P([("\x02", SPECIAL), ("n", b"")])],
        "headers": [P([("h", b"")]) for _ in range(6)],
        "text boxes": [P([("box", b"")])],
    },
    notes=[10], headers=[2] * 6, levels=[(1, 0, "\x00.")],
)  # fmt: skip
SEEDS: Final[Mapping[str, bytes]] = {
    "doc": _DOC,
    "eml": _EML,
    "epub": _EPUB,
    "ipynb": _IPYNB,
    "json": b'{"a": [{"b": 1.50, "c": [1, 2]}, {"b": null, "c": "x\\ud83d"}],\n"d": {"e": [[1], {"f": []}]},\n"d": "data:image/png;base64,'
    + b"A" * 99
    + b'"}',
    "mht": _MHT,
    "msg": _MSG,
    "org": b"#+TITLE: T\n* TODO [#A] a :b:\n:D:\n:END:\n- x [[f.png]] [[a][b]]\n  1. y\n| a | b |\n|---+---|\n| =c= | *d* |\n#+begin_src c\n,* x\n#+end_src\n#+begin_quote\nq\n#+end_quote\n: f\n[fn:1] n\n* COMMENT c\n",
    "rst": b"T\n=\n\n:A: b\n\n.. note:: x\n\n.. other:: y\n   :z: 1\n\n   c\n\n:ref:`a <b>` |s| [1]_\n\n.. |s| replace:: t\n\n1. a\n\n   - b\n\n+---+---+\n| a | b |\n+===+===+\n| c | d |\n+   +---+\n|   | e |\n+---+---+\n\n==  ==\na   b\n==  ==\nc   d\n==  ==\n\n::\n\n  l\n\n| x\n\n.. [1] n\n",
    "tsv": b'title\n"a"\t"b"\n"c ""d"" "\t1\n',
    "vtt": b"WEBVTT\n\nNOTE a\n\n1\n00:00:01.000 --> 00:00:02.000 align:start\n<v.x Ana>a &amp; <i>b</i>\n\n00:03.5 --> 00:04\na\nc\n",
    "xml": b"<?xml version='1.0' encoding='utf-8'?><!DOCTYPE a SYSTEM 'x'><a b='c'><d>1</d><d e='2'>&lt;p&gt;x</d>\n<sec><title>t</title><p>a <i>b</i> &eacute;</p>"
    b"<table><row><c>1</c><c>2</c></row></table><li>x</li></sec></a>",
}
