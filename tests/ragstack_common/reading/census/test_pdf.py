"""What the census lists of PDF pages, where a marked file would not show why."""

import pytest

from ragstack_common.reading.census.counting import count
from ragstack_common.reading.census.pdf import ALMOST_A_PICTURE, DRAWN, PICTURE
from tests.support.pdf_files import mapped, pages, text

XOBJECT = (
    b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>\n"
    b"stream\n\x80\nendstream"
)
WHOLE_PAGE = b"q 595 0 0 842 0 0 cm /P Do Q "
MANY = b"(a scanned page has many more words than the line that the scanner adds below its picture)"


def pictured(*contents: bytes) -> bytes:
    place = 4 + 2 * len(contents)
    data = pages(*contents, more=[XOBJECT])
    return data.replace(b"/Font << /F 3 0 R >>", b"/Font << /F 3 0 R >> /XObject << /P %d 0 R >>" % place)


@pytest.mark.parametrize(
    ("content", "unread"),
    [
        (WHOLE_PAGE, PICTURE),
        (WHOLE_PAGE + text((20, 8, b"(Scanned by Example)")), ALMOST_A_PICTURE),
        (WHOLE_PAGE + b"3 Tr " + text((700, 8, MANY)), ""),
        (b"q 200 0 0 100 72 600 cm /P Do Q " + text((500, 12, b"(Three words here)")), ""),
        (b"100 100 200 200 re f", DRAWN),
        (b"", ""),
    ],
)
def test_a_page_says_why_its_text_is_not_read(content: bytes, unread: str) -> None:
    counted = count(pictured(content, text((700, 12, b"(Text.)"))), "pdf")

    assert [part.unread for part in counted.parts] == [unread, ""]


def test_text_from_right_to_left_that_is_drawn_from_left_to_right_is_listed_forwards() -> None:
    letters = {letter: chr(0x5D0 + place) for place, letter in enumerate("ABCDEFGH")}
    counted = count(mapped(text((700, 12, b"(ABCD EFGH)")), letters), "pdf")

    words = " ".join(counted.parts[0].texts).split()
    assert sorted(words) == sorted(("\u05d3\u05d2\u05d1\u05d0", "\u05d7\u05d6\u05d5\u05d4"))
    assert counted.asides == []
