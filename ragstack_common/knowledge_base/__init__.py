"""A knowledge base in a Chroma collection: ask it, format what it says for a prompt, or make it a node of a graph.

Needs the extra ``chroma``; the nodes are plain functions, which LangGraph runs.
"""

from ragstack_common.errors import needs_extra
from ragstack_common.knowledge_base.prompt import format_knowledge_context
from ragstack_common.knowledge_base.settings import KnowledgeSettings

with needs_extra("chroma", "KnowledgeBase"):
    from ragstack_common.knowledge_base.knowledge import DEFAULT_RESULTS, KnowledgeBase
    from ragstack_common.knowledge_base.nodes import aretrieve_knowledge, retrieve_context, retrieve_knowledge

__all__ = [
    "DEFAULT_RESULTS",
    "KnowledgeBase",
    "KnowledgeSettings",
    "aretrieve_knowledge",
    "format_knowledge_context",
    "retrieve_context",
    "retrieve_knowledge",
]
