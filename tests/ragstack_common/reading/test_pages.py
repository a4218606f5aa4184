"""What a browser shows is the text of a web page."""

# ruff: noqa: E501 - HTML

import shutil
import subprocess
from pathlib import Path

import pytest

from ragstack_common.reading.html.pages import read


def text(html: str) -> str:
    return read(html.encode()).text


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>{}</p>",
        '<p style="color: red; DISPLAY : none">{}</p>',
        "<p style='visibility:hidden'>{}</p>",
        "<template><p>{}</p></template>",
        "<noscript>{}</noscript>",
        "<script>{}</script>",
        "<!-- {} -->",
        "<dialog>{}</dialog>",
        "<iframe>{}</iframe>",
        "<video>{}</video>",
        "<object>{}</object>",
        "<svg><title>{}</title><desc>{}</desc></svg>",
        "<style>.gone {{ display: none }}</style><p class='a gone'>{}</p>",
        "<style>#k > .b, h6 {{ display:none!important }} .b {{ display:block }}</style><div id=k><p class=b>{}</p></div>",
        '<input type=hidden value="{}">',
        '<p><img alt="{}" src=x></p>',
    ],
)
def test_what_a_browser_hides_is_not_read(hidden: str) -> None:
    assert text(f"<p>before</p>{hidden.format('secret', 'secret')}<p>after</p>") == "before\n\nafter"


OUT_OF_SIGHT = [
    "position:absolute; left:-9999px",
    "position:fixed; top:-100em",
    "position:absolute; clip:rect(0 0 0 0)",
    "position:absolute; clip:rect(1px, 1px, 1px, 1px)",
    "clip-path:inset(50%)",
    "clip-path:circle(0)",
    "clip-path:polygon(0 0, 0 0, 0 0)",
    "text-indent:-9999px",
    "font-size:0",
    "font:0/0 a",
    "opacity:0",
    "opacity:0.0",
    "width:1px; height:1px; overflow:hidden",
    "height:0; overflow:hidden",
]
IN_SIGHT = [
    "position:relative; left:-9px",
    "left:-9999px",
    "clip:rect(0 0 0 0)",
    "position:absolute; clip:rect(0 90px 20px 0)",
    "clip-path:inset(10%)",
    "clip-path:circle(50%)",
    "text-indent:-2em",
    "font-size:0.8em",
    "font:12px/0 serif",
    "opacity:0.1",
    "opacity:0; animation:appear 1s forwards",
    "height:0",
    "width:100px; overflow:hidden",
    "height:0; overflow:hidden; padding-bottom:56.25%",
]


@pytest.mark.parametrize("style", OUT_OF_SIGHT)
def test_what_is_painted_where_nobody_sees_it_is_not_read(style: str) -> None:
    assert text(f"<p>before</p><p style='{style}'>secret</p><p>after</p>") == "before\n\nafter"
    assert text(f"<style>.a {{ {style} }}</style><p>before</p><p class=a>secret</p><p>after</p>") == "before\n\nafter"


@pytest.mark.parametrize("style", IN_SIGHT)
def test_what_is_only_moved_or_cut_a_little_is_read(style: str) -> None:
    assert text(f"<p style='{style}'>word 7</p>") == "word 7"


# What Chromium's innerText agrees about: it lists texts without looking at the place where they are painted.
AGREED = [
    ("<p aria-hidden=true>word</p>", True),
    ("<p style='visibility:hidden'>word</p>", False),
    ("<div style='visibility:hidden'>a<p style='visibility:visible'>word</p></div>", True),
    ("<table><tr style='visibility:collapse'><td>word</table>", False),
    ("<p hidden>word</p>", False),
    ("<p hidden style='display:block'>word</p>", True),
    ("<div popover>word</div>", False),
    ("<div popover style='display:block'>word</div>", True),
    ("<style>.l0:not(.x, .y) { display:none }</style><p class=l0>word</p>", False),
    ("<style>.l1:not(.x, .y) { display:none }</style><p class='l1 y'>word</p>", True),
    ("<style>.l2, .l3 { display:none }</style><p class=l3>word</p>", False),
    ("<p style='position:relative; left:-9px'>word</p>", True),
]


@pytest.mark.parametrize(("html", "is_shown"), AGREED)
def test_what_is_hidden_is_hidden_as_in_a_browser(html: str, is_shown: bool) -> None:
    assert ("word" in text(html)) == is_shown


@pytest.mark.skipif(shutil.which("chromium") is None, reason="apt install chromium")
def test_chromium_agrees(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    cases = "".join(f"<section>{html}</section>" for html, _ in AGREED)
    script = (
        "document.title = [...document.querySelectorAll('section')].map(each => each.innerText.includes('word')).join()"
    )
    page.write_text(f"<!doctype html><title></title>{cases}<script>{script}</script>")

    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path}",
        "--dump-dom",
        page.as_uri(),
    ]
    dumped = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    assert f"<title>{','.join(str(is_shown).lower() for _, is_shown in AGREED)}</title>" in dumped


def test_text_without_a_size_hides_no_text_with_one() -> None:
    page = "<ul style='font-size:0'> gap <li style='font-size:16px'>a <b style='font-size:80%'>b</b></li><li style='font-size:2em'>c</li></ul>"

    assert text(page) == "- a b"


def test_a_body_that_waits_for_its_script_is_read() -> None:
    assert text("<body style='opacity:0; visibility:hidden'><p>a") == "a"


