"""Data, notebooks, XML and subtitles are text that people can find and quote."""

# ruff: noqa: E501, ISC004 - files in lines

import json

import pytest

from ragstack_common.reading.conversion import convert
from ragstack_common.reading.formats import UnreadableDocument


def read(written: str, file_format: str) -> str:
    return convert(written.encode(), file_format).text


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ('{"a": 1.50, "b": 12345678901234567890.10, "c": 1e5, "d": -0, "e": true, "f": null, "g": ""}',
         "- a: 1.50\n- b: 12345678901234567890.10\n- c: 1e5\n- d: -0\n- e: true\n- f: null\n- g:"),
        ('{"name": "Ana", "address": {"city": "Lisbon", "zip": "01067"}, "tags": ["a", "b"], "none": [], "empty": {}}',
         "- name: Ana\n- address:\n  - city: Lisbon\n  - zip: 01067\n- tags: a, b\n- none:\n- empty:"),
        ('{"a": 1, "a": 2}', "- a: 1\n- a: 2"),
        ('{"text": "one\\ntwo <b>", "# x": "# y"}', "- text: one\n  two \\<b>\n- \\# x: \\# y"),
        ('[{"id": "01", "x": 1.0}, {"id": "02", "y": [1, 2]}, {"id": "03", "x": 2, "y": [{"z": 1}]}]',
         "- id: 01\n- x: 1.0\n\n- id: 02\n- y: 1, 2\n\n- id: 03\n- x: 2\n- y 1:\n  - z: 1"),
        ('[{"id": "01", "at": {"city": "Lisbon"}}, {"id": "02", "at": {"city": "Porto | x"}}]',
         "| id | at.city |\n| --- | --- |\n| 01 | Lisbon |\n| 02 | Porto \\| x |"),
        ('{"rows": [{"a": 1, "b": 2}, {"a": 3, "b": 4}], "name": "n"}', "- name: n\n\n## rows\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |"),
        ('[["a", "b"], [1, 2.0]]', "| a | b |\n| --- | --- |\n| 1 | 2.0 |"),
        ('["a", "b"]', "- a\n\n- b"),
        ('"only"', "only"),
        ('{"a": "\\ud83d\\ude00 \\u00f6"}', "- a: 😀 ö"),
        ('{"a": "x data:image/png;base64,' + "A" * 500 + '"}', "- a: x data:image/png"),
        ("{'a': 1, // not JSON\n}", "{'a': 1, // not JSON\n}"),
    ],
)  # fmt: skip
def test_json_is_names_with_values(written: str, shown: str) -> None:
    assert read(written, "json") == shown


@pytest.mark.parametrize("between", ["\n", "\r\n", "\n\n", ",\n", "\x1e"])
def test_json_lines_are_rows_of_a_table(between: str) -> None:
    lines = between.join(['{"id": 1.10, "name": "Ana"}', '{"id": 2, "name": "Bob"}'])

    assert read(lines, "jsonl") == "| id | name |\n| --- | --- |\n| 1.10 | Ana |\n| 2 | Bob |"


def test_records_with_long_texts_are_lists() -> None:
    long = "word " * 200

    assert read(json.dumps([{"a": 1, "b": long}] * 2), "json").startswith("- a: 1\n- b: word word")


def test_json_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(UnreadableDocument, match="nested too deeply"):
        read("[" * 100_000 + "]" * 100_000, "json")


def notebook(*cells: dict[str, object], metadata: dict[str, object] | None = None) -> str:
    return json.dumps({"nbformat": 4, "metadata": metadata or {}, "cells": cells})


def code(source: str, *outputs: dict[str, object]) -> dict[str, object]:
    return {"cell_type": "code", "source": source, "outputs": outputs}


