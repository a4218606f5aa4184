"""Rerankers."""

from ragstack_common.reranking_weights import RerankingWeights
from ragstack_common.search.rerank.lexical import (
    LexicalReranker,
    Passage,
    Signals,
    configure_reranker,
    weights_in_force,
)

__all__ = ["LexicalReranker", "Passage", "RerankingWeights", "Signals", "configure_reranker", "weights_in_force"]
