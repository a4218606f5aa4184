"""PDF files whose words are in every place that a page has for them, and nowhere that people see."""

from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from tests.ragstack_common.reading.census.marked import MarkedFile, Marks
from tests.support.pdf_files import pdf

if TYPE_CHECKING:
    from collections.abc import Callable

_PICTURE: Final = (
    b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>\n"
    b"stream\n\x80\nendstream"
)
_CATALOGUE: Final = (
    b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /DR << /Font << /F 3 0 R >> >> /DA (/F 12 Tf 0 g) /Fields [%s] >>"
    b" /OCProperties << /OCGs [5 0 R] /D << /OFF [5 0 R] >> >> >>"
)
_RESOURCES: Final = (
    b"<< /Font << /F 3 0 R >> /XObject << /P 4 0 R >> /Properties << /L 5 0 R >> /ExtGState << /G << /ca 0 >> >> >>"
)
_WHOLE_PAGE: Final = " q 595 0 0 842 0 0 cm /P Do Q"
_GAP: Final = 40


def _line(x: int, y: int, shown: str, before: str = "") -> str:
    return f" {before} BT /F 12 Tf 1 0 0 1 {x} {y} Tm ({shown}) Tj ET"


class _Pages:
    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.marks = Marks()
        self._objects: list[bytes] = [b"", b"", b"", _PICTURE, b"<< /Type /OCG /Name (Layer) >>"]
        self._annotations: list[int] = []
        self._fields: list[int] = []

    def data(self) -> bytes:
        kids = []
        count = self._draw(st.integers(1, 4))
        for number in range(1, count + 1):
            self.marks.part = f"page {number}"
            self._annotations = []
            kinds: list[Callable[[], str]] = [self._text, self._text, self._scan, self._only_picture, lambda: ""]
            content = self._text() if number == 1 else self._draw(st.sampled_from(kinds))()
            written = self._add(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content.encode()))
            annotations = b" ".join(b"%d 0 R" % each for each in self._annotations)
            rotation = self._draw(st.sampled_from((0, 0, 90, 180)))
            page = b"<< /Type /Page /Parent 2 0 R /Contents %d 0 R /Rotate %d /Annots [%s] /Resources %s >>"
            kids.append(self._add(page % (written, rotation, annotations, _RESOURCES)))
        self._objects[0] = _CATALOGUE % b" ".join(b"%d 0 R" % each for each in self._fields)
        listed = b" ".join(b"%d 0 R" % each for each in kids)
        self._objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] /MediaBox [0 0 595 842] >>" % (len(kids), listed)
        self._objects[2] = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
        return pdf(*self._objects)

    def _add(self, made: bytes) -> int:
        self._objects.append(made)
        return len(self._objects)

    def _text(self) -> str:
        """Return lines from the top of a page, some in columns, turned, in forms or hidden."""
        kinds: list[Callable[[int], str]] = [
            lambda y: _line(72, y, f"{self.marks.show()} and {self.marks.show()} or {self.marks.show()}"),
            lambda y: _line(72, y, self.marks.show()),
            lambda y: _line(60, y, self.marks.show()) + _line(320, y, self.marks.show()),
            self._turned,
            self._field,
            self._written_on_it,
            self._hidden,
            self._hidden_note,
            self._comment,
        ]
        heights = range(780, 780 - _GAP * self._draw(st.integers(1, 12)), -_GAP)
        first = _line(72, 810, f"{self.marks.show()} is {self.marks.show()}")
        return first + "".join(self._draw(st.sampled_from(kinds))(y) for y in heights)

    def _turned(self, y: int) -> str:
        return f" BT /F 12 Tf 0 1 -1 0 {(y % 400) // 2 + 350} {y - 30} Tm ({self.marks.show()}) Tj ET"

    def _hidden(self, y: int) -> str:
        word = self.marks.hide("hidden passages")
        return self._draw(
            st.sampled_from((
                _line(72, y, word, "1 1 1 rg") + " 0 g",
                f" q{_line(72, y, word, '3 Tr')} Q",
                f" q{_line(72, y, word, '/G gs')} Q",
                _line(72, y, word) + f" 0 g 60 {y - 10} 200 30 re f",
                f" q 0 0 10 10 re W n{_line(72, y, word)} Q",
                f" /OC /L BDC{_line(72, y, word)} EMC",
            ))
        )  # fmt: skip

    def _annotation(self, y: int, entries: bytes) -> str:
        self._annotations.append(self._add(b"<< /Type /Annot /Rect [72 %d 300 %d] %s >>" % (y - 5, y + 15, entries)))
        return ""

    def _field(self, y: int) -> str:
        value = (b"f%d" % len(self._objects), self.marks.show().encode())
        self._annotation(y, b"/Subtype /Widget /FT /Tx /F 4 /T (%s) /V (%s) /DA (/F 12 Tf 0 g)" % value)
        self._fields.append(self._annotations[-1])
        return ""

    def _written_on_it(self, y: int) -> str:
        return self._note(y, 4, self.marks.show())

    def _hidden_note(self, y: int) -> str:
        return self._note(y, 2, self.marks.hide())

    def _note(self, y: int, flags: int, word: str) -> str:
        """Return a text that was written on the page, with its appearance."""
        drawn = _line(2, 5, word).encode()
        form = (
            b"<< /Type /XObject /Subtype /Form /BBox [0 0 228 20] /Resources << /Font << /F 3 0 R >> >> /Length %d >>"
        )
        shown = self._add(form % len(drawn) + b"\nstream\n" + drawn + b"\nendstream")
        return self._annotation(
            y, b"/Subtype /FreeText /F %d /Contents (%s) /AP << /N %d 0 R >>" % (flags, word.encode(), shown)
        )

    def _comment(self, y: int) -> str:
        return self._annotation(y, b"/Subtype /Text /F 4 /Contents (%s)" % self.marks.hide("comments").encode())

    def _scan(self) -> str:
        """Return a page that a picture covers, with its recognized text, which is not painted."""
        self.marks.left_out["pictures"] += 1
        lines = (" ".join(self.marks.show() for _ in range(5)) for _ in range(4))
        return _WHOLE_PAGE + "".join(_line(72, 780 - 20 * place, line, "3 Tr") for place, line in enumerate(lines))

    def _only_picture(self) -> str:
        self.marks.left_out["pictures"] += 1
        self.marks.unread.add(self.marks.part)
        return _WHOLE_PAGE + (_line(72, 20, self.marks.show(), "0 Tr") if self._draw(st.booleans()) else "")


@st.composite
def paged_files(draw: st.DrawFn) -> MarkedFile:
    """PDF files of any structure."""
    made = _Pages(draw)
    return MarkedFile(made.data(), "pdf", made.marks)
