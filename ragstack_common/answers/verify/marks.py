"""Find what is in quotation marks, of any language, in an answer that may not be finished."""

# ruff: noqa: RUF001 - look-alikes of quotation marks are the subject

import html
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from ragstack_common.text.characters import is_dense
from ragstack_common.text.sentences import CLOSING_MARKS

MAX_QUOTATION: Final = 1000
"""Characters after which an opening mark that is not closed does not begin a quotation."""

MAX_MARK: Final = 30
"""Characters of a tag such as <q>, or of an entity."""

OUTER_MARKS: Final = CLOSING_MARKS + "„‚‟‛「『《〈﹁﹃｢〝❝❛"

_PAIRS: Final = dict(zip("「『《〈﹁﹃｢", "」』》〉﹂﹄｣", strict=True))
"""Marks with different forms for opening and closing. The role of others depends on the language or the context."""

_DOUBLE: Final = '"＂“”„‟〝〞〟❝❞'
_SINGLE: Final = "'＇‘’‚‛❛❜"
AMBIGUOUS_MARKS: Final = frozenset("'＇‘’《〈")
"""Marks that are also apostrophes, or enclose titles."""

_ALWAYS_OPEN: Final = "„‟〝❝"
_ALWAYS_CLOSE: Final = "〞〟❞❜"
_PARTNERS: Final = dict(zip("”“’‘〞〟❞❜", "“„‘‚〝〝❝❛", strict=True))
"""The opening mark that a closing one prefers, if others are open too."""

_FAMILIES: Final = {
    **dict.fromkeys(_DOUBLE, "double"),
    **dict.fromkeys(_SINGLE, "single"),
    **dict.fromkeys("«»", "«»"),
    **dict.fromkeys("‹›", "‹›"),
    **{mark: opening + closing for opening, closing in _PAIRS.items() for mark in (opening, closing)},
    "``": "``",
    "''": "``",
}
"""Marks of a family may close each other."""

_ASCII: Final = {",,": "„", "<<": "«", ">>": "»", "''": "''"}
"""Marks that are typed with two characters."""

_MARK: Final = re.compile(
    rf"\\?(?:&(?:quot|[lrb]dquo|[lr]aquo|[lr]squo|sbquo|[lr]saquo|apos|#\d{{2,5}}|#x[\da-f]{{2,4}});"
    rf"|</?(?:q|blockquote)\b[^<>\n]{{0,{MAX_MARK}}}>"
    rf"|``|''|,,|<<|>>|[{_DOUBLE}{_SINGLE}«»‹›{''.join(_PAIRS)}{''.join(_PAIRS.values())}])",
    re.IGNORECASE,
)
_PERHAPS_MARK: Final = re.compile(rf"\\?(?:&[#\w]{{0,6}}|<[^<>\n]{{0,{MAX_MARK}}}|[`',>])\Z|\\\Z")
_BEFORE_OPENING: Final = "([{—–-:*_>"
_LOOKAHEAD: Final = 4
_YEARS: Final = re.compile(r"\d\ds\b")

_Role = Literal["open", "close", "none"]


class Quoted(NamedTuple):
    """A text in quotation marks.

    Attributes:
        start: Offset of the opening mark.
        end: Offset after the closing mark.
        text: What is between them.
    """

    start: int
    end: int
    text: str


@dataclass
class _Mark:
    """A mark, or what may be one.

    Attributes:
        family: Marks of a family may close each other.
        shape: The mark itself, entities replaced.
    """

    start: int
    end: int
    family: str
    shape: str


def quotations_in(text: str, *, complete: bool = True) -> tuple[list[Quoted], int]:
    """Find the outermost quotations in a line.

    Args:
        text: The line.
        complete: Whether the line ends with the text; otherwise a quotation may be closed later.

    Returns:
        The quotations; and where the part begins that the next piece may change.
    """
    found, opened, undecided = _read(text, complete=complete)
    if complete:
        return found, len(text)
    opened.forget(len(text) - MAX_QUOTATION)
    undecided = min(undecided, opened.first(undecided))
    return [quoted for quoted in found if quoted.end <= undecided], undecided


def unclosed_in(text: str) -> Quoted | None:
    """Return what follows the first mark that is never closed and hardly an apostrophe, a bullet or a typo."""
    _, opened, _ = _read(text, complete=True)
    certain = (mark for mark in opened.marks if mark.family != "single" and mark.shape not in "»›")
    mark = next((mark for mark in certain if text[mark.start : mark.end] not in _ASCII), None)
    return None if mark is None else Quoted(mark.start, len(text), text[mark.end :])


def _read(text: str, *, complete: bool) -> tuple[list[Quoted], "_Open", int]:
    found: list[Quoted] = []
    opened = _Open()
    undecided = len(text)
    if not complete and (perhaps := _PERHAPS_MARK.search(text, max(0, len(text) - MAX_MARK - 2))):
        undecided = perhaps.start()
    for mark in _marks(text):
        if not complete and (mark.end + _LOOKAHEAD > len(text) or mark.start >= undecided):
            undecided = min(undecided, mark.start)
            break
        opened.forget(mark.start - MAX_QUOTATION)
        match _role(text, mark, opened):
            case "open":
                opened.add(mark)
            case "close":
                opener = opened.close(mark)
                if opener is None:
                    continue
                while found and found[-1].start >= opener.start:
                    found.pop()
                found.append(Quoted(opener.start, mark.end, text[opener.end : mark.start]))
    return found, opened, undecided


