"""LlamaIndex's retriever for knowledge bases and its store of vectors, as an application uses them."""

import asyncio
from typing import Any

from lines import serve
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters, VectorStoreQuery
from llama_index.retrievers.bedrock import AmazonKnowledgeBasesRetriever
from llama_index.vector_stores.s3 import S3VectorStore


def retrieve(question: str, **settings: Any) -> list[dict[str, Any]]:
    found = AmazonKnowledgeBasesRetriever(**settings).retrieve(question)
    return [{"text": node.text, "score": node.score, **node.metadata} for node in found]


def retrieve_asynchronously(question: str, **settings: Any) -> list[str]:
    found = asyncio.run(AmazonKnowledgeBasesRetriever(**settings).aretrieve(question))
    return [node.text for node in found]


def create_index(bucket: str, index: str, dimension: int) -> None:
    S3VectorStore.create_index_from_bucket(bucket, index, dimension)


def add(bucket: str, index: str, texts: dict[str, str], vectors: dict[str, list[float]], legs: dict[str, int]) -> Any:
    nodes = [
        TextNode(id_=name, text=text, embedding=vectors[name], metadata={"legs": legs[name]})
        for name, text in texts.items()
    ]
    return S3VectorStore(index, bucket).add(nodes)


def query(bucket: str, index: str, vector: list[float], k: int, filters: list[dict[str, Any]]) -> Any:
    asked = MetadataFilters(filters=[MetadataFilter(**each) for each in filters]) if filters else None
    found = S3VectorStore(index, bucket).query(
        VectorStoreQuery(query_embedding=vector, similarity_top_k=k, filters=asked)
    )
    return {"ids": found.ids, "texts": [node.text for node in found.nodes], "similarities": found.similarities}


def remove(bucket: str, index: str, ids: list[str]) -> list[str]:
    store = S3VectorStore(index, bucket)
    store.delete_nodes(ids)
    return [node.id_ for node in store.get_nodes(["cheetah", "whale", "snail"])]


serve(
    retrieve=retrieve,
    retrieve_asynchronously=retrieve_asynchronously,
    create_index=create_index,
    add=add,
    query=query,
    remove=remove,
)
