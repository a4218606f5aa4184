"""The embedding without a model: words, word pairs and parts of words, hashed into one vector.

It knows no synonyms. It finds inflected and misspelt words, which a keyword index misses. Signed hashing:
Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask Learning".
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from ragstack_common.embedding.protocol import Embedding, Vectors
from ragstack_common.settings.search import HASHED_COSINE_SHARE
from ragstack_common.text.languages import detect, voters
from ragstack_common.text.words import is_stop_word, runs

DIMENSION: Final = 1024
"""nDCG@10 of the vectors alone on SciFact: .49 with 512, .56 with 1024, .59 with 2048; 100,000 take 400 MB at 1024."""

FUSION_WEIGHT: Final = 0.2
"""nDCG@10 of both, fused by rank, and of BM25: SciFact .686, .688; short passages .657, .659; CACM .498, .500."""

PAIR_WEIGHT: Final = 0.5
STOP_WORD_WEIGHT: Final = 0.05
LANGUAGES: Final = "en de fr es pt it nl sv da no fi pl ro tr hu cs vi id ru el ar hi".split()  # noqa: SIM905 - tags
_VOTERS: Final = voters(LANGUAGES, {"bare", "bin", "care", "dog", "end", "era", "men", "min", "pro", "ten", "var"})
"""They decide which words are stop words, and therefore the vectors. Stored vectors are known by the embedding's name:
whoever changes these, or the stop words of these languages, gives the embedding another name."""

_PAIR_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_WORD_WEIGHT = np.float64(1.0).tobytes()
_PIECE_WEIGHT = np.float64(0.3).tobytes()
_STOP_WORD_WEIGHT = np.float64(STOP_WORD_WEIGHT).tobytes()


class HashedEmbedding(Embedding):
    """Word unigrams, bigrams and character n-grams within words, in ``dimension`` signed buckets.

    Deterministic across processes, machines and Python versions. A text without a word is the zero vector.
    """

    name = "hashed"
    description = "hashed"
    cosine_share = HASHED_COSINE_SHARE
    fusion_weight = FUSION_WEIGHT
    pooling = "none"

    def __init__(self, dimension: int = DIMENSION) -> None:
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts; see :class:`Embedding`."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            if found := runs(text):
                self._embed_into(vectors[row], found)
        return vectors

    def _embed_into(self, vector: Vectors, words: Sequence[str]) -> None:
        hashes, weights, occurrences = _features(words)
        order = np.argsort(hashes)
        ordered = hashes[order]
        starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        # A part of one word can be another word: the feature's first occurrence sets the weight.
        first = np.minimum.reduceat(order, starts)
        values = weights[first] * (1.0 + np.log(np.add.reduceat(occurrences[order], starts)))
        features = ordered[starts]
        signed = np.where(features >> np.uint64(63), values, -values)
        buckets = (features % np.uint64(self.dimension)).astype(np.intp)
        vector[:] = np.bincount(buckets, weights=signed, minlength=self.dimension)
        length = float(np.linalg.norm(vector))
        if length > 0:
            vector /= length


@dataclass(frozen=True, slots=True)
class _Word:
    """The features of a word, then of its parts. Hashes and weights are arrays as bytes."""

    hashes: bytes
    weights: bytes
    features: int
    own_hash: int
    is_stop_word: bool


def _features(
    words: Sequence[str],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return hash, weight and number of occurrences of every word and part in order of appearance, then the pairs."""
    counted, language = Counter(words), detect(words, min_share=0.0, voters=_VOTERS)
    table = language if language in LANGUAGES else ""
    known = [_word(word, is_stop_word=is_stop_word(word, table)) for word in counted]
    position = dict(zip(counted, range(len(counted)), strict=True))
    sequence = np.fromiter(map(position.__getitem__, words), np.intp, len(words))
    own = np.array([word.own_hash for word in known], dtype=np.uint64)[sequence]
    pairs = (own[:-1] * _PAIR_MULTIPLIER) ^ own[1:]
    stops = np.array([word.is_stop_word for word in known])[sequence]
    pair_weights = np.where(stops[:-1] | stops[1:], STOP_WORD_WEIGHT, PAIR_WEIGHT)
    occurrences = np.repeat(list(counted.values()), [word.features for word in known])
    return (
        np.concatenate([np.frombuffer(b"".join([word.hashes for word in known]), dtype="<u8"), pairs]),
        np.concatenate([np.frombuffer(b"".join([word.weights for word in known])), pair_weights]),
        np.concatenate([occurrences, np.ones(len(pairs), dtype=np.int64)]),
    )


@lru_cache(maxsize=200_000)
def _word(word: str, *, is_stop_word: bool) -> _Word:
    own = _digest(word)
    if is_stop_word:
        return _Word(own, _STOP_WORD_WEIGHT, 1, int.from_bytes(own, "little"), is_stop_word=True)
    marked = f"<{word}>"
    pieces = [
        _digest(marked[start : start + length])
        for length in (3, 4, 5)
        if length < len(marked)
        for start in range(len(marked) - length + 1)
    ]
    return _Word(
        b"".join([own, *pieces]),
        _WORD_WEIGHT + _PIECE_WEIGHT * len(pieces),
        1 + len(pieces),
        int.from_bytes(own, "little"),
        is_stop_word=False,
    )


def _digest(feature: str) -> bytes:
    return hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
