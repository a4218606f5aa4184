"""What LibreOffice shows of texts and presentations is their text."""

# ruff: noqa: E501 - XML

import pytest

from ragstack_common.reading import formats
from ragstack_common.reading.census import opendocument
from ragstack_common.reading.conversion import convert
from tests.support.open_files import (
    COMMENT,
    PICTURE,
    box,
    chart,
    drawn,
    formula,
    listed,
    note,
    open_document,
    p,
    row,
    slide,
    style,
)

HIDDEN = style("Gone", "text", '<style:text-properties text:display="none"/>') + style(
    "Deeper", "text", attributes='style:parent-style-name="Gone"'
)
RAISED = style("Up", "text", '<style:text-properties style:text-position="super 58%"/>')
NUMBERED = (
    '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/>'
    '<text:list-level-style-number text:level="2" style:num-format="a" style:num-prefix="(" style:num-suffix=")" text:start-value="3"/>'
    '<text:list-level-style-number text:level="3" style:num-format="i" text:display-levels="3"/></text:list-style>'
    '<text:list-style style:name="B"><text:list-level-style-bullet text:level="1" text:bullet-char="•"/></text:list-style>'
)
PAGE = '<style:master-page style:name="{}" {}>{}</style:master-page>'


def read(body: str, **parts: str) -> str:
    return convert(open_document("text", body, **parts), "odt").text  # type: ignore[arg-type]


def span(text: str, named: str) -> str:
    return f'<text:span text:style-name="{named}">{text}</text:span>'


def test_headings_have_their_level_and_number() -> None:
    outline = (
        '<text:outline-style><text:outline-level-style text:level="1" style:num-format="1"/>'
        '<text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2"/></text:outline-style>'
    )
    headings = [("1", "a"), ("2", "b"), ("2", "c"), ("1", "d"), ("2", "e")]
    body = "".join(p(text, name="h", attributes=f'text:outline-level="{level}"') for level, text in headings)

    assert read(body, common=outline).split("\n\n") == ["# 1 a", "## 1.1 b", "## 1.2 c", "# 2 d", "## 2.1 e"]
    assert (
        read(
            p("Plan", style="P1"),
            automatic=style("P1", "paragraph", attributes='style:parent-style-name="Title"'),
            common=style("Title", "paragraph"),
        )
        == "# Plan"
    )


def test_lists_have_the_numbers_that_they_show() -> None:
    inner = listed(p("c"), p("d") + listed(p("e")))
    body = listed(p("a"), p("b") + p("more") + inner, p("f"), style="L") + listed(p("g"), style="B")

    assert read(body, automatic=NUMBERED).splitlines() == [
        "1. a", "2. b", "", "more", "", "  (c) c", "  (d) d", "    2.d.i e", "3. f", "- g",
    ]  # fmt: skip


def test_a_list_begins_again_unless_it_continues_another() -> None:
    body = (
        listed(p("a"), style="L", attributes='xml:id="x"') + p("-") + listed(p("b"), style="L") + p("-")
        + listed(p("c"), style="L", attributes='text:continue-list="x"') + p("-")
        + listed(p("d"), style="L", attributes='text:continue-numbering="true"')
        + "<text:list text:style-name='L'><text:list-item text:start-value='7'>" + p("e") + "</text:list-item></text:list>"
    )  # fmt: skip

    assert [line for line in read(body, automatic=NUMBERED).splitlines() if line[-1:].isalpha()] == [
        "1. a", "1. b", "2. c", "3. d", "7. e",
    ]  # fmt: skip


def test_an_item_without_a_text_of_its_own_does_not_count() -> None:
    assert read(listed(listed(p("a")), p("b"), style="L"), automatic=NUMBERED) == "  (c) a\n1. b"


def test_spaces_are_one_unless_the_file_says_how_many() -> None:
    assert read(p("a\n   b", "<text:s text:c='3'/>c", "<text:tab/>d", "<text:line-break/>e")) == "a b c d\ne"


