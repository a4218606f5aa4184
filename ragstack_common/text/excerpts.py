"""The part of a text that is about a query, by its words."""

import re
from itertools import accumulate
from typing import Final

from ragstack_common.text.sentences import sentence_spans
from ragstack_common.text.spelling import normalized

EXCERPT_WORDS: Final = 36
CLOSE: Final = 6
"""Number of words within which words of the query belong together."""

MAX_SENTENCE_CHARACTERS: Final = 400
"""Characters before and after a word in which the ends of its sentence are looked for."""

PARAGRAPH_END: Final = "\n\n"

_MARKS: Final = re.compile(r"^[#=-]+(?=\s|$)|\|(\s*:?-+:?\s*\|)*", re.MULTILINE)
"""Headings, rules and tables in Markdown."""

_WORD: Final = re.compile(r"\S+")


def excerpt(text: str, query: str) -> tuple[str, int | None]:
    """Return the passage, in whole words and without Markdown marks, that has most words of the query.

    Returns:
        The passage, and the offset in the text where it has most different words of the query close together; None if
        the text has none of them.
    """
    matches = list(_WORD.finditer(_MARKS.sub(lambda mark: " " * len(mark[0]), text)))
    words = [match[0] for match in matches]
    if not words:
        return "", None
    long = {word for word in map(_bare, query.split()) if len(word) > 3}  # noqa: PLR2004 - shorter ones are mostly stop words
    bare = [*map(_bare, words)]
    hits = [word in long for word in bare]
    before = EXCERPT_WORDS // 4
    scored = EXCERPT_WORDS - before
    until = [0, *accumulate(hits)]  # number of hits before each word, and the total
    # The last of equally good passages begins with a word of the query; some words before it give context.
    counts = [until[min(first + scored, len(words))] - until[first] for first in range(len(words))]
    best = max(range(len(words)), key=lambda first: (counts[first], first)) if any(hits) else 0
    start = max(0, best - before)
    cut = " ".join(words[start : start + EXCERPT_WORDS])
    shown = ("… " if start else "") + cut + (" …" if start + EXCERPT_WORDS < len(words) else "")
    found = [at for at in range(start, min(start + EXCERPT_WORDS, len(words))) if hits[at]]
    if not found:
        return shown, None
    densest = max(found, key=lambda first: len({bare[at] for at in found if first <= at < first + CLOSE}))
    return shown, matches[densest].start()


def closest_sentence(text: str, query: str) -> tuple[int, int]:
    """Return where the sentence is that has most words of the query, or the first one if none has any."""
    _, found = excerpt(text, query)
    offset = len(text) - len(text.lstrip()) if found is None else found
    least = max(0, offset - MAX_SENTENCE_CHARACTERS)
    begin = text.rfind(PARAGRAPH_END, least, offset)
    begin = least if begin < 0 else begin + len(PARAGRAPH_END)
    paragraph, _, _ = text[begin : offset + MAX_SENTENCE_CHARACTERS].partition(PARAGRAPH_END)
    spans = sentence_spans(paragraph)
    return next(((begin + first, begin + last) for first, last in spans if begin + last > offset), (0, len(text)))


def _bare(word: str) -> str:
    return normalized(word).strip(".,;:!?()[]{}\"'`*|#")
