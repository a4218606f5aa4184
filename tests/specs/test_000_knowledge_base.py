"""The examples of the specification of the knowledge base, with this project's import paths."""

import json
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any, Dict, List, Optional  # noqa: UP035 - as the examples write them

import pytest

from ragstack_common.answers.agent import AgentConfig, KnowledgeAgent
from ragstack_common.answers.models.protocol import ModelEnd, ModelMessage, ModelPiece, ModelRequest, ModelResponse
from ragstack_common.answers.quote.extractive import ExtractiveProvider
from ragstack_common.embedding import HashedEmbedding
from ragstack_common.knowledge_base import KnowledgeBase, format_knowledge_context, retrieve_knowledge
from ragstack_local.files.uploads import select
from tests.ragstack_local.support import ragstack

chromadb = pytest.importorskip("chromadb")

from ragstack_local.collections.build import build  # noqa: E402 - after the extra is known to be there
from ragstack_local.collections.documents import BuildPlan  # noqa: E402 - the same

QUESTION = "What is the trimodal methodology?"

FILES = {
    "prev/v1/core/OVERVIEW.md": "# Overview\n\nAtlas began as a notebook. The trimodal methodology had no name.\n",
    "prev/v2/graph/KNOWLEDGE_GRAPH.md": "# Knowledge Graph\n\nAtlas handles knowledge graphs as nodes and edges.\n",
    "prev/v3/core/TRIMODAL_PRINCIPLES.md": "# Trimodal Methodology\n\nThe Atlas Trimodal Methodology is a framework of "
    "three modes: bottom up, top down and holistic.\n\n## Bottom up\n\nStart with the parts.\n",
    "v5/README.md": "# Atlas\n\nThe trimodal methodology is applied to knowledge graphs and agents.\n",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("atlas")
    for name, text in FILES.items():
        file = root / "src-markdown" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    plan = BuildPlan("atlas", "hashed")
    for collection in ("atlas_knowledge_base", "custom_collection"):
        build(select([root / "src-markdown"]).files, root / "store", collection, plan, HashedEmbedding())
    return root / "store"


@pytest.fixture(autouse=True)
def environment(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ATLAS_COLLECTION_NAME", "CHROMA_COLLECTION_NAME", "CHROMA_PERSIST_DIRECTORY", "EMBEDDING_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ATLAS_DB_PATH", str(store))


@pytest.fixture
def kb() -> Iterator[KnowledgeBase]:
    with KnowledgeBase() as made:
        yield made


def test_the_knowledge_base_is_created_and_queried() -> None:
    kb = KnowledgeBase(
        collection_name="atlas_knowledge_base",  # Optional, default value shown
        db_path=None,  # Optional, defaults to ~/atlas_chroma_db or environment variable
    )

    documents = kb.retrieve("What is the trimodal methodology?", n_results=5)
    of_version = kb.retrieve("What is the trimodal methodology?", n_results=5, version_filter="3")

    assert documents[0]["metadata"]["section_title"] == "Trimodal Methodology"
    assert {document["metadata"]["version"] for document in of_version} == {"3"}


def test_the_defaults_match_the_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ATLAS_DB_PATH")
    monkeypatch.setenv("HOME", str(tmp_path))

    by_default = KnowledgeBase()
    monkeypatch.setenv("ATLAS_DB_PATH", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("ATLAS_COLLECTION_NAME", "named")
    by_variables = KnowledgeBase()

    assert (by_default.collection_name, by_default.db_path) == (
        "atlas_knowledge_base",
        str(tmp_path / "atlas_chroma_db"),
    )
    assert (by_variables.collection_name, by_variables.db_path) == ("named", str(tmp_path / "elsewhere"))


def test_client_and_collection_are_attributes(tmp_path: Path) -> None:
    self = KnowledgeBase("new_collection", str(tmp_path / "new"))

    assert [collection.name for collection in self.chroma_client.list_collections()] == ["new_collection"]
    assert self.collection.count() == 0


def test_the_state_is_updated_with_the_documents() -> None:
    current_state: dict[str, Any] = {"messages": [], "context": {"other": 1}}

    updated_state = retrieve_knowledge(
        state=current_state,
        query="What is the trimodal methodology?",
        collection_name="atlas_knowledge_base",
        db_path=None,
    )

    assert updated_state["context"]["documents"][0]["metadata"]["version"] == "3"
    assert updated_state["context"]["other"] == 1


def test_retrieve_returns_the_same_order_as_the_retrieval_flow(kb: KnowledgeBase) -> None:
    self, query, n_results, version_filter = kb, QUESTION, 5, "3"

    def retrieve() -> list[dict[str, Any]]:
        where_clause: dict[Any, Any] = {}
        if version_filter:
            where_clause["version"] = version_filter
        results: Any = self.collection.query(
            query_texts=[query],
            n_results=n_results,
            where=where_clause or None,
        )
        documents = []
        for _i, (doc, metadata, distance) in enumerate(
            zip(results["documents"][0], results["metadatas"][0], results["distances"][0], strict=True)
        ):
            documents.append({"content": doc, "metadata": metadata, "relevance_score": 1.0 - distance})
        return documents

    ours, shown = kb.retrieve(query, n_results, version_filter), retrieve()

    assert [document["content"] for document in ours] == [document["content"] for document in shown]
    for document, other in zip(ours, shown, strict=True):
        assert document["relevance_score"] == pytest.approx(max(0.0, other["relevance_score"]), abs=1e-6)


def test_a_document_has_the_documented_format(kb: KnowledgeBase) -> None:
    document = kb.retrieve("trimodal framework of three modes", n_results=1)[0]

    assert document["content"].startswith("# Trimodal Methodology\n\nThe Atlas Trimodal Methodology is a framework")
    wanted = {
        "path": "src-markdown/prev/v3/core/TRIMODAL_PRINCIPLES.md",
        "source": "src-markdown/prev/v3/core/TRIMODAL_PRINCIPLES.md",
        "file_name": "TRIMODAL_PRINCIPLES.md",
        "section_title": "Trimodal Methodology",
        "version": "3",
        "chunk_size": len(document["content"]),
    }
    assert {name: document["metadata"][name] for name in wanted} == wanted
    assert 0.0 <= document["relevance_score"] <= 1.0


def test_other_attributes_can_be_filtered(kb: KnowledgeBase) -> None:
    query = QUESTION
    where_clause = {"section_title": "Trimodal Methodology"}

    docs = kb.retrieve(query, version_filter="3")
    by_title = kb.retrieve(query, where=where_clause)

    assert docs
    assert {document["metadata"]["section_title"] for document in by_title} == {"Trimodal Methodology"}


class Echo:
    """A model that answers with what it was asked."""

    name = model = "echo"
    quotes = False

    def generate(self, request: ModelRequest) -> ModelResponse:
        self.request = request
        return ModelResponse(f"I read {len(request.system_prompt)} characters", ModelEnd("end_turn", 1, 1, "echo"))

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        raise NotImplementedError


class SpecifiedAgent(KnowledgeAgent):
    """The methods of the specification on the attributes of the agent."""

    def process_message(self, message: str) -> str:
        self.messages.append({"role": "user", "content": message})

        # Retrieve relevant documents from the knowledge base
        documents = self.query_knowledge_base(message)

        # Create system message with context
        system_msg = self.system_prompt
        if documents:
            context_text = self.format_knowledge_context(documents)
            system_msg = system_msg + context_text

        # Generate response using the model provider
        model_request = ModelRequest(
            messages=[ModelMessage.user(msg["content"]) for msg in self.messages],
            system_prompt=system_msg,
            max_tokens=self.config.max_tokens,
        )

        response = self.provider.generate(model_request)
        return response.content

    def format_knowledge_context(self, documents: List[Dict[str, Any]]) -> str:  # type: ignore[override] # noqa: UP006
        if not documents:
            return ""

        context_text = "\n\n## Relevant Knowledge\n\n"

        # Use only the top 3 most relevant documents to avoid token limits
        for i, doc in enumerate(documents[:3]):
            source = doc["metadata"].get("source", "Unknown")
            content = doc["content"]
            context_text += f"### Document {i + 1}: {source}\n{content}\n\n"

        return context_text


def test_an_agent_answers_as_the_example_does(kb: KnowledgeBase) -> None:
    config = AgentConfig(max_tokens=100)
    specified, ours = (
        made(Echo(), kb, system_prompt="You are Atlas.", config=config) for made in (SpecifiedAgent, KnowledgeAgent)
    )

    answers = specified.process_message(QUESTION), ours.process_message(QUESTION)

    first, second = (agent.provider.request for agent in (specified, ours) if isinstance(agent.provider, Echo))
    assert answers[0] == answers[1]
    assert (second.messages, second.system_prompt, second.max_tokens) == (
        first.messages,
        first.system_prompt,
        100,
    )
    assert "### Document 3: " in second.system_prompt
    assert "### Document 4: " not in second.system_prompt


def test_the_provider_without_a_model_answers_the_request_of_the_example(kb: KnowledgeBase) -> None:
    specified = SpecifiedAgent(ExtractiveProvider(), kb, system_prompt="You are Atlas.")

    answer = specified.process_message(QUESTION)

    assert answer.splitlines()[0] == (
        '"The Atlas Trimodal Methodology is a framework of three modes: bottom up, top down and holistic." [1]'
    )


def test_the_prompt_of_an_agent_without_documents_is_unchanged() -> None:
    agent = KnowledgeAgent(Echo(), lambda _: [], system_prompt="You are Atlas.")

    agent.process_message(QUESTION)

    assert isinstance(agent.provider, Echo)
    assert agent.provider.request.system_prompt == "You are Atlas."
    assert agent.format_knowledge_context([]) == ""


def test_basic_retrieval_prints_titles_and_previews(capsys: pytest.CaptureFixture[str]) -> None:
    kb = KnowledgeBase()
    documents = kb.retrieve("How does Atlas handle knowledge graphs?")

    print(f"Found {len(documents)} relevant documents:")  # noqa: T201 - the example
    for i, doc in enumerate(documents):
        score = doc["relevance_score"]
        source = doc["metadata"]["source"]
        title = doc["metadata"]["section_title"]
        print(f"Document {i + 1}: {title} (from {source}) - Relevance: {score:.4f}")  # noqa: T201
        print(f"  Preview: {doc['content'][:100]}...\n")  # noqa: T201

    assert "Document 1: Knowledge Graph (from src-markdown/prev/v2/graph/KNOWLEDGE_GRAPH.md)" in capsys.readouterr().out


def test_each_version_can_be_searched(kb: KnowledgeBase) -> None:
    query = "Explain the trimodal methodology"

    found: dict[str, Optional[str]] = {}  # noqa: UP045 - as the example writes it
    for version in kb.get_versions():
        docs = kb.retrieve(query, n_results=1, version_filter=version)
        found[version] = docs[0]["metadata"]["source"] if docs else None

    assert found == {
        "1": "src-markdown/prev/v1/core/OVERVIEW.md",
        "2": "src-markdown/prev/v2/graph/KNOWLEDGE_GRAPH.md",
        "3": "src-markdown/prev/v3/core/TRIMODAL_PRINCIPLES.md",
        "5": "src-markdown/v5/README.md",
    }


def test_a_topic_can_be_searched(kb: KnowledgeBase) -> None:
    topic_docs = kb.search_by_topic("Knowledge Graph", n_results=3)

    shown = [f"- {doc['metadata']['section_title']} (version {doc['metadata']['version']})" for doc in topic_docs]
    assert shown[0] == "- Knowledge Graph (version 2)"
    assert len(shown) == 3


def _workflow(new: Callable[..., Any]) -> Any:
    from langgraph.graph import StateGraph  # noqa: PLC0415 - an extra

    State = Dict[str, Any]  # noqa: N806, UP006 - the example

    def process_query_node(state: Any) -> Any:
        return {**state, "processed": True}

    def generate_response_node(state: Any) -> Any:
        return {**state, "response": format_knowledge_context(state["context"]["documents"])}

    workflow = new(StateGraph, State)
    workflow.add_node("retrieve_context", retrieve_knowledge)
    workflow.add_node("process_query", process_query_node)
    workflow.add_node("generate_response", generate_response_node)
    workflow.add_edge("retrieve_context", "process_query")
    workflow.add_edge("process_query", "generate_response")
    return workflow


def test_a_graph_runs_with_a_state_and_an_entry_point() -> None:
    pytest.importorskip("langgraph")
    workflow = _workflow(lambda graph, state: graph(state))
    workflow.set_entry_point("retrieve_context")
    runnable = workflow.compile()

    initial_state = {"messages": [{"role": "user", "content": "What is the trimodal methodology?"}]}
    result = runnable.invoke(initial_state)

    assert result["messages"] == initial_state["messages"]
    assert result["processed"]
    assert "### Document 1: src-markdown/prev/v3/core/TRIMODAL_PRINCIPLES.md" in result["response"]


def test_langgraph_rejects_the_graph_of_the_example() -> None:
    pytest.importorskip("langgraph")

    with pytest.raises(TypeError, match="state_schema"):
        _workflow(lambda graph, _state: graph())
    with pytest.raises(ValueError, match="entrypoint"):
        _workflow(lambda graph, state: graph(state)).compile()


def test_the_command_line_takes_query_collection_and_db_path(store: Path, tmp_path: Path) -> None:
    # python main.py -m query -q "What is the trimodal methodology?" -c custom_collection --db-path custom_db_path
    custom_db_path = tmp_path / "custom_db_path"
    custom_db_path.symlink_to(store)

    done = ragstack(
        *("-m", "query", "-q", QUESTION, "-c", "custom_collection", "--db-path", "custom_db_path", "--json"),
        data=tmp_path,
    )
    spelt_out = ragstack(
        *("query", "--query", QUESTION, "--collection", "custom_collection", "--db-path", "custom_db_path", "--json"),
        data=tmp_path,
    )

    assert done.returncode == 0, done.stderr
    found = [result["source"] for result in json.loads(done.stdout)["results"]]
    assert found[0] == "src-markdown/prev/v3/core/TRIMODAL_PRINCIPLES.md"
    assert [result["source"] for result in json.loads(spelt_out.stdout)["results"]] == found


def test_a_database_that_cannot_be_opened_is_replaced_by_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no folder")

    kb = KnowledgeBase(db_path=str(tmp_path / "file"))

    assert "the knowledge base is in memory and empty" in capsys.readouterr().err
    assert kb.in_memory
    assert kb.retrieve("anything") == []
    assert kb.last_error is kb.fallback is not None