class _Open:
    """The open marks in order, and those too far back to be closed. Each step takes constant time, on average."""

    def __init__(self) -> None:
        self.marks: list[_Mark] = []
        self._places: dict[str, list[int]] = defaultdict(list)
        self._begin = 0

    def add(self, mark: _Mark) -> None:
        for key in (mark.family, mark.shape):
            self._places[key].append(len(self.marks))
        self.marks.append(mark)

    def forget(self, before: int) -> None:
        """Drop the marks before an offset, which are too far back to be closed."""
        while self._begin < len(self.marks) and self.marks[self._begin].end < before:
            self._begin += 1

    def first(self, default: int) -> int:
        """Return where the first open mark begins."""
        return self.marks[self._begin].start if self._begin < len(self.marks) else default

    def last(self, key: str) -> _Mark | None:
        """Return the last open mark of a family or shape."""
        places = self._places[key]
        return self.marks[places[-1]] if places and places[-1] >= self._begin else None

    def close(self, mark: _Mark) -> _Mark | None:
        """Close the last mark that fits, and drop those after it; None if no mark fits."""
        has_partner = mark.family in ("double", "single")
        partner = _PARTNERS.get(mark.shape, mark.shape) if has_partner else ""
        opener = (self.last(partner) if has_partner else None) or self.last(mark.family)
        if opener is None:
            return None
        while self.marks[-1] is not opener:
            self._drop()
        if not has_partner or opener.shape == partner:
            self._drop()
        return opener

    def _drop(self) -> None:
        mark = self.marks.pop()
        for key in (mark.family, mark.shape):
            self._places[key].pop()
        self._begin = min(self._begin, len(self.marks))


def _marks(text: str) -> Iterator[_Mark]:
    for found in _MARK.finditer(text):
        shape = html.unescape(found[0].removeprefix("\\"))
        shape = _ASCII.get(shape, shape)
        lower = shape.lower()
        if lower.startswith("<") and len(lower) > 1:
            name = lower.strip("</>").split()[0]
            yield _Mark(found.start(), found.end(), name, lower[:2])
        elif shape in _FAMILIES:
            yield _Mark(found.start(), found.end(), _FAMILIES[shape], shape)


def _role(text: str, mark: _Mark, opened: _Open) -> _Role:
    if mark.shape == "</" or mark.shape in _PAIRS.values() or mark.shape in _ALWAYS_CLOSE:
        return "close"
    if mark.shape.startswith("<") or mark.shape == "``" or mark.shape in _PAIRS:
        return "open"
    before, after = text[mark.start - 1 : mark.start] or " ", text[mark.end : mark.end + 1] or " "
    if mark.shape == "''":
        return _role_of_apostrophes(mark, before, after, opened)
    match mark.family:
        case "«»" | "‹›":
            return _role_of_guillemet(mark, before, after, opened)
        case "single":
            return _role_of_single(text, mark, before, after, opened)
    return _role_of_double(mark, before, after, opened)


def _role_of_apostrophes(mark: _Mark, before: str, after: str, opened: _Open) -> _Role:
    """Return the role of two apostrophes, which close ``, or any double mark, and may open too."""
    if opened.last("``"):
        return "close"
    if opened.last("double"):
        mark.family, mark.shape = "double", '"'
        return _role_of_double(mark, before, after, opened)
    return "none" if _is_word(before) or after.isspace() else "open"


def _role_of_guillemet(mark: _Mark, before: str, after: str, opened: _Open) -> _Role:
    """Return the role of a mark of which either form opens, depending on the language."""
    opener = opened.last(mark.family)
    if opener is None:
        return "open"
    is_nested = opener.shape == mark.shape and (before.isspace() or after.isalnum())
    return "open" if is_nested else "close"


def _role_of_single(text: str, mark: _Mark, before: str, after: str, opened: _Open) -> _Role:
    """Return the role of a single mark, which may be an apostrophe."""
    spaced = before.isspace() and after.isspace()
    if mark.shape == "‘" and not (opened.last("‚") and not after.isalnum()):
        return "open"
    if opened.last(mark.family) and _may_close(before, after):
        return "close"
    is_apostrophe = mark.shape == "’" or _is_word(before) or (mark.shape == "'" and _YEARS.match(text, mark.end))
    return "none" if is_apostrophe or (after.isspace() and not spaced) else "open"


def _role_of_double(mark: _Mark, before: str, after: str, opened: _Open) -> _Role:
    opener = opened.last(mark.family)
    if mark.shape in _ALWAYS_OPEN or (opener and opener.end == mark.start and after.isspace()):
        return "open"
    if mark.shape == "“":
        return "close" if opener and not (after.isalnum() or before.isspace()) else "open"
    if opener and _may_close(before, after):
        return "close"
    if _is_word(before) or (mark.shape == "”" and not after.isalnum()):
        return "none"
    if opener:
        return "open" if _is_word(after) else "none"
    is_stray = after.isspace() and not (before.isspace() or before in _BEFORE_OPENING)
    return "none" if is_stray else "open"


def _may_close(before: str, after: str) -> bool:
    return not _is_word(after) and not (before.isspace() and (after.isalnum() or after in _BEFORE_OPENING))


def _is_word(character: str) -> bool:
    """Whether a character is a letter or digit of a script that separates words by spaces."""
    return (character.isalnum() or character == "_") and not is_dense(character)
