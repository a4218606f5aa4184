"""The knowledge base on a real store; tests/specs has the examples of its specification."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.core.errors import (
    CollectionNotFoundError,
    InvalidFilterError,
    InvalidQueryError,
)
from ragstack_common.embedding import HashedEmbedding
from ragstack_common.knowledge_base import KnowledgeBase, KnowledgeSettings, format_knowledge_context

chromadb = pytest.importorskip("chromadb")

TEXTS = {
    "modes": "The trimodal methodology joins three modes: bottom up, top down and holistic.",
    "graph": "A knowledge graph holds entities as nodes and their relationships as edges.",
    "cafeteria": "The cafeteria serves lunch from eleven thirty until two.",
}


def metadata(name: str, version: Any, **more: Any) -> dict[str, Any]:
    return {"source": f"{name}.md", "section_title": name.title(), "version": version, **more}


@pytest.fixture
def base(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase("handbook", tmp_path, environment={}) as made:
        made.collection.add(
            ids=list(TEXTS),
            documents=list(TEXTS.values()),
            metadatas=[metadata("modes", "3"), metadata("graph", "10"), metadata("cafeteria", 2)],
        )
        yield made


def sources(documents: list[dict[str, Any]]) -> list[str]:
    return [document["metadata"]["source"] for document in documents]


@pytest.mark.parametrize("options", [{}, {"hybrid": True}, {"rerank": True}, {"neighbours": 2}])
def test_every_search_option_finds_the_answer_first(base: KnowledgeBase, options: dict[str, Any]) -> None:
    assert sources(base.retrieve("What is a knowledge graph?", **options))[0] == "graph.md"


def test_versions_of_any_type_are_sorted_as_numbers(base: KnowledgeBase) -> None:
    assert base.get_versions() == ["2", "3", "10"]


@pytest.mark.parametrize(("version", "name"), [("3", "modes.md"), ("10", "graph.md"), ("2", "cafeteria.md")])
def test_a_version_can_be_stored_as_a_text_or_a_number(base: KnowledgeBase, version: str, name: str) -> None:
    assert sources(base.retrieve("methodology", version_filter=version)) == [name]


def test_where_filters_and_version_must_all_match(base: KnowledgeBase) -> None:
    found = base.retrieve("a", 5, "3", where={"section_title": "Modes"}, filters={"source": {"$ne": "graph.md"}})

    assert sources(found) == ["modes.md"]


def test_chunks_of_another_client_are_found_at_once(base: KnowledgeBase, tmp_path: Path) -> None:
    base.retrieve("quokka", hybrid=True)
    with KnowledgeBase("handbook", tmp_path, environment={}) as other:
        other.collection.add(ids=["q"], documents=["the quokka"], metadatas=[metadata("quokka", "4")])

    assert sources(base.retrieve("quokka", 1)) == ["quokka.md"]
    assert sources(base.retrieve("quokka", 1, hybrid=True)) == ["quokka.md"]
    assert base.get_versions() == ["2", "3", "4", "10"]


def test_last_error_separates_a_failure_from_an_empty_result(
    base: KnowledgeBase, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = base.retrieve("secret words", filters={"x": {"$regex": "y"}})
    error = base.last_error
    empty = base.retrieve("nothing", version_filter="99")

    assert failed == empty == []
    assert isinstance(error, InvalidFilterError)
    assert base.last_error is None
    assert capsys.readouterr().err == f"Error retrieving from knowledge base: {error}\nQuery was: secret words...\n"


def test_warnings_go_where_the_caller_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []

    with KnowledgeBase("empty", tmp_path, environment={}, warn=said.append) as base:
        base.retrieve("secret " * 20, n_results=0)
        base.retrieve("anything")

    assert said[0].startswith("Error retrieving from knowledge base: top_k")
    assert said[1:] == [
        f"Query was: {('secret ' * 20)[:50]}...",
        "Warning: the collection empty is empty: build it first",
    ]
    assert "".join(capsys.readouterr()) == ""


def test_a_deleted_collection_is_an_error(base: KnowledgeBase) -> None:
    base.chroma_client.delete_collection("handbook")

    assert base.retrieve("a") == []
    assert isinstance(base.last_error, CollectionNotFoundError)
    assert base.get_versions() == []
    assert isinstance(base.last_error, CollectionNotFoundError)


def test_search_raises_errors(base: KnowledgeBase) -> None:
    with pytest.raises(InvalidQueryError, match="empty"):
        base.search(" ")
    with pytest.raises(InvalidQueryError, match="top_k"):
        base.search("a", 0)
    with pytest.raises(InvalidQueryError, match="neighbours"):
        base.search("a", neighbours=-1)


def test_an_empty_collection_finds_nothing_and_prints_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with KnowledgeBase("empty", tmp_path, environment={}) as base:
        assert base.retrieve("anything") == []
        assert base.retrieve("anything", hybrid=True, rerank=True, neighbours=1) == []
        assert base.get_versions() == []
        assert base.last_error is None

    assert "Warning: the collection empty is empty: build it first\n" in capsys.readouterr().err


def test_chunks_may_lack_text_and_metadata(tmp_path: Path) -> None:
    with KnowledgeBase("bare", tmp_path, environment={}) as base:
        base.collection.add(ids=["x"], embeddings=HashedEmbedding().embed(["odd"]))

        (document,) = base.retrieve("odd", neighbours=1, rerank=True, hybrid=True)

        assert (document["content"], document["metadata"]) == ("", {})
        assert base.get_versions() == []


def test_a_damaged_folder_is_replaced_by_memory_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "chroma.sqlite3").write_bytes(b"no database" * 1000)

    with KnowledgeBase("fallback", tmp_path, environment={}) as base:
        base.collection.add(ids=["a"], documents=["the quokka"], metadatas=[{"version": "1"}])
        found = base.retrieve("quokka", hybrid=True)

    assert base.in_memory
    assert [document["content"] for document in found] == ["the quokka"]
    assert "so the knowledge base is in memory and empty" in capsys.readouterr().err


@pytest.mark.parametrize("settings", [None, chromadb.Settings(anonymized_telemetry=False, allow_reset=True)])
def test_a_folder_that_the_program_has_open_is_shared(tmp_path: Path, settings: Any) -> None:
    with (
        chromadb.PersistentClient(path=str(tmp_path), settings=settings) as client,
        KnowledgeBase("shared", tmp_path, environment={}) as base,
    ):
        collection = client.get_or_create_collection(name="shared", embedding_function=None)
        base.collection.add(ids=["a"], documents=["the quokka"], metadatas=[{"version": "1"}])

        assert base.fallback is None
        assert collection.get()["documents"] == ["the quokka"]
        assert [document["content"] for document in base.retrieve("quokka")] == ["the quokka"]


def test_a_program_can_open_the_folder_of_a_knowledge_base(tmp_path: Path) -> None:
    with KnowledgeBase("shared", tmp_path, environment={}) as base:
        base.collection.add(ids=["a"], documents=["the quokka"], metadatas=[{"version": "1"}])
        base.retrieve("quokka")
        with chromadb.PersistentClient(path=base.db_path) as client:
            found = client.get_or_create_collection(name="shared").count()
            client.get_collection("shared", embedding_function=None).delete(ids=["a"])

        assert found == 1
        assert base.retrieve("quokka") == []


def test_a_relative_path_means_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()

    monkeypatch.chdir(tmp_path / "first")
    with KnowledgeBase("notes", "store", environment={}) as first:
        first.collection.add(ids=["a"], documents=["the quokka"], metadatas=[{"version": "1"}])
        monkeypatch.chdir(tmp_path / "second")
        with KnowledgeBase("notes", "store", environment={}) as second:
            found = second.retrieve("quokka")
        remembered = first.retrieve("quokka")

    assert found == []
    assert [document["content"] for document in remembered] == ["the quokka"]
    assert first.db_path == str(tmp_path / "first/store")


@pytest.mark.parametrize(
    ("environment", "settings"),
    [
        ({}, KnowledgeSettings(collection_name="atlas_knowledge_base", db_path="~/atlas_chroma_db")),
        ({"CHROMA_COLLECTION_NAME": "blert_1000", "CHROMA_PERSIST_DIRECTORY": "/data/chroma_db"},
         KnowledgeSettings(collection_name="blert_1000", db_path="/data/chroma_db")),
        ({"ATLAS_COLLECTION_NAME": "a", "CHROMA_COLLECTION_NAME": "b", "ATLAS_DB_PATH": "c",
          "CHROMA_PERSIST_DIRECTORY": "d", "EMBEDDING_MODEL": "hashed"},
         KnowledgeSettings(collection_name="a", db_path="c", embedding="hashed")),
        ({"ATLAS_COLLECTION_NAME": " ", "CHROMA_COLLECTION_NAME": "b"}, KnowledgeSettings(collection_name="b")),
    ],
)  # fmt: skip
def test_the_settings_come_from_the_environment(environment: dict[str, str], settings: KnowledgeSettings) -> None:
    assert KnowledgeSettings.from_env(environment) == settings


def test_the_folder_of_a_model_is_an_embedding(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").touch()

    assert KnowledgeSettings.from_env({"EMBEDDING_MODEL": str(tmp_path)}).embedding == f"onnx:{tmp_path}"


def test_a_document_without_a_source_has_the_source_unknown() -> None:
    text = format_knowledge_context([{"content": "x", "metadata": {}}])

    assert text == "\n\n## Relevant Knowledge\n\n### Document 1: Unknown\nx\n\n"


@pytest.mark.parametrize("space", ["cosine", "l2", "ip"])
def test_a_relevance_score_is_0_to_1_in_the_order_of_every_distance(tmp_path: Path, space: str) -> None:
    embedding = HashedEmbedding()
    texts = [*TEXTS.values(), *(f"The bus number {number} runs on day {number}." for number in range(20))]
    with chromadb.PersistentClient(tmp_path) as client:
        collection = client.create_collection("own", metadata={"hnsw:space": space}, embedding_function=None)
        collection.add(ids=[str(n) for n in range(len(texts))], documents=texts, embeddings=embedding.embed(texts))
        found = collection.query(query_embeddings=[embedding.embed_query("knowledge graph").tolist()], n_results=23)
    distances = dict(zip(found["documents"][0], found["distances"][0], strict=True))
    as_specified = {text: 1.0 - distance for text, distance in distances.items()}

    with KnowledgeBase("own", tmp_path, embedding=embedding, environment={}) as base:
        scores = {document["content"]: document["relevance_score"] for document in base.retrieve("knowledge graph", 23)}

    assert all(0.0 <= score <= 1.0 for score in scores.values())
    assert [round(as_specified[text], 5) for text in scores] == sorted(
        (round(score, 5) for score in as_specified.values()), reverse=True
    )
    if space == "l2":
        assert min(as_specified.values()) < 0
        assert scores == pytest.approx({text: 1 / (1 + distance) for text, distance in distances.items()})
    else:
        assert scores == pytest.approx({text: max(0.0, score) for text, score in as_specified.items()}, abs=1e-6)
