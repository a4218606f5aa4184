"""One slow request, and the others that the server answers meanwhile."""

import json
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import urllib3

from ragstack_common.answers.models.protocol import ModelEnd, ModelPiece, ModelRequest, ModelResponse, ModelText
from ragstack_common.filters.parsing import MAX_VALUES
from ragstack_common.http.asgi import create_app
from ragstack_common.services.ask import AskService
from ragstack_common.services.search import QueryService
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.settings.search import QuerySettings
from tests.support.asgi_server import asgi_server
from tests.support.backends import Shelf, chunk
from tests.support.callers import open_callers

CANCEL = chunk("a", 0.9, content="Press Cancel.", source="s3://documents/a.md", relevance=0.9)
LONG_FILTER = {"$or": [{"a": {"$in": [f"a{n} value of {i}" for i in range(MAX_VALUES)]}} for n in range(50)]}


class Endless:
    """A model that neither stops nor waits."""

    name = "bedrock"
    model = "small"
    quotes = False

    def __init__(self) -> None:
        self.piece = "Press Cancel. "
        self.is_endless = True

    def generate(self, request: ModelRequest) -> ModelResponse:
        raise NotImplementedError

    async def stream(self, _: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        yield ModelText(self.piece)
        while self.is_endless:
            yield ModelText(self.piece)
        yield ModelEnd("end_turn", 1, 1, self.model)


@pytest.fixture(scope="module")
def model() -> Endless:
    return Endless()


@pytest.fixture(scope="module")
def url(model: Endless) -> Iterator[str]:
    settings = AnswerSettings(answer_timeout_seconds=1, answer_max_tokens=64_000)
    searches = QueryService(QuerySettings(knowledge_base_id="KB12345678"), Shelf(CANCEL))
    with asgi_server(create_app(lambda: AskService(settings, searches, model), open_callers)) as url:
        yield url


def ask(url: str, **more: Any) -> tuple[int, Any]:
    body = json.dumps({"question": "How do I cancel?", **more})
    answer = urllib3.request("POST", f"{url}/api/ask", body=body, retries=False, timeout=60)
    return answer.status, answer.json()


def asked_while_others_are_served(url: str, **more: Any) -> tuple[int, Any]:
    served = 0
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(ask, url, **more)
        while not slow.done():
            urllib3.request("GET", f"{url}/health", retries=False, timeout=60)
            served += not slow.done()
    assert served > 1
    return slow.result()


def test_an_endless_model_ends_at_the_deadline_and_others_are_served(url: str, model: Endless) -> None:
    model.is_endless = True

    status, body = asked_while_others_are_served(url)

    assert (status, body["error"]["code"]) == (504, "GenerationTimeout")


def test_others_are_served_while_a_long_filter_is_matched(url: str, model: Endless) -> None:
    model.is_endless = False

    status, body = asked_while_others_are_served(url, metadata_filter=LONG_FILTER)

    assert (status, body.get("answer", body)) == (200, "Press Cancel. ")


@pytest.mark.parametrize("piece", ["Press Cancel [1]. ", "Press Cancel [1]. " * 50_000])
def test_a_model_is_stopped_at_its_maximum_of_tokens(piece: str) -> None:
    model = Endless()
    model.piece = piece
    settings = AnswerSettings(answer_max_tokens=20)
    searches = QueryService(QuerySettings(knowledge_base_id="KB12345678"), Shelf(CANCEL))

    with asgi_server(create_app(lambda: AskService(settings, searches, model), open_callers)) as url:
        status, body = ask(url)

    assert (status, body["stop_reason"], body["cut_off"]) == (200, "max_tokens", True)
    assert len(body["answer"]) <= 20 * 8 + 1
    assert body["usage"]["estimated"]
