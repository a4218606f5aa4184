"""Texts of passages, for property tests."""

from hypothesis import strategies as st

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
