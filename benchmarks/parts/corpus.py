"""Documents and questions of made-up words, as many as wanted."""

import random
from typing import Final

import numpy as np

VOCABULARY: Final = 50_000
WORDS_IN_DOCUMENT: Final = 1_800
SEED: Final = 7


class Corpus:
    """Documents of made-up words whose frequencies follow Zipf's law."""

    def __init__(self) -> None:
        self._random = random.Random(SEED)
        letters = "abcdefghijklmnoprstuvw"
        self._words = ["".join(self._random.choices(letters, k=self._random.randint(3, 9))) for _ in range(VOCABULARY)]
        self._weights = list(np.cumsum(1 / np.arange(10, VOCABULARY + 10)))

    def text(self, words: int = WORDS_IN_DOCUMENT) -> str:
        """Return sentences of twelve words."""
        drawn = self._random.choices(self._words, cum_weights=self._weights, k=words)
        return " ".join(" ".join(drawn[start : start + 12]) + "." for start in range(0, words, 12))

    def query(self) -> str:
        """Return a question of eight words, most of them common ones."""
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=8))
