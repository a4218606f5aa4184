"""A question as the plain words that a text search takes, at most 1,024 characters."""

import re
from collections import Counter
from typing import Final

from ragstack_common.text.words import detect_language, is_stop_word, normalized

MAX_CHARACTERS: Final = 1024
"""Source: botocore, s3vectors, QueryVectors, text of queryTexts."""

_SYNTAX: Final = re.compile(r"""["`()\[\]{}<>~*^:;!?&|\\/+=#@$%]+|(?<![^\W_])[-.,']+|[-.,']+(?!\w)""")
"""What may have a meaning in a query language; S3 Vectors documents none. Hyphens, dots, commas and apostrophes stay
within a word or a number."""


def plain_words(question: str, limit: int = MAX_CHARACTERS) -> str:
    """Return the words of a question, in lower case so that none is an operator.

    A question that is too long keeps the words that say most: without stop words and repetitions, first those that it
    repeats, then those with digits, then long ones.
    """
    text = " ".join(_SYNTAX.sub(" ", question).lower().split())
    return text if len(text) <= limit else " ".join(_most_informative(text, limit))


def _most_informative(text: str, limit: int) -> list[str]:
    language = detect_language(text)
    counts = Counter(word for word in text.split() if not is_stop_word(normalized(word), language))
    counts = counts or Counter(text.split())
    order = {word: number for number, word in enumerate(counts)}
    best = sorted(counts, key=lambda word: (-counts[word], not any(map(str.isdigit, word)), -len(word), order[word]))
    chosen, left = [], limit + 1
    for word in best:
        if len(word) < left:
            chosen.append(word)
            left -= len(word) + 1
    return sorted(chosen, key=order.__getitem__) or [text[:limit]]
