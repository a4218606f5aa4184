"""The operations over HTTP, against a server that answers as the test says."""

import asyncio
import gc
import json
import os
import re
import signal
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest

from ragstack_common.core.errors import ConfigurationError
from ragstack_common.services.ask_models import AskRequest, SourcesEvent, StreamEvent
from ragstack_common.services.document_models import DocumentList
from ragstack_common.services.search_models import RetrieveRequest, RetrieveResponse
from ragstack_local.api import calls
from ragstack_local.api.calls import each, run
from ragstack_local.api.http_operations import THROTTLED_ATTEMPTS, HttpOperations
from ragstack_local.connection.address import Address
from ragstack_local.errors import ApiError, InvalidApiRequestError
from tests.ragstack_local.answer_events import events as to_pieces
from tests.ragstack_local.answer_events import response
from tests.ragstack_local.support import FOREVER, NOWHERE, Api, stack_at
from tests.support.waiting import eventually

STAGE = "does --api-url end with the API's stage, such as /prod?"
HOST = "abcde12345.execute-api.eu-west-3.amazonaws.com"
SECRET = "key-or-token-that-nobody-may-see"
NOTHING = RetrieveResponse(results=[], complete=True, slices=[], corpora=[], notes=[], milliseconds=1.5)
ANSWER = NOTHING.model_dump(mode="json")
QUESTION = AskRequest(question="Zürich?")


def at(address: str | Address, **more: Any) -> HttpOperations:
    found = Address(address) if isinstance(address, str) else address
    return HttpOperations(lambda: found, **more)


def search(address: str | Address, **members: Any) -> RetrieveResponse:
    return run(at(address).search(RetrieveRequest(query="x", **members)))


def ask(address: str | Address, **more: Any) -> list[StreamEvent]:
    return list(each(at(address, **more).ask(QUESTION)))


def on_aws(api: Api) -> Address:
    return Address.for_stack(stack_at(api_url=api.url, aws_endpoint=None, bedrock_endpoint=None))


def test_a_query_is_posted_as_json(api: Api) -> None:
    api.will_answer(200, ANSWER)

    answer = run(at(api.url).search(RetrieveRequest(query="Zürich?", top_k=3)))

    (request,) = api.requests
    assert answer == NOTHING
    assert request["path"] == "/prod/api/retrieve"
    assert request["body"] == {"query": "Zürich?", "top_k": 3}
    assert request["headers"]["Content-Type"] == "application/json"