def test_a_notebook_is_its_text_code_and_output() -> None:
    frame = "<table><tr><th></th><th>days</th></tr><tr><td>Lisbon</td><td>30</td></tr></table>"
    cells: list[dict[str, object]] = [
        {"cell_type": "markdown", "source": ["# Leave\n", "Thirty ![a picture](attachment:p.png)."], "attachments": {"p.png": {}}},
        code("print('```')\nx = 1", {"output_type": "stream", "text": ["\x1b[31mred\x1b[0m\n", "10%\r100%\n"]}),
        code("df", {"output_type": "execute_result", "data": {"text/html": frame, "text/plain": "plain"}}),
        code("plot()", {"output_type": "display_data", "data": {"image/png": "iVBOR", "text/plain": "<Figure>"}}),
        code("1/0", {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "by zero", "traceback": ["\x1b[0;31mZeroDivisionError\x1b[0m: by zero"]}),
        {"cell_type": "raw", "source": "raw"},
        {"cell_type": "code", "source": "", "outputs": []},
    ]  # fmt: skip

    found = convert(notebook(*cells, metadata={"title": "T", "language_info": {"name": "python"}}).encode(), "ipynb")

    assert found.title == "T"
    assert found.text == (
        "# Leave\nThirty a picture.\n\n````python\nprint('```')\nx = 1\n````\n\n```\nred\n100%\n```\n\n```python\ndf\n```\n\n"
        "| | days |\n| --- | --- |\n| Lisbon | 30 |\n\n```python\nplot()\n```\n\n```\n<Figure>\n```\n\n```python\n1/0\n```\n\n"
        "```\nZeroDivisionError: by zero\n```\n\n```\nraw\n```"
    )


def test_a_notebook_of_version_3_is_read() -> None:
    cells = [{"cell_type": "heading", "level": 2, "source": "Leave"}, {"cell_type": "code", "input": "x", "outputs": [{"output_type": "pyout", "text": "1"}]}]  # fmt: skip

    assert (
        read(json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]}), "ipynb")
        == "## Leave\n\n```\nx\n```\n\n```\n1\n```"
    )


@pytest.mark.parametrize("written", ["[]", "{", '"a"'])
def test_a_damaged_notebook_is_refused(written: str) -> None:
    with pytest.raises(UnreadableDocument, match="is damaged"):
        read(written, "ipynb")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("<book><country code='af'><name>A &amp; B</name></country><country code='al'><name>Albania</name></country></book>",
         "# book\n\n## country\n\n| code | name |\n| --- | --- |\n| af | A & B |\n| al | Albania |"),
        ("<o xmlns='x' xmlns:y='z' y:id='7' xml:lang='en'><price currency='EUR'>10.50</price><to><name>Ana</name><name>Bob</name></to><!-- no --></o>",
         "# o\n\n- id: 7\n- price: 10.50\n  - currency: EUR\n- to:\n  - name: Ana, Bob"),
        ("<faq><q>Days?</q><a>Thirty.</a><q>More?</q><a>No.</a></faq>", "# faq\n\n- q: Days?\n- a: Thirty.\n- q: More?\n- a: No."),
        ("<rss><channel><title>T</title><item><t>a</t><d>&lt;p&gt;One&lt;/p&gt;&lt;p&gt;two</d></item></channel></rss>",
         "# rss channel\n\n- title: T\n- item:\n  - t: a\n  - d: One\n\n    two"),
        ("<!DOCTYPE a SYSTEM 'http://192.0.2.1/a.dtd'><a><b>caf&eacute;</b></a>", "# a\n\n- b: café"),
        ("<article><info><title>Leave</title></info><section><title>Days</title><para>Thirty <emphasis>days</emphasis> of leave.</para>"
         "<programlisting>a\n b</programlisting><itemizedlist><listitem><para>one <b>x</b></para></listitem></itemizedlist></section></article>",
         "# Leave\n\n## Days\n\nThirty days of leave.\n\n```\na\n b\n```\n\none x"),
    ],
)  # fmt: skip
def test_xml_is_data_or_a_document(written: str, shown: str) -> None:
    assert read(written, "xml") == shown


