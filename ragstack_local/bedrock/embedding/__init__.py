"""The embeddings that a knowledge base can use, behind one small protocol.

``kinds`` chooses one by name; ``hashed``, ``onnx``, ``fastembed``, ``openai`` and ``bedrock`` are the kinds, each
importing what it needs when it is chosen; ``cache`` and ``workers`` are embeddings around another one.
"""

from ragstack_local.bedrock.embedding.hashed import HashedEmbedding
from ragstack_local.bedrock.embedding.kinds import flag, load
from ragstack_local.bedrock.embedding.protocol import Embedding, EmbeddingClosed, EmbeddingError

__all__ = ["Embedding", "EmbeddingClosed", "EmbeddingError", "HashedEmbedding", "flag", "load"]
