"""Search of a collection by vectors, and by words too (hybrid)."""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, islice
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.filters import Filter, evaluate
from ragstack_common.filters.chroma import Where, to_chroma
from ragstack_common.search.engines.chroma.collection import ChromaCollection, Handle
from ragstack_common.search.merge import reciprocal_ranks
from ragstack_common.search.models import RetrievedChunk
from ragstack_common.search.tracing import describe_span
from ragstack_common.text.contextual_headers import compose
from ragstack_common.text.words import detect_languages, search_terms, terms

if TYPE_CHECKING:
    from uuid import UUID

    from ragstack_common.search.engines.chroma.store import OpenStore

DEFAULT_SCAN_LIMIT: Final = 50_000
"""Chunks whose metadata are read for a filter that Chroma cannot express; it takes a second or two."""

CANDIDATES: Final = 1_000
"""Chunks of each ranking, however few are requested, so that a shorter answer is the beginning of a longer one."""

RANK_CONSTANT: Final = 10
"""Constant of reciprocal rank fusion, as measured with `ragstack eval`. Cormack et al. 2009 use 60."""


class CollectionSearch:
    """Searches one collection. Any thread may use it.

    Args:
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
    ) -> list[list[RetrievedChunk]]:
        """Return up to *count* chunks for each query, best first, equal scores by id.

        With *hybrid*, BM25 ranks too. A search by vectors alone is one call of Chroma for all queries.
        """

        def search(handle: Handle) -> list[list[RetrievedChunk]]:
            search_type = "HYBRID" if hybrid else "SEMANTIC"
            describe_span({"search_type": search_type, "pooling": handle.embedding.model.pooling})
            if handle.dimension is None:
                return [[] for _ in queries]
            where, ids = self._restriction(handle, filters)
            vectors = handle.embedding.several(queries)
            nearest = self._collection.nearest(handle, vectors, max(count, CANDIDATES) if hybrid else count, where, ids)
            if not hybrid:
                return [self._collection.chunks(handle, scores) for scores in nearest]
            return [
                self._fused(handle, query, scores, count, filters)
                for query, scores in zip(queries, nearest, strict=True)
            ]

        return self._collection.run(search)

    def _fused(
        self,
        handle: Handle,
        query: str,
        by_vector: Mapping[str, float],
        count: int,
        filters: Filter | None,
    ) -> list[RetrievedChunk]:
        candidates = max(count, CANDIDATES)
        rankings = reciprocal_ranks(
            {"words": self._keywords.search(handle, query, candidates, filters), "vectors": list(by_vector)},
            {"words": 1.0, "vectors": handle.embedding.model.fusion_weight},
            by_vector,
            rank_constant=RANK_CONSTANT,
        )
        best = sorted(rankings.items(), key=lambda entry: (-entry[1].score, -entry[1].base_score, entry[0]))[:count]
        chunks = self._collection.chunks(handle, dict.fromkeys((key for key, _ in best), 0.0))
        return [chunk.ranked(rankings[str(chunk.chunk_id)]) for chunk in chunks]

    def _restriction(self, handle: Handle, filters: Filter | None) -> tuple[Where | None, list[str] | None]:
        """Return a filter in Chroma's form, or the ids of the matching chunks if Chroma cannot express it."""
        if filters is None:
            return None, None
        try:
            return to_chroma(filters), None
        except InvalidFilterError as error:
            size = handle.collection.count()
            if size > self._scan_limit:
                raise InvalidFilterError(
                    f"{error}. The search would have to read the metadata of {size:,} chunks; scan_limit is "
                    f"{self._scan_limit:,}"
                ) from error
        return None, self._keywords.matching(handle, filters)


