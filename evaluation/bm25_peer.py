"""BM25 of whole documents by another program, bm25s: the reference for ours.

Lucene's formula with its k1 of 1.2 and b of .75, words of two letters or more, bm25s's English stop words, Snowball's
English stemmer, title and text as one. Source: Lù 2024, "BM25S"; Robertson and Zaragoza 2009.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np

from evaluation.dataset import DataSet
from evaluation.searching import Ask
from ragstack_common.core.errors import needs_extra

with needs_extra("evaluation", "The evaluation"):
    import bm25s  # type: ignore[import-untyped]
    from bm25s.stopwords import STOPWORDS_EN  # type: ignore[import-untyped]
    from py_rust_stemmers import SnowballStemmer  # type: ignore[import-untyped]

K1: Final = 1.2
B: Final = 0.75

_WORD: Final = re.compile(r"\b\w\w+\b")
_STOP_WORDS: Final = frozenset(STOPWORDS_EN)
_STEMMER: Final = SnowballStemmer("english")


def of_documents(data: DataSet, results: int) -> Ask:
    """Index the documents, and return a search over them; filters are hard."""
    names = list(data.documents)
    index = bm25s.BM25(k1=K1, b=B, method="lucene")
    index.index([_words(f"{d.title} {d.text}") for d in data.documents.values()], show_progress=False)

    def ask(query: str, metadata_filter: Mapping[str, Any] | None) -> list[str]:
        words = _words(query)
        if not words:
            return []
        scores = index.get_scores(words)
        allowed = scores > 0
        if metadata_filter is not None:
            allowed &= np.array([_passes(document.metadata, metadata_filter) for document in data.documents.values()])
        order = np.lexsort((np.arange(len(names)), -scores))
        return [names[place] for place in order if allowed[place]][:results]

    return ask


def _passes(metadata: Mapping[str, Any], metadata_filter: Mapping[str, Any]) -> bool:
    return all(metadata.get(name) == wanted["$eq"] for name, wanted in metadata_filter.items())


def _words(text: str) -> list[str]:
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS]


@cache
def _stem(word: str) -> str:
    return str(_STEMMER.stem_word(word))
