"""The client of bedrock-agent, kept to a rate of calls that all functions share."""

from typing import TYPE_CHECKING, Any

from ragstack_common.registry.call_rate import CallRate

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent import AgentsforBedrockClient

PACED = (
    "delete_knowledge_base_documents",
    "get_knowledge_base_documents",
    "ingest_knowledge_base_documents",
    "list_knowledge_base_documents",
)
"""Five calls a second of each, for the whole account. Source: quotas of Amazon Bedrock Knowledge Bases."""


class PacedAgent:
    """Waits its turn before each of these calls, repetitions included; passes every other on as it is."""

    def __init__(self, agent: "AgentsforBedrockClient", rate: CallRate) -> None:
        """Bind a client to a rate."""
        self._agent = agent
        self._rate = rate

    def __getattr__(self, name: str) -> Any:
        """Return the client's own method, behind its turn where it has a quota."""
        method = getattr(self._agent, name)
        if name not in PACED:
            return method

        def in_turn(**parameters: Any) -> Any:
            self._rate.wait(name)
            return method(**parameters)

        return in_turn
