"""Compare kinds of feedback from the first results of HYBRID: by the vector, by words, and by the text of the question.

"vector" is what the local Bedrock does. "words" adds the 10 most frequent words of the first five chunks, without stop
words, to the words of the question (RM3): the question keeps the share that is shown. "both" is the same with the
vector of Rocchio, in which the question has the same share. "text" searches again with words written after the
question, which is all that Retrieve of Amazon Bedrock allows: the rarest of those that two of the five chunks have.
Differences are query by query, with 95 % bootstrap intervals; a star marks one that excludes zero.

Run: ``python benchmarks/feedback.py FOLDER ... [--embedding EMBEDDING]``. A FOLDER has a data set in BEIR's form. Its
index is made as `ragstack eval` makes it, and kept for both.
"""

import argparse
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from parts.measuring import table
from rich.console import Console

from evaluation import dataset, metrics
from evaluation.dataset import DataSet
from evaluation.index import Indexing, serving
from local_bedrock.search import ranking
from local_bedrock.search.ranking import Search
from local_bedrock.store.candidates import Weighted
from local_bedrock.store.database import Database, View
from local_bedrock.store.full_vectors import unit
from ragstack_common.embedding import Embedding
from ragstack_common.embedding.kinds import load
from ragstack_common.text.words import detect_language, is_stop_word, search_terms, terms, words
from ragstack_local.connection.connection import Project

CHUNKS = 5
WORDS = 10
DEPTH = 200


@dataclass(frozen=True)
class Collection:
    """An index that is searched."""

    view: View
    base: str
    embedding: Embedding
    documents: Mapping[int, str]
    texts: Mapping[int, str]

    def search(self, text: str, *, with_feedback: bool = False) -> list[int]:
        """Return the best chunks of HYBRID."""
        search = Search(text, self.embedding.embed_query(text), hybrid=True, with_feedback=with_feedback)
        found = ranking.rank(self.view, self.base, search, self.embedding.cosine_share, DEPTH)
        return [*map(int, found.chunks)]

    def frequent(self, chunks: Sequence[int]) -> tuple[dict[str, float], Counter[str], dict[str, str]]:
        """Return the mean frequency of each term in some chunks, how many have it, and how it is written."""
        shares, found, written = dict[str, float](), Counter[str](), dict[str, str]()
        for chunk in chunks:
            text = self.texts[chunk]
            language = detect_language(text)
            own = [word for word in words(text) if len(word) > 1 and not is_stop_word(word, language)]
            stems = [(stem, word) for word in own for stem in terms([word], language)[:1]]
            written |= dict(reversed(stems)) | written
            counts = Counter(stem for stem, _ in stems)
            found.update(counts.keys())
            for stem, count in counts.items():
                shares[stem] = shares.get(stem, 0.0) + count / max(1, len(stems)) / len(chunks)
        return shares, found, written

    def by_words(self, text: str, own_share: float, *, with_vector: bool) -> list[int]:
        """Search with the most frequent words of the first results, and with the middle of their vectors."""
        first = self.search(text)[:CHUNKS]
        shares = self.frequent(first)[0]
        added = {term: shares[term] for term in sorted(shares, key=lambda term: -shares[term])[:WORDS]}
        held, postings = self.view.vectors, self.view.vectors.postings()
        asked = search_terms(text, postings.languages)
        weights = {term: own_share * count / max(1, asked.total()) for term, count in asked.items()}
        for term, share in added.items():
            weights[term] = weights.get(term, 0.0) + (1 - own_share) * share / sum(added.values())
        with_words, bm25 = postings.bm25(weights)
        cosine_share, vector = self.embedding.cosine_share, self.embedding.embed_query(text)
        if with_vector and first:
            middle = unit(self.view.read_vectors(np.array(first))[1].mean(axis=0))
            vector = unit(own_share * vector + (1 - own_share) * middle)
        addends = (1 - cosine_share) * bm25 / (bm25.max(initial=0.0) or 1.0)
        found = held.candidates(vector, DEPTH, None, Weighted(cosine_share, with_words, addends, bm25))
        return [*map(int, found.chunks(found.best(self.view.read_vectors, DEPTH)[0]))]

    def by_text(self, text: str, number: int) -> list[int]:
        """Search with more words behind the question."""
        shares, found, written = self.frequent(self.search(text)[:CHUNKS])
        rarity = {term: math.log1p(self.view.vectors.count / self._rows_with(term)) for term in found}
        known = {*search_terms(text, self.view.vectors.postings().languages)}
        good = [term for term in found if found[term] > 1 and term not in known and term.isalpha()]
        chosen = sorted(good, key=lambda term: -shares[term] * rarity[term])[:number]
        return self.search(" ".join([text, *(written[term] for term in chosen)]))

    def _rows_with(self, term: str) -> int:
        return max(1, len(self.view.vectors.postings().bm25({term: 1.0})[0]))


VARIANTS: Mapping[str, Callable[[Collection, str], list[int]]] = {
    "none": lambda collection, text: collection.search(text),
    "vector": lambda collection, text: collection.search(text, with_feedback=True),
    "words .9": lambda collection, text: collection.by_words(text, 0.9, with_vector=False),
    "words .7": lambda collection, text: collection.by_words(text, 0.7, with_vector=False),
    "both .7": lambda collection, text: collection.by_words(text, 0.7, with_vector=True),
    "text, 3 words": lambda collection, text: collection.by_text(text, 3),
    "text, 10 words": lambda collection, text: collection.by_text(text, 10),
}


@contextmanager
def opened(data: DataSet, embedding: Embedding, choice: str) -> Iterator[Collection]:
    """Yield the index of a data set."""
    indexing, cache = Indexing(choice), Project.find().data / "evaluation" / "indexes"
    with serving(data, indexing, cache):
        pass
    database = Database(indexing.folder(cache, data))
    with database.read() as view:
        base = view.connection.execute("SELECT id FROM knowledge_base").get
    with database.read(base) as view:
        rows: list[Any] = view.connection.execute(
            "SELECT chunk.id, name, text FROM chunk JOIN document ON document.id = document_id"
        ).fetchall()
        names, texts = {row[0]: row[1] for row in rows}, {row[0]: row[2] for row in rows}
        yield Collection(view, base, embedding, names, texts)
    database.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--embedding", default="hashed", help="as in `ragstack bedrock` (default: %(default)s)")
    arguments = parser.parse_args()
    embedding = load(arguments.embedding)
    rows = [[name] for name in VARIANTS]
    for folder in arguments.folders:
        data = dataset.read(folder)
        with opened(data, embedding, arguments.embedding) as collection:
            values = []
            for row, variant in zip(rows, VARIANTS.values(), strict=True):
                rankings = {
                    query.id: data.documents_of(
                        [collection.documents[chunk] for chunk in variant(collection, query.text)]
                    )
                    for query in data.queries
                }
                values.append(metrics.by_query(data.judgments, rankings)[metrics.PRIMARY])
                difference = metrics.difference_interval(values[-1], values[0], data.clusters)
                star = "*" if difference.excludes_zero else ""
                row.append(f"{difference.mean:+.3f}{star}" if len(values) > 1 else f"{values[0].mean():.3f}")
    Console(width=200).print(table("nDCG@10", ["feedback", *(folder.name for folder in arguments.folders)], rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
