"""The visible texts of a page, divided into those that are read one after the other."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from ctypes import addressof
from typing import Any, Final

from ragstack_common.reading.pdf.drawing import Drawing, Text
from ragstack_common.reading.pdf.geometry import Rectangle
from ragstack_common.reading.pdf.overlays import Letters, letters_of, overlays
from ragstack_common.reading.pdf.traces import without_trace

EDGE: Final = 0.25
"""Share of a text's height that may be outside of the part in which it shows, so that the centre of each letter is in
it."""


def layers(raw: Any, page: Any, drawing: Drawing) -> Iterator[Mapping[int, Rectangle]]:
    """Activate the texts of a page in PDFium: first those below, then those that lie on them.

    Yields:
        The addresses of the texts of which only a part is shown, with that part.
    """
    _activate(raw, drawing.outside, active=False)
    texts = drawing.texts
    if doubtful := [text for text in texts if text.is_doubtful]:
        unseen = set(map(id, without_trace(raw, page, doubtful)))
        texts = [text for text in texts if id(text) not in unseen]
        _activate(raw, [text.handle for text in doubtful if id(text) not in unseen], active=True)

    def letters() -> Letters:
        with closing(page.get_textpage()) as characters:
            return letters_of(raw, characters.raw)

    on_others = {addressof(handle.contents) for handle in overlays(drawing, texts, letters)}
    above = [text for text in texts if addressof(text.handle.contents) in on_others] if on_others else []
    below = [text for text in texts if addressof(text.handle.contents) not in on_others] if on_others else texts
    cut = {addressof(text.handle.contents): text.box for text in texts if _is_cut(text)}
    if below:
        _activate(raw, [text.handle for text in above], active=False)
        yield cut
    if above:
        _activate(raw, [text.handle for text in below], active=False)
        _activate(raw, [text.handle for text in above], active=True)
        yield cut


def _activate(raw: Any, handles: Sequence[Any], *, active: bool) -> None:
    for handle in handles:
        raw.FPDFPageObj_SetIsActive(handle, active)


def _is_cut(text: Text) -> bool:
    if text.box is text.whole:
        return False
    edge = EDGE * text.whole.height()
    return any(abs(one - other) > edge for one, other in zip(text.whole, text.box, strict=True))
