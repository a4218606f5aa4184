"""What recognizes text in pictures."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ragstack_common.reading.ocr.layout import FoundLine, legibility, legible_length

if TYPE_CHECKING:
    from PIL.Image import Image

LEAST_LEGIBLE: Final = 0.8
"""Share of the lines of a page that an engine reads, below which they are likely to be in a script that it does not
know."""


class Recognition(NamedTuple):
    """What an engine found in a picture."""

    engine: str
    lines: Sequence[FoundLine]


class Recognizer(Protocol):
    """Recognizes text in pictures."""

    def knows(self, language: str) -> bool:
        """Whether it has a model for a language, given its tag."""
        ...

    def recognize(self, image: "Image", language: str | None = None) -> Recognition:
        """Find the lines of a picture.

        Args:
            image: In RGB, turned in any way.
            language: The tag of the language that the document is likely to have; None if it is not known.
        """
        ...


class FirstLegible:
    """Asks engines until one can read the picture: in their order, but first those that know the language."""

    def __init__(self, engines: Sequence[Recognizer]) -> None:
        self._engines = engines

    def knows(self, language: str) -> bool:
        """Whether one of the engines knows a language."""
        return any(engine.knows(language) for engine in self._engines)

    def recognize(self, image: "Image", language: str | None = None) -> Recognition:
        """Return the first result of which most is legible, or else the one with most legible text."""
        engines = sorted(self._engines, key=lambda each: language is not None and not each.knows(language))
        best = engines[0].recognize(image, language)
        for engine in engines[1:]:
            if legibility(best.lines) >= LEAST_LEGIBLE:
                break
            best = max(best, engine.recognize(image, language), key=lambda each: legible_length(each.lines))
        return best
