"""LangChain's classes for Amazon Bedrock, as an application uses them."""

from typing import Any

from langchain_aws import BedrockEmbeddings, BedrockRerank, ChatBedrockConverse
from langchain_aws.retrievers import AmazonKnowledgeBasesRetriever, agentic_retrieve
from langchain_aws.vectorstores.s3_vectors import AmazonS3Vectors
from langchain_core.documents import Document
from lines import serve


def retrieve(question: str, **settings: Any) -> list[dict[str, Any]]:
    found = AmazonKnowledgeBasesRetriever(**settings).invoke(question)
    return [{"text": document.page_content, **document.metadata} for document in found]


def embed(model: str, question: str, texts: list[str]) -> dict[str, Any]:
    embeddings = BedrockEmbeddings(model_id=model)
    return {"question": embeddings.embed_query(question), "texts": embeddings.embed_documents(texts)}


def rerank(model: str, question: str, texts: list[str], top: int) -> list[dict[str, Any]]:
    return BedrockRerank(model_arn=model, top_n=top).rerank(texts, question)


def chat(model: str, system: str, question: str) -> dict[str, Any]:
    answer = ChatBedrockConverse(model=model).invoke([("system", system), ("human", question)])
    return {"text": answer.text, "usage": answer.usage_metadata, "stop_reason": answer.response_metadata["stopReason"]}


def stream(model: str, question: str) -> list[str]:
    return [chunk.text for chunk in ChatBedrockConverse(model=model).stream([("human", question)])]


class Vectors:
    """A store of vectors, whose bucket exists."""

    def __init__(self, model: str, **settings: Any) -> None:
        self._store = AmazonS3Vectors(embedding=BedrockEmbeddings(model_id=model), **settings)

    def add(self, texts: dict[str, str], metadata: dict[str, dict[str, Any]]) -> list[str]:
        documents = [Document(text, id=name, metadata=metadata[name]) for name, text in texts.items()]
        return self._store.add_documents(documents)

    def search(self, question: str, k: int, **more: Any) -> list[dict[str, Any]]:
        found = self._store.similarity_search_with_score(question, k=k, **more)
        return [{"id": document.id, "text": document.page_content, "distance": score} for document, score in found]

    def retrieve(self, question: str, k: int) -> list[str]:
        return [document.id for document in self._store.as_retriever(search_kwargs={"k": k}).invoke(question)]

    def get(self, ids: list[str]) -> list[str]:
        return [document.page_content for document in self._store.get_by_ids(ids)]

    def delete(self, ids: list[str] | None) -> bool | None:
        return self._store.delete(ids)


def vectors(do: str, settings: dict[str, Any], **arguments: Any) -> Any:
    return getattr(Vectors(**settings), do)(**arguments)


serve(
    retrieve=retrieve, agentic=agentic_retrieve, embed=embed, rerank=rerank, chat=chat, stream=stream, vectors=vectors
)
