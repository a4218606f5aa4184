"""What an audience sees, and the notes of the speaker, are the text of a presentation."""

# ruff: noqa: E501 - XML

import pytest

from ragstack_common.reading.census import slides
from ragstack_common.reading.conversion import convert
from ragstack_common.text.numbered_parts import NumberedPart
from tests.ragstack_common.reading.census.marked import Marks
from tests.ragstack_common.reading.census.word_files import chart, diagram
from tests.support.office_files import STRICT, TRANSITIONAL
from tests.support.slide_files import MATH, PICTURE, Slide, cells, frame, paragraph, pptx, shape

NUMBER = '<a:fld type="slidenum"><a:t>7</a:t></a:fld>'
BULLETS = (
    '<p:bodyStyle><a:lvl1pPr><a:buChar char="•"/></a:lvl1pPr><a:lvl2pPr><a:buChar char="o"/></a:lvl2pPr></p:bodyStyle>'
)


def read(*shapes: str, **parts: str) -> str:
    return convert(pptx([Slide("".join(shapes))], **parts), "pptx").text


@pytest.mark.parametrize("edition", [TRANSITIONAL, STRICT])
def test_a_slide_begins_with_its_number_and_title(edition: str) -> None:
    data = pptx(
        [Slide(shape("How it works") + shape("Plans &amp; prices", kind="title")), Slide(shape("Thanks"))],
        edition=edition,
    )

    text = convert(data, "pptx").text

    assert text == "## Slide 1: Plans & prices\n\nHow it works\n\n## Slide 2\n\nThanks"
    assert NumberedPart.of(text.splitlines()[0].removeprefix("## ")) == NumberedPart("Slide", 1, "Plans & prices")


def test_hidden_slides_are_left_out_and_keep_their_numbers() -> None:
    data = pptx([Slide(shape("a")), Slide(shape("b"), 'show="0"'), Slide(shape("c"))])

    assert convert(data, "pptx").text == "## Slide 1\n\na\n\n## Slide 3\n\nc"
    assert [each.name for each in slides.count(data).parts] == ["slide 1", "slide 3"]


def test_notes_follow_their_slide_without_the_footers_of_their_page() -> None:
    notes = shape("Say hello.", kind="body") + shape("7", kind="sldNum") + shape("Acme", kind="ftr")

    assert convert(pptx([Slide(shape("a"), notes=notes)]), "pptx").text == "## Slide 1\n\na\n\n### Notes\n\nSay hello."


def test_footers_are_read_once_and_numbers_of_slides_never() -> None:
    footers = shape("Confidential", kind="ftr") + shape(paragraph(NUMBER), kind="sldNum")
    data = pptx([Slide(shape("a", paragraph("of ", NUMBER)) + footers), Slide(shape("b") + footers)])

    assert convert(data, "pptx").text == "## Slide 1\n\na\n\nof\n\nConfidential\n\n## Slide 2\n\nb"


def test_layouts_and_masters_show_their_shapes_but_not_their_placeholders() -> None:
    layout = shape("Click to edit", kind="body", index=1) + shape("Motto")
    data = pptx(
        [Slide(shape("a")), Slide(shape("b"))], layout=layout, master=shape("Acme") + shape("Number", kind="sldNum")
    )

    assert convert(data, "pptx").text == "## Slide 1\n\na\n\nMotto\n\nAcme\n\n## Slide 2\n\nb"
    assert "Acme" not in convert(pptx([Slide(shape("a"), 'showMasterSp="0"')], master=shape("Acme")), "pptx").text


def test_bullets_come_from_the_master_unless_a_paragraph_has_its_own() -> None:
    body = shape("a", paragraph("b", level=1), paragraph("c", bullet="<a:buNone/>"), kind="body", index=1)

    assert read(body, styles=BULLETS) == "## Slide 1\n\n- a\n  - b\n\nc"
    assert (
        read(
            shape("a", kind="obj", index=1),
            layout=shape(kind="body", index=1, styles="<a:lvl1pPr><a:buNone/></a:lvl1pPr>"),
            styles=BULLETS,
        )
        == "## Slide 1\n\na"
    )


