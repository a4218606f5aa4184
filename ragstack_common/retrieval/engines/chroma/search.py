"""Search of a collection by vectors, by words too (hybrid), and with query expansion."""

import math
import re
import sqlite3
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ragstack_common.contextual_headers import compose
from ragstack_common.embedding.protocol import Vectors
from ragstack_common.errors import InvalidFilterError
from ragstack_common.filters import Filter, evaluate
from ragstack_common.filters.chroma import Where, to_chroma
from ragstack_common.retrieval.engines.chroma.collection import ChromaCollection, Handle, Hit
from ragstack_common.retrieval.merge import reciprocal_ranks
from ragstack_common.retrieval.models import RetrievedChunk
from ragstack_common.stopwords import STOP_WORDS

if TYPE_CHECKING:
    from uuid import UUID

    from ragstack_common.retrieval.engines.chroma.store import OpenStore

DEFAULT_SCAN_LIMIT: Final = 50_000
"""Chunks whose metadata are read for a filter that Chroma cannot express; it takes a second or two."""

CANDIDATES: Final = 1_000
"""Chunks of each ranking, however few are requested, so that a shorter answer is the beginning of a longer one."""

RANK_CONSTANT: Final = 10
"""Of reciprocal rank fusion, as measured with `ragstack eval`. Cormack et al. 2009 use 60."""

FEEDBACK_CHUNKS: Final = 5
"""First results that query expansion takes for relevant."""

FEEDBACK_TERMS: Final = 10
FEEDBACK_TERM_WEIGHT: Final = 0.2
"""Weight of an added word; a word of the query has 1. Source: RM3, Abdul-Jaleel et al. 2004."""

FEEDBACK_VECTOR_WEIGHT: Final = 0.3
"""Weight of the mean of the first results' vectors; the query's has 1. Source: Rocchio 1971."""

SHORTEST_ADDED_TERM: Final = 3

MAX_TERMS: Final = 256
"""Different words of a query that are searched; a query may have 20,000 characters."""

_WORD: Final = re.compile(r"[^\W_]+")

MetadataTest = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True)
class _Restriction:
    """A filter in Chroma's form (*where*), or the matching chunks if Chroma cannot express it (*ids*)."""

    where: Where | None = None
    ids: list[str] | None = None
    test: MetadataTest | None = None