def test_requests_to_a_stack_on_aws_are_signed(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token of a role")
    api.will_answer(200, ANSWER)

    search(on_aws(api))

    headers = api.requests[0]["headers"]
    assert headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=testing/")
    assert "/us-east-1/execute-api/aws4_request" in headers["Authorization"]
    assert "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token" in headers["Authorization"]
    assert headers["X-Amz-Security-Token"] == "token of a role"


@pytest.mark.parametrize("missing", [("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), ("AWS_DEFAULT_REGION",)])
def test_without_credentials_or_region_nothing_is_sent(
    api: Api, monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...]
) -> None:
    for name in missing:
        monkeypatch.delenv(name)

    with pytest.raises(ApiError, match="there are no AWS credentials"):
        search(on_aws(api))

    assert api.requests == []


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (400, {"error": {"code": "InvalidFilter", "message": "$like is unknown"}}, "InvalidFilter: $like is unknown"),
        (502, {"message": "Internal server error"}, f"The API answered 502: Internal server error; {STAGE}"),
        (
            500,
            {"error": {"message": "no code"}},
            f"The API answered 500: {{'error': {{'message': 'no code'}}}}; {STAGE}",
        ),
        (502, b"<html>\n<h1>Bad</h1>\n</html>\n", f"The API answered 502: <html> <h1>Bad</h1> </html>; {STAGE}"),
        (500, b"\xff\xfe", f"The API answered 500: \ufffd\ufffd; {STAGE}"),
        (302, b"moved", f"The API answered 302: moved; {STAGE}"),
        (200, {"status": "ok"}, f"The API answered 200: {{'status': 'ok'}}; {STAGE}"),
    ],
)
def test_an_unexpected_response_is_an_error_in_one_line(api: Api, status: int, body: Any, message: str) -> None:
    api.will_answer(status, body)

    with pytest.raises(ApiError) as caught:
        search(api.url.removesuffix("/prod"))

    assert str(caught.value) == message
    assert isinstance(caught.value, InvalidApiRequestError) == (status == 400)


@pytest.mark.parametrize("url", [NOWHERE, "http://no-such-host.invalid", "http://[", "ftp://x"])
def test_an_api_that_cannot_be_reached_is_an_error(url: str) -> None:
    with pytest.raises(ApiError, match="cannot be reached") as caught:
        search(url)

    assert "\n" not in str(caught.value)


def test_requests_to_this_machine_bypass_the_users_proxy(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "NO_PROXY" not in os.environ
    monkeypatch.setenv("HTTP_PROXY", NOWHERE)
    api.will_answer(200, ANSWER)

    assert search(api.url) == NOTHING


def test_a_throttled_request_is_repeated_until_the_api_accepts_it(api: Api) -> None:
    api.will_answer(429, {"error": {"code": "Throttled", "message": "Too many requests"}})
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            api.will_answer(200, {"documents": [], "next_token": None})

    answer = run(at(api.url, sleep=sleep).request("GET", "/api/documents", DocumentList))

    assert answer.documents == []
    assert len(api.requests) == 4


def test_a_request_that_stays_throttled_is_an_error_after_a_minute(api: Api) -> None:
    api.will_answer(429, {"error": {"code": "Throttled", "message": "Too many requests"}})
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    with pytest.raises(ApiError, match="Throttled: Too many requests"):
        run(at(api.url, sleep=sleep).corpora())

    assert len(slept) == THROTTLED_ATTEMPTS
    assert sum(slept) == 60


@pytest.mark.parametrize(
    ("url", "sign", "region"),
    [
        (f"https://{HOST}/prod", True, "eu-west-3"),
        ("https://abcde12345.execute-api.cn-north-1.amazonaws.com.cn/prod", True, "cn-north-1"),
        ("https://abcde12345-vpce-0a1b.execute-api.us-east-1.amazonaws.com/prod", True, "us-east-1"),
        ("https://search.example/", True, None),
        ("http://search.example/", False, None),
        ("http://127.0.0.1:4566/_aws/execute-api/abc/prod", False, None),
        ("http://abc.execute-api.localhost:4566/prod", False, None),
        ("http://[::1]:4566/prod", False, None),
        (f"https://{HOST}.evil.example/prod", True, None),
    ],
)
def test_the_host_decides_signature_and_region(url: str, sign: bool, region: str | None) -> None:
    caller = Address.for_url(url)

    assert (caller.sign, caller.region) == (sign, region)
    assert not caller.api_url.endswith("/")


def test_a_custom_domain_needs_no_credentials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Requests are signed only where there are credentials."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")

    assert not Address.for_url("https://search.example").sign
    with pytest.raises(ApiError, match="there are no AWS credentials: run `ragstack login`"):
        search(Address.for_url(f"https://{HOST}/prod"))


@pytest.mark.parametrize(
    "url", ["", "prod", "file:///etc/passwd", "https://", "https://a.example/prod?x=1", "http://["]
)
def test_an_invalid_api_url_is_rejected(url: str) -> None:
    with pytest.raises(ConfigurationError, match="is not the URL of an API"):
        Address.for_url(url)


def test_a_url_of_api_gateway_without_its_stage_is_explained() -> None:
    with pytest.raises(ConfigurationError, match=f"lacks the API's stage: write https://{HOST}/prod"):
        Address.for_url(f"https://{HOST}/")


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_lists_the_ways_to_authenticate_and_no_secret(api: Api, status: int) -> None:
    api.will_answer(status, {"Message": "User is not authorized"})

    with pytest.raises(ApiError, match=f"{status}: User is not authorized; run `ragstack login`") as caught:
        search(Address.for_url(api.url, SECRET, SECRET))

    assert "RAGSTACK_TOKEN or --token" in str(caught.value)
    assert SECRET not in str(caught.value)


STREAM = b": heartbeat\n\n" + b"".join(to_pieces(response()))


@pytest.mark.parametrize(
    "pieces",
    [
        [STREAM],
        [STREAM[start : start + 7] for start in range(0, len(STREAM), 7)],
        [*STREAM.replace(b"\n", b"\r\n").partition(b"\r")],
        [b"event: other\ndata: {\ndata: }\n\nevent: other\ndata: 1\n\n", STREAM],
    ],
    ids=["at once", "in small pieces", "with line ends of Windows", "with data in two lines, and unknown events"],
)
def test_the_events_of_an_answer_arrive_however_they_are_cut(api: Api, pieces: list[bytes]) -> None:
    api.will_stream(*pieces)

    first, *_, last = ask(api.url)

    assert isinstance(first, SourcesEvent)
    assert last == response()
    assert api.requests[0]["path"] == "/prod/api/ask/stream"
    assert api.requests[0]["body"] == {"question": "Zürich?"}


def test_a_gateway_may_buffer_the_events_and_label_them_as_json(api: Api) -> None:
    api.will_answer(200, STREAM, **{"Content-Type": "application/json"})

    assert ask(api.url)[-1] == response()


def test_a_page_instead_of_events_is_an_error_that_shows_it(api: Api) -> None:
    api.will_answer(200, b"<h1>Welcome</h1>", **{"Content-Type": "text/html"})

    with pytest.raises(ApiError, match="The API answered 200: <h1>Welcome</h1>"):
        ask(api.url)


def test_answers_come_from_their_own_url_with_the_key(api: Api) -> None:
    api.will_stream(STREAM)

    ask(Address(NOWHERE, SECRET, answers_url=api.url))

    assert api.requests[0]["headers"]["x-api-key"] == SECRET


@pytest.mark.parametrize("length", [0, len(STREAM) // 2, len(STREAM) - 1])
@pytest.mark.parametrize("headers", [{}, {"Content-Length": "100000"}], ids=["closed", "short"])
def test_a_stream_that_is_cut_is_an_error(api: Api, length: int, headers: dict[str, str]) -> None:
    api.will_stream(STREAM[:length])
    api.headers |= headers

    with pytest.raises(ApiError, match="broke off before its end"):
        ask(api.url)


def test_an_event_that_reports_an_error_is_one(api: Api) -> None:
    error = {"error": {"code": "GenerationTimeout", "message": "No answer within 60 s", "details": []}}
    api.will_stream(b'event: token\ndata: {"text": "x"}\n\n', f"event: error\ndata: {json.dumps(error)}\n\n".encode())

    with pytest.raises(ApiError, match=r"^GenerationTimeout: No answer within 60 s$"):
        ask(api.url)


def test_a_response_in_another_form_is_an_error(api: Api) -> None:
    api.will_stream(b'event: done\ndata: {"answer": "x"}\n\n')
    with pytest.raises(ApiError, match="The API answered in another form than AskResponse"):
        ask(api.url)

    api.will_answer(200, {"results": [{}]})
    api.pieces = None
    with pytest.raises(ApiError, match="`ragstack` and the stack have different versions"):
        search(api.url)


def test_rejected_questions_fail_and_throttled_ones_are_repeated(api: Api) -> None:
    api.will_answer(400, {"error": {"code": "UnknownCorpus", "message": "There is no corpus x"}})
    with pytest.raises(ApiError, match=r"^UnknownCorpus: There is no corpus x$"):
        ask(api.url)

    api.will_answer(429, {"error": {"code": "Throttled", "message": "Too many requests"}})

    async def sleep(_: float) -> None:
        api.will_stream(STREAM)

    assert ask(api.url, sleep=sleep)[-1] == response()
    with pytest.raises(ApiError, match="cannot be reached"):
        ask(NOWHERE)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Have SIGINT interrupt as in a command; a test run in the background has another handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_just_after_an_operation_spares_the_next() -> None:
    async def interrupted() -> None:
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(interrupted())

    assert run(asyncio.sleep(0.01, "done")) == "done"


def test_an_interrupt_just_before_an_operation_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def events() -> AsyncGenerator[str, None]:
        await asyncio.sleep(60)
        yield "late"

    def interrupted(_: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(calls._runner().get_loop(), "run_until_complete", interrupted)

    with pytest.raises(KeyboardInterrupt):
        next(each(events()))


@pytest.mark.filterwarnings("error")
def test_an_interrupt_before_there_is_a_task_leaves_no_coroutine(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(calls._runner().get_loop(), "create_task", interrupted)

    with pytest.raises(KeyboardInterrupt):
        run(asyncio.sleep(60))
    gc.collect()


def test_closing_the_iterator_closes_the_connection(api: Api) -> None:
    api.will_stream(STREAM.partition(b"event: done")[0], FOREVER)
    events = each(at(api.url).ask(QUESTION))

    next(events)
    assert not api.closed.is_set()
    events.close()

    eventually(api.closed.is_set)


@pytest.mark.parametrize(("key", "token"), [(SECRET, None), (None, SECRET)])
def test_a_credential_is_not_sent_unencrypted_to_another_machine(key: str | None, token: str | None) -> None:
    with pytest.raises(ConfigurationError, match="is not encrypted, so no key, token or login is sent to it"):
        Address.for_url("http://search.example/prod", key, token)
    with pytest.raises(ConfigurationError, match="is not encrypted"):
        Address("https://search.example/prod", key, token, answers_url="http://answers.example")

    assert Address.for_url("http://search.example/prod").api_url == "http://search.example/prod"


def test_a_request_to_api_gateway_is_not_signed_unencrypted() -> None:
    with pytest.raises(ConfigurationError, match="is not encrypted"):
        Address.for_url(f"http://{HOST}/prod")


@pytest.mark.parametrize("status", [403, 404])
def test_an_address_without_its_stage_does_not_show_the_answer_of_s3(api: Api, status: int) -> None:
    code = "NoSuchBucket" if status == 404 else "AccessDenied"
    document = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>x</Message></Error>'
    api.will_answer(status, document.encode(), **{"Content-Type": "application/xml"})

    with pytest.raises(ApiError, match=rf"answered {status} as S3 does \({code}\): {re.escape(STAGE)}$") as caught:
        search(api.url)

    assert "<" not in str(caught.value)
