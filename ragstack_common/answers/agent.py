"""A conversation with a model about documents, as specification 000 describes it: the whole answer, unchecked.

For verified citations and documents that strangers may write, use :class:`ragstack_common.services.ask.AskService`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from ragstack_common.answers.models.protocol import ModelMessage, ModelProvider, ModelRequest, NumberedPassage
from ragstack_common.search import RetrievedChunk

MAX_DOCUMENTS: Final = 3
"""Keeps the prompt small. Source: specification 000."""

_SECTION: Final = "## Relevant Knowledge\n"
_HEADING: Final = "\n### Document {}: "
"""Source of both: specification 000, "Context Formatting"."""

SYSTEM_PROMPT: Final = "You answer questions. If there is relevant knowledge below, answer from it."

Documents: TypeAlias = Sequence[Mapping[str, Any]]
"""``content``, ``metadata`` and ``relevance_score`` of each document, best first."""


class Knowledge(Protocol):
    """What :class:`ragstack_common.knowledge_base.KnowledgeBase` offers."""

    def retrieve(self, query: str) -> Documents:
        """Return the documents about a query."""
        ...


@dataclass(frozen=True)
class AgentConfig:
    """Settings of an agent.

    Attributes:
        max_tokens: Maximum length of an answer; None leaves the choice to the model.
    """

    max_tokens: int | None = 1024


class KnowledgeAgent:
    """Answers messages with a model and what a knowledge base has about them. Not thread-safe.

    Attributes:
        messages: The conversation, as ``{"role": "user" or "assistant", "content": text}``.
    """

    def __init__(
        self,
        provider: ModelProvider,
        knowledge: Knowledge | Callable[[str], Documents],
        *,
        system_prompt: str = SYSTEM_PROMPT,
        config: AgentConfig = AgentConfig(),
    ) -> None:
        """Begin a conversation."""
        self.provider = provider
        self.knowledge = knowledge
        self.system_prompt = system_prompt
        self.config = config
        self.messages: list[dict[str, str]] = []

    def process_message(self, message: str) -> str:
        """Answer a message. If that fails, the conversation is as before.

        The messages keep their roles: Bedrock's Converse accepts the user's and the model's in turn only.

        Raises:
            GenerationError: The model failed.
        """
        documents = self.query_knowledge_base(message)
        system_msg = self.system_prompt
        if documents:
            system_msg += self.format_knowledge_context(documents)
        messages = [*self.messages, {"role": "user", "content": message}]
        response = self.provider.generate(
            ModelRequest(
                messages=[_message(each) for each in messages],
                system_prompt=system_msg,
                max_tokens=self.config.max_tokens,
            )
        )
        self.messages = [*messages, {"role": "assistant", "content": response.content}]
        return response.content

    def query_knowledge_base(self, message: str) -> list[dict[str, Any]]:
        """Return the documents about a message, best first."""
        retrieve = self.knowledge if callable(self.knowledge) else self.knowledge.retrieve
        return [dict(document) for document in retrieve(message)]

    def format_knowledge_context(self, documents: Documents) -> str:
        """Format documents for the system prompt: see :func:`format_knowledge_context`."""
        return format_knowledge_context(documents)


def format_knowledge_context(documents: Documents) -> str:
    """Format documents for a system prompt.

    Returns:
        A section with the first three documents, each under its source; empty if there are none.
    """
    if not documents:
        return ""
    text = f"\n\n{_SECTION}"
    for number, document in enumerate(documents[:MAX_DOCUMENTS], start=1):
        source = document["metadata"].get("source", "Unknown")
        text += f"{_HEADING.format(number)}{source}\n{document['content']}\n"
    return f"{text}\n"


def passages_in(system_prompt: str) -> list[NumberedPassage]:
    """Return the documents of a prompt's section of relevant knowledge; none if it has no such section.

    A document that itself contains the heading of the next number is read as two.
    """
    _, _, rest = system_prompt.partition(_SECTION)
    documents = []
    number = 1
    _, found, rest = rest.partition(_HEADING.format(number))
    while found:
        number += 1
        document, found, rest = rest.partition(_HEADING.format(number))
        documents.append(document)
    return [_passage(number, document) for number, document in enumerate(documents, start=1)]


def _passage(number: int, document: str) -> NumberedPassage:
    source, _, content = document.partition("\n")
    return NumberedPassage(number, RetrievedChunk(content=content.strip(), score=0.0, source=source.strip()))


def _message(message: Mapping[str, str]) -> ModelMessage:
    content = message["content"]
    return ModelMessage.assistant(content) if message["role"] == "assistant" else ModelMessage.user(content)
