"""Tools for language models and other callers: a registry, the retriever, and both over HTTP.

``registry`` holds tools and runs them; ``retriever`` searches a collection on any engine; ``schemas`` says what it
takes; ``settings`` which collections there are; ``http`` answers ``GET /tools`` and ``POST /tools/{name}``.
"""

from ragstack_common.tools.http import answer, list_tools, run_tool
from ragstack_common.tools.registry import (
    DuplicateToolError,
    Registry,
    Tool,
    ToolError,
    ToolInput,
    ToolResult,
    UnknownToolError,
)
from ragstack_common.tools.retriever import MilvusQueryTool, QueryFailedError, RetrieverTool, registry_from_env
from ragstack_common.tools.settings import MilvusConfig, RetrieverSettings, SearchedCollection

__all__ = [
    "DuplicateToolError",
    "MilvusConfig",
    "MilvusQueryTool",
    "QueryFailedError",
    "Registry",
    "RetrieverSettings",
    "RetrieverTool",
    "SearchedCollection",
    "Tool",
    "ToolError",
    "ToolInput",
    "ToolResult",
    "UnknownToolError",
    "answer",
    "list_tools",
    "registry_from_env",
    "run_tool",
]
