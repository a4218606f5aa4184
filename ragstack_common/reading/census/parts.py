"""What a file has: its visible text by part, and what is no part of the text."""

from dataclasses import dataclass, field
from typing import Final

ATTACHED: Final = "they are documents of their own"
COMMENTS_LEFT_OUT: Final = "comments are not part of the text"
DELETED_LEFT_OUT: Final = "the document no longer shows them"
HIDDEN_LEFT_OUT: Final = "the file hides them"
NOT_RECOGNIZED: Final = "text in pictures is not read"
UPLOAD_APART: Final = "upload them as separate documents"


@dataclass
class Part:
    """A page, a sheet, or another part of a file that people tell apart.

    Attributes:
        name: Such as ``page 7``.
        texts: Its paragraphs, lines or cells, in the order of the file.
        numbers: Its numbers, each as the digits that it may be shown with.
        unread: Why its text cannot be read; empty if it can.
        confidence: Mean confidence of its words, from 0 to 1, if they were recognized in a picture; None otherwise.
    """

    name: str
    texts: list[str] = field(default_factory=list)
    unread: str = ""
    numbers: list[list[str]] = field(default_factory=list)
    confidence: float | None = None


@dataclass
class Aside:
    """Something that the index does not have on purpose.

    Attributes:
        what: In the plural, such as ``comments``.
        number: How many there are.
        why: Why they are not read.
    """

    what: str
    number: int
    why: str


@dataclass
class Census:
    """What a file has.

    Attributes:
        parts: In the order of the file.
        unit: What most parts are, in the plural: ``pages``, ``sheets`` or ``parts``.
        asides: What is left out on purpose.
        cells: Number of cells with a value, for sheets.
    """

    parts: list[Part]
    unit: str
    asides: list[Aside] = field(default_factory=list)
    cells: int = 0

    def left_out(self, what: str, number: int, why: str) -> None:
        """Note something that is left out, if there is any; numbers of one kind are added."""
        for aside in self.asides:
            if aside.what == what:
                aside.number += number
                return
        if number:
            self.asides.append(Aside(what, number, why))
