"""Files in which each text has a word of its own, so that it can be told what became of it."""

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Final

from hypothesis import HealthCheck, settings

from local_bedrock.reading.chunking import FixedSize
from ragstack_common.ingestion.receipts import to_receipt
from ragstack_common.reading import formats
from ragstack_common.reading.census.comparison import Comparison
from ragstack_common.reading.census.counting import count
from ragstack_common.reading.conversion import convert, read_directly
from ragstack_common.registry.receipts import Receipt
from ragstack_common.text.tables import TablesInText
from tests.support.soak import SOAK, examples

_BETWEEN_DIGITS: Final = re.compile(r"(?<=\d)[.,](?=\d)")

SOME: Final = settings(
    max_examples=examples(400),
    deadline=None,
    derandomize=not SOAK,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
"""Files of each format. A short run always has the same ones."""


@dataclass
class Marks:
    """The words of a file.

    Attributes:
        shown: Its words and numbers that people see, with the part of the receipt that has them.
        hidden: Words that nobody sees.
        left_out: What a receipt counts of what is left out.
        unread: Parts that a receipt must name.
        part: The part that the next words are in.
    """

    shown: dict[str, str] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    unread: set[str] = field(default_factory=set)
    part: str = "main text"

    def show(self) -> str:
        """Return a new word that people see."""
        self.shown[word := self._next("mk")] = self.part
        return word

    def number(self) -> int:
        """Return a new number that people see, of seven digits."""
        self.shown[str(number := 4_321_011 + 7_919 * len(self.shown))] = self.part
        return number

    def hide(self, what: str = "") -> str:
        """Return a new word that nobody sees; *what* is counted in the receipt."""
        self.hidden.append(word := self._next("hd"))
        if what:
            self.left_out[what] += 1
        return word

    def _next(self, kind: str) -> str:
        number = len(self.shown) + len(self.hidden)
        return f"{kind}{number:03d}{'abcdefgh'[number % 8]}"


@dataclass
class MarkedFile:
    """A file with its words."""

    data: bytes = field(repr=False)
    file_format: str
    marks: Marks

    @cached_property
    def text(self) -> str:
        """What the readers read."""
        reads = read_directly if self.file_format in formats.READ_DIRECTLY else convert
        return reads(self.data, self.file_format).text

    def receipt(self, text: str) -> Receipt:
        """Compare a file with a text that is cut into chunks as the local Bedrock does."""
        tables = TablesInText.of(text, is_csv=self.file_format == "csv")
        chunks = [chunk.whole for chunk in FixedSize().cut(text, tables=tables).chunks] if text.strip() else []
        comparison = Comparison(count(self.data, self.file_format))
        while comparison.next_query(1000) is not None:
            comparison.add(chunks)
        comparison.add(chunks)
        return to_receipt(comparison, set(), 0.0)


def check_receipt(file: MarkedFile) -> None:
    """Check that readers and receipt have what people see, and that what they do not see is counted."""
    marks, text = file.marks, file.text
    receipt = file.receipt(text)

    assert [word for word in marks.shown if word not in _without_points(text)] == [], text
    assert [word for word in marks.hidden if word in text] == [], text
    assert {each.part for each in receipt.not_read} == marks.unread, (receipt.not_read, text[:1500])
    assert receipt.is_complete == (not marks.unread)
    assert {each.what: each.number for each in receipt.left_out} == +marks.left_out, text


def check_damage(file: MarkedFile, random: Random) -> None:
    """Check that a receipt notices text that an index does not have, and names its part."""
    marks = file.marks
    # A cell is missed by itself, a word only if it is more than two of a hundred.
    numbers = [word for word in marks.shown if word.isdigit() and file.file_format in formats.WITH_SHEETS]
    for damaged in _damaged(file.text, [*marks.shown], numbers, random):
        lost = {part for word, part in marks.shown.items() if word not in _without_points(damaged)}
        receipt = file.receipt(damaged)

        assert receipt.is_complete == (not lost and not marks.unread), (lost, damaged)
        if len(marks.shown) > 1 and not receipt.is_empty:
            assert {each.part for each in receipt.not_read} >= lost, (receipt.not_read, lost, damaged)


def _without_points(text: str) -> str:
    """Return a text with the digits of each number together."""
    return _BETWEEN_DIGITS.sub("", text)


def _damaged(text: str, words: list[str], numbers: list[str], random: Random) -> list[str]:
    word = random.choice(words)
    lines = text.splitlines(keepends=True)
    half = len(lines) // 2
    changed = [text.replace(random.choice(numbers), "".join(random.sample("0123456789", 7)))] if numbers else []
    without_line = "".join(line for line in lines if word not in line)
    return [without_line, "".join(lines[:half]), "".join(lines[half:]), "", *changed]
