"""What RAGStack's functions, command line and programs share.

:data:`PUBLIC` names the modules for users; the names in their ``__all__`` stay. Everything else is internal: its
folders are layers (``pyproject.toml`` has their order), and ``CONTRIBUTING.md`` says what belongs in each.
"""

from typing import Final

DISTRIBUTION: Final = "ragstack-kb"
"""Name on the package index, where ``ragstack`` is another project. Messages that say what to install use it."""

__version__ = "0.1.0"

PUBLIC: Final = (
    "ragstack_common.shortcuts",
    "ragstack_common.search",
    "ragstack_common.search.engines.milvus.backend",
    "ragstack_common.search.tracing",
    "ragstack_common.multislice_retriever",
    "ragstack_common.reranking",
    "ragstack_common.knowledge_base",
    "ragstack_common.ingestion",
    "ragstack_common.tools",
)
"""The modules for users: searches and answers in a line, engines, and the systems of the specifications."""
