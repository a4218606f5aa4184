"""What a collection says in words, held in memory and kept in step with it.

Chroma finds chunks that contain a word, but does not rank them, and its filters know neither parts of strings nor
presence. The mirror ranks by BM25 over the whole collection, and evaluates any filter. Each use first looks whether the
collection has changed, whoever changed it: a folder says so by itself; of a server the ids are listed.
"""

import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.contextual_headers import compose
from ragstack_common.retrieval.engines.chroma.collection import ChromaCollection, Handle, Hit
from ragstack_common.stopwords import STOP_WORDS

if TYPE_CHECKING:
    from uuid import UUID

    from ragstack_common.retrieval.engines.chroma.connection import Opened

TERMS_SEARCHED: Final = 256
"""Different words of a query that are looked up; the text may have 20,000 characters."""

_WORD: Final = re.compile(r"[^\W_]+")
_SCHEMA: Final = """
    CREATE VIRTUAL TABLE words USING fts5(header, body, tokenize = "porter unicode61 remove_diacritics 2")
"""
_FOUND: Final = "SELECT rowid, -bm25(words) FROM words WHERE words MATCH ? ORDER BY 2 DESC, rowid LIMIT ?"


@dataclass(frozen=True)
class _Row:
    number: int
    text: str
    metadata: dict[str, Any]


class Mirror:
    """Words and metadata of a collection. Any thread may use it; one search at a time is answered.

    Args:
        collection: The collection.
    """

    def __init__(self, collection: ChromaCollection) -> None:
        self._collection = collection
        self._rows: dict[str, _Row] = {}
        self._ids: dict[int, str] = {}
        self._next = 1
        self._seen: tuple[Opened, UUID] | None = None
        self._index = _new_index()
        self._lock = Lock()

    def matching(self, handle: Handle, condition: Callable[[Mapping[str, Any]], bool]) -> list[str]:
        """Return the ids of the chunks whose metadata fulfil a condition."""
        with self._lock:
            self._refresh(handle)
            return [key for key, row in self._rows.items() if condition(row.metadata)]

    def by_words(
        self,
        handle: Handle,
        terms: Mapping[str, float],
        count: int,
        condition: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> list[Hit]:
        """Return the chunks with the highest BM25, best first; equal ones by id.

        Args:
            handle: The collection.
            terms: Words with the weight of each, over 0; words of one weight are looked up together.
            count: Chunks at most.
            condition: What the metadata must fulfil.
        """
        with self._lock:
            self._refresh(handle)
            scores: dict[int, float] = {}
            weights = list(dict.fromkeys(terms.values()))
            # Of one ranking without a condition the rest is never looked at.
            most = count if condition is None and len(weights) == 1 else -1
            for weight in weights:
                expression = " OR ".join(f'"{term}"' for term, share in terms.items() if share == weight)
                for number, score in self._index.execute(_FOUND, (expression, most)):
                    scores[number] = scores.get(number, 0.0) + weight * score
            hits = sorted((-score, self._ids[number]) for number, score in scores.items())
            met = ((score, key) for score, key in hits if condition is None or condition(self._rows[key].metadata))
            return [Hit(key, -score) for score, key in islice(met, count)]

    def rarity(self, terms: Iterable[str]) -> dict[str, float]:
        """Return the share of the chunks that hold each word, from 0 to 1."""
        count = "SELECT count(*) FROM words WHERE words MATCH ?"
        with self._lock:
            held = {term: self._index.execute(count, (f'"{term}"',)).fetchone()[0] for term in terms}
            return {term: number / max(1, len(self._rows)) for term, number in held.items()}

    def _refresh(self, handle: Handle) -> None:
        seen = (handle.opened, handle.collection.id)
        if self._seen == seen and handle.opened.follows_changes:
            return
        if self._seen == seen and set(handle.collection.get(include=[])["ids"]) == self._rows.keys():
            return
        gone = dict(self._rows)
        for key, text, metadata in self._collection.rows(handle):
            known = gone.pop(key, None)
            if known is None or known.text != text or known.metadata != metadata:
                self._put(key, text, metadata, known)
        for key, row in gone.items():
            self._remove(key, row)
        self._seen = seen

    def _put(self, key: str, text: str, metadata: dict[str, Any], known: _Row | None) -> None:
        if known is not None:
            self._remove(key, known)
        number, self._next = self._next, self._next + 1
        self._rows[key], self._ids[number] = _Row(number, text, metadata), key
        self._index.execute(
            "INSERT INTO words (rowid, header, body) VALUES (?, ?, ?)", (number, header_of(metadata), text)
        )

    def _remove(self, key: str, row: _Row) -> None:
        self._rows.pop(key, None)
        del self._ids[row.number]
        self._index.execute("DELETE FROM words WHERE rowid = ?", (row.number,))


def header_of(metadata: Mapping[str, Any]) -> str:
    """Compose what a chunk belongs to, which is embedded and looked up with it: its file's name and its heading."""
    name, title = metadata.get("file_name") or metadata.get("source"), metadata.get("section_title")
    return compose(str(name or ""), None, (str(title),) if title else ())


def terms_of(text: str) -> list[str]:
    """Return the different words of a text that tell what it is about; all of them where none does."""
    words = list(dict.fromkeys(_WORD.findall(unicodedata.normalize("NFC", text).casefold())))
    telling = [word for word in words if word not in STOP_WORDS] or words
    return telling[:TERMS_SEARCHED]


def words_of(text: str) -> Sequence[str]:
    """Return every word of a text, in order, folded."""
    return _WORD.findall(unicodedata.normalize("NFC", text).casefold())


def _new_index() -> sqlite3.Connection:
    index = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    index.execute(_SCHEMA)
    return index