@pytest.mark.parametrize("named", ["Gone", "Deeper"])
def test_hidden_text_is_left_out_and_counted(named: str) -> None:
    shown = style("Shown", "text", '<style:text-properties text:display="true"/>')
    body = (
        p("a", span("secret" + span("b", "Shown"), named))
        + f'<text:section text:display="none">{p("secret")}</text:section>'
        + p('<text:hidden-text text:is-hidden="true">secret</text:hidden-text>', "<text:conditional-text>c</text:conditional-text>")
        + p('<text:hidden-paragraph text:is-hidden="true"/>secret')
        + p("secret", style="P")
    )  # fmt: skip
    automatic = HIDDEN + shown + style("P", "paragraph", '<style:text-properties text:display="none"/>')

    assert read(body, automatic=automatic) == "ab\n\nc"
    [aside] = opendocument.count_odt(open_document("text", body, automatic=automatic)).asides
    assert (aside.what, aside.number) == ("hidden passages", 5)


def test_deleted_text_and_comments_are_left_out_and_counted() -> None:
    deleted = f"<text:tracked-changes><text:changed-region><text:deletion>{p('old')}</text:deletion></text:changed-region></text:tracked-changes>"
    body = deleted + p("new", COMMENT.format("why?"), "<text:change/>", " text") + p(PICTURE)

    assert read(body) == "new text"
    assert {each.what: each.number for each in opendocument.count_odt(open_document("text", body)).asides} == {
        "deleted passages": 1,
        "comments": 1,
        "pictures": 1,
    }


def test_notes_follow_their_section_and_raised_digits_stay_apart() -> None:
    body = (
        p("28", span("3", "Up"), note("1", p("see ", "b"))) + p("c", name="h") + p("d", note("i", p("end"), "endnote"))
    )

    assert read(body, automatic=RAISED).split("\n\n") == ["28³¹", "¹ see b", "# c", "dⁱ", "i end"]


def test_headers_and_footers_of_the_pages_that_are_used_are_read_once_without_page_numbers() -> None:
    number = "<text:page-number>1</text:page-number>"
    masters = (
        PAGE.format("Standard", "", f"<style:header>{p('Report')}</style:header><style:footer>{p('Page ', number)}</style:footer>"
                    f"<style:header-left>{p('Left')}</style:header-left><style:header-first style:display='false'>{p('Off')}</style:header-first>")
        + PAGE.format("Unused", "", f"<style:header>{p('Unused')}</style:header>")
        + PAGE.format("Wide", 'style:next-style-name="After"', f"<style:header>{p('Report')}</style:header>")
        + PAGE.format("After", "", f"<style:footer>{p('Acme')}</style:footer>")
    )  # fmt: skip
    wide = style("W", "paragraph", attributes='style:master-page-name="Wide"')

    assert read(p("a"), masters=masters).split("\n\n") == ["Report", "Left", "a", "Page"]
    assert read(p("a") + p("b ", number, style="W"), masters=masters, automatic=wide).split("\n\n") == [
        "Report",
        "Left",
        "a",
        "b 1",
        "Page",
        "Acme",
    ]
    assert read(p("a", style="W"), masters=masters, automatic=wide).split("\n\n") == ["Report", "a", "Acme"]


def test_cells_that_are_merged_have_their_text_in_each_row_and_column() -> None:
    covered = "<table:covered-table-cell/>"
    merged = '<table:table-cell table:number-{}-spanned="2"><text:p>{}</text:p></table:table-cell>'
    rows = row("Site", merged.format("columns", "Limit"), covered)
    rows = f"<table:table-header-rows>{rows}</table:table-header-rows>"
    rows += row(merged.format("rows", "Ostrava"), "Saw", "40") + row(covered, "Press", "75")

    assert read(f"<table:table>{rows}</table:table>").splitlines() == [
        "| Site | Limit | Limit |",
        "| --- | --- | --- |",
        "| Ostrava | Saw | 40 |",
        "| Ostrava | Press | 75 |",
    ]


def test_text_boxes_follow_the_paragraph_that_they_belong_to() -> None:
    shape = f"<draw:custom-shape>{p('in a shape')}</draw:custom-shape>"

    assert read(p("a", box(p("b")), " c", f"<draw:g>{shape}</draw:g>") + p("d")) == "a c\n\nb\n\nin a shape\n\nd"