@pytest.mark.parametrize(
    "shown",
    [
        "<details><summary>More</summary>{}</details>",
        "<style>p {{ display:none }} .yes {{ display:block }}</style><div class=yes><div>{}</div></div>",
        "<style>@media print {{ div {{ display:none }} }} @media (max-width: 9em) {{ div {{ display:none }} }}</style><div>{}</div>",
        "<style>div:hover {{ display:none }}</style><div>{}</div>",
        "<svg><text>{}</text></svg>",
        "<textarea>{}</textarea>",
        "<input value='{}'>",
        "<select><option>no<option selected>{}</select>",
    ],
)
def test_what_a_browser_shows_is_read(shown: str) -> None:
    assert "word 7" in text(shown.format("word 7"))


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<details><summary>Hours</summary>Ramp C</details>", "Hours\n\nRamp C"),
        ("<div>a</div>b<div>c</div>", "a\n\nb\n\nc"),
        ("<span style='display:block'>a</span><span style='display:block'>b</span>", "a\n\nb"),
        ("<div style='display:flex'><span>a</span><span>b</span></div>", "a\n\nb"),
        ("<p>a<br>b&nbsp;  c</p>", "a\nb c"),
        ("<b>H</b>ello <i>w</i>orld", "Hello world"),
        ("28<sup>3</sup> days, m<sup>2</sup>, 10<sup>-6</sup>, H<sub>2</sub>O", "28³ days, m², 10⁻⁶, H₂O"),
        ("28<sup><a href='#n'>3</a></sup>, 1<sup>st</sup>, Acme<sup>TM</sup>", "28³, 1st, Acme TM"),
        ("<math><msup><mn>10</mn><mn>6</mn></msup></math>", "10⁶"),
        ("2<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math>", "2 1/2"),
        ("<ruby>東<rp>(</rp><rt>とう</rt><rp>)</rp>京<rt>きょう</rt></ruby>", "東京(とうきょう)"),
        ("<p># not a heading</p><p>a &lt;b&gt;</p>", "\\# not a heading\n\na \\<b>"),
        ("<pre>a\n  b # c</pre>", "```\na\n  b # c\n```"),
        ("<h2>A <em>b</em></h2>c", "## A b\n\nc"),
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", "- a\n  - b\n- c"),
        ("<ol start=3><li>a<li value=7>b<li>c</ol>", "3. a\n7. b\n8. c"),
        ("<ol type=a><li>a</ol><ol type=I reversed><li>a<li>b</ol>", "a. a\nII. a\nI. b"),
        ("<input type=checkbox checked>Yes <input type=radio>No", "[x] Yes [ ] No"),
    ],
)
def test_the_text_is_in_the_form_in_which_it_is_shown(html: str, shown: str) -> None:
    assert text(html) == shown


def test_merged_cells_have_their_text_in_each_row_and_column() -> None:
    found = text(
        "<table><caption>Limits</caption><thead><tr><th rowspan=2>Site<th colspan=2>2025<tr><th>Q1<th>Q2</thead>"
        "<tr><td rowspan=2>Lisbon<td>1<td>2<tr><td>3<td>4 | 5<tr><td colspan=3>All in euros</table>"
    )

    assert found == (
        "Limits\n\n| Site | 2025 Q1 | 2025 Q2 |\n| --- | --- | --- |\n| Lisbon | 1 | 2 |\n| Lisbon | 3 | 4 \\| 5 |\n"
        "| All in euros | | |"
    )


def test_the_words_of_a_cell_are_whole_and_those_of_its_blocks_apart() -> None:
    found = text("<table><tr><th>a<th>b<tr><td><b>H</b>ello <i>w</i>orld<td><p>one</p><p>two</p>28<sup>3</sup></table>")

    assert found.splitlines()[-1] == "| Hello world | one two 28³ |"


def test_a_table_that_arranges_the_page_is_not_a_table() -> None:
    assert text("<table><tr><td><h2>News</h2>a<td>b<tr><td>c<td>d</table>") == "## News\n\na\n\nb\n\nc\n\nd"


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        ("<p>señor".encode(), None),
        ("<p>señor".encode("latin-1"), "cp1252"),
        ("<meta charset=iso-8859-1><p>señor".encode("latin-1"), None),
        ('<?xml version="1.0" encoding="windows-1252"?><p>señor'.encode("latin-1"), None),
        ("<p>señor".encode("utf-16"), "cp1252"),
        ("<meta charset=utf-16><p>señor".encode(), None),
        ("<meta charset=base64><p>señor".encode(), None),
        ("<meta charset=cp037><p>señor".encode(), None),
    ],
)
def test_a_page_is_read_in_its_encoding(data: bytes, charset: str | None) -> None:
    assert read(data, charset).text == "señor"


def test_the_title_of_a_page_is_that_of_its_window() -> None:
    assert read(b"<title> Staff &amp;\n handbook</title><h1>Leave</h1>").title == "Staff & handbook"


def test_a_page_can_be_nested_deeply() -> None:
    assert text("<div>" * 20_000 + "a") == "a"


def test_a_table_with_text_in_one_column_only_arranges_it() -> None:
    page = (
        b"<table><tr><td></td><td><p>One</p><p>two</p></td><td></td></tr><tr><td>&nbsp;</td><td>three</td></tr></table>"
    )

    assert read(page).text == "One\n\ntwo\n\nthree"
