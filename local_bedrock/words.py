"""The words of a text as in the full-text index: case-folded, without diacritics, stemmed."""

import re
import threading
from typing import Final

import apsw

from ragstack_common.stopwords import STOP_WORDS

TOKENIZER: Final = ("porter", ["unicode61", "remove_diacritics", "2"])
"""As in store/schema.py."""

_WORD: Final = re.compile(r"[^\W_]+")
_local: Final = threading.local()


def stems(text: str) -> list[str]:
    """Return the stem of every word, in order."""
    data = text.encode("utf-8", "replace")
    found = _tokenizer()(data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    return [str(stem) for stem in found]


def query_stems(text: str) -> list[str]:
    """Return the distinct stems of a question without its stop words, unless there are only stop words."""
    words = _WORD.findall(text)
    content_words = [word for word in words if word.casefold() not in STOP_WORDS] or words
    return list(dict.fromkeys(stems(" ".join(content_words))))


def _tokenizer() -> apsw.FTS5Tokenizer:
    # A tokenizer belongs to a connection, and a connection to one thread at a time.
    if not hasattr(_local, "tokenizer"):
        _local.connection = apsw.Connection(":memory:")
        _local.tokenizer = _local.connection.fts5_tokenizer(*TOKENIZER)
    tokenizer: apsw.FTS5Tokenizer = _local.tokenizer
    return tokenizer
