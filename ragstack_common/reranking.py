"""The lexical reranker and ``configure_reranker()`` of specification 002, where its module is document_reranking."""

from ragstack_common.search.rerank.lexical import (
    LexicalReranker,
    Passage,
    Signals,
    configure_reranker,
    weights_in_force,
)
from ragstack_common.settings.reranking_weights import RerankingWeights

__all__ = ["LexicalReranker", "Passage", "RerankingWeights", "Signals", "configure_reranker", "weights_in_force"]
