"""Divide an answer that arrives piece by piece into sentences, headings, table rows and blocks of code."""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import Final, Literal

from ragstack_common.answers.verify.markers import MARKERS
from ragstack_common.answers.verify.marks import OUTER_MARKS, quotations_in
from ragstack_common.text.sentences import (
    CLOSING_MARKS,
    DENSE_ENDS,
    MAX_ABBREVIATION,
    MAX_MONTH,
    SPACED_ENDS,
    begins_small,
    is_abbreviation,
)

MAX_SENTENCE: Final = 2000
"""Characters; a longer text without an end is divided at a space."""

WINDOW: Final = 2 * MAX_SENTENCE
"""Characters that are searched for the end of a sentence; a longer line is not a heading or a table row."""

GROWTH: Final = 1 / 16
"""A sentence is read again when it has grown by this share: an answer of 100 kB without an end takes 0.3 s, not 30."""

USUAL_SENTENCE: Final = 400
"""Characters that are searched first, as few sentences are longer."""

_CITED: Final = rf"(?:[ \t]*{MARKERS})*+"
_END: Final = re.compile(
    rf"[{SPACED_ENDS}]++[{CLOSING_MARKS})*_]*+{_CITED}(?=\s|\Z)|[{DENSE_ENDS}]++[{CLOSING_MARKS})]*+{_CITED}"
)
_NEXT: Final = re.compile(rf"[\s{OUTER_MARKS}(\[*_]*+(.)")
_QUOTED: Final = re.compile(rf"\s(?:<q|[{OUTER_MARKS}])", re.IGNORECASE)
_MARKED: Final = re.compile(rf"{MARKERS}\Z")
"""After a quotation mark, or a marker before the previous full stop, a sentence may begin in lower case, which is
otherwise a sign of an abbreviation."""

_BEFORE: Final = re.compile(r"(?:[ \t]*(?:[-*+•]|\d{1,3}[.)])(?=[ \t]))*+[ \t]*")
"""Markers of list items, which are not part of the sentence."""

_BEGUN: Final = re.compile(rf"\s*+[^{MARKERS[1:-1]}]")
_WORD: Final = re.compile(r"\w")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_PERHAPS_FENCE: Final = re.compile(r" {0,3}(?:`{0,2}|~{0,2})\Z")
_BLOCK: Final = re.compile(r"[ \t]*(?:[#|>]|\*\*|__)")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:\s++(?:.*[^.!\s])?\s*)?$|\s*(\*\*|__)(?:(?!\1).)+(?<![.!?])\1:?\s*$")
_WRAPPED: Final = re.compile(r"\n[ \t]*+([^\W\d_])(?![.)])")
_PERHAPS_WRAPPED: Final = re.compile(r"\n[ \t]*+[^\W\d_]?\Z")
_COMPLETE: Final = re.compile(rf"[.!?…:;。！？：；|{CLOSING_MARKS}{MARKERS[1:-1]}]\s*\Z")  # noqa: RUF001 - full-width
_ROW: Final = re.compile(r"\s*+\|")
_TABLE_RULE: Final = re.compile(r"\s*\|[\s:|-]*$")
_BLOCK_QUOTATION: Final = re.compile(r"[ \t]*(?:>[ \t]*)+")

Kind = Literal["sentence", "heading", "code", "quotation"]


@dataclass(frozen=True)
class Span:
    """A sentence, or what counts as one.

    Attributes:
        start: Offset of its first character in the text with private markers.
        end: Offset after its last character.
        text: The text with private markers.
        kind: A quotation is a line of a block quotation in Markdown.
    """

    start: int
    end: int
    text: str
    kind: Kind = "sentence"


