"""LangChain's classes for Amazon Bedrock, as an application uses them."""

from typing import Any

from langchain_aws import BedrockEmbeddings, BedrockRerank, ChatBedrockConverse
from langchain_aws.retrievers import AmazonKnowledgeBasesRetriever
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


serve(retrieve=retrieve, embed=embed, rerank=rerank, chat=chat, stream=stream)
