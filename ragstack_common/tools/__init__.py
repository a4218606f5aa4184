"""Tools for language models and other callers.

``registry`` holds tools and runs them, in Python and over HTTP; ``retriever`` searches the configured collections on
any engine; ``schemas`` defines and checks its input.
"""

from ragstack_common.search.engines.milvus.server import MilvusConfig
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
from ragstack_common.tools.retriever import (
    MilvusQueryTool,
    RetrieverSettings,
    RetrieverTool,
    SearchedCollection,
    registry_from_env,
)

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
