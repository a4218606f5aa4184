"""Reranking models of Amazon Bedrock."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.core.clients import retrieval_client
from ragstack_common.core.deadline import in_thread
from ragstack_common.core.errors import InvalidQueryError, ServiceUnavailableError
from ragstack_common.search.models import RetrievedChunk
from ragstack_common.search.rerank.chunks import by_score, reranked_text
from ragstack_common.settings.names import DEFAULT_RERANKING_MODEL

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent_runtime import AgentsforBedrockRuntimeClient

MAX_CHARACTERS: Final = 32_000
"""Maximum for the query and for each text. Source: bedrock-agent-runtime, RerankTextDocumentTextString."""


class BedrockReranker:
    """Calls the Rerank API; the process's role needs ``bedrock:Rerank`` and ``bedrock:InvokeModel`` on the model.

    Texts are cut at 32,000 characters; empty ones are not sent, and score 0.

    Args:
        model: The ARN of a reranking model; by default Cohere's in the client's Region.
        client: A boto3 client of bedrock-agent-runtime; by default the one for searches.
        timeout_seconds: Timeout of the default client.
    """

    name = "bedrock"
    max_chunks = 1_000  # source: bedrock-agent-runtime, RerankSourcesList

    def __init__(
        self,
        model: str | None = None,
        *,
        client: "AgentsforBedrockRuntimeClient | None" = None,
        timeout_seconds: float = 5.0,
    ) -> None:
        self._model = model
        self._given_client = client
        self._timeout_seconds = timeout_seconds

    async def rerank(self, query: str, chunks: Sequence[RetrievedChunk]) -> list[RetrievedChunk]:
        """Order chunks by the model's relevance scores."""
        if len(query) > MAX_CHARACTERS:
            raise InvalidQueryError(f"The query has {len(query)} characters; reranking takes {MAX_CHARACTERS}")
        texts = {number: reranked_text(chunk)[:MAX_CHARACTERS] for number, chunk in enumerate(chunks)}
        sent = {number: text for number, text in texts.items() if text.strip()}
        scores = dict.fromkeys(texts, 0.0)
        if sent:
            relevances = await in_thread(partial(self._relevances, query, list(sent.values())))
            scores.update(zip(sent, relevances, strict=True))
        return by_score(chunks, [scores[number] for number in texts], self.name)

    async def close(self) -> None:
        """Do nothing: the client is shared, or the caller's."""

    def _relevances(self, query: str, texts: Sequence[str]) -> list[float]:
        client = self._given_client or retrieval_client(self._timeout_seconds)
        found: dict[int, float] = {}
        request = self._request(client.meta.region_name, client.meta.partition, query, texts)
        while True:
            answer = client.rerank(**request)
            found.update((entry["index"], float(entry["relevanceScore"])) for entry in answer["results"])
            if not answer.get("nextToken"):
                break
            request["nextToken"] = answer["nextToken"]
        if sorted(found) != list(range(len(texts))):
            raise ServiceUnavailableError(f"The reranking model scored {len(found)} of {len(texts)} texts: try again")
        return [min(1.0, max(0.0, found[number])) for number in range(len(texts))]

    def _request(self, region: str, partition: str, query: str, texts: Sequence[str]) -> dict[str, Any]:
        arn = self._model or f"arn:{partition}:bedrock:{region}::foundation-model/{DEFAULT_RERANKING_MODEL}"
        return {
            "queries": [{"type": "TEXT", "textQuery": {"text": query}}],
            "sources": [
                {"type": "INLINE", "inlineDocumentSource": {"type": "TEXT", "textDocument": {"text": text}}}
                for text in texts
            ],
            "rerankingConfiguration": {
                "type": "BEDROCK_RERANKING_MODEL",
                "bedrockRerankingConfiguration": {
                    "modelConfiguration": {"modelArn": arn},
                    "numberOfResults": len(texts),
                },
            },
        }
