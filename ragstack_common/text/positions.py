"""The position of a chunk in its document: its pages, sheet or section, as metadata of the chunk."""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from ragstack_common.text.numbered_parts import RECOGNIZED, NumberedPart
from ragstack_common.text.sections import outline

PAGE_KEY: Final = "x-amz-bedrock-kb-document-page-number"
"""Bedrock's key for PDF files."""

LAST_PAGE_KEY: Final = "ragstack_last_page"
PAGE_STARTS_KEY: Final = "ragstack_page_starts"
"""Offsets in the chunk's text at which its further pages begin, separated by commas. A page that does not follow on the
one before has its number behind a colon, such as 310:7: those in between have no text."""

SHEET_KEY: Final = "ragstack_sheet"
SECTION_KEY: Final = "ragstack_section"
SLIDES_KEY: Final = "ragstack_slides"
"""True if the pages are slides."""

RECOGNIZED_KEY: Final = "ragstack_recognized"
"""Those pages of a chunk whose text was recognized in a picture, separated by commas."""

SEPARATOR: Final = " > "
MAX_SECTION: Final = 200
"""Bytes in UTF-8. A knowledge base on S3 Vectors keeps 1 KB of metadata with a chunk."""

_HEADING: Final = re.compile(r"^## (.+)$", re.MULTILINE)

_LINK: Final = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_MARKS: Final = re.compile(r"\*+|`+|\\(?=[!-/:-@\[-`{-~])")
"""Emphasis, code, and the backslash of an escaped character."""


class Position(BaseModel):
    """Where a passage is in its document."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    page: int | None = Field(
        default=None, description="The page or slide on which the passage begins, from 1 (PDF, presentations, scans)"
    )
    is_slide: bool = Field(default=False, description="Whether the pages are slides")
    is_recognized: bool = Field(
        default=False, description="Whether its text was recognized in a picture (OCR), so that it may have errors"
    )
    last_page: int | None = Field(default=None, description="The page on which it ends, if later")
    sheet: str | None = Field(default=None, description="The sheet of the workbook")
    section: str | None = Field(
        default=None,
        description="The headings of the largest part of the passage, outermost first",
        examples=["Leave > Parental leave"],
    )

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> "Position":
        """Read the position in the metadata of a chunk."""
        # "page" and "section_title" are keys of a collection that `ragstack build` made.
        return cls(
            page=_number(metadata.get(PAGE_KEY, metadata.get("page"))),
            last_page=_number(metadata.get(LAST_PAGE_KEY)),
            is_slide=metadata.get(SLIDES_KEY) is True,
            is_recognized=bool(metadata.get(RECOGNIZED_KEY)),
            sheet=_text(metadata.get(SHEET_KEY)),
            section=_text(metadata.get(SECTION_KEY, metadata.get("section_title"))),
        )

    @property
    def place(self) -> str:
        """The position as people read it, such as: page 4 > Leave > Parental leave."""
        unit = "slide" if self.is_slide else "page"
        pages = f"{unit} {self.page}" if self.last_page is None else f"{unit}s {self.page} to {self.last_page}"
        recognized = f" ({RECOGNIZED})" if self.is_recognized else ""
        parts = (f"{pages}{recognized}" if self.page else None, self.sheet, self.section)
        return SEPARATOR.join(part for part in parts if part)

    def own_metadata(self) -> dict[str, str | int]:
        """Return the metadata for all but the page, which is Bedrock's own."""
        known = {LAST_PAGE_KEY: self.last_page, SHEET_KEY: self.sheet, SECTION_KEY: self.section}
        return {key: value for key, value in known.items() if value is not None}


def page_starts(starts: Sequence[int], begin: int, end: int) -> dict[str, str | int]:
    """Return the metadata that says where pages begin within a chunk.

    The offsets in the document are the starts of its pages, and the begin and the end of the chunk.
    """
    within = [str(start - begin) for start in starts if begin < start < end]
    return {PAGE_STARTS_KEY: ",".join(within)} if within else {}


def places_of_headings(text: str, section: str | None) -> dict[str, Any]:
    """Return the metadata that says where a chunk of converted text is, by the headings of its pages or slides.

    Args:
        text: Of the chunk.
        section: The headings of its largest part, as :func:`section_of` joins them; None if they are not known.
    """
    above, rest = _numbered(section)
    inside = [(found.start(), part) for found in _HEADING.finditer(text) if (part := NumberedPart.of(found[1]))]
    # What is in front of the first heading belongs to the page before.
    begins_inside = bool(text[: inside[0][0]].strip()) if inside else False
    if inside and begins_inside and inside[0][1].number > 1:
        number = inside[0][1].number - 1
        is_recognized = above is not None and above.number == number and above.is_recognized
        parts = [(0, NumberedPart(inside[0][1].kind, number, is_recognized=is_recognized)), *inside]
    elif inside:
        parts = inside
    else:
        parts = [(0, above)] if above is not None else []
    found: dict[str, Any] = {} if rest is None else {SECTION_KEY: rest}
    if not parts:
        return found
    numbers = [part.number for _, part in parts]
    found[PAGE_KEY] = numbers[0]
    if numbers[-1] > numbers[0]:
        found[LAST_PAGE_KEY] = numbers[-1]
        found[PAGE_STARTS_KEY] = ",".join(f"{start}:{part.number}" for start, part in parts[1:])
    if parts[0][1].kind == "Slide":
        found[SLIDES_KEY] = True
    if recognized := [str(part.number) for _, part in parts if part.is_recognized]:
        found[RECOGNIZED_KEY] = ",".join(recognized)
    return found


