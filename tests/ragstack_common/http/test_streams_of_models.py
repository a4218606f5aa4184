"""Streams from a model to a client, over every socket in between: the server of answers, the local Bedrock, a model."""

import socket
import threading
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest

from local_bedrock.server import running
from ragstack_common.answers.factory import provider_from
from ragstack_common.http.asgi import create_app
from ragstack_common.services.ask import AskService
from ragstack_common.services.search import QueryService
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.settings.search import QuerySettings
from tests.ragstack_common.http.test_asgi import request_of
from tests.support.asgi_server import asgi_server
from tests.support.backends import Shelf, chunk
from tests.support.callers import open_callers
from tests.support.language_model import LanguageModel
from tests.support.waiting import eventually

CANCEL = chunk("a", 0.9, content="Press Cancel.", source="s3://documents/a.md", relevance=0.9)


@pytest.fixture(scope="module")
def client(model: LanguageModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with running(tmp_path_factory.mktemp("bedrock"), llm_url=model.url, llm_model="small-model") as bedrock:
        yield boto3.client(
            "bedrock-runtime",
            endpoint_url=bedrock,
            region_name="eu-west-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )


@pytest.fixture(scope="module")
def url(client: Any) -> Iterator[str]:
    """The server of answers, which searches one document."""
    settings = AnswerSettings(answer_model="local.small-model")
    searches = QueryService(QuerySettings(knowledge_base_id="KB12345678"), Shelf(CANCEL))
    service = AskService(settings, searches, provider_from(settings, client))
    with asgi_server(create_app(lambda: service, open_callers)) as url:
        yield url


@pytest.fixture
def released(model: LanguageModel) -> Iterator[threading.Event]:
    """Holds the model back after its first piece, until it is set."""
    event = threading.Event()
    yield event
    event.set()
    model.says()


def received(client: socket.socket) -> bytes:
    part = client.recv(65_536)
    assert part, "the stream ended"
    return part


def test_each_piece_of_a_slow_model_comes_at_once(url: str, model: LanguageModel, released: threading.Event) -> None:
    model.says(pieces=("Press Cancel [1]. ", "Then wait."), held=released)

    with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0)) as client:
        client.sendall(request_of("/api/ask/stream").replace(b"Host", b"Connection: close\r\nHost", 1))
        early = b""
        while b"event: token" not in early:
            early += received(client)
        released.set()
        late = b""
        while part := client.recv(65_536):
            late += part

    assert b"event: done" not in early
    assert b"event: done" in late


def test_a_disconnected_client_ends_the_call_of_the_model(
    url: str, model: LanguageModel, released: threading.Event
) -> None:
    model.says(pieces=chain(["Press Cancel [1]. "], repeat("Then wait. ")), held=released)
    model.abandoned.clear()

    with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0)) as client:
        client.sendall(request_of("/api/ask/stream"))
        body = b""
        while b"event: token" not in body:
            body += received(client)
    released.set()

    eventually(model.abandoned.is_set)
