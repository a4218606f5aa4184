"""What an audience sees is the text of a presentation of PowerPoint 97 to 2003."""

import pytest

from ragstack_common.reading.census import slides97
from ragstack_common.reading.conversion import convert
from ragstack_common.reading.formats import UnreadableDocument
from tests.support.old_slide_files import OldSlide, group, outline_text, ppt, record, shape, text

TITLE, BODY, NOTES, OTHER = 0, 1, 2, 4
NUMBER = 0x0FD8


def read(*slides: OldSlide, master: tuple[bytes, ...] = ()) -> str:
    return convert(ppt(slides, master=master), "ppt").text


def test_a_slide_begins_with_its_number_and_title() -> None:
    first = OldSlide([shape(text(OTHER, "How")), shape(text(TITLE, "Plans\rof 2026"))])
    hidden = OldSlide([shape(text(OTHER, "b"))], hidden=True)

    assert read(first, hidden, OldSlide([group(group(shape(text(BODY, "c\rd"))))])) == (
        "## Slide 1: Plans of 2026\n\nHow\n\n## Slide 3\n\nc\nd"
    )


def test_texts_of_placeholders_are_where_the_document_lists_them() -> None:
    outline = [(TITLE, "Plans"), (BODY, "a\x0bb\rc")]
    slide = OldSlide([shape(outline_text(0)), shape(outline_text(1)), shape(outline_text(9))], outline)

    assert read(slide) == "## Slide 1: Plans\n\na\nb\nc"


@pytest.mark.parametrize("narrow", [True, False])
def test_numbers_of_slides_are_left_out(narrow: bool) -> None:
    number = text(OTHER, "page *", narrow=narrow, changing={5: NUMBER, 99: NUMBER})

    assert read(OldSlide([shape(number), shape(text(OTHER, "*"), placeholder=8)])) == "## Slide 1\n\npage"


def test_notes_and_footers_and_what_the_master_shows_are_read() -> None:
    notes = [shape(text(NOTES, "Say hello."), placeholder=0x0C), shape(text(OTHER, "7"), placeholder=8)]
    master = (shape(text(OTHER, "Acme")), shape(text(TITLE, "Click to edit"), placeholder=1))
    slides = OldSlide([shape(text(OTHER, "a"))], notes=notes, footer="Secret"), OldSlide(footer="Secret")

    assert read(*slides, master=master) == "## Slide 1\n\na\n\nAcme\n\nSecret\n\n### Notes\n\nSay hello."


def test_what_the_last_version_replaced_is_not_read() -> None:
    old = record(0x03EE, shape(text(OTHER, "old")), has_records=True)

    assert convert(ppt([OldSlide([shape(text(OTHER, "new"))])], before=old), "ppt").text == "## Slide 1\n\nnew"


def test_pictures_comments_and_hidden_slides_are_counted() -> None:
    picture, comment = shape(kind=75), record(0x2EE0, b"", has_records=True)
    slides = [OldSlide([shape(text(OTHER, "a")), picture], others=comment), OldSlide([picture]), OldSlide(hidden=True)]

    census = slides97.count(ppt(slides))

    assert {each.what: each.number for each in census.asides} == {"pictures": 2, "comments": 1, "hidden slides": 1}
    assert [each.name for each in census.parts if each.unread] == ["slide 2"]


def test_a_protected_file_is_named_so() -> None:
    with pytest.raises(UnreadableDocument, match="is protected by a password"):
        convert(ppt([OldSlide()], encrypted=True), "ppt")