def _numbered(section: str | None) -> tuple[NumberedPart | None, str | None]:
    """Return the page or slide that a section begins with, and the rest, in which a title stands for a slide."""
    if section is None:
        return None, None
    headings = section.split(SEPARATOR)
    for place, heading in enumerate(headings):
        if part := NumberedPart.of(heading):
            kept = [*headings[:place], *([part.title] if part.title else []), *headings[place + 1 :]]
            return part, SEPARATOR.join(kept) or None
    return None, section


def pages_over(metadata: Mapping[str, Any], spans: Sequence[tuple[int, int]]) -> tuple[int | None, int | None]:
    """Return the page of the first of some characters of a chunk, and that of the last if it is a later one.

    Without characters, or if the metadata does not say where pages begin, these are the pages of the whole chunk.
    """
    position = Position.of(metadata)
    pages = [each.partition(":") for each in str(metadata.get(PAGE_STARTS_KEY, "")).split(",")]
    starts = [int(start) for start, _, _ in pages if start.isdecimal()]
    if not (spans and starts and position.page):
        return position.page, position.last_page
    numbers = [position.page]
    for _, _, number in pages:
        numbers.append(int(number) if number.isdecimal() else numbers[-1] + 1)
    first = numbers[bisect_right(starts, min(start for start, _ in spans))]
    last = numbers[bisect_right(starts, max(end for _, end in spans) - 1)]
    return first, last if last > first else None


def section_of(path: Sequence[str]) -> str | None:
    """Join the texts of Markdown headings, without the outer ones if they are too long together; None without any."""
    headings = [heading for heading in map(_plain, path) if heading]
    for first in range(len(headings)):
        joined = SEPARATOR.join(headings[first:])
        if len(joined.encode()) <= MAX_SECTION:
            return joined
    return headings[-1].encode()[:MAX_SECTION].decode(errors="ignore") if headings else None


def section_over(content: str, offsets: Sequence[int], section: str | None) -> str | None:
    """Return the headings that are above all these offsets of a chunk, in the form of :attr:`Position.section`.

    A chunk's own section is that of its largest part; headings within the chunk show the section of another part. The
    levels of headings before the chunk are not known, and assumed to be consecutive.

    Args:
        content: The text of the chunk, in Markdown.
        offsets: Offsets of the words that are displayed or quoted.
        section: The chunk's own section; None is returned unchanged.
    """
    found = outline(content)
    if section is None or not found.starts or not offsets:
        return section
    first = found.places[0].headings[0][0] if found.places[0].headings else 1
    own, is_before = section.split(SEPARATOR), True
    outer = list(enumerate(own, start=1))
    for place in found.places:
        inside = [title for _, title in _titles(place.headings)]
        if inside and own[-len(inside) :] == inside:
            above, level = own[: -len(inside)], place.headings[0][0]
            outer, is_before = list(enumerate(above, start=level - len(above))), False
            break
    paths = []
    for offset in offsets:
        headings = _titles(found.place_at(offset).headings)
        if not headings and is_before:
            paths.append(own)
            continue
        lowest = headings[0][0] if headings else first
        paths.append([title for level, title in outer if level < lowest] + [title for _, title in headings])
    shared = takewhile(lambda titles: len(set(titles)) == 1, zip(*paths, strict=False))
    return SEPARATOR.join(titles[0] for titles in shared) or None


def _titles(headings: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the levels and texts of headings, those of pages and slides without their number."""
    titles = []
    for level, heading in headings:
        text = _plain(heading)
        part = NumberedPart.of(text)
        if text := text if part is None else part.title:
            titles.append((level, text))
    return titles


def is_recognized_on(metadata: Mapping[str, Any], page: int | None, last_page: int | None) -> bool:
    """Whether the text of any of these pages of a chunk was recognized in a picture."""
    recognized = {int(page) for page in str(metadata.get(RECOGNIZED_KEY, "")).split(",") if page.isdecimal()}
    return page is not None and not recognized.isdisjoint(range(page, (last_page or page) + 1))


def _plain(heading: str) -> str:
    return " ".join(_MARKS.sub("", _LINK.sub(r"\1", heading)).split())


def _number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if float(value).is_integer() else None  # NaN and infinity are not whole either


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
