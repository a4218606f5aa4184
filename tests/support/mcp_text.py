"""The text that a tool of the Model Context Protocol returns."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_types import CallToolResult


def text_of(result: "CallToolResult") -> str:
    """Return the text of a result, which has nothing else for the model."""
    (content,) = result.content
    assert content.type == "text"
    return content.text