def test_numbers_of_a_list_continue_below_deeper_items_and_begin_again_after_others() -> None:
    number, letter = '<a:buAutoNum type="arabicPeriod" startAt="3"/>', '<a:buAutoNum type="alphaLcParenR"/>'
    body = [
        paragraph("a", bullet=number), paragraph("b", level=1, bullet=letter), paragraph("c", bullet=number), paragraph(""),
        paragraph("d", bullet=number), paragraph("e"), paragraph("f", bullet=number),
        paragraph("g", bullet='<a:buAutoNum type="romanUcParenBoth"/>'), paragraph("h", bullet='<a:buAutoNum type="circleNumDbPlain"/>'),
    ]  # fmt: skip

    assert read(shape(*body)).splitlines()[2:] == [
        "3. a",
        "  a) b",
        "4. c",
        "5. d",
        "",
        "e",
        "",
        "3. f",
        "(I) g",
        "1 h",
    ]


@pytest.mark.parametrize("raised", ["30000", "30%"])
def test_raised_digits_and_formulas_stay_apart(raised: str) -> None:
    run = f'<a:r><a:rPr baseline="{raised}"/><a:t>3</a:t></a:r>'
    fraction = MATH.format("<m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>n</m:t></m:r></m:den></m:f>")

    assert read(shape(paragraph("28", run), paragraph("is ", fraction))) == "## Slide 1\n\n28³\n\nis 1/n"


def test_cells_of_a_table_that_are_merged_have_their_text_in_each_row_and_column() -> None:
    merged = '<a:tc {}="1"><a:txBody><a:p/></a:txBody></a:tc>'
    table = cells(
        ["Site", "Limit", merged.format("hMerge")], ["Ostrava", "Saw", "40"], [merged.format("vMerge"), "Press", "75"]
    )

    assert read(table).splitlines()[2:] == [
        "| Site | Limit | Limit |",
        "| --- | --- | --- |",
        "| Ostrava | Saw | 40 |",
        "| Ostrava | Press | 75 |",
    ]


def test_groups_charts_and_diagrams_are_read_in_their_place() -> None:
    marks = Marks()
    drawn = {"c": ("chart", chart(marks)), "d": ("diagramData", diagram(marks))}
    grouped = f"<p:grpSp><p:nvGrpSpPr><p:cNvPr id='1' name='g'/></p:nvGrpSpPr><p:grpSp>{shape('in a group')}</p:grpSp></p:grpSp>"
    data = pptx(
        [Slide(grouped + frame('<c:chart r:id="c"/>') + shape("b") + frame('<dgm:relIds r:dm="d"/>'), drawn=drawn)]
    )

    text = convert(data, "pptx").text

    title, name, category, first, second = marks.shown
    assert text.splitlines()[2:] == [
        "in a group", "", title, "", f"| | {name} |", "| --- | --- |", f"| {category} | 5 |", "", "b", "", f"- {first}", f"  - {second}",
    ]  # fmt: skip


def test_hidden_shapes_comments_and_pictures_are_left_out_and_counted() -> None:
    comments = {"c": ("comments", "<p:cmLst xmlns:p='p'><p:cm><p:text>why?</p:text></p:cm></p:cmLst>")}
    data = pptx([Slide(shape("a") + shape("secret", hidden=True) + PICTURE, drawn=comments)])

    assert convert(data, "pptx").text == "## Slide 1\n\na"
    assert {each.what: each.number for each in slides.count(data).asides} == {
        "hidden passages": 1,
        "pictures": 1,
        "comments": 1,
    }


def test_a_slide_that_is_nothing_but_a_picture_is_named() -> None:
    census = slides.count(pptx([Slide(shape("a") + PICTURE), Slide(PICTURE)]))

    assert [each.name for each in census.parts if each.unread] == ["slide 2"]


def test_slides_without_text_have_no_heading() -> None:
    assert read(PICTURE) == ""
