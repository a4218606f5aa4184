"""LlamaIndex's retriever for knowledge bases, as an application uses it."""

import asyncio
from typing import Any

from lines import serve
from llama_index.retrievers.bedrock import AmazonKnowledgeBasesRetriever


def retrieve(question: str, **settings: Any) -> list[dict[str, Any]]:
    found = AmazonKnowledgeBasesRetriever(**settings).retrieve(question)
    return [{"text": node.text, "score": node.score, **node.metadata} for node in found]


def retrieve_asynchronously(question: str, **settings: Any) -> list[str]:
    found = asyncio.run(AmazonKnowledgeBasesRetriever(**settings).aretrieve(question))
    return [node.text for node in found]


serve(retrieve=retrieve, retrieve_asynchronously=retrieve_asynchronously)
