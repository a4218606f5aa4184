"""The part of a page around quoted words."""

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ragstack_common.reading.pdf.document import PdfDocument
from ragstack_common.reading.pictures import MAX_PART_BYTES, MAX_PART_PIXELS, Layout, written
from ragstack_common.reading.places import Box
from ragstack_common.reading.region import CAPTION, MAX_HEIGHT, MAX_HEIGHT_LINES, MAX_SHAPE, MIN_SHAPE, region_around
from tests.support.pdf_files import pages, text

SHAPE = 842 / 595
NOTHING = Layout([], [])


def box(left: float, bottom: float, right: float, top: float) -> Box:
    """A part of a page of 595 by 842 points."""
    return Box(left / 595, 1 - top / 842, (right - left) / 595, (top - bottom) / 842)


def has(part: Box, other: Box) -> bool:
    slack = 1e-9
    return (
        part.left <= other.left + slack
        and part.top <= other.top + slack
        and other.left + other.width <= part.left + part.width + slack
        and other.top + other.height <= part.top + part.height + slack
    )


@st.composite
def boxes(draw: st.DrawFn, most: float = 1.0) -> Box:
    width, height = draw(st.floats(0.001, most)), draw(st.floats(0.001, most))
    return Box(draw(st.floats(0, 1 - width)), draw(st.floats(0, 1 - height)), width, height)


@given(
    st.lists(boxes(0.3), min_size=1, max_size=4),
    st.lists(st.lists(boxes(), max_size=3), max_size=3),
    st.lists(st.lists(boxes(), max_size=3), max_size=3),
    st.lists(boxes(), max_size=4),
    st.lists(boxes(0.1), max_size=4),
    st.floats(0.05, 20),
)
def test_a_region_has_all_marks_and_is_on_the_page(
    marks: list[Box],
    paragraphs: list[list[Box]],
    captions: list[list[Box]],
    figures: list[Box],
    texts: list[Box],
    shape: float,
) -> None:
    part = region_around(marks, paragraphs, captions, Layout(figures, texts), shape)

    assert all(has(part, mark) for mark in marks)
    assert has(Box(0, 0, 1, 1), part)
    for mark in marks:
        assert has(Box(0, 0, 1, 1), mark.within(part))


@given(st.lists(boxes(), max_size=6), st.lists(boxes(), max_size=6))
def test_what_is_around_a_line_never_makes_its_region_as_high_as_a_long_page(
    blocks: list[Box], figures: list[Box]
) -> None:
    line = Box(0.1, 0.5, 0.5, 0.001)

    part = region_around([line], [[each] for each in blocks], [], Layout(figures, []), 10)

    assert part.height * 10 <= min(MAX_HEIGHT, MAX_HEIGHT_LINES * 0.01) + 2 * 0.01 + 1e-9


LINE = box(72, 600, 300, 610)
PARAGRAPH = [box(72, 614, 500, 624), LINE, box(72, 586, 400, 596)]


def test_the_whole_paragraph_is_in_the_region() -> None:
    part = region_around([LINE], [PARAGRAPH], [], NOTHING, SHAPE)

    assert all(has(part, line) for line in PARAGRAPH)


def test_of_a_paragraph_that_is_too_high_whole_lines_are_in_the_region() -> None:
    word = box(300, 600, 330, 610)
    lines = [box(40, bottom, 560, bottom + 10) for bottom in range(40, 800, 12)]

    part = region_around([word], [lines], [], NOTHING, SHAPE)

    assert part.left < lines[0].left
    assert part.left + part.width > lines[0].left + lines[0].width
    assert part.height < 0.5


@pytest.mark.parametrize(
    ("figure", "is_shown"),
    [
        (box(72, 450, 500, 570), True),
        (box(72, 640, 500, 760), True),
        (box(510, 500, 590, 610), True),
        (box(60, 560, 560, 640), True),
        (box(72, 300, 500, 500), False),
        (box(72, 10, 500, 570), False),
    ],
    ids=["below", "above", "beside", "around", "far away", "too high"],
)
def test_a_figure_next_to_the_paragraph_is_in_the_region(figure: Box, is_shown: bool) -> None:
    part = region_around([LINE], [PARAGRAPH], [], Layout([figure], []), SHAPE)

    assert has(part, figure) is is_shown


def test_no_line_at_the_edge_is_cut() -> None:
    lines = [box(72, bottom, 500, bottom + 10) for bottom in range(400, 660, 12)]
    heading, far = box(72, 680, 300, 708), box(500, 560, 590, 700)

    part = region_around([LINE], [PARAGRAPH], [], Layout([], [*lines, heading, far]), SHAPE)

    top, bottom = part.top, part.top + part.height
    assert all(not (line.top < edge < line.top + line.height) for line in (*lines, heading) for edge in (top, bottom))
    assert not has(part, far)


@given(boxes(0.3), boxes(0.5))
def test_regions_have_nearly_one_shape(line: Box, figure: Box) -> None:
    part = region_around([line], [], [], Layout([figure], []), SHAPE)

    shape = part.height * SHAPE / part.width
    assert shape >= MIN_SHAPE - 1e-9
    assert shape <= MAX_SHAPE + 1e-9 or part.width == pytest.approx(1)


