"""Run the knowledge base as a node of a graph."""

from functools import partial
from typing import Any

from langgraph.graph import END, START, StateGraph

from ragstack_common.embedding import HashedEmbedding
from ragstack_common.knowledge_base import KnowledgeBase, retrieve_knowledge

base = KnowledgeBase("handbook", "store", embedding=HashedEmbedding(), environment={})
base.collection.add(ids=["leave"], documents=["Employees have thirty days of leave."], metadatas=[{"source": "l.md"}])

graph = StateGraph(dict[str, Any])  # type: ignore[type-var]  # the specification's state, which LangGraph runs
graph.add_node("retrieve", partial(retrieve_knowledge, collection_name="handbook", db_path="store"))
graph.add_edge(START, "retrieve")
graph.add_edge("retrieve", END)
result = graph.compile().invoke({"messages": [{"role": "user", "content": "How many days of leave?"}]})
assert "thirty days" in str(result["context"]["documents"]), result
