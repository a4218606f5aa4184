"""One interface to every system that answers queries with chunks.

Engines are stores (``bedrock``, ``chroma``, ``milvus``); wrappers are backends around backends
(``cached``, ``reranked``, ``balanced``, ``federated``, ``multislice``, ``metered``) and compose in any order.
:func:`create_retrieval_backend` imports only the ones that it creates.
"""

from ragstack_common.search.base import RetrievalBackend, Wrapper
from ragstack_common.search.engine import Engine
from ragstack_common.search.factory import create_retrieval_backend, known_backends, register_backend
from ragstack_common.search.models import CorpusCount, Ranking, RetrievedChunk, SearchOutcome, SearchRequest
from ragstack_common.text.positions import Position

__all__ = [
    "CorpusCount",
    "Engine",
    "Position",
    "Ranking",
    "RetrievalBackend",
    "RetrievedChunk",
    "SearchOutcome",
    "SearchRequest",
    "Wrapper",
    "create_retrieval_backend",
    "known_backends",
    "register_backend",
]