def test_a_caption_belongs_to_its_figure() -> None:
    figure, caption = box(72, 440, 500, 570), [box(72, 420, 500, 432)]
    other, elsewhere = box(72, 100, 500, 180), [box(72, 80, 500, 92)]

    of_text = region_around([LINE], [PARAGRAPH], [caption, elsewhere], Layout([figure, other], []), SHAPE)
    of_caption = region_around(elsewhere, [elsewhere], [caption, elsewhere], Layout([figure, other], []), SHAPE)

    assert has(of_text, figure)
    assert has(of_text, caption[0])
    assert not has(of_text, other)
    assert has(of_caption, other)
    assert not has(of_caption, figure)


@pytest.mark.parametrize(
    "beginning",
    ["Figure 3: Sales", "Fig. 3", "TABLE 12. Costs", "Abb. 4", "Abbildung 2", "Рис. 5", "図1", "表 2-1", "그림 3"],
)
def test_captions_are_recognized_in_many_languages(beginning: str) -> None:
    assert CAPTION.match(beginning)


@pytest.mark.parametrize("beginning", ["Figures are", "The table 3", "Tablets 3", "3 figures"])
def test_other_sentences_are_not_captions(beginning: str) -> None:
    assert not CAPTION.match(beginning)


CHART = b"\n".join(b"0.2 0.4 0.8 rg %d 400 12 %d re f" % (100 + 20 * number, 20 + 15 * number) for number in range(8))
RULES = b"\n".join(b"72 %d m 400 %d l S" % (height, height) for height in (600, 580, 500))
NOISE = b"q 300 0 0 200 100 500 cm BI /W 2 /H 2 /CS /G /BPC 8 ID \x00\xff\xff\x00 EI Q"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (CHART, box(100, 400, 252, 525)),
        (RULES, box(72, 500, 400, 600)),
        (NOISE, box(100, 500, 400, 700)),
        (b"q 0.5 0 0 0.5 100 100 cm " + CHART + b" Q", box(150, 300, 226, 362.5)),
    ],
    ids=["bars", "rules of a table", "image", "scaled"],
)
def test_parts_of_a_figure_are_one_figure(content: bytes, expected: Box) -> None:
    with PdfDocument(pages(content + b"\n" + text((760, 12, b"(Text.)")))) as document:
        (found,) = document.layout(1).figures

    assert found == pytest.approx(expected, abs=0.005)


def test_a_turned_page_has_its_figures_where_they_are_shown() -> None:
    with PdfDocument(pages(CHART, entries=b"/Rotate 90")) as document:
        (found,) = document.layout(1).figures

        assert document.shape(1) == pytest.approx(595 / 842, abs=0.001)
    assert found == pytest.approx(Box(400 / 842, 100 / 595, 125 / 842, 152 / 595), abs=0.005)


@pytest.mark.parametrize(
    "content",
    [
        b"1 1 1 rg 0 0 595 842 re f",
        b"0.9 g 0 0 595 842 re f",
        b"1 g 100 100 200 200 re f",
        b"72 600 m 400 600 l S",
        b"",
    ],
    ids=["white ground", "grey ground", "white area", "one rule", "nothing"],
)
def test_grounds_and_single_rules_are_no_figures(content: bytes) -> None:
    with PdfDocument(pages(content)) as document:
        assert document.layout(1).figures == []


def test_texts_are_found_by_their_lines() -> None:
    with PdfDocument(pages(text((700, 12, b"(One)"), (686, 12, b"(Two)")))) as document:
        lines = sorted(document.layout(1).texts, key=lambda each: each.top)

        (first, *_), (second, *_) = document.boxes(1, [(0, 3), (4, 7)])
    assert len(lines) == 2
    assert lines[0] == pytest.approx(first, abs=0.01)
    assert lines[1] == pytest.approx(second, abs=0.01)


def test_a_part_is_drawn_as_the_page_shows_it() -> None:
    part = box(100, 400, 252, 525)
    with PdfDocument(pages(CHART)) as document:
        picture = document.picture(1, part)

    assert picture.width == pytest.approx(1000, abs=2)
    assert picture.width / picture.height == pytest.approx(152 / 125, abs=0.01)


def test_the_picture_of_a_part_takes_half_of_the_bytes_without_loss() -> None:
    lines = [text((700 - 14 * number, 12, b"(A line of words, number %d)" % number)) for number in range(12)]
    with PdfDocument(pages(*lines)) as document:
        page = document.picture(1)

    with Image.open(BytesIO(page.data)) as image:
        part = written(image, is_part=True)
        with Image.open(BytesIO(part.data)) as copy:
            assert copy.convert(image.mode).tobytes() == image.tobytes()
    assert len(part.data) < len(page.data) / 2


@pytest.mark.parametrize("size", [(595, 842), (14400, 14400), (14400, 20), (20, 14400), (3, 3)])
@pytest.mark.parametrize("part", [Box(0, 0, 1, 1), Box(0.1, 0.2, 0.5, 0.1), Box(0.1, 0.2, 0.0001, 0.7)])
def test_the_picture_of_a_part_is_bounded(size: tuple[int, int], part: Box) -> None:
    with PdfDocument(pages(CHART, entries=b"/MediaBox [0 0 %d %d]" % size)) as document:
        picture = document.picture(1, part)

    assert 0 < picture.width * picture.height <= 1.05 * MAX_PART_PIXELS
    assert len(picture.data) <= MAX_PART_BYTES