class CollectionSearch:
    """Searches one collection. Any thread may use it.

    Args:
        collection: The collection.
        scan_limit: Size of the largest collection whose metadata are read for a filter that Chroma cannot express;
            0 rejects such filters.
    """

    def __init__(self, collection: ChromaCollection, scan_limit: int = DEFAULT_SCAN_LIMIT) -> None:
        self._collection = collection
        self._scan_limit = scan_limit
        self._keywords = KeywordIndex(collection)

    def several(
        self,
        queries: Sequence[str],
        count: int,
        filters: Filter | None = None,
        *,
        hybrid: bool = False,
        expand: bool = False,
    ) -> list[list[RetrievedChunk]]:
        """Answer queries; a search by vectors alone is one call of Chroma for all of them.

        Args:
            queries: Not blank.
            count: Maximum number of chunks for each query.
            filters: What a chunk must match.
            hybrid: Whether BM25 ranks too.
            expand: Whether the query is extended by its first results and searched again.

        Returns:
            The chunks of each query, best first; equal scores by id.

        Raises:
            InvalidFilterError: Chroma cannot express the filter, and the collection is over the scan limit.
            DimensionMismatchError: The collection was made with another embedding.
            EmbeddingError: The same, or the model failed.
            RetrievalError: The store cannot be opened or reached, or failed.
        """

        def search(handle: Handle) -> list[list[RetrievedChunk]]:
            if handle.dimension is None:
                return [[] for _ in queries]
            restriction = self._restriction(handle, filters)
            vectors = handle.embedding.several(queries)
            if not hybrid and not expand:
                hits = self._nearest(handle, vectors, count, restriction)
                return [self._collection.chunks(handle, found) for found in hits]
            one = partial(self._one, handle, count, restriction, hybrid=hybrid, expand=expand)
            return [one(query, vector) for query, vector in zip(queries, vectors, strict=True)]

        return self._collection.run(search)

    def _one(
        self,
        handle: Handle,
        count: int,
        restriction: _Restriction,
        query: str,
        vector: Vectors,
        *,
        hybrid: bool,
        expand: bool,
    ) -> list[RetrievedChunk]:
        ask = self._by_words_and_vector if hybrid else self._by_vector
        terms = dict.fromkeys(terms_of(query), 1.0)
        if expand:
            first = ask(handle, vector, terms, FEEDBACK_CHUNKS, restriction)
            ids = [chunk.chunk_id for chunk in first if chunk.chunk_id is not None]
            vector = _moved(vector, self._collection.vectors(handle, ids))
            if hybrid:
                terms |= self._added_terms(terms, [chunk.content for chunk in first])
        return ask(handle, vector, terms, count, restriction)

    def _by_vector(
        self, handle: Handle, vector: Vectors, _terms: Mapping[str, float], count: int, restriction: _Restriction
    ) -> list[RetrievedChunk]:
        return self._collection.chunks(handle, self._nearest(handle, [vector], count, restriction)[0])

    def _by_words_and_vector(
        self, handle: Handle, vector: Vectors, terms: Mapping[str, float], count: int, restriction: _Restriction
    ) -> list[RetrievedChunk]:
        candidates = max(count, CANDIDATES)
        (by_vector,) = self._nearest(handle, [vector], candidates, restriction)
        by_words = self._keywords.search(handle, terms, candidates, restriction.test) if terms else []
        rankings = reciprocal_ranks(
            {"words": [hit.id for hit in by_words], "vectors": [hit.id for hit in by_vector]},
            {"words": 1.0, "vectors": handle.embedding.model.fusion_weight},
            {hit.id: hit.score for hit in by_vector},
            rank_constant=RANK_CONSTANT,
        )
        best = sorted(rankings.items(), key=lambda entry: (-entry[1].score, -entry[1].base_score, entry[0]))[:count]
        chunks = self._collection.chunks(handle, [Hit(key, 0.0) for key, _ in best])
        return [chunk.ranked(rankings[str(chunk.chunk_id)]) for chunk in chunks]

    def _nearest(
        self, handle: Handle, vectors: Sequence[Vectors], count: int, restriction: _Restriction
    ) -> list[list[Hit]]:
        return self._collection.nearest(handle, vectors, count, restriction.where, restriction.ids)

    def _restriction(self, handle: Handle, filters: Filter | None) -> _Restriction:
        if filters is None:
            return _Restriction()
        test = partial(evaluate, filters)
        try:
            return _Restriction(to_chroma(filters), test=test)
        except InvalidFilterError as error:
            size = handle.collection.count()
            if size > self._scan_limit:
                raise InvalidFilterError(
                    f"{error}. The search would have to read the metadata of {size:,} chunks; scan_limit is "
                    f"{self._scan_limit:,}"
                ) from error
        return _Restriction(ids=self._keywords.matching(handle, test), test=test)

    def _added_terms(self, terms: Mapping[str, float], texts: Sequence[str]) -> dict[str, float]:
        """Choose the words that are more frequent in the first results than in the collection."""
        shares: dict[str, float] = defaultdict(float)
        for text in texts:
            words = Counter(_words(text))
            for word, number in words.items():
                if word not in STOP_WORDS and word not in terms and len(word) >= SHORTEST_ADDED_TERM:
                    shares[word] += number / words.total()
        likely = sorted(shares, key=lambda word: (-shares[word], word))[: 4 * FEEDBACK_TERMS]
        frequency = self._keywords.document_frequency(likely)
        weighed = sorted(likely, key=lambda word: (shares[word] * math.log(max(frequency[word], 1e-9)), word))
        return dict.fromkeys(weighed[:FEEDBACK_TERMS], FEEDBACK_TERM_WEIGHT)


