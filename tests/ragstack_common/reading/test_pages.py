"""What a browser shows is the text of a web page."""

# ruff: noqa: E501 - HTML

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
    ],
)
def test_a_page_is_read_in_its_encoding(data: bytes, charset: str | None) -> None:
    assert read(data, charset).text == "señor"


def test_the_title_of_a_page_is_that_of_its_window() -> None:
    assert read(b"<title> Staff &amp;\n handbook</title><h1>Leave</h1>").title == "Staff & handbook"


def test_a_page_can_be_nested_deeply() -> None:
    assert text("<div>" * 20_000 + "a") == "a"
