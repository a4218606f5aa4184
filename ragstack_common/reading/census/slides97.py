"""What presentations of PowerPoint 97 to 2003 have: every text of every slide, as the records list them."""

from collections.abc import Iterator
from typing import Final

from ragstack_common.reading.census.parts import COMMENTS_LEFT_OUT, HIDDEN_LEFT_OUT, NOT_RECOGNIZED, Census, Part
from ragstack_common.reading.census.slides import PICTURE
from ragstack_common.reading.slides import records
from ragstack_common.reading.slides.powerpoint97 import footers, is_hidden
from ragstack_common.reading.slides.records import ListedSlide, Record, Records

_PICTURE_FRAME: Final = 75
_OF_PAGES: Final = (7, 8, 9, 10)
_SHOWS_MASTER: Final = 0x01


def count(data: bytes) -> Census:
    """List the texts of a presentation by slide; raises UnreadableDocument."""
    found = Records(data)
    census = Census([], "slides")
    pages = {each.own: each for each in found.listed(records.OF_NOTES)}
    masters = {each.own: each for each in found.listed(records.MASTERS)}
    shown: set[str] = set()
    # A page of notes names its slide, and the atom of a slide the list entry of its notes.
    hidden = pictures = comments = 0
    for number, listed in enumerate(found.listed(records.SLIDES), start=1):
        slide = found.at(listed.place)
        if slide is None:
            continue
        if is_hidden(found, slide):
            hidden += 1
            continue
        part = Part(f"slide {number}", [*_texts(found, slide, listed)])
        for atom in found.all_within(slide, records.SLIDE_ATOM):
            master = masters.get(found.number(atom.begin + 12, 4))
            behind = found.at(master.place) if master is not None else None
            if behind is not None and found.number(atom.begin + 20, 2) & _SHOWS_MASTER:
                # Several slides show it; it counts for the first.
                part.texts += [text for text in _of_master(found, behind) if text not in shown]
                shown.update(_of_master(found, behind))
            notes = pages.get(found.number(atom.begin + 16, 4))
            page = found.at(notes.place) if notes is not None else None
            part.texts += _texts(found, page, notes) if page is not None and notes is not None else []
        for container in found.all_within(slide, records.FOOTERS):
            part.texts += footers(found, container)
        atoms = found.all_within(slide, records.SHAPE_ATOM)
        own_pictures = sum(atom.instance == _PICTURE_FRAME for atom in atoms)
        part.unread = PICTURE if own_pictures and not part.texts else ""
        pictures += own_pictures
        comments += sum(1 for _ in found.all_within(slide, records.COMMENT))
        census.parts.append(part)
    census.left_out("hidden slides", hidden, HIDDEN_LEFT_OUT)
    census.left_out("pictures", pictures, NOT_RECOGNIZED)
    census.left_out("comments", comments, COMMENTS_LEFT_OUT)
    return census


def _texts(found: Records, page: Record, listed: ListedSlide) -> Iterator[str]:
    """Yield the paragraphs of a page: those that the list of slides has, and those of its boxes."""
    for _, text in listed.texts:
        yield from _paragraphs(text)
    for shape in found.all_within(page, records.SHAPE):
        kinds = [found.number(each.begin + 4, 1) for each in found.all_within(shape, records.PLACEHOLDER)]
        for box in found.all_within(shape, records.TEXT_BOX):
            for _, text in found.texts(box):
                yield from () if kinds and kinds[0] in _OF_PAGES else _paragraphs(text)


def _of_master(found: Records, page: Record) -> Iterator[str]:
    """Yield the paragraphs of the boxes of a master that are no placeholders."""
    for shape in found.all_within(page, records.SHAPE):
        if not any(found.all_within(shape, records.PLACEHOLDER)):
            for box in found.all_within(shape, records.TEXT_BOX):
                for _, text in found.texts(box):
                    yield from _paragraphs(text)


def _paragraphs(text: str) -> Iterator[str]:
    return (line for line in text.split("\r") if line.strip())
