"""The visible texts of a page, divided into those that are read one after the other."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from ctypes import addressof
from typing import Any, Final

from ragstack_common.reading.pdf.drawing import Drawing, Text
from ragstack_common.reading.pdf.overlays import Letters, letters_of, overlays
from ragstack_common.reading.pdf.traces import without_trace
from ragstack_common.reading.places import Rectangle

MOST_STAMPS: Final = 8
"""Stamps that are read one by one; the others of a page are read together."""

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

    stamps = overlays(drawing, texts, letters)
    cut = {addressof(text.handle.contents): text.box for text in texts if _is_cut(text)}
    _activate(raw, [handle for stamp in stamps for handle in stamp], active=False)
    yield cut
    if not stamps:
        return
    _activate(raw, [text.handle for text in texts], active=False)
    # PDFium finds one direction for all that it reads at once.
    for stamp in (*stamps[:MOST_STAMPS], [handle for other in stamps[MOST_STAMPS:] for handle in other]):
        if stamp:
            _activate(raw, stamp, active=True)
            yield cut
            _activate(raw, stamp, active=False)


def _activate(raw: Any, handles: Sequence[Any], *, active: bool) -> None:
    for handle in handles:
        raw.FPDFPageObj_SetIsActive(handle, active)


def _is_cut(text: Text) -> bool:
    if text.box is text.whole:
        return False
    edge = EDGE * text.whole.height()
    return any(abs(one - other) > edge for one, other in zip(text.whole, text.box, strict=True))
