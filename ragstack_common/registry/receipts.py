"""The receipt of a document: what its file has, and what of it the index has."""

from dataclasses import dataclass
from typing import Final

READERS: Final = 2
"""Version of what reads documents and counts what they have. Documents with a receipt of an older one, or without a
receipt, are read again by a reconciliation."""

LEAST_SHARE: Final = 0.98
"""Share of the words of a part that must be in the index: two readers of one page do not divide all words alike."""

MAX_NOT_READ: Final = 20
"""Parts that a receipt describes; a record has at most 400 KB."""

MAX_RECOGNIZED: Final = 300
"""Parts with a confidence that a receipt has: about 10 KB."""

MAX_NAMED: Final = 3


@dataclass(frozen=True)
class Counted:
    """How many pages, cells or words a file has, and how many of them are in the index.

    *why* is the reason why the others are not; None if all are, or if the parts that are not read say why.
    """

    what: str
    number: int
    read: int
    why: str | None = None


@dataclass(frozen=True)
class LeftOut:
    """Something that the file has and the index has not on purpose, such as comments."""

    what: str
    number: int
    why: str


@dataclass(frozen=True)
class NotRead:
    """A part of the file whose text is not in the index, or not all of it.

    *words* and *read* count its words, which are unknown for a picture. *example* is some text that is missing.
    """

    part: str
    words: int
    read: int
    why: str
    example: str | None = None


@dataclass(frozen=True)
class Recognized:
    """A part of the file whose text was recognized in a picture; *confidence* is the mean of its words, from 0 to 1."""

    part: str
    confidence: float


@dataclass(frozen=True)
class Receipt:
    """What a file has against what the index has of it.

    Attributes:
        compared_at: Seconds since 1970.
        readers: The version of what compared them.
        chunks: Chunks with words that were found in the index.
        words: Words that the file shows.
        compared: How many of them were looked for: of very long documents a sample.
        read: How many of those are in the index.
        counted: What the file has, by kind.
        left_out: What is no part of the text.
        not_read: The first parts that are not in the index, or not completely.
        parts_not_read: How many such parts there are.
        pages_not_read: How many pages have no text in the index although they show something.
        unreadable: Why the file could not be compared; None if it was.
        recognized: The parts whose text was recognized in pictures with least confidence, the least certain first.
        recognition: What recognized text in pictures when the document was compared.
    """

    compared_at: float
    readers: int
    chunks: int
    words: int = 0
    compared: int = 0
    read: int = 0
    counted: tuple[Counted, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    not_read: tuple[NotRead, ...] = ()
    parts_not_read: int = 0
    pages_not_read: int = 0
    unreadable: str | None = None
    recognized: tuple[Recognized, ...] = ()
    recognition: str = "off"

    @property
    def lacks_words(self) -> bool:
        """Whether text is missing that can be read without recognizing pictures."""
        return self.unreadable is not None or self.read < self.compared or (self.words > 0 and self.compared == 0)

    @property
    def lacks_recognition(self) -> bool:
        """Whether parts of the file are pictures whose text was not recognized."""
        return any(not each.words for each in self.not_read) or (self.is_empty and not self.words)

    @property
    def is_empty(self) -> bool:
        """Whether the index has nothing of the document."""
        return self.chunks == 0 or (self.compared > 0 and self.read == 0)

    @property
    def is_complete(self) -> bool:
        """Whether the index has everything that the file shows, apart from what is left out on purpose."""
        return self.unreadable is None and self.parts_not_read == 0 and not self.is_empty

    @property
    def reason(self) -> str | None:
        """Say in a sentence what the index does not have; None if it has everything."""
        if self.is_complete:
            return None
        if self.unreadable is not None:
            return f"The file could not be compared with the index: {self.unreadable}"
        named = [f"{each.part} ({each.why})" for each in self.not_read[:MAX_NAMED]]
        more = self.parts_not_read - len(named)
        also = f"; and {more:,} more" if more > 0 else ""
        if self.is_empty:
            what = "; ".join(named) or "the file shows no text"
            return f"Nothing could be read: {what}{also}"
        return f"Some parts could not be read: {'; '.join(named)}{also}"
