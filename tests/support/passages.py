"""Texts of passages, for property tests."""

from hypothesis import strategies as st

from ragstack_common.answers.models.protocol import NumberedPassage
from ragstack_common.search import RetrievedChunk

LINE_SEPARATORS = ("\v", "\f", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u2028", "\u2029")
"""What Python's ``splitlines`` takes for the end of a line, or ``isspace`` for white space, besides real line ends."""


def numbered(*contents: str) -> list[NumberedPassage]:
    """Number passages of the documents s3://b/1.md, s3://b/2.md and so on."""
    return [
        NumberedPassage(number, RetrievedChunk(content=content, score=0.5, source=f"s3://b/{number}.md"))
        for number, content in enumerate(contents, start=1)
    ]


markdown = st.lists(
    st.sampled_from(
        [
            "# Heading",
            "A sentence. Another one!",
            "- an item",
            "2. second",
            "| a | b |",
            "| --- | --- |",
            "| 1 | 2 |",
            "",
            "```",
            "code()",
            "Lead-in:",
            "a,b,c",
            "e.g. this is",
            "   ",
        ]
    ),
    max_size=14,
).map("\n".join)
