"""Files that are text already."""

import pytest

from ragstack_common.reading.conversion import ReadText, read_directly


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("---\ntitle: Staff handbook\n# reviewed in May\n---\n\nHolidays.", ReadText("Holidays.", "Staff handbook")),
        ('+++\ntitle = "Staff handbook"\n+++\nHolidays.', ReadText("Holidays.", "Staff handbook")),
        ("---\n---\nHolidays.", ReadText("Holidays.")),
        ("One\n\n---\n\ntitle: no front matter\n\n---\n", ReadText("One\n\n---\n\ntitle: no front matter\n\n---\n")),
        ("a<!-- no\n -->b <script>x</script>c", ReadText("ab c")),
        ("```html\n<!-- shown -->\n```\n<!-- not -->", ReadText("```html\n<!-- shown -->\n```\n")),
        ("one\r\ntwo\rthree", ReadText("one\ntwo\nthree")),
    ],
)
def test_markdown_is_read_as_it_is_rendered(written: str, read: ReadText) -> None:
    assert read_directly(written.encode(), "md") == read


def test_other_text_stays_as_it_is() -> None:
    assert read_directly(b"---\ntitle: x\n---\n<!-- a -->", "txt") == ReadText("---\ntitle: x\n---\n<!-- a -->")
