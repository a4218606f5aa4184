"""Rerankers."""

from ragstack_common.search.rerank.lexical import (
    LexicalReranker,
    Passage,
    Signals,
    configure_reranker,
    weights_in_force,
)
from ragstack_common.settings.reranking_weights import RerankingWeights

__all__ = ["LexicalReranker", "Passage", "RerankingWeights", "Signals", "configure_reranker", "weights_in_force"]
