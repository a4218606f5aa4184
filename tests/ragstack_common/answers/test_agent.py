"""The agent of specification 000."""

from typing import Any

import pytest

from ragstack_common.answers.agent import KnowledgeAgent, format_knowledge_context, passages_in
from ragstack_common.answers.models.protocol import ModelMessage, ModelRequest, ModelResponse
from ragstack_common.answers.quote.extractive import ExtractiveProvider
from ragstack_common.core.errors import ModelThrottledError

LEAVE = {"content": "Parental leave is sixteen weeks.", "metadata": {"source": "leave.md"}, "relevance_score": 1.2}


class Failing(ExtractiveProvider):
    """Quotes, until it fails."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[ModelRequest] = []
        self.fails = False

    def generate(self, request: ModelRequest) -> ModelResponse:
        self.asked.append(request)
        if self.fails:
            raise ModelThrottledError("Too many requests")
        return super().generate(request)


def documents(_: str) -> list[dict[str, Any]]:
    return [LEAVE]


def test_an_agent_without_a_model_quotes_the_documents() -> None:
    agent = KnowledgeAgent(ExtractiveProvider(), documents)

    assert agent.process_message("How long is parental leave?") == '"Parental leave is sixteen weeks." [1]'


def test_earlier_messages_keep_their_roles() -> None:
    provider = Failing()
    agent = KnowledgeAgent(provider, documents)

    first = agent.process_message("How long is parental leave?")
    agent.process_message("How long?")

    assert provider.asked[1].messages == [
        ModelMessage.user("How long is parental leave?"),
        ModelMessage.assistant(first),
        ModelMessage.user("How long?"),
    ]


def test_an_unanswered_message_is_not_part_of_the_conversation() -> None:
    provider = Failing()
    agent = KnowledgeAgent(provider, documents)
    provider.fails = True

    with pytest.raises(ModelThrottledError):
        agent.process_message("How long is parental leave?")

    assert agent.messages == []


@pytest.mark.parametrize("prompt", ["", "You are Atlas."])
@pytest.mark.parametrize("count", range(5))
def test_the_documents_of_a_prompt_are_read_as_they_were_written(count: int, prompt: str) -> None:
    texts = [f"# Title {number}\n\nText {number}.\n\n## Section\n\nMore." for number in range(1, count + 1)]
    found = [{"content": text, "metadata": {"source": f"{text[8]}.md"}} for text in texts]

    passages = passages_in(f"{prompt}{format_knowledge_context(found)}".strip())

    assert [passage.chunk.content for passage in passages] == texts[:3]
    assert [passage.chunk.source for passage in passages] == ["1.md", "2.md", "3.md"][:count]
    assert [passage.number for passage in passages] == [1, 2, 3][:count]


def test_a_prompt_without_knowledge_has_no_documents() -> None:
    assert passages_in("You are Atlas. ### Document 1: none") == []
    assert passages_in("You are Atlas.\n\n## Relevant Knowledge\n\n") == []