class SentenceReader:
    """Divides a text with private markers. Pieces of any size give the same sentences.

    The end of a line ends a sentence, unless it has no full stop and the next line begins with a small letter. Markers
    after the full stop belong to the sentence, and so do markers that are alone on the next line. A quotation is not
    divided, and a block of code is one sentence.
    """

    def __init__(self) -> None:
        self._tail = ""
        self._start = 0
        self._in_line = False
        self._fence = ""
        self._fence_line = 0
        self._at = 0
        self._enough = 0.0
        self._pending: Span | None = None
        self._finished: list[Span] = []

    def feed(self, text: str, *, last: bool = False) -> list[Span]:
        """Take the next piece, and return the sentences that are finished by now."""
        self._tail += text
        self._finished = []
        if not last and len(self._tail) < self._enough and "\n" not in text:
            return []
        self._at = 0
        while self._at < len(self._tail):
            if _BEGUN.match(self._tail, self._at) and not self._may_be_head_of_table():
                self._finish()
            length = self._step(last=last)
            if length is None:
                break
            self._at += length
        self._tail = self._tail[self._at :]
        self._start += self._at
        self._enough = len(self._tail) * (1 + GROWTH)
        if last:
            self._finish()
        return self._finished

    def _finish(self) -> None:
        if self._pending:
            self._finished.append(self._pending)
            self._pending = None

    def _may_be_head_of_table(self) -> bool:
        is_row = self._pending is not None and self._pending.text.startswith("|")
        return is_row and _ROW.match(self._tail, self._at) is not None

    def _step(self, *, last: bool) -> int | None:
        """Read one sentence, line or block; return its length, or None if it depends on the next piece."""
        if self._fence:
            return self._code(last=last)
        newline = self._tail.find("\n", self._at, self._at + WINDOW)
        line = self._tail[self._at : newline if newline >= 0 else self._at + WINDOW]
        ended = newline >= 0 or (last and len(line) < WINDOW)
        if not self._in_line:
            if not ended and _PERHAPS_FENCE.match(line):
                return None
            if fence := _FENCE.match(line):
                self._fence, self._fence_line = fence[1][0], self._start + self._at
                return 0
            if _BLOCK.match(line) and len(line) < WINDOW:
                if not ended:
                    return None
                if self._block(line):
                    return len(line) + (newline >= 0)
        newline = self._end_of_wrapped(newline, last=last)
        line = self._tail[self._at : newline if newline >= 0 else self._at + WINDOW]
        ended = newline >= 0 or (last and len(line) < WINDOW)
        before = None if self._in_line else _BEFORE.match(line)
        begin = before.end() if before else 0
        end = _sentence_end(line, begin, ended=ended)
        if end is None:
            return None
        self._add(begin, line[begin:end], "sentence")
        self._in_line = end < len(line) or newline < 0
        return end if self._in_line else end + 1

    def _end_of_wrapped(self, newline: int, *, last: bool) -> int:
        """Return the end of the last line of a sentence that is wrapped: the next line begins with a small letter.

        Returns:
            An offset; -1 if the line has not ended, as far as is known, or is too long.
        """
        while newline >= 0:
            if _COMPLETE.search(self._tail, max(self._at, newline - MAX_ABBREVIATION), newline):
                return newline
            if not last and _PERHAPS_WRAPPED.match(self._tail, newline):
                return -1
            wrapped = _WRAPPED.match(self._tail, newline)
            if wrapped is None or not wrapped[1].islower():
                return newline
            newline = self._tail.find("\n", newline + 1, self._at + WINDOW)
        return newline

    def _block(self, line: str) -> bool:
        """Read a line that is a heading, a row or rule of a table, or a quotation."""
        if _HEADING.match(line):
            self._add(0, line, "heading")
        elif _TABLE_RULE.match(line):
            if self._pending:
                self._pending = replace(self._pending, kind="heading")
        elif quoted := _BLOCK_QUOTATION.match(line):
            self._add(quoted.end(), line[quoted.end() :], "quotation")
        elif line.lstrip().startswith("|"):
            self._add(0, line, "sentence")
        else:
            return False
        return True

    def _code(self, *, last: bool) -> int | None:
        """Read a block of code up to the line that closes it."""
        while True:
            line = self._fence_line - self._start
            end = self._tail.find("\n", line)
            if end < 0 and not last:
                return None
            closing = _FENCE.match(self._tail, line) if line > self._at else None
            end = len(self._tail) if end < 0 else end + 1
            if (closing and closing[1][0] == self._fence) or (end == len(self._tail) and last):
                self._add(0, self._tail[self._at : end], "code")
                self._fence = ""
                return end - self._at
            self._fence_line = self._start + end

    def _add(self, offset: int, text: str, kind: Kind) -> None:
        """Add a sentence; markers without words belong to the sentence before."""
        stripped = text.strip()
        start = self._start + self._at + offset + len(text) - len(text.lstrip())
        span = Span(start, start + len(stripped), stripped, kind)
        if _WORD.search(stripped):
            self._finish()
            self._pending = span
        elif stripped and self._pending:
            self._pending = replace(self._pending, end=span.end, text=self._pending.text + stripped)


def _sentence_end(line: str, begin: int, *, ended: bool) -> int | None:
    """Return where the first sentence of a line ends; None if that depends on what follows."""
    if len(line) > USUAL_SENTENCE and (end := _sentence_end(line[:USUAL_SENTENCE], begin, ended=False)) is not None:
        return end
    too_long = len(line) == WINDOW
    known = ended or too_long
    ends = list(_END.finditer(line, begin))
    quotations, undecided = quotations_in(line, complete=known) if ends else ([], 0)
    starts = [quoted.start for quoted in quotations]
    for mark in ends:
        if mark.end() > undecided:
            break
        following = _NEXT.match(line, mark.end())
        if following is None or (not known and following.end() + MAX_MONTH > len(line)):
            break
        # A closing mark may also open the next quotation.
        end = min([mark.end(), *starts[bisect_right(starts, mark.start()) :][:1]])
        before = quotations[: bisect_left(starts, end)][-1:]
        within = any(end < quoted.end for quoted in before)
        if not within and _is_end(line, mark, following):
            return end
    if ended:
        return len(line)
    return max(line.rfind(" ", begin, MAX_SENTENCE), begin) or MAX_SENTENCE if too_long else None


def _is_end(line: str, mark: re.Match[str], following: re.Match[str]) -> bool:
    begins = _QUOTED.search(line, mark.end(), following.start(1)) or _MARKED.match(
        line, max(0, mark.start() - 1), mark.start()
    )
    if begins_small(following[1]) and not begins:
        return False
    return mark[0] != "." or not is_abbreviation(line, mark.start(), following.start(1))