def test_charts_are_tables_and_formulas_are_part_of_their_line() -> None:
    made = chart("Sales", "in EUR", row("", "GW-3"), row("Q1", "5") + row("Q2", "NaN"))
    fraction = formula("<math:mfrac><math:mn>1</math:mn><math:mi>n</math:mi></math:mfrac>")
    body = p("a", drawn("Object 1")) + p("b is ", drawn("Object 2", 'text:anchor-type="as-char"'))
    data = open_document("text", body, parts={"Object 1": made, "Object 2": fraction})

    assert convert(data, "odt").text.splitlines() == [
        "a", "", "Sales", "", "| | in EUR GW-3 |", "| --- | --- |", "| Q1 | 5 |", "| Q2 | |", "", "b is 1/n",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<math:msup><math:mi>x</math:mi><math:mn>2</math:mn></math:msup>", "x²"),
        ("<math:msub><math:mi>x</math:mi><math:mi>i</math:mi></math:msub>", "x_i"),
        ("<math:msqrt><math:mi>x</math:mi><math:mo>+</math:mo><math:mn>1</math:mn></math:msqrt>", "√(x+1)"),
        ("<math:mroot><math:mi>x</math:mi><math:mn>3</math:mn></math:mroot>", "³√x"),
        ("<math:munderover><math:mo>∑</math:mo><math:mn>1</math:mn><math:mi>k</math:mi></math:munderover>", "∑₁^k"),
        ("<math:mrow><math:mn>2</math:mn><math:mi>sin</math:mi><math:mi>x</math:mi></math:mrow>", "2sin x"),
        ("<math:mtable><math:mtr><math:mtd><math:mn>1</math:mn></math:mtd><math:mtd><math:mn>2</math:mn></math:mtd></math:mtr></math:mtable>", "1, 2"),
    ],
)  # fmt: skip
def test_a_formula_is_one_line(content: str, text: str) -> None:
    assert convert(open_document("text", p(drawn("O")), parts={"O": formula(content)}), "odt").text == text


def test_the_text_of_ruby_has_its_reading_in_parentheses() -> None:
    ruby = "<text:ruby><text:ruby-base>東京</text:ruby-base><text:ruby-text>とうきょう</text:ruby-text></text:ruby>"

    assert read(p(ruby)) == "東京(とうきょう)"


@pytest.mark.parametrize("file_format", ["odt", "odp"])
def test_an_encrypted_file_is_named_so(file_format: str) -> None:
    data = open_document("text", "", manifest="<m:manifest xmlns:m='m'><m:encryption-data/></m:manifest>")

    with pytest.raises(formats.UnreadableDocument, match="is protected by a password"):
        convert(data, file_format)


def presentation(*slides: str, **parts: str) -> bytes:
    return open_document("presentation", "".join(slides), **parts)  # type: ignore[arg-type]


def test_a_slide_begins_with_its_number_and_title() -> None:
    data = presentation(
        slide(box(p("How")) + box(p("Plans") + p("of 2026"), 'presentation:class="title"')),
        slide(box(p("hidden")), style="H"),
        slide(box(listed(p("Thanks"), style="B"), 'presentation:class="outline"')),
        automatic=NUMBERED
        + style("H", "drawing-page", '<style:drawing-page-properties presentation:visibility="hidden"/>'),
    )

    assert convert(data, "odp").text == "## Slide 1: Plans of 2026\n\nHow\n\n## Slide 3\n\n- Thanks"
    assert [(each.what, each.number) for each in opendocument.count_odp(data).asides] == [("hidden slides", 1)]


def test_notes_footers_and_masters_are_read_and_placeholders_are_not() -> None:
    master = box(p("Acme")) + box(p("Click to edit"), 'presentation:class="title"')
    declared = '<presentation:footer-decl presentation:name="f">Confidential</presentation:footer-decl>'
    notes = box(p("Say hello."), 'presentation:class="notes"') + box(p("7"), 'presentation:class="page-number"')
    empty = box(p("Click to add text"), 'presentation:placeholder="true" presentation:class="outline"')
    number = box(p("<text:page-number>7</text:page-number>"))
    use = 'presentation:use-footer-name="f"'
    data = presentation(
        declared + slide(box(p("a")) + empty + number, attributes=use, notes=notes), slide(box(p("b")), attributes=use),
        masters=PAGE.format("M", "", master),
    )  # fmt: skip

    assert convert(data, "odp").text == (
        "## Slide 1\n\na\n\nConfidential\n\nAcme\n\n### Notes\n\nSay hello.\n\n## Slide 2\n\nb"
    )


def test_a_slide_that_is_nothing_but_a_picture_is_named() -> None:
    census = opendocument.count_odp(presentation(slide(box(p("a")) + PICTURE), slide(PICTURE)))

    assert [each.name for each in census.parts if each.unread] == ["slide 2"]
