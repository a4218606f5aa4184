"""Headings above the pages and slides of converted text, by which a quotation finds its page.

Bedrock keeps the pages of PDF files only. Converted text is Markdown, so each page or slide begins with a heading.
"""

import re
from typing import Final, Literal, NamedTuple

Kind = Literal["Page", "Slide"]

RECOGNIZED: Final = "read from an image"

_HEADING: Final = re.compile(rf"(Page|Slide) ([1-9]\d{{0,5}})( \({RECOGNIZED}\))?(?:: (.*))?")


class NumberedPart(NamedTuple):
    """A page or slide: its number from 1, its title, and whether its text was recognized in a picture."""

    kind: Kind
    number: int
    title: str = ""
    is_recognized: bool = False

    @property
    def heading(self) -> str:
        """The text of its heading, such as: Slide 3: Plans."""
        recognized = f" ({RECOGNIZED})" if self.is_recognized else ""
        return f"{self.kind} {self.number}{recognized}{f': {self.title}' if self.title else ''}"

    @property
    def markdown(self) -> str:
        """The line of its heading."""
        return f"## {self.heading}"

    @classmethod
    def of(cls, heading: str) -> "NumberedPart | None":
        """Read the text of a heading; None if it is no page or slide."""
        found = _HEADING.fullmatch(heading)
        if found is None:
            return None
        return cls("Page" if found[1] == "Page" else "Slide", int(found[2]), found[4] or "", found[3] is not None)
