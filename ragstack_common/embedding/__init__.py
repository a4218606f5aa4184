"""The embeddings that a knowledge base can use, behind one small protocol.

``kinds`` chooses one by name; ``hashed``, ``onnx``, ``fastembed``, ``openai`` and ``bedrock`` are the kinds, each
importing what it needs when it is chosen; ``cache`` is an embedding around another one.
"""

from ragstack_common.errors import EmbeddingError, needs_extra

with needs_extra("local", "An embedding"):
    from ragstack_common.embedding.hashed import HashedEmbedding
    from ragstack_common.embedding.kinds import flag, load
    from ragstack_common.embedding.protocol import Embedding, EmbeddingClosed

__all__ = ["Embedding", "EmbeddingClosed", "EmbeddingError", "HashedEmbedding", "flag", "load"]
