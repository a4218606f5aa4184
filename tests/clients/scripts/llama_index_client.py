"""LlamaIndex's retriever for knowledge bases, as an application uses it."""

from typing import Any

from lines import serve
from llama_index.retrievers.bedrock import AmazonKnowledgeBasesRetriever


def retrieve(question: str, **settings: Any) -> list[dict[str, Any]]:
    found = AmazonKnowledgeBasesRetriever(**settings).retrieve(question)
    return [{"text": node.text, "score": node.score, **node.metadata} for node in found]


serve(retrieve=retrieve)
