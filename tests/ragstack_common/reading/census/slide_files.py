"""Presentations whose words are in every place that the format has for them."""

# ruff: noqa: E501 - XML

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.ragstack_common.reading.census.marked import MarkedFile, Marks
from tests.ragstack_common.reading.census.word_files import chart, diagram
from tests.support.office_files import STRICT, TRANSITIONAL
from tests.support.old_slide_files import OldSlide, group, outline_text, ppt, record
from tests.support.old_slide_files import shape as old_shape
from tests.support.old_slide_files import text as old_text
from tests.support.slide_files import MATH, PICTURE, Slide, cells, frame, paragraph, pptx, shape

if TYPE_CHECKING:
    from collections.abc import Callable

_DEEPEST = 3
_NUMBER = '<a:fld type="slidenum"><a:t>{}</a:t></a:fld>'
_BULLETS = ("", "<a:buNone/>", '<a:buChar char="•"/>', '<a:buAutoNum type="romanLcParenR" startAt="2"/>')


class _Slides:
    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.marks = Marks()
        self._drawn: dict[str, tuple[str, str]] = {}
        self._runs: list[Callable[[], str]] = [
            self._run,
            self._run,
            self._raised,
            self._field,
            self._formula,
            self._broken,
        ]

    def bytes(self) -> bytes:
        self.marks.part = "slide 1"
        layout = shape(self.marks.hide(), kind="body", index=1)
        layout += shape(self.marks.show()) if self._draw(st.booleans()) else ""
        master = shape(self.marks.hide(), kind="title") + shape(self.marks.show())
        slides = [self._slide(number) for number in range(1, 1 + self._draw(st.integers(1, 3)))]
        return pptx(slides, layout=layout, master=master, edition=self._draw(st.sampled_from((TRANSITIONAL, STRICT))))

    def _slide(self, number: int) -> Slide:
        if number > 1 and self._draw(st.integers(0, 3)) == 0:
            self.marks.left_out["hidden slides"] += 1
            return Slide(shape(self.marks.hide()), 'show="0"')
        self.marks.part = f"slide {number}"
        self._drawn = {}
        title = shape(paragraph(self._run()), kind=self._draw(st.sampled_from(("title", "ctrTitle"))))
        kinds: list[Callable[[], str]] = [
            self._texts,
            self._texts,
            self._group,
            self._table,
            self._hidden,
            self._chart,
            self._diagram,
            self._comments,
            self._picture,
        ]
        shapes = "".join(self._draw(st.sampled_from(kinds))() for _ in range(self._draw(st.integers(1, 4))))
        around = shape(self.marks.show(), kind="ftr") + shape(self.marks.show(), kind="dt")
        around += shape(paragraph(_NUMBER.format(self.marks.hide())), kind="sldNum")
        notes = ""
        if self._draw(st.booleans()):
            notes = self._texts("body") + shape(self.marks.hide(), kind="hdr") + shape(self.marks.hide(), kind="sldNum")
        return Slide(shapes + title + around, notes=notes, drawn=self._drawn)

    def _texts(self, kind: str | None = None) -> str:
        chosen = kind or self._draw(st.sampled_from((None, "body", "subTitle")))
        return shape(*(self._paragraph() for _ in range(self._draw(st.integers(1, 3)))), kind=chosen)

    def _paragraph(self) -> str:
        runs = [self._draw(st.sampled_from(self._runs))() for _ in range(self._draw(st.integers(1, 3)))]
        spaced = [part for run in runs for part in (run, " ")]
        return paragraph(*spaced, level=self._draw(st.integers(0, 3)), bullet=self._draw(st.sampled_from(_BULLETS)))

    def _run(self) -> str:
        return f"<a:r><a:t>{self.marks.show()} and {self.marks.show()}</a:t></a:r>"

    def _raised(self) -> str:
        return f'<a:r><a:t>{self.marks.show()}</a:t></a:r><a:r><a:rPr baseline="30000"/><a:t>2</a:t></a:r>'

    def _field(self) -> str:
        return f'{_NUMBER.format(self.marks.hide())}<a:fld type="user"><a:t>{self.marks.show()}</a:t></a:fld>'

    def _formula(self) -> str:
        above, below = (f"<m:r><m:t>{self.marks.show()}</m:t></m:r>" for _ in range(2))
        return MATH.format(f"<m:f><m:num>{above}</m:num><m:den>{below}</m:den></m:f>")

    def _broken(self) -> str:
        return f"{self._run()}<a:br/>{self._run()}"

    def _group(self, depth: int = 0) -> str:
        inner = self._group(depth + 1) if depth < _DEEPEST and self._draw(st.booleans()) else self._texts()
        if self._draw(st.integers(0, 3)) == 0:
            hidden = shape(self.marks.hide("hidden passages"))
            inner += f'<p:grpSp><p:nvGrpSpPr><p:cNvPr id="1" name="g" hidden="true"/></p:nvGrpSpPr>{hidden}</p:grpSp>'
        choice = f"<mc:AlternateContent><mc:Choice Requires='x'>{inner}</mc:Choice><mc:Fallback>{shape(self.marks.hide())}</mc:Fallback></mc:AlternateContent>"
        return f"<p:grpSp><p:nvGrpSpPr><p:cNvPr id='1' name='g'/></p:nvGrpSpPr>{choice if self._draw(st.booleans()) else inner}</p:grpSp>"

    def _hidden(self) -> str:
        return shape(self.marks.hide("hidden passages"), hidden=True)

    def _table(self) -> str:
        columns, merges = self._draw(st.integers(1, 3)), self._draw(st.booleans())
        rows = []
        for number in range(self._draw(st.integers(1, 3))):
            row = [f"<a:tc><a:txBody>{self._paragraph()}{self._paragraph()}</a:txBody></a:tc>" for _ in range(columns)]
            if merges:
                row.append(
                    f'<a:tc {"vMerge" if number else "hMerge"}="1"><a:txBody>{paragraph(self.marks.hide())}</a:txBody></a:tc>'
                )
            rows.append(row)
        return cells(*rows)

    def _chart(self) -> str:
        self._drawn[own := f"d{len(self._drawn)}"] = ("chart", chart(self.marks))
        return frame(f'<c:chart r:id="{own}"/>')

    def _diagram(self) -> str:
        self._drawn[own := f"d{len(self._drawn)}"] = ("diagramData", diagram(self.marks))
        return frame(f'<dgm:relIds r:dm="{own}"/>')

    def _comments(self) -> str:
        comment = f"<p:cm><p:text>{self.marks.hide('comments')}</p:text></p:cm>"
        self._drawn[f"d{len(self._drawn)}"] = ("comments", f"<p:cmLst xmlns:p='p'>{comment}</p:cmLst>")
        return ""

    def _picture(self) -> str:
        self.marks.left_out["pictures"] += 1
        return PICTURE


