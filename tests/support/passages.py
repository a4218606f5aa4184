"""Texts of passages, for property tests."""

from hypothesis import strategies as st

from ragstack_common.answers.models import Passage
from ragstack_common.search import RetrievedChunk


def numbered(*contents: str) -> list[Passage]:
    """Number passages of the documents s3://b/1.md, s3://b/2.md and so on."""
    return [
        Passage(number, RetrievedChunk(content=content, score=0.5, source=f"s3://b/{number}.md"))
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
