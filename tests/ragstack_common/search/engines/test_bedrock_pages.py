"""The bedrock engine and distinct values on a knowledge base of more than one page."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from ragstack_common.search import RetrievedChunk, SearchRequest
from ragstack_common.search.engines.bedrock import BedrockBackend
from tests.local_bedrock.support import Bedrock, custom_identifier, text_document

CHUNKS = 230
SENTENCES = [f"Rule {number} of the house concerns door number {number} and its key." for number in range(CHUNKS)]
ONE_SENTENCE = {
    "chunkingConfiguration": {
        "chunkingStrategy": "FIXED_SIZE",
        "fixedSizeChunkingConfiguration": {"maxTokens": 20, "overlapPercentage": 1},
    }
}
QUERY = "What concerns the doors of the house?"


class Asked:
    """The Retrieve calls of a client, as they went out."""

    def __init__(self, client: Any) -> None:
        self.tokens: list[str | None] = []
        client.meta.events.register("provide-client-params.bedrock-agent-runtime.Retrieve", self._note)

    def _note(self, params: dict[str, Any], **_: Any) -> None:
        self.tokens.append(params.get("nextToken"))


@pytest.fixture(scope="module")
def base(bedrock: Bedrock) -> Iterator[str]:
    """One long document, and six short ones in two versions."""
    identifier = bedrock.knowledge_base("pages")
    source = bedrock.custom_source(identifier, vectorIngestionConfiguration=ONE_SENTENCE)
    short = [
        text_document(
            f"note-{n}", f"Note {n} is about the garden.", {"version": f"v{n % 3 + 8}", "tags": ["x", f"t{n}"]}
        )
        for n in range(6)
    ]
    source.ingested(text_document("house-rules", "\n\n".join(SENTENCES), {"version": "v10", "year": 2024}), *short)
    yield identifier
    bedrock.agent.delete_knowledge_base(knowledgeBaseId=identifier)


@pytest.fixture
def engine(bedrock: Bedrock, base: str) -> BedrockBackend:
    return BedrockBackend(base, client=bedrock.runtime, timeout_seconds=60)


def test_a_search_of_several_pages_repeats_no_chunk(engine: BedrockBackend, bedrock: Bedrock) -> None:
    asked = Asked(bedrock.runtime)

    outcome = asyncio.run(engine.search(SearchRequest(QUERY, top_k=1000)))

    scores = [chunk.score for chunk in outcome.chunks]
    assert {chunk.content for chunk in outcome.chunks} >= set(SENTENCES)
    assert len({chunk.chunk_id for chunk in outcome.chunks}) == len(outcome.chunks) == CHUNKS + 6
    assert scores == sorted(scores, reverse=True)
    assert outcome.complete
    assert len(asked.tokens) == len(set(asked.tokens)) == 3


def test_a_stream_is_the_ranking_of_a_search_and_asks_no_page_twice(engine: BedrockBackend, bedrock: Bedrock) -> None:
    ranking = asyncio.run(engine.retrieve(QUERY, top_k=CHUNKS + 6))
    asked = Asked(bedrock.runtime)

    async def streamed() -> list[RetrievedChunk]:
        return [chunk async for chunk in engine.stream(QUERY, page_size=50)]

    assert asyncio.run(streamed()) == ranking
    assert len(asked.tokens) == len(set(asked.tokens)) == 5


@pytest.mark.parametrize("search_type", ["HYBRID", "SEMANTIC"])
def test_a_stream_misses_nothing_while_documents_come_and_go(bedrock: Bedrock, search_type: str) -> None:
    source = bedrock.custom_source(bedrock.knowledge_base("changing"))
    words = ["door", "key", "house", "rule", "garden", "lock", "window", "roof"]
    documents = {
        f"note-{n}": " ".join(words[(n >> bit) % len(words)] for bit in range(6)) + f" {n}" for n in range(150)
    }
    batches = [list(documents.items())[start : start + 10] for start in range(0, len(documents), 10)]
    for batch in batches:
        source.ingested(*(text_document(name, text) for name, text in batch))
    engine = BedrockBackend(
        source.knowledge_base_id, client=bedrock.runtime, timeout_seconds=60, search_type=search_type
    )

    async def streamed() -> list[str]:
        found: list[str] = []
        async for chunk in engine.stream("the key of the garden door", page_size=37):
            found.append(str(chunk.metadata["x-amz-bedrock-kb-source-uri"]))
            if len(found) % 30 == 1:
                late = (text_document(f"late-{len(found)}-{n}", "key key garden") for n in range(10))
                source.ingested(*late)
                source.delete(custom_identifier(found[-1]))
                source.settled(custom_identifier(found[-1]))
        return found

    assert sorted(asyncio.run(streamed())) == sorted(documents)
