"""Find a run of words in a text: the same words and numbers in the same order, and nothing that changes them left out.

A token is a word, a number with its separators, a punctuation mark or a symbol; in scripts without spaces, a character.
"""

# ruff: noqa: RUF001, SIM905 - look-alikes of quotation marks and dashes are the subject; words of many languages

import csv
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final, Self

from ragstack_common.answers.verify import negations
from ragstack_common.answers.verify.visible import LINE_BREAK, Visible
from ragstack_common.reading.formats import csv_reader
from ragstack_common.text import characters
from ragstack_common.text.characters import DENSE, DIGIT, END_OF_BLOCK, IGNORED, NUMERAL, SYMBOL, folded

WORD: Final = "W"
NUMBER: Final = "D"

MAX_OCCURRENCES: Final = 50
"""Places that are tried for a run, so that no source makes the search slow."""

MIN_CLAUSE_WORDS: Final = 4
MIN_CLAUSE_CHARACTERS: Final = 8
"""The same in a script without spaces. A shorter clause next to an omission could be any selection of words."""

MIN_COLUMNS: Final = 3
"""Minimum for a table with commas; lines with fewer are ordinary text."""

_SPACED: Final = " "
_GLUED: Final = "\x1f"
_APART: Final = "\x1e"
"""Between two tokens: white space, none, or the end of a heading or another block without punctuation."""

_TOKEN: Final = re.compile(
    r"(?P<D>(?=[D.,]*N)[DN](?:[DN]|[.,](?=D))+)"
    r"|(?P<W>[ULMDS]+(?:(?:[-/&@](?=[ULMDS])|(?<=[ULM])'(?=[ULM]{1,2}(?![ULMD]))|(?<=D)'(?=DDD)|(?<=D)[.,:](?=D)"
    r"|(?<=[ULMD])\.(?=[LD]))[ULMDS]+)*+(?:(?<=[ULM])'(?=[ULM]{3}))?)"
    r"|(?P<C>[CN]M*)|(?P<E>\.{3,}|E)|(?P<X>-(?=[DS])|X)|(?P<P>[-.,:/&@P])|(?P<Q>[\"'])|(?P<B>B)"
)
_SPACE: Final = re.compile(r"[ \n]*")
_NUMERIC: Final = re.compile("[DS]")
_LINK_MARKS: Final = re.compile(r"\]\([^\s()]{0,500}\)|\[")
_UNIT_MARKS: Final = frozenset("\"'”’")
"""After a number: inches and feet, unless they close a quotation."""

_ENDS_OF_CLAUSE: Final = frozenset(".!?…;:,()|—。、！？।॥؟،؛¿¡·•" + "-")
_ENDS_OF_SENTENCE: Final = frozenset(".!?…。！？।॥؟")
_COMMAS: Final = frozenset(",、،")
_OR: Final = frozenset("or nor oder noch ou o или либо या अथवा أو 或".split())
"""A negation before a list with such a word negates all of it: no bonuses, company cars or flights."""

_QUESTION_MARKS: Final = frozenset("?？؟")
_LEADING_VOWELS: Final = frozenset("เแโใไເແໂໃໄ")
"""Thai and Lao vowels that are written before their consonant."""

POINTS: Final = frozenset(".,٫")
"""Marks that may begin a number: .5 is not 5."""

_BLANK_LINE: Final = re.compile(r"\n\s*\n")
_LINE_MARKS: Final = frozenset("-*+•#>|")
_GROUP: Final = re.compile(r"\d{1,3}")
_NEXT_GROUP: Final = re.compile(r"\d{3}(?!\d)|\d+/\d|[^\w\s]|[²³¹⁰-₉½-¾⅐-⅞]")
_BOUND: Final = frozenset("%‰°$€£¥₹₽₩±~<>≤≥≈=−+′″^×÷")
_SIGNS: Final = frozenset("minus negative plus moins menos meno минус мінус ऋण ناقص سالب 영하 마이너스".split())
_DENSE_SIGNS: Final = re.compile(r"(?:负|負|零下|マイナス|氷点下|ลบ|分之|分の|第)\Z")
_SCALES: Final = frozenset(
    (
        "hundred hundreds thousand thousands million millions billion billions trillion trillions dozen percent per"
        " Hundert Tausend Million Millionen Milliarde Milliarden Mio Mrd Prozent mille millier milliers milliard"
        " milliards pour mil millón millones por milioni miliardi тысяч тысячи тысяча миллион миллиона миллионов"
        " миллиард миллиарда миллиардов млн млрд тыс процент процента процентов हज़ार लाख करोड़ अरब मिलियन प्रतिशत फीसदी"
        " ألف آلاف مليون ملايين مليار مليارات بالمئة بالمائة 만 억 퍼센트 k K m M bn"
    ).split()
)
"""Words after a number without which it is another number."""

