"""Find citation markers in an answer that arrives piece by piece, and remove those that name no source.

Each marker becomes one private character per source, so that later steps need not parse it again: see :func:`shown`.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final

from ragstack_common.answers.models.protocol import NO_ANSWER_MARK
from ragstack_common.text.characters import without_invisible

FIRST: Final = 0xF0000
"""Code point of source 0; the plane is for private use, and is removed from what a model writes."""

_LAST: Final = 0xFFFFD
MARKERS: Final = f"[{chr(FIRST)}-{chr(_LAST)}]"
"""Matches one source, in regular expressions."""

MAX_MARKER: Final = 80
MAX_LINK: Final = 300
MAX_CODE: Final = 200
"""Characters after which an opening bracket, parenthesis or backtick means itself."""

_PRIVATE: Final = re.compile(MARKERS)
_REMOVED: Final = re.compile(f"{MARKERS}|[\ud800-\udfff]")
"""Private characters that the model wrote, and halves of surrogate pairs, which JSON in UTF-8 cannot have."""

_SPECIAL: Final = re.compile(r"\n|`|[ \t]?[\[［【]|[ \t]\Z")  # noqa: RUF001
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_PERHAPS_FENCE: Final = re.compile(r" {0,3}(?:`{0,2}|~{0,2})\Z")
_CODE: Final = re.compile(rf"(`{{1,2}})(?!`)[^\n]{{1,{MAX_CODE}}}?(?<!`)\1(?!`)")
_BACKTICKS: Final = re.compile("`+")
_INSIDE: Final = rf"([^\[\]［］【】\n]{{1,{MAX_MARKER}}})"  # noqa: RUF001
_BRACKETS: Final = re.compile(rf"[\[［【]{{2}}{_INSIDE}[\]］】]{{2}}|[\[［【]{_INSIDE}[\]］】]")  # noqa: RUF001
_PERHAPS_BRACKETS: Final = re.compile(rf"[\[［【]{{1,2}}(?:{_INSIDE}[\]］】]?)?\Z")  # noqa: RUF001
_LAST_BRACKET: Final = re.compile(r".*([\[\]［］【】\n])", re.DOTALL)  # noqa: RUF001
_LABEL: Final = r"(?:sources?|passages?|documents?|docs?|refs?|references?|citations?|cite|quellen?|dokumente?)"
_JOIN: Final = r"(?:[,;&、，\s]|\band\b|\bund\b|\bet\b)++"  # noqa: RUF001 - full-width punctuation
_NUMBER: Final = rf"(?:{_LABEL}\.?\s*(?:number|no\.|nr\.)?\s*:?\s*)?[#^]?[-−]?\d+"  # noqa: RUF001 - a minus
_PAGE: Final = r"(?:,?\s*\b(?:pp?\.|pages?\b|seiten?\b|S\.)\s*\d+(?:\s*[-–—]\s*\d+)?)"  # noqa: RUF001 - dashes
_RANGE: Final = rf"{_NUMBER}(?:\s*[-–—]\s*\d+)?{_PAGE}?"  # noqa: RUF001 - dashes
_NUMBERS: Final = re.compile(rf"\s*(?>{_RANGE})(?:{_JOIN}(?>{_RANGE}))*+\s*(?:†.*|:\s.*)?", re.IGNORECASE)
_TITLE: Final = re.compile(r"(?<=\d)\s*:\s")
_YEARS: Final = re.compile(r"\s*[12]\d{3}(?:\s*[-–—]\s*\d{2,4})?\s*")  # noqa: RUF001 - dashes
_PAGES: Final = re.compile(_PAGE, re.IGNORECASE)
_PART: Final = re.compile(r"([-−]?)(\d+)(?:\s*[-–—]\s*(\d+))?")  # noqa: RUF001 - dashes
_LINK: Final = re.compile(rf"\((?:\w+:|www\.|[#/.])[^()\s]{{0,{MAX_LINK}}}\)")
_PERHAPS_LINK: Final = re.compile(rf"\([^()\s]{{0,{MAX_LINK}}}\Z")


def marker(number: int) -> str:
    """Return the private character of a source."""
    return chr(FIRST + number)


def numbers_in(text: str) -> list[int]:
    """Return the sources that a text cites, each once, in their order."""
    return list(dict.fromkeys(ord(character) - FIRST for character in _PRIVATE.findall(text)))


def shown(text: str) -> str:
    """Replace private characters by markers such as [1]."""
    return _PRIVATE.sub(lambda found: f"[{ord(found[0]) - FIRST}]", text)


def marker_offsets(text: str) -> Iterator[tuple[int, int]]:
    """Yield the offset of each private character, and how many characters longer its marker is."""
    for found in _PRIVATE.finditer(text):
        yield found.start(), len(str(ord(found[0]) - FIRST)) + 1


def without_markers(text: str) -> str:
    """Remove private characters and the spaces before them."""
    return re.sub(rf"[ \t]*{MARKERS}+", "", text)


def in_parentheses(text: str) -> str:
    """Replace the brackets around what would be read as a marker, such as [12] or [no answer], by parentheses."""
    return _BRACKETS.sub(_in_parentheses, text)


def _in_parentheses(found: re.Match[str]) -> str:
    inside = found[1] or found[2]
    brackets = (len(found[0]) - len(inside)) // 2
    said = without_invisible(inside)
    is_read = _is_marker(said) or _is_no_answer(said)
    return "(" * brackets + inside + ")" * brackets if is_read else found[0]


def _is_no_answer(inside: str) -> bool:
    return f"[{' '.join(inside.casefold().split())}]" == NO_ANSWER_MARK


def _is_marker(inside: str) -> bool:
    return bool(_NUMBERS.fullmatch(inside)) and not _YEARS.fullmatch(inside)


class MarkerReader:
    """Replaces the markers in a text that arrives piece by piece. Pieces of any size give the same text.

    Markers have forms such as [1], [1, 2], [1-3], [Source 1], [1, p. 3], [^1] and 【1】, with or without a link. Code
    and years in brackets are unchanged. Numbers without a source are removed and counted.

    Attributes:
        removed: How many numbers were removed.
        no_answer: Whether :data:`NO_ANSWER_MARK`, which is removed too, occurred.
    """

    def __init__(self, known: Collection[int]) -> None:
        self.removed = 0
        self.no_answer = False
        self._known = known
        self._held = ""
        self._fence = ""
        self._at_line_start = True
        self._blank_line = True
        self._blank = True
        self._in_brackets = False
        self._after_code = False

    def feed(self, text: str, *, last: bool = False) -> str:
        """Read the next piece, and return what is certain by now, without white space before the answer."""
        text = self._held + _REMOVED.sub("", text)
        if self._blank:
            text = text.lstrip()
        read: list[str] = []
        at = 0
        while at < len(text):
            step = self._step(text, at, last=last)
            if step is None:
                break
            at, piece = step
            self._read(piece, read)
        self._held = text[at:]
        return "".join(read)

    def _read(self, piece: str, read: list[str]) -> None:
        """Add a piece, without white space at the beginning of the answer."""
        if self._blank:
            piece = piece.lstrip()
        if piece:
            self._blank = False
            self._after_code = piece[-1] == "`"
            if bracket := _LAST_BRACKET.match(piece):
                self._in_brackets = bracket[1] in "[［【"  # noqa: RUF001
            self._blank_line = piece.endswith("\n") or (self._blank_line and piece.isspace())
            read.append(piece)

    def _step(self, text: str, at: int, *, last: bool) -> tuple[int, str] | None:
        """Read up to the next special character, or that one; None if it depends on the next piece."""
        if self._at_line_start:
            if not last and _PERHAPS_FENCE.match(text, at):
                return None
            self._open_or_close(text, at)
            self._at_line_start = False
        if self._fence:
            end = text.find("\n", at) + 1
            self._at_line_start = end > 0
            return end or len(text), text[at : end or len(text)]
        found = _SPECIAL.search(text, at)
        if found is None:
            return len(text), text[at:]
        if found.start() > at:
            return found.start(), text[at : found.start()]
        if found[0] == "\n":
            self._at_line_start = True
            return found.end(), "\n"
        if found[0].isspace():
            return (found.end(), found[0]) if last else None
        return (
            self._code(text, at, last=last) if found[0] == "`" else self._brackets(text, at, found.end() - 1, last=last)
        )

    def _open_or_close(self, text: str, at: int) -> None:
        found = _FENCE.match(text, at)
        if found and not self._fence:
            self._fence = found[1][0]
        elif found and found[1][0] == self._fence:
            self._fence = ""

    def _code(self, text: str, at: int, *, last: bool) -> tuple[int, str] | None:
        found = _CODE.match(text, at)
        if found and (last or found.end() < len(text)):
            return found.end(), found[0]
        if not last and len(text) - at <= MAX_CODE + 6 and text.find("\n", at) < 0:
            return None
        run = _BACKTICKS.match(text, at)
        assert run is not None
        return run.end(), run[0]

    def _brackets(self, text: str, at: int, bracket: int, *, last: bool) -> tuple[int, str] | None:
        if not last and _PERHAPS_BRACKETS.match(text, bracket):
            return None
        found = _BRACKETS.match(text, bracket)
        if found is None:
            return bracket + 1, text[at : bracket + 1]
        end = found.end()
        if not last and (end == len(text) or _PERHAPS_LINK.match(text, end)):
            return None
        sources = self._sources(found[1] or found[2])
        if sources is None:
            return bracket + 1, text[at : bracket + 1]
        link = _LINK.match(text, end)
        end = link.end() if link else end
        if sources:
            return end, text[at:bracket] + "".join(map(marker, sources))
        if self._blank_line:
            end += text[end : end + 1] in (" ", "\t")
            self._at_line_start = True
        # The rest of [7[9]] must not be read as a marker, or that of `a`[9]`b` as one piece of code.
        return end, "…" if self._in_brackets or self._after_code else ""

    def _sources(self, inside: str) -> list[int] | None:
        """Return the known numbers in brackets; None if this is not a marker. Counts the others."""
        inside = without_invisible(inside)
        if _is_no_answer(inside):
            self.no_answer = True
            return []
        if not _is_marker(inside):
            return None
        sources: list[int] = []
        numbers = _TITLE.split(inside.partition("†")[0])
        parts = _PART.findall(_PAGES.sub("", numbers[0]))
        if len(numbers) > 1 and not any(int(first) in self._known for _, first, _ in parts):
            return None  # [12: a note] may be a part of the text
        for sign, first, end in parts:
            low, high = int(first), int(end or first)
            named = [number for number in sorted(self._known) if low <= number <= high and not sign]
            sources += named
            self.removed += not named or (high not in self._known)
        return list(dict.fromkeys(sources))
