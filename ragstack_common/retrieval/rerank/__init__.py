"""The second look at what a search found."""

from ragstack_common.retrieval.rerank.lexical import LexicalReranker, Passage, Signals
from ragstack_common.retrieval.rerank.weights import RerankingWeights, configure_reranker, weights_in_force

__all__ = ["LexicalReranker", "Passage", "RerankingWeights", "Signals", "configure_reranker", "weights_in_force"]
