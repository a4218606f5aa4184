"""Retrieved documents as a part of a prompt."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

DOCUMENTS_IN_PROMPT: Final = 3
"""Source: the specification, so that the prompt stays within the model's limit."""


def format_knowledge_context(documents: Sequence[Mapping[str, Any]]) -> str:
    """Format the most relevant documents for a system prompt.

    Args:
        documents: As :meth:`KnowledgeBase.retrieve` returns them, best first.

    Returns:
        A section with the first three, each under its source; an empty text of none.
    """
    if not documents:
        return ""
    text = "\n\n## Relevant Knowledge\n\n"
    for number, document in enumerate(documents[:DOCUMENTS_IN_PROMPT], start=1):
        source = document["metadata"].get("source", "Unknown")
        text += f"### Document {number}: {source}\n{document['content']}\n\n"
    return text
