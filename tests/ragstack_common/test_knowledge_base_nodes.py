"""The nodes, in graphs of the real LangGraph and called alone."""

import asyncio
import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from ragstack_common.knowledge_base import KnowledgeBase, aretrieve_knowledge, retrieve_context, retrieve_knowledge

pytest.importorskip("chromadb")
messages = pytest.importorskip("langchain_core.messages")

QUESTION = "What is the trimodal methodology?"


@pytest.fixture(autouse=True)
def knowledge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_DB_PATH", str(tmp_path / "store"))
    monkeypatch.delenv("ATLAS_COLLECTION_NAME", raising=False)
    for collection, text in (("atlas_knowledge_base", "The trimodal methodology."), ("other", "Another text.")):
        with KnowledgeBase(collection) as base:
            base.collection.add(ids=["a"], documents=[text], metadatas=[{"source": "a.md"}])


@pytest.mark.parametrize(
    "said",
    [
        [{"role": "user", "content": QUESTION}],
        [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}, ("user", QUESTION)],
        [messages.HumanMessage(QUESTION), messages.AIMessage("Let me see")],
        [messages.HumanMessage([{"type": "image_url", "image_url": "x"}, {"type": "text", "text": QUESTION}])],
    ],
    ids=["dict", "pair", "object", "blocks"],
)
def test_the_question_is_the_last_message_of_the_user(said: list[Any]) -> None:
    state = retrieve_knowledge({"messages": said})

    assert state["context"]["documents"][0]["relevance_score"] > 0.5
    assert state["messages"] == said


def test_query_and_names_override_the_messages_and_the_environment(tmp_path: Path) -> None:
    state = {"messages": [{"role": "user", "content": "ignored"}]}

    updated = retrieve_knowledge(state, query="text", collection_name="other", db_path=str(tmp_path / "store"))

    assert [document["content"] for document in updated["context"]["documents"]] == ["Another text."]


def test_the_rest_of_the_state_is_copied_unchanged() -> None:
    state = {"context": {"user": "Ada", "documents": ["old"]}, "step": 3, "messages": [("user", QUESTION)]}

    updated = retrieve_knowledge(state)

    assert (updated["step"], updated["context"]["user"]) == (3, "Ada")
    assert state["context"] == {"user": "Ada", "documents": ["old"]}


@pytest.mark.parametrize("said", [[], [{"role": "assistant", "content": "x"}], [("user", " ")], [object()], [None]])
def test_a_state_without_a_question_has_no_documents(said: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert retrieve_knowledge({"messages": said})["context"] == {"documents": []}
    assert "no question" in capsys.readouterr().err


def test_an_error_is_in_the_context_until_the_next_success(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")

    failed = retrieve_knowledge({"messages": [("user", QUESTION)]}, db_path=str(tmp_path / "file"))
    good = retrieve_knowledge(failed)

    assert failed["context"]["documents"] == []
    assert "File exists" in failed["context"]["retrieval_error"]
    assert "retrieval_error" not in good["context"]
    assert good["context"]["documents"]


def test_an_invalid_query_is_an_error_in_the_context() -> None:
    context = retrieve_context({}, query="x" * 20_001)["context"]

    assert "20001 characters" in context["retrieval_error"]


def test_a_graph_that_adds_messages_can_use_retrieve_context() -> None:
    graph = pytest.importorskip("langgraph.graph")

    class State(TypedDict):
        messages: Annotated[list[Any], operator.add]
        context: dict[str, Any]

    workflow = graph.StateGraph(State)
    workflow.add_node("retrieve_context", retrieve_context)
    workflow.add_edge(graph.START, "retrieve_context")

    result = workflow.compile().invoke({"messages": [("user", QUESTION)]})

    assert len(result["messages"]) == 1
    assert result["context"]["documents"][0]["content"] == "The trimodal methodology."


@pytest.mark.parametrize("node", [retrieve_knowledge, aretrieve_knowledge])
def test_an_asynchronous_graph_can_run_either_node(node: Any) -> None:
    graph = pytest.importorskip("langgraph.graph")
    workflow = graph.StateGraph(dict)
    workflow.add_node("retrieve_context", node)
    workflow.add_edge(graph.START, "retrieve_context")

    result = asyncio.run(workflow.compile().ainvoke({"messages": [messages.HumanMessage(QUESTION)]}))

    assert result["context"]["documents"][0]["content"] == "The trimodal methodology."
