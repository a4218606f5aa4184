"""The lexical reranker under the import path that specification 002 gives it."""

from ragstack_common.retrieval.rerank import (
    LexicalReranker,
    Passage,
    RerankingWeights,
    Signals,
    configure_reranker,
    weights_in_force,
)

__all__ = ["LexicalReranker", "Passage", "RerankingWeights", "Signals", "configure_reranker", "weights_in_force"]
