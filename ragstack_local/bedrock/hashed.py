"""The embedding that needs no model: words, word pairs and pieces of words, hashed into one vector.

It knows no synonyms. It finds inflected and misspelt words that a keyword index misses, which is what it adds to BM25
in a hybrid search. Signed hashing: Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask Learning".
"""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from ragstack_local.bedrock.stopwords import STOP_WORDS

DIMENSION: Final = 1024
"""nDCG@10 of the vectors alone on SciFact: .49 with 512, .56 with 1024, .59 with 2048; 100,000 take 400 MB at 1024."""

FUSION_WEIGHT: Final = 0.2
"""nDCG@10 of HYBRID and of BM25 alone: SciFact .692, .687; passages of 400 characters .654, .657; CACM .447, .446."""

WORD_WEIGHT: Final = 1.0
PAIR_WEIGHT: Final = 0.5
PIECE_WEIGHT: Final = 0.3
STOP_WORD_WEIGHT: Final = 0.05
PIECE_LENGTHS: Final = (3, 4, 5)
WORDS_CACHED: Final = 200_000

_WORD = re.compile(r"[^\W_]+")
_PAIR_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SIGN_BIT = np.uint64(63)


class HashedEmbedding:
    """Word unigrams, bigrams and character n-grams within words, in ``dimension`` signed buckets.

    Deterministic across processes, machines and Python versions. A text without any word is the zero vector.

    Attributes:
        name: ``hashed``.
        dimension: Length of a vector.
        fusion_weight: See :class:`~ragstack_local.bedrock.embedding.Embedding`.
    """

    name = "hashed"
    fusion_weight = FUSION_WEIGHT

    def __init__(self, dimension: int = DIMENSION) -> None:
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Turn each text into a row of unit length.

        Returns:
            Shape ``(len(texts), dimension)``.
        """
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            self._embed_into(vectors[row], text)
        return vectors

    def _embed_into(self, vector: npt.NDArray[np.float32], text: str) -> None:
        words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
        if not words:
            return
        known = [_word_features(word) for word in words]
        firsts = np.array([hashes[0] for hashes, _ in known], dtype=np.uint64)
        pairs = (firsts[:-1] * _PAIR_MULTIPLIER) ^ firsts[1:]
        hashes = np.concatenate([*(hashes for hashes, _ in known), pairs])
        weights = np.concatenate([*(weights for _, weights in known), _pair_weights(words)])
        features, first, counts = np.unique(hashes, return_index=True, return_counts=True)
        values = weights[first] * (1.0 + np.log(counts))
        signed = np.where(features >> _SIGN_BIT, values, -values)
        buckets = (features % np.uint64(self.dimension)).astype(np.intp)
        vector[:] = np.bincount(buckets, weights=signed, minlength=self.dimension)
        length = float(np.linalg.norm(vector))
        if length > 0:
            vector /= length


@lru_cache(maxsize=WORDS_CACHED)
def _word_features(word: str) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float64]]:
    """Hashes and weights of a word and its pieces; the word's own comes first."""
    if word in STOP_WORDS:
        return np.array([_hash(word)], dtype=np.uint64), np.array([STOP_WORD_WEIGHT])
    marked = f"<{word}>"
    pieces = [marked[i : i + n] for n in PIECE_LENGTHS for i in range(len(marked) - n + 1) if n < len(marked)]
    weights = [WORD_WEIGHT, *[PIECE_WEIGHT] * len(pieces)]
    return np.array([_hash(word), *map(_hash, pieces)], dtype=np.uint64), np.array(weights)


def _pair_weights(words: Sequence[str]) -> npt.NDArray[np.float64]:
    stops = np.array([word in STOP_WORDS for word in words])
    return np.where(stops[:-1] | stops[1:], STOP_WORD_WEIGHT, PAIR_WEIGHT)


def _hash(feature: str) -> int:
    return int.from_bytes(hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