class KeywordIndex:
    """Texts and metadata of a collection in memory: ranks by BM25, and evaluates any filter. Any thread may use it.

    Chroma finds chunks that contain a word but does not rank them, and its filters know neither parts of strings nor
    presence. Each use first checks whether the collection has changed: of a folder, the connection notices; of a
    server, the ids are listed. Then the collection is read, and only changed chunks are indexed: after a change to
    10,000 chunks this takes 0.2 s, and building the index again 1.5 s.
    """

    def __init__(self, collection: ChromaCollection) -> None:
        self._collection = collection
        self._rows: dict[str, tuple[str, dict[str, Any]]] = {}
        self._numbers: dict[str, int] = {}
        self._ids: dict[int, str] = {}
        self._next_number = count(1)
        self._seen: tuple[OpenStore, UUID] | None = None
        self._index = sqlite3.connect(":memory:", check_same_thread=False)
        self._index.execute(
            'CREATE VIRTUAL TABLE words USING fts5(header, body, tokenize = "porter unicode61 remove_diacritics 2")'
        )
        self._lock = Lock()

    def matching(self, handle: Handle, test: MetadataTest) -> list[str]:
        """Return the ids of the chunks whose metadata pass a test."""
        with self._lock:
            self._refresh(handle)
            return [key for key, (_, metadata) in self._rows.items() if test(metadata)]

    def search(
        self, handle: Handle, terms: Mapping[str, float], count: int, test: MetadataTest | None = None
    ) -> list[Hit]:
        """Return the chunks with the highest BM25, best first; ties by id.

        Args:
            handle: The collection.
            terms: Words and the weight of each, over 0. Words of equal weight are one BM25 query.
            count: Maximum number of chunks.
            test: What the metadata must pass.
        """
        found = "SELECT rowid, -bm25(words) FROM words WHERE words MATCH ? ORDER BY 2 DESC, rowid LIMIT ?"
        with self._lock:
            self._refresh(handle)
            scores: dict[int, float] = defaultdict(float)
            weights = set(terms.values())
            limit = count if test is None and len(weights) == 1 else -1
            for weight in weights:
                expression = " OR ".join(f'"{term}"' for term, own in terms.items() if own == weight)
                for number, score in self._index.execute(found, (expression, limit)):
                    scores[number] += weight * score
            hits = sorted((-score, self._ids[number]) for number, score in scores.items())
            passing = (hit for hit in hits if test is None or test(self._rows[hit[1]][1]))
            return [Hit(key, -score) for score, key in islice(passing, count)]

    def document_frequency(self, terms: Iterable[str]) -> dict[str, float]:
        """Return the share of the chunks that contain each word, from 0 to 1, as of the last search."""
        with self._lock:
            counting = "SELECT count(*) FROM words WHERE words MATCH ?"
            found = {term: self._index.execute(counting, (f'"{term}"',)).fetchone()[0] for term in terms}
            return {term: number / max(1, len(self._rows)) for term, number in found.items()}

    def _refresh(self, handle: Handle) -> None:
        seen = (handle.store, handle.collection.id)
        if self._seen == seen:
            if handle.store.follows_changes:
                return
            if set(handle.collection.get(include=[])["ids"]) == self._rows.keys():
                return
        rows = {key: (text, metadata) for key, text, metadata in self._collection.rows(handle)}
        changed = [key for key, row in rows.items() if self._rows.get(key) != row]
        outdated = [key for key in (*changed, *(self._rows.keys() - rows.keys())) if key in self._numbers]
        numbers = [(self._numbers.pop(key),) for key in outdated]
        for (number,) in numbers:
            del self._ids[number]
        for key in changed:
            self._numbers[key] = number = next(self._next_number)
            self._ids[number] = key
        entries = ((self._numbers[key], header_of(rows[key][1]), rows[key][0]) for key in changed)
        with self._index:
            self._index.executemany("DELETE FROM words WHERE rowid = ?", numbers)
            self._index.executemany("INSERT INTO words (rowid, header, body) VALUES (?, ?, ?)", entries)
        self._rows, self._seen = rows, seen


def header_of(metadata: Mapping[str, Any]) -> str:
    """Compose the contextual header of a chunk from its file's name and its heading."""
    name, title = metadata.get("file_name") or metadata.get("source"), metadata.get("section_title")
    return compose(str(name or ""), None, (str(title),) if title else ())


def terms_of(text: str) -> list[str]:
    """Return the different words of a text without stop words; all words if there are only stop words."""
    words = list(dict.fromkeys(_words(text)))
    return ([word for word in words if word not in STOP_WORDS] or words)[:MAX_TERMS]


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text).casefold())


def _moved(vector: Vectors, found: Sequence[Vectors]) -> Vectors:
    """Move a query's vector towards those of its results, with its length unchanged."""
    length = float(np.linalg.norm(vector))
    directions = [row / norm for row in found if (norm := float(np.linalg.norm(row))) > 0]
    if length == 0 or not directions:
        return vector
    moved = vector / length + FEEDBACK_VECTOR_WEIGHT * np.mean(directions, axis=0)
    moved_length = float(np.linalg.norm(moved))
    return vector if moved_length == 0 else np.asarray(moved * (length / moved_length), dtype=np.float32)