_MULTIPLIERS: Final = frozenset(
    (
        "hundred thousand million billion trillion hundert tausend Million Milliarde mille million milliard mil millón"
        " mila milione тысяч тысяча миллион миллиард हज़ार लाख करोड़ ألف مليون مليار"
    ).split()
)
"""Scales that also follow a number in words: two hundred."""


@dataclass(frozen=True)
class Tokens:
    """The tokens of a text.

    Attributes:
        source: The text with the offsets of its characters in the original.
        texts: The tokens as they are compared.
        starts: Where each begins in the original.
        ends: Where each ends there.
        gaps: Whether significant white space precedes it. Next to characters of scripts without spaces, none is.
        spaces: The white space before it.
    """

    source: Visible
    kinds: str
    texts: Sequence[str]
    starts: Sequence[int]
    ends: Sequence[int]
    gaps: Sequence[bool]
    spaces: Sequence[str]

    @classmethod
    def of(cls, source: Visible) -> Self:
        """Divide a text."""
        text, starts, ends = source.text, source.starts, source.ends
        classes = characters.classes(text)
        if IGNORED in classes:
            kept = [place for place, one in enumerate(classes) if one != IGNORED]
            text, classes = ("".join(each[place] for place in kept) for each in (text, classes))
            starts, ends = ([each[place] for place in kept] for each in (starts, ends))
        kinds, texts, spans, gaps, spaces = "", [], [], [], []
        for start, end, kind, space in _divided(text, classes):
            dense = kind in "Cc"
            texts.append("…" if kind == "E" else folded(text[start:end]))
            spans.append((start, end))
            gaps.append(bool(space) and not dense and kinds[-1:] not in ("C", "c"))
            spaces.append(space)
            kinds += kind
        begins, stops = [starts[start] for start, _ in spans], [ends[end - 1] for _, end in spans]
        return cls(source, kinds, texts, begins, stops, gaps, spaces)

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Each token once."""
        return frozenset(self.texts)

    @cached_property
    def _offsets(self) -> list[int]:
        """Where each token begins in the joined text."""
        return [0, *accumulate(len(text) + 1 for text in self.texts)]

    def joined(self, begin: int = 0, end: int | None = None) -> str:
        """Return tokens with marks for the white space or its absence between them."""
        return "".join(map(str.__add__, self._separators[begin:end], self.texts[begin:end]))[1:]

    @cached_property
    def _separators(self) -> list[str]:
        return [
            _APART if place and self._begins_part(place) else _SPACED if gap else _GLUED
            for place, gap in enumerate(self.gaps)
        ]

    def _begins_part(self, place: int) -> bool:
        """Whether a token begins a block, and the block before ends without punctuation, as headings do."""
        space, before = self.spaces[place], self.texts[place - 1]
        if before in _ENDS_OF_CLAUSE or self.texts[place] in _LINE_MARKS:
            return False  # a mark that is read as it is written must be quoted too
        return END_OF_BLOCK in space or (_BLANK_LINE.search(space) is not None and not self.texts[place][0].islower())

    @cached_property
    def _joined(self) -> str:
        return self.joined() + _GLUED

    @cached_property
    def _joined_across(self) -> str:
        return _across_blocks(self._joined)

    def runs(self, wanted: str, start: int = 0, *, across: bool = False) -> Iterator[tuple[int, int]]:
        """Yield at most MAX_OCCURRENCES places of joined tokens from a token on; also *across* blocks."""
        text = self._joined_across if across else self._joined
        wanted = _across_blocks(wanted) if across else wanted
        at = self._offsets[start] - 1
        for _ in range(MAX_OCCURRENCES):
            at = text.find(wanted, at + 1)
            if at < 0:
                return
            begin = bisect_left(self._offsets, at)
            end = bisect_left(self._offsets, at + len(wanted) + 1)
            if self._offsets[begin] == at and self._offsets[end] == at + len(wanted) + 1:
                yield begin, end

    def is_quotable(self, begin: int, end: int) -> bool:
        """Whether a run keeps the meaning of its text: it omits no part of a number, and no negation of a clause."""
        if not (self._may_begin(begin) and self._may_end(end)):
            return False
        first, last = self._clauses[begin][0], self._clauses[end - 1][1]
        return not (self.negates(first, begin) or self.negates(end, last))

    def is_whole(self, begin: int, end: int) -> bool:
        """Whether a run is not part of a word or number, and no negation is next to it in its clause."""
        first, last = self._clauses[begin][0], self._clauses[end - 1][1]
        near = self.negates(max(first, begin - 2), begin) or self.negates(end, min(last, end + 1))
        return self._may_begin(begin) and self._may_end(end) and not near

    def _may_begin(self, begin: int) -> bool:
        if not begin:
            return True
        before, kind, text = self.kinds[begin - 1], self.kinds[begin], self.texts[begin - 1]
        is_number = kind in "Dc"
        first = self.texts[begin]
        if (before in "Dc" and first in _SCALES) or (before == WORD and first in _MULTIPLIERS):
            return False
        if not self.spaces[begin]:
            if SYMBOL in (before, kind) or text in _LEADING_VOWELS:
                return False
            if is_number and text in POINTS and (begin == 1 or self.spaces[begin - 1]):
                return False
            if before in "WD" and kind in "WD":
                return text.endswith("'")
            is_number = is_number or characters.classes(first) == NUMERAL
            return not (before in "Cc" and is_number and _DENSE_SIGNS.search("".join(self.texts[:begin][-4:])))
        if kind == SYMBOL:
            return before not in "Dc"
        if not is_number:
            return True
        return not (text.casefold() in _SIGNS or (before == SYMBOL and text in _BOUND) or self._is_grouped(begin))

    def _may_end(self, end: int) -> bool:
        if end == len(self.kinds):
            return True
        last, kind, text = self.kinds[end - 1], self.kinds[end], self.texts[end]
        if (last in "Dc" and kind in "Cc") or text in _QUESTION_MARKS or self.texts[end - 1] in _LEADING_VOWELS:
            return False
        if last == WORD and text in _MULTIPLIERS:
            return False
        if not self.spaces[end]:
            return kind != SYMBOL and not (last in "WDX" and kind in "WD") and not (last == SYMBOL and kind in "Cc")
        is_unit = text in _SCALES or (kind == SYMBOL and text in _BOUND)
        return last not in "Dc" or not (is_unit or (kind in "Dc" and self._is_grouped(end)))

    def _is_grouped(self, place: int) -> bool:
        """Whether two numbers can be one with a space in it: 1 500, or 1 1/2."""
        return (
            self.kinds[place - 1] == NUMBER
            and len(self.spaces[place]) == 1
            and _GROUP.fullmatch(self.texts[place - 1]) is not None
            and _NEXT_GROUP.match(self.texts[place]) is not None
        )

    def negates(self, begin: int, end: int) -> bool:
        """Whether some tokens negate."""
        return end > begin and self._negations_before[end] > self._negations_before[begin]

    @cached_property
    def _negations_before(self) -> list[int]:
        """How many tokens up to each one negate."""
        found = [
            kind == WORD and negations.is_negation(text) for kind, text in zip(self.kinds, self.texts, strict=True)
        ]
        for start, end in negations.dense_negations(self.source.text) if DENSE in self.kinds else ():
            first = bisect_left(self.starts, self.source.starts[start])
            for place in range(first, min(len(found), first + end - start)):
                found[place] = True
        return [0, *accumulate(found)]

    @cached_property
    def _clauses(self) -> list[tuple[int, int]]:
        """The first token of the clause of each token, and the token after its last. A mark between two is alone."""
        found: list[tuple[int, int]] = []
        first = 0
        for place in range(len(self.kinds) + 1):
            is_end = place == len(self.kinds)
            is_mark = not is_end and self._is_mark(place) and place not in self._negated_commas
            if is_end or is_mark or self._begins_block(place):
                found += [(first, place)] * (place - first)
                first = place
            if is_mark:
                found.append((place, place + 1))
                first = place + 1
        return found

    def _begins_block(self, place: int) -> bool:
        space, text = self.spaces[place], self.texts[place]
        if END_OF_BLOCK in space:
            return True
        if "\n" not in space:
            return False
        if self._is_csv:
            return True
        is_numbered = text.isdecimal() and self.texts[place + 1 : place + 2] in (["."], [")"])
        return text in _LINE_MARKS or is_numbered or _BLANK_LINE.search(space) is not None

    @cached_property
    def _is_csv(self) -> bool:
        """Whether the text is a table with commas."""
        lines = [line for line in LINE_BREAK.split(self.source.text) if line.strip()]
        if len(lines) < 2 or lines[0].count(",") < MIN_COLUMNS - 1:  # noqa: PLR2004 - a header and a row
            return False
        try:
            columns = {len(row) for row in csv_reader(lines)}
        except csv.Error:
            return False
        return len(columns) == 1 and columns.pop() >= MIN_COLUMNS

    def _is_mark(self, place: int) -> bool:
        """Whether a token ends a clause."""
        text = self.texts[place]
        if self.kinds[place] not in "PE" or text not in _ENDS_OF_CLAUSE:
            return False
        after = self.spaces[place + 1] if place + 1 < len(self.spaces) else ""
        return text != "-" or bool(self.spaces[place]) == bool(after)

    @cached_property
    def _negated_commas(self) -> frozenset[int]:
        """The commas that do not end a negation: in "not, in any case, paid" and "no leave, pay or tea"."""
        found: list[int] = []
        first = 0
        for place in range(len(self.texts) + 1):
            is_end = place == len(self.texts)
            if is_end or self._begins_block(place) or (self._is_mark(place) and self.texts[place] not in _COMMAS):
                found += self._commas_after_negation(first, place)
                first = place
        return frozenset(found)

    def _commas_after_negation(self, begin: int, end: int) -> list[int]:
        commas = [place for place in range(begin + 1, end) if self.texts[place] in _COMMAS]
        last_or = max((place for place in range(begin, end) if self.texts[place] in _OR), default=-1)
        for index, place in enumerate(commas):
            is_parenthesis = (
                place - 1 > begin and self.negates(place - 1, place) and self.texts[place - 2] not in _COMMAS
            )
            if self.negates(begin, place) and (is_parenthesis or place < last_or):
                return commas[index:]
        return []

    def are_sentences(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Whether one run ends with a sentence, and the other begins with one."""
        end, begin = one[1], other[0]
        ended = {self.texts[end - 1], *self.texts[end : end + 1]} & _ENDS_OF_SENTENCE or self._begins_block(end)
        return bool(ended) and (self.texts[begin - 1] in _ENDS_OF_SENTENCE or self._begins_block(begin))

    def are_clauses(self, begin: int, end: int) -> bool:
        """Whether a run consists of whole clauses, and is too long to be a selection of words."""
        words = sum(kind in "WDc" for kind in self.kinds[begin:end])
        long = words >= MIN_CLAUSE_WORDS or self.kinds.count(DENSE, begin, end) >= MIN_CLAUSE_CHARACTERS
        return long and self._clauses[begin][0] == begin and self._clauses[end - 1][1] == end

    def are_rows(self, original: str, one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Whether two runs are whole rows of one table, whose other rows may be omitted."""
        first, last = (_whole_line(original, self.starts[begin], self.ends[end - 1]) for begin, end in (one, other))
        if first is None or last is None:
            return False
        rows = LINE_BREAK.split(original[first[0] : last[1]])
        separators = {row.count("|") for row in rows}
        return (len(separators) == 1 and separators != {0}) or self._is_csv


def _across_blocks(joined: str) -> str:
    """Return joined tokens without the ends of blocks: a quotation of several lines has its own."""
    return joined.replace(_APART, _SPACED)


def _divided(text: str, classes: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield the start, end, kind and preceding white space of each token. Quotation marks are not tokens."""
    space, opened, at = "", 0, 0
    while at < len(text):
        blank = _SPACE.match(classes, at)
        assert blank is not None
        space += text[at : blank.end()]
        token = _TOKEN.match(classes, blank.end())
        if token is None:
            at = blank.end() + 1
            continue
        start, at = token.span()
        kind, before, after = str(token.lastgroup), classes[start - 1 : start], classes[at : at + 1]
        if kind == "Q":
            opens = before in ("", " ", "\n", "P") and after not in ("", " ", "\n")
            if opens or opened or before != DIGIT or text[start] not in _UNIT_MARKS:
                opened += 1 if opens else -bool(opened)
                # White space inside of French quotation marks belongs to them.
                space = "" if after and after in "P.,:" else space
                continue
        yield start, at, _kind(kind, token[0]), space
        space = ""


def _kind(group: str, classes: str) -> str:
    """Return the kind of a token; "c" is a number of a script without spaces."""
    if group in "QB":
        return SYMBOL
    if group == "D":
        return "c"
    return NUMBER if group == WORD and _NUMERIC.search(classes) else group


def _whole_line(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the line of a run if it has nothing else except the marks of a table, and of links at its ends."""
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    outside = _LINK_MARKS.sub("", text[begin:start] + text[end:stop])
    return None if outside.strip(' \t\r|"') else (begin, stop)
