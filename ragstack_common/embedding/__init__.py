"""Embeddings behind one small protocol.

``kinds`` loads one by name. The kinds are ``hashed``, ``onnx``, ``fastembed``, ``openai`` and ``bedrock``; each
imports its packages when it is chosen. ``cache`` wraps another embedding.
"""

from ragstack_common.core.errors import EmbeddingError, needs_extra

with needs_extra("local", "An embedding"):
    from ragstack_common.embedding.hashed import HashedEmbedding
    from ragstack_common.embedding.kinds import QueryEmbedding, embedding_choice, flag, load, load_recorded
    from ragstack_common.embedding.protocol import Embedding, EmbeddingClosed

__all__ = [
    "Embedding",
    "EmbeddingClosed",
    "EmbeddingError",
    "HashedEmbedding",
    "QueryEmbedding",
    "embedding_choice",
    "flag",
    "load",
    "load_recorded",
]