class KeywordIndex:
    """Texts and metadata of a collection in memory: ranks by BM25, and evaluates any filter. Any thread may use it.

    Chroma finds chunks that contain a word but does not rank them, and its filters know neither parts of strings nor
    presence. Each use first checks whether the collection has changed: of a folder, the connection notices; of a
    server, the ids are listed. Then the collection is read, and only changed chunks are indexed: after a change to
    10,000 chunks this takes 0.2 s, and building the index again 1.5 s.
    """

    def __init__(self, collection: ChromaCollection) -> None:
        self._collection = collection
        self._files: dict[str, dict[str, _Row]] = {}
        self._rows: dict[str, _Row] = {}
        self._languages = Counter[str]()
        self._numbers: dict[str, int] = {}
        self._next_number = count(1)
        self._seen: tuple[OpenStore, UUID] | None = None
        self._index = sqlite3.connect(":memory:", check_same_thread=False)
        self._index.execute(
            "CREATE VIRTUAL TABLE words USING fts5(id UNINDEXED, header, body, "
            "tokenize = \"unicode61 remove_diacritics 0 categories 'L* M* N* P* Co'\")"
        )
        self._lock = Lock()

    def matching(self, handle: Handle, filters: Filter) -> list[str]:
        """Return the ids of the chunks that match."""
        with self._lock:
            self._refresh(handle)
            return [key for key, row in self._rows.items() if evaluate(filters, row.metadata)]

    def search(self, handle: Handle, query: str, count: int, filters: Filter | None) -> list[str]:
        """Return the ids of the matching chunks with the highest BM25, best first; ties by id."""
        with self._lock:
            self._refresh(handle)
            terms = search_terms(query, self._languages)
            if not terms:
                return []
            expression = " OR ".join(f'"{term}"' for term in terms)
            found = self._index.execute("SELECT id FROM words WHERE words MATCH ? ORDER BY rank, id", (expression,))
            passing = (key for (key,) in found if filters is None or evaluate(filters, self._rows[key].metadata))
            return list(islice(passing, count))

    def _refresh(self, handle: Handle) -> None:
        seen = (handle.store, handle.collection.id)
        if self._seen == seen:
            if handle.store.follows_changes:
                return
            if set(handle.collection.get(include=[])["ids"]) == self._rows.keys():
                return
        files = _files(self._collection.rows(handle), self._files)
        rows = {key: row for file in files.values() for key, row in file.items()}
        changed = [key for key, row in rows.items() if self._rows.get(key) != row]
        outdated = [key for key in (*changed, *(self._rows.keys() - rows.keys())) if key in self._numbers]
        numbers = [(self._numbers.pop(key),) for key in outdated]
        self._numbers |= {key: next(self._next_number) for key in changed}
        entries = ((self._numbers[key], key, *rows[key].terms()) for key in changed)
        with self._index:
            self._index.executemany("DELETE FROM words WHERE rowid = ?", numbers)
            self._index.executemany("INSERT INTO words (rowid, id, header, body) VALUES (?, ?, ?, ?)", entries)
        self._files, self._rows, self._seen = files, rows, seen
        self._languages = Counter(row.language for row in rows.values())


def contextual_header(metadata: Mapping[str, Any]) -> str:
    """Compose the contextual header of a chunk from its file's name and its heading."""
    name, title = metadata.get("file_name") or metadata.get("source"), metadata.get("section_title")
    return compose(str(name or ""), None, (str(title),) if title else ())


class _Row(NamedTuple):
    """A chunk, and the tag of its language."""

    text: str
    metadata: dict[str, Any]
    language: str

    def terms(self) -> tuple[str, str]:
        """Return the terms of the header and of the text."""
        header, text = (terms(part, self.language) for part in (contextual_header(self.metadata), self.text))
        return " ".join(header), " ".join(text)


def _files(
    chunks: Iterable[tuple[str, str, dict[str, Any]]], before: Mapping[str, dict[str, _Row]]
) -> dict[str, dict[str, _Row]]:
    """Return the chunks of each file by id, with the language of the file; unchanged files keep theirs."""
    files: dict[str, dict[str, tuple[str, dict[str, Any]]]] = defaultdict(dict)
    for key, text, metadata in chunks:
        files[str(metadata.get("source") or metadata.get("file_name") or key)][key] = (text, metadata)
    rows: dict[str, dict[str, _Row]] = {}
    for name, file in files.items():
        known = before.get(name, {})
        if {key: (row.text, row.metadata) for key, row in known.items()} == file:
            rows[name] = known
        else:
            languages = detect_languages([text for text, _ in file.values()])
            rows[name] = {key: _Row(*file[key], language) for key, language in zip(file, languages, strict=True)}
    return rows