@st.composite
def presentations(draw: st.DrawFn) -> MarkedFile:
    """Presentations of any structure."""
    slides = _Slides(draw)
    return MarkedFile(slides.bytes(), "pptx", slides.marks)


_SLIDE_NUMBER = 0x0FD8


@st.composite
def old_presentations(draw: st.DrawFn) -> MarkedFile:
    """Presentations of PowerPoint 97 to 2003, with texts that the document lists, in boxes and in groups."""
    marks, slides = Marks(), []
    marks.part = "slide 1"
    master = [old_shape(old_text(4, marks.show())), old_shape(old_text(0, marks.hide()), placeholder=1)]
    for number in range(1, 1 + draw(st.integers(1, 3))):
        if number > 1 and draw(st.booleans()):
            marks.left_out["hidden slides"] += 1
            slides.append(OldSlide([old_shape(old_text(4, marks.hide()))], hidden=True))
            continue
        marks.part = f"slide {number}"
        outline = [
            (kind, f"{marks.show()} and {marks.show()}")
            for kind in draw(st.lists(st.sampled_from((0, 1, 5, 6)), max_size=3))
        ]
        shapes = [old_shape(outline_text(place)) for place in range(len(outline))]
        for _ in range(draw(st.integers(1, 4))):
            kind, narrow = draw(st.sampled_from((0, 1, 4, 4))), draw(st.booleans())
            written = f"*{marks.show()}\r{marks.show()} and\v{marks.show()}"
            each = old_shape(old_text(kind, written, narrow=narrow, changing={0: _SLIDE_NUMBER}))
            shapes.append(group(each) if draw(st.booleans()) else each)
        shapes.append(old_shape(old_text(4, marks.hide()), placeholder=8))
        if draw(st.booleans()):
            marks.left_out["pictures"] += 1
            shapes.append(old_shape(kind=75))
        notes = []
        if draw(st.booleans()):
            notes = [old_shape(old_text(2, marks.show())), old_shape(old_text(4, marks.hide()), placeholder=9)]
        others = record(0x2EE0, marks.hide("comments").encode(), has_records=True) if draw(st.booleans()) else b""
        slides.append(OldSlide(shapes, outline, notes=notes, footer=marks.show(), others=others))
    before = record(0x03EE, old_shape(old_text(4, marks.hide())), has_records=True)
    return MarkedFile(ppt(slides, master=master, before=before), "ppt", marks)
