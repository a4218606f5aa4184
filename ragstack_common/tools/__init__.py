"""Tools for language models and other callers.

``registry`` holds tools and runs them, in Python and over HTTP; ``retriever`` searches a collection on any engine;
``schemas`` defines and checks its input; ``settings`` selects its collections.
"""

from ragstack_common.tools.registry import (
    DuplicateToolError,
    QueryFailedError,
    Registry,
    Tool,
    ToolError,
    ToolInput,
    ToolResult,
    UnknownToolError,
    answer,
    list_tools,
    run_tool,
)
from ragstack_common.tools.retriever import MilvusQueryTool, RetrieverTool, registry_from_env
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
