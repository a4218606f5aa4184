"""Model servers that run on this machine."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from ragstack_local.errors import StackError
from ragstack_local.stack.model_servers import ModelServer, chosen_server, running_servers
from tests.support.language_model import LanguageModel, language_model
from tests.support.ports import free_ports


@pytest.fixture
def server() -> Iterator[LanguageModel]:
    with language_model() as model:
        yield model


def port_of(server: LanguageModel) -> int:
    return urlsplit(server.url).port or 0


def test_a_running_server_is_found_with_the_models_that_answer(server: LanguageModel) -> None:
    server.says(models=("nomic-embed-text", "qwen3:8b"))

    found = running_servers([("Ollama", port_of(server)), ("LM Studio", free_ports(1)[0])])

    assert found == [ModelServer("Ollama", server.url, ("qwen3:8b",))]


@pytest.mark.parametrize("changes", [{"models": ()}, {"models": ("bge-m3",)}])
def test_a_server_without_a_model_that_answers_does_not_count(
    server: LanguageModel, changes: dict[str, tuple[str, ...]]
) -> None:
    server.says(**changes)

    assert running_servers([("Ollama", port_of(server))]) == []


def test_the_first_model_or_the_named_one_is_chosen() -> None:
    servers = [
        ModelServer("Ollama", "http://a/v1", ("one", "two")),
        ModelServer("llama.cpp", "http://b/v1", ("three",)),
    ]

    assert chosen_server("auto", servers) == ("http://a/v1", "one")
    assert chosen_server("three", servers) == ("http://b/v1", "three")
    with pytest.raises(StackError, match="choose one, two, three"):
        chosen_server("four", servers)
    with pytest.raises(StackError, match="start one"):
        chosen_server("auto", [])
