"""Chroma: the engine, and what the knowledge base and ``ragstack build`` need of it. Needs the extra ``chroma``."""

from ragstack_common.core.errors import needs_extra

with needs_extra("chroma", "Chroma"):
    import chromadb  # noqa: F401 - checked here for every module of this package
