"""One-line searches and answers."""

from pathlib import Path

import pytest

from ragstack_common.core.deadline import wait_for
from ragstack_common.core.errors import ConfigurationError, InvalidRequestError
from ragstack_common.search import create_retrieval_backend
from ragstack_common.shortcuts import ask, search

pytest.importorskip("chromadb")

QUESTION = "How long is parental leave?"


@pytest.fixture
def handbook(tmp_path: Path) -> str:
    """A connection string of a collection."""

    async def fill() -> None:
        config = {"type": "chroma", "path": str(tmp_path / "chroma"), "collection_name": "handbook"}
        async with create_retrieval_backend(config) as backend:
            await backend.index(
                [
                    {"id": "1", "content": "Parental leave is twenty weeks.", "metadata": {"corpus": "people"}},
                    {"id": "2", "content": "Lunch is at noon.", "metadata": {"corpus": "office"}},
                ]
            )

    wait_for(fill())
    return f"chroma://{tmp_path}/chroma#handbook"


def test_a_search_and_a_question_take_one_line_each(handbook: str) -> None:
    assert search(QUESTION, engine=handbook).results[0].content == "Parental leave is twenty weeks."
    assert ask(QUESTION, engine=handbook).answer == '"Parental leave is twenty weeks." [1]'


def test_options_are_members_of_the_request(handbook: str) -> None:
    found = search(QUESTION, engine=handbook, corpus_filter="office", top_k=1).results

    assert [result.content for result in found] == ["Lunch is at noon."]
    with pytest.raises(InvalidRequestError, match="top_k: "):
        search(QUESTION, engine=handbook, top_k=0)
    with pytest.raises(InvalidRequestError, match="topk: Extra inputs"):
        ask(QUESTION, engine=handbook, topk=3)


def test_an_engine_is_a_configuration_too(handbook: str, tmp_path: Path) -> None:
    config = {"type": "chroma", "path": str(tmp_path / "chroma"), "collection_name": "handbook"}

    assert search(QUESTION, engine=config).results
    with pytest.raises(ConfigurationError, match='has no "type"'):
        search(QUESTION, engine={"path": "chroma"})


def test_the_environment_names_the_engine_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KNOWLEDGE_BASE_ID", raising=False)

    with pytest.raises(ConfigurationError, match="KNOWLEDGE_BASE_ID"):
        search(QUESTION)