@pytest.mark.parametrize(
    "data",
    [
        '<?xml version="1.0" encoding="utf-16"?><a><b>größe</b></a>'.encode("utf-16"),
        '<?xml version="1.0" encoding="utf-16"?><a><b>größe</b></a>'.encode("utf-16-le"),
        '<?xml version="1.0" encoding="utf-16"?><a><b>größe</b></a>'.encode(),
        '<?xml version="1.0" encoding="iso-8859-1"?><a><b>größe</b></a>'.encode("iso-8859-1"),
        '\ufeff<?xml version="1.0"?><a><b>größe</b></a>'.encode(),
    ],
)
def test_xml_in_any_encoding_is_read(data: bytes) -> None:
    assert convert(data, "xml").text == "# a\n\n- b: größe"


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ('<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;">]><a>&y;</a>', "declares XML entities"),
        ('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><a>&x;</a>', "declares XML entities"),
        ('<!DOCTYPE a [<!ENTITY % x SYSTEM "http://192.0.2.1/x"> %x;]><a/>', "declares XML entities"),
        ("<a><b></a>", "is damaged"),
        ("<a>" * 50_000 + "</a>" * 50_000, "nested too deeply"),
    ],
)
@pytest.mark.timeout(20)
def test_hostile_xml_is_refused(written: str, reason: str) -> None:
    with pytest.raises(UnreadableDocument, match=reason):
        read(written, "xml")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (
            "Cups\t\t\r\nTeam\tCups\t\r\n\r\nBlues\t01\t\r\n",
            "Cups\n\n| Team | Cups | |\n| --- | --- | --- |\n| Blues | 01 | |",
        ),
        ("a\tb\n1\t1\n", "| a | b |\n| --- | --- |\n| 1 | 1 |"),
        ('a\tb\n"x ""y"" \n z"\t2\n', '| a | b |\n| --- | --- |\n| x "y" z | 2 |'),
        ('a\tb\n"5\' 3"\t"x\n3" pipe\ty\n', '| a | b |\n| --- | --- |\n| "5\' 3" | "x |\n| 3" pipe | y |'),
        ("only\nlines", "only\n\nlines"),
    ],
)
def test_a_tab_separated_file_is_a_table(written: str, shown: str) -> None:
    assert read(written, "tsv") == shown


VTT = """\ufeffWEBVTT - Leave
Kind: captions

STYLE
::cue { color: red }

NOTE a comment
of two lines

1
00:00:01.000 --> 00:00:02.500 align:start
<v.loud Ana Lopez>Thirty <i>days</i>

intro
00:02.500 --> 00:04.000
<v Ana Lopez>of leave &amp; more.

00:00:05.000 --> 00:00:06.000
<v Bob>Yes.</v>
<v Ana Lopez>- <c.red>Really</c>?

01:02:03.000 --> 01:02:04.000
42
"""


@pytest.mark.parametrize(
    ("written", "file_format", "shown"),
    [
        (VTT, "vtt", "[00:00:01] Ana Lopez: Thirty days of leave & more.\n\n[00:00:05] Bob: Yes.\n\n[00:00:05] Ana Lopez: - Really?\n\n[01:02:03] 42"),
        ('1\r\n00:00:01,000 --> 00:00:02,000\r\n{\\an8}<i>Thirty</i>\r\ndays\r\n\r\n2\r\n00:00:02,100 --> 00:00:03,000\r\nof leave.\r\n\r\n3\r\n00:01:00,0 --> 00:01:01,0\r\n<font color="#fff">42</font>\r\n',
         "srt", "[00:00:01] Thirty days of leave.\n\n[00:01:00] 42"),
        ("WEBVTT\n\n00:00.000 --> 00:01.000\nso the\n\n00:01.000 --> 00:02.000\nso the\nleave is\n\n00:02.000 --> 00:03.000\nleave is\nthirty days\n", "vtt", "[00:00:00] so the leave is thirty days"),
        ("1\n00:00:01,000 --> 00:00:02,000\na\n2\n00:00:30,000 --> 00:00:31,000\nb", "srt", "[00:00:01] a\n\n[00:00:30] b"),
    ],
)  # fmt: skip
def test_subtitles_are_sentences_with_their_times(written: str, file_format: str, shown: str) -> None:
    assert read(written, file_format) == shown
