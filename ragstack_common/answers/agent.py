"""A conversation with a model about documents, as specification 000 describes it: the whole answer, unchecked.

For verified citations and documents that strangers may write, use :class:`ragstack_common.services.ask.AskService`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from ragstack_common.answers.models.protocol import ModelMessage, ModelProvider, ModelRequest, NumberedPassage
from ragstack_common.search import RetrievedChunk

MAX_DOCUMENTS: Final = 3
_SECTION: Final = "## Relevant Knowledge\n"
_HEADING: Final = "\n### Document {}: "
"""Source of all three: specification 000, "Context Formatting"."""

SYSTEM_PROMPT: Final = "You answer questions. If there is relevant knowledge below, answer from it."

Documents: TypeAlias = Sequence[Mapping[str, Any]]
"""``content``, ``metadata`` and ``relevance_score`` of each document, best first."""


class Knowledge(Protocol):
    """Implemented by :class:`ragstack_common.knowledge_base.KnowledgeBase`."""

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
    """Answers messages with a model and documents of a knowledge base. Not thread-safe.

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
        self.provider = provider
        self.knowledge = knowledge
        self.system_prompt = system_prompt
        self.config = config
        self.messages: list[dict[str, str]] = []

    def process_message(self, message: str) -> str:
        """Answer a message.

        Raises:
            GenerationError: The model failed; the conversation is unchanged.
        """
        documents = self.query_knowledge_base(message)
        system_msg = self.system_prompt
        if documents:
            system_msg += self.format_knowledge_context(documents)
        messages = [*self.messages, {"role": "user", "content": message}]
        response = self.provider.generate(
            ModelRequest(
                messages=[
                    # Converse accepts messages of the user and of the model in turn only.
                    (ModelMessage.assistant if each["role"] == "assistant" else ModelMessage.user)(each["content"])
                    for each in messages
                ],
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
    passages: list[NumberedPassage] = []
    _, found, rest = rest.partition(_HEADING.format(1))
    while found:
        number = len(passages) + 1
        document, found, rest = rest.partition(_HEADING.format(number + 1))
        source, _, content = document.partition("\n")
        chunk = RetrievedChunk(content=content.strip(), score=0.0, source=source.strip())
        passages.append(NumberedPassage(number, chunk))
    return passages
