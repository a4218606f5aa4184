"""Words of a text as the keyword index has them: folded, without diacritics, stemmed."""

import re
import threading
from typing import Final

import apsw

from ragstack_common.stopwords import STOP_WORDS

TOKENIZER: Final = ("porter", ["unicode61", "remove_diacritics", "2"])
"""The one of the full-text index in store/schema.py."""

_WORD: Final = re.compile(r"[^\W_]+")
_local: Final = threading.local()


def stems(text: str) -> list[str]:
    """Return the stem of every word, in their order."""
    data = text.encode("utf-8", "replace")
    found = _tokenizer()(data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    return [str(stem) for stem in found]


def query_stems(text: str) -> list[str]:
    """Return the different stems of a question that tell what it is about; all of them where none does."""
    words = _WORD.findall(text)
    telling = [word for word in words if word.casefold() not in STOP_WORDS] or words
    return list(dict.fromkeys(stems(" ".join(telling))))


def _tokenizer() -> apsw.FTS5Tokenizer:
    # A tokenizer belongs to its connection, and a connection to one thread at a time.
    if not hasattr(_local, "tokenizer"):
        _local.connection = apsw.Connection(":memory:")
        _local.tokenizer = _local.connection.fts5_tokenizer(*TOKENIZER)
    tokenizer: apsw.FTS5Tokenizer = _local.tokenizer
    return tokenizer
