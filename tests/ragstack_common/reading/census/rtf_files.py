"""RTF files whose words are in every place that the format has for them."""

# ruff: noqa: E501 - RTF

from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from tests.ragstack_common.reading.census.marked import MarkedFile, Marks

if TYPE_CHECKING:
    from collections.abc import Callable

_DEEPEST: Final = 3


class _Rtf:
    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.marks = Marks()

    def whole(self) -> str:
        show, hide = self.marks.show, self.marks.hide
        head = (
            rf"{{\rtf1\ansi\ansicpg1252\deff0{{\fonttbl{{\f0 Arial;}}{{\f1\fcharset204 Times;}}}}{{\info{{\title {hide()}}}}}"
            rf"{{\*\generator {hide()};}}{{\header {show()}\par}}{{\footer {{\field{{\*\fldinst PAGE}}{{\fldrslt {hide()}}}}}\par}}"
        )
        return f"{head}{self._paragraph()}{self._blocks(0)}}}"

    def _blocks(self, depth: int) -> str:
        kinds: list[Callable[[], str]] = [self._paragraph, self._heading, self._item]
        if depth < _DEEPEST:
            kinds += [lambda: self._table(depth + 1)]
        return "".join(self._draw(st.sampled_from(kinds))() for _ in range(self._draw(st.integers(1, 4))))

    def _inline(self) -> str:
        show, hide = self.marks.show, self.marks.hide
        kind: Callable[[], str] = self._draw(
            st.sampled_from(
                (
                    show,
                    lambda: rf"{show()} \'e9\u8364?\u1046\'3f{{\b {show()}}}",
                    lambda: rf"{{\field{{\*\fldinst HYPERLINK {hide()}}}{{\fldrslt {show()}}}}}",
                    lambda: rf"{show()}{{\v {hide('hidden passages')}}}",
                    lambda: rf"{show()}{{\deleted {hide('deleted passages')}}}",
                    lambda: rf"{show()}{{\super 2}}",
                    lambda: rf"{show()}{{\*\annotation {hide('comments')}}}",
                    lambda: rf"{{\f1 \'cf\'f0 {show()}}}",
                    self._picture,
                    lambda: rf"{{\*\unknown {hide()}}}\tab {show()}\line {show()}",
                )
            )
        )
        return kind()

    def _picture(self) -> str:
        hide = self.marks.hide
        picture = rf"{{\*\shppict{{\pict\pngblip 00{hide('pictures')}}}}}"
        return rf"{picture}{{\nonshppict{{\pict 00{hide()}}}}} {self.marks.show()}"

    def _paragraph(self) -> str:
        return rf"\pard {self._inline()}\par "

    def _heading(self) -> str:
        return rf"\pard\outlinelevel1 {self._inline()}\par "

    def _item(self) -> str:
        return rf"\pard{{\listtext 1.\tab}}\ilvl1 {self._inline()}\par\pard "

    def _table(self, level: int) -> str:
        written = ""
        columns = self._draw(st.integers(1, 3))
        edges = "".join(rf"\cellx{1000 * (each + 1)}" for each in range(columns))
        for _ in range(self._draw(st.integers(1, 3))):
            cells = ""
            for _ in range(columns):
                inner = self._table(level + 1) if level < _DEEPEST and self._draw(st.booleans()) else ""
                text = rf"\pard\intbl\itap{level} {self._inline()}"
                cells += inner + text + (r"\cell " if level == 1 else r"\nestcell ")
            if level == 1:
                written += rf"\trowd{edges}{cells}\row "
            else:
                written += rf"{cells}{{\*\nesttableprops\trowd{edges}\nestrow}}{{\nonesttables\par}}"
        return written


@st.composite
def rtf_files(draw: st.DrawFn) -> MarkedFile:
    """RTF files of any structure."""
    rtf = _Rtf(draw)
    return MarkedFile(rtf.whole().encode("ascii"), "rtf", rtf.marks)
