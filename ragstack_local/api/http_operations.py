"""The operations over the HTTP API, as any program would call it."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from http import HTTPStatus
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar, cast
from urllib.parse import quote, urlencode, urlsplit

import httpx2
from pydantic import BaseModel, ValidationError

from ragstack_common.core.addresses import is_here, keeps_secrets
from ragstack_common.core.deadline import in_thread
from ragstack_common.core.json_text import parse_json
from ragstack_common.http.tool_models import ToolList, ToolSuccess
from ragstack_common.services.catalogue import Corpora, Versions
from ragstack_common.services.operations import DocumentStatusRequest
from ragstack_common.services.search_models import RetrieveRequest, RetrieveResponse
from ragstack_local.connection.address import HOW_TO_AUTHENTICATE, Address
from ragstack_local.errors import ApiError, InvalidApiRequestError

if TYPE_CHECKING:
    from ragstack_common.services.ask_models import AskRequest, StreamEvent
    from ragstack_common.services.document_models import DocumentList

ModelT = TypeVar("ModelT", bound=BaseModel)

TIMEOUT_SECONDS: Final = 30.0
"""API Gateway answers within 29."""

UPLOAD_SECONDS: Final = 300.0
"""Time limit for 50 MB over a slow line; the permission to upload expires a little later."""

SILENT_SECONDS: Final = 45.0
"""How long a stream of events may be silent; the API sends a heartbeat every 10."""

THROTTLED_ATTEMPTS: Final = 120
THROTTLED_PAUSE_SECONDS: Final = 0.5
"""Throttled requests are repeated for a minute."""

EVENT_STREAM: Final = "text/event-stream"

SUCCESS: Final = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED)

_CODE_OF_S3: Final = re.compile(rb"\A\s*(?:<\?xml[^>]*>\s*)?<Error>.*?<Code>(\w+)</Code>", re.DOTALL)
"""MiniStack, which serves S3 on the same port, answers so to an address without a stage."""


class _Health(BaseModel):
    status: str


class HttpOperations:
    """Calls the HTTP API. Each method raises ApiError.

    Args:
        find: Returns where the API is; called with each request, so that a stack that is started later, or again, is
            found.
        sleep: Waits between attempts at a request that the API throttles.
    """

    def __init__(
        self, find: Callable[[], Address], *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._find = find
        self._sleep = sleep
        self._clients: dict[bool, httpx2.AsyncClient] = {}

    async def search(self, request: RetrieveRequest) -> RetrieveResponse:
        """Search."""
        return await self.request("POST", "/api/retrieve", RetrieveResponse, request)

    async def ask(self, request: "AskRequest") -> "AsyncGenerator[StreamEvent, None]":
        """Answer a question. Closing the iterator closes the connection, which ends the call of the model."""
        address = self._find()
        url = f"{address.answers_url or address.api_url}/api/ask/stream"
        async with self._sent(address, "POST", url, _encoded(request), SILENT_SECONDS) as response:
            if response.status_code != HTTPStatus.OK or not await _has_events(response):
                raise _rejected(url, response.status_code, await response.aread())
            async with (
                # The package leaves this iterator to the garbage collector, which the event loop may not outlive.
                aclosing(cast("AsyncGenerator[str]", response.aiter_text())) as texts,
                aclosing(_answer(url, _events(response, texts))) as answer,
            ):
                async for event in answer:
                    yield event

    async def corpora(self) -> Corpora:
        """List the corpora."""
        return await self.request("GET", "/api/corpora", Corpora)

    async def versions(self) -> Versions:
        """List the versions."""
        return await self.request("GET", "/api/versions", Versions)

    async def document(self, request: DocumentStatusRequest) -> "DocumentList":
        """Find a document."""
        from ragstack_common.services.document_models import DocumentList  # noqa: PLC0415 - help does without

        return await self.request("GET", "/api/documents", DocumentList, parameters=request.name)

    async def tools(self) -> list[dict[str, Any]]:
        """List the tools."""
        return [tool.model_dump() for tool in (await self.request("GET", "/tools", ToolList)).tools]

    async def run_tool(self, name: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a tool."""
        return (await self.request("POST", f"/tools/{quote(name, safe='')}", ToolSuccess, {"input": data})).output

    @property
    def url(self) -> str:
        """The URL of the API, up to its stage."""
        return self._find().api_url

    async def health(self) -> None:
        """Check that the API answers."""
        await self.request("GET", "/health", _Health)

    async def request(
        self,
        method: str,
        path: str,
        response_model: type[ModelT],
        body: BaseModel | Mapping[str, Any] | None = None,
        parameters: Mapping[str, str | int | None] | None = None,
    ) -> ModelT:
        """Send any request with the key, the token or the signature, again if the API says that it is throttled.

        Args:
            method: GET, POST, PATCH or DELETE.
            path: Begins with a slash; URL-quoted.
            response_model: The form of the response.
            body: Sent as JSON; None for no body.
            parameters: Parameters of the query; those that are None are left out.

        Raises:
            ApiError: The API rejected the request or could not be reached; the message says why in one line.
        """
        address = self._find()
        query = urlencode({name: value for name, value in (parameters or {}).items() if value is not None})
        url = f"{address.api_url}{path}{'?' if query else ''}{query}"
        payload = None if body is None else _encoded(body)
        async with self._sent(address, method, url, payload, TIMEOUT_SECONDS) as response:
            data = await response.aread()
        answer = _object(data)
        # A response without any of the members is from another server.
        if response.status_code not in SUCCESS or not answer.keys() & response_model.model_fields.keys():
            raise _rejected(url, response.status_code, data)
        return _read(response_model, answer)

    async def upload(self, url: str, fields: Mapping[str, str], name: str, content: bytes) -> httpx2.Headers:
        """Post a file with the form that the API signed; return the headers of the bucket's response.

        Raises:
            ApiError: The bucket rejected the file or could not be reached, or the file would leave this machine for an
                address that the user has not confirmed, or unencrypted for one that an encrypted API names.
        """
        address = self._find()
        if address.file is not None and not (is_here(address.api_url) and is_here(url)):
            raise ApiError(
                f"{address.file} names the API, so no file is sent to it: confirm it with --api-url {address.api_url}"
            )
        if keeps_secrets(address.api_url) and not keeps_secrets(url):
            raise ApiError(f"The API names {url} for uploads, which is not encrypted")
        files, timeout = {"file": (name, content)}, httpx2.Timeout(UPLOAD_SECONDS)
        try:
            response = await self._client(url).post(url, data=dict(fields), files=files, timeout=timeout)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ApiError(f"The upload failed: {error}") from error
        if not response.is_success:
            raise ApiError(f"The bucket answered {response.status_code}: {_in_one_line(response.text)}")
        return response.headers

    async def download(self, url: str, file: IO[bytes]) -> int:
        """Write the file at an address that the API signed; return its bytes.

        Raises:
            ApiError: The bucket did not send the file or could not be reached, or the file would be sent unencrypted
                although the API is encrypted.
        """
        if keeps_secrets(self.url) and not keeps_secrets(url):
            raise ApiError(f"The API names {url.partition('?')[0]} for the download, which is not encrypted")
        # As it is in the bucket, also if it was uploaded compressed.
        headers, timeout = {"Accept-Encoding": "identity"}, httpx2.Timeout(TIMEOUT_SECONDS)
        try:
            async with self._client(url).stream("GET", url, headers=headers, timeout=timeout) as response:
                if not response.is_success:
                    await response.aread()
                    raise ApiError(f"The bucket answered {response.status_code}: {_in_one_line(response.text)}")
                async for part in response.aiter_raw():
                    file.write(part)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ApiError(f"The download failed: {error}") from error
        return response.num_bytes_downloaded

    @asynccontextmanager
    async def _sent(
        self, address: Address, method: str, url: str, payload: bytes | None, silent_seconds: float
    ) -> AsyncIterator[httpx2.Response]:
        timeout = httpx2.Timeout(TIMEOUT_SECONDS, read=silent_seconds)
        try:
            for attempt in range(THROTTLED_ATTEMPTS + 1):
                headers = (
                    await in_thread(lambda: address.headers(method, url, payload))
                    if address.takes_time
                    else address.headers(method, url, payload)
                )
                async with self._client(url).stream(
                    method, url, content=payload, headers=headers, timeout=timeout
                ) as response:
                    if response.status_code != HTTPStatus.TOO_MANY_REQUESTS or attempt == THROTTLED_ATTEMPTS:
                        yield response
                        return
                await self._sleep(THROTTLED_PAUSE_SECONDS)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ApiError(f"{url} cannot be reached: {error}; is the stack up? See `ragstack status`") from error

    def _client(self, url: str) -> httpx2.AsyncClient:
        """Return the client, whose connections are reused; without TLS it does not load certificates."""
        is_secure = not url.startswith("http:")
        if is_secure not in self._clients:
            # Neither a proxy nor certificates of the user's environment count.
            self._clients[is_secure] = httpx2.AsyncClient(trust_env=False, verify=is_secure)
        return self._clients[is_secure]


def _in_one_line(text: str) -> str:
    return f"{' '.join(text.split()):.200}"


async def _has_events(response: httpx2.Response) -> bool:
    """Return whether a response has events. MiniStack buffers them, and labels them as JSON."""
    if response.headers.get("content-type", "").startswith(EVENT_STREAM):
        return True
    if not (await response.aread()).startswith((b"event:", b":")):
        return False
    response.headers["content-type"] = EVENT_STREAM
    return True


def _events(response: httpx2.Response, texts: AsyncIterator[str]) -> httpx2.EventSource:
    """Return the events of a response; the caller closes its texts."""
    read: Any = SimpleNamespace(headers=response.headers, request=response.request, aiter_text=lambda: texts)
    # A limit against servers that are not an API: the event with a whole answer has its sources too.
    return httpx2.EventSource(read, max_event_size=64 * 1024 * 1024)


async def _answer(url: str, events: httpx2.EventSource) -> "AsyncGenerator[StreamEvent, None]":
    """Yield the events of an answer until the last one.

    Raises:
        ApiError: One of them is an error, or the last one is missing.
    """
    from ragstack_common.services.ask_models import EVENTS, ErrorEvent  # noqa: PLC0415 - searches do without

    try:
        async with aclosing(cast("AsyncGenerator[httpx2.ServerSentEvent]", aiter(events))) as received:
            async for event in received:
                if event.event not in EVENTS:  # a newer API may have more
                    continue
                data = _object(event.data)
                if EVENTS[event.event] is ErrorEvent:
                    raise ApiError(_message(data) or f"The answer failed: {event.data:.300}")
                yield _read(EVENTS[event.event], data)  # type: ignore[misc] # one of the events
                if event.event == "done":
                    return
    except httpx2.HTTPError as error:
        raise ApiError(f"The answer of {url} broke off before its end ({error}): ask again") from error
    raise ApiError(f"The answer of {url} broke off before its end: ask again")


def _encoded(body: BaseModel | Mapping[str, Any]) -> bytes:
    members = body.model_dump(mode="json", exclude_unset=True) if isinstance(body, BaseModel) else body
    return json.dumps(members, ensure_ascii=False).encode()


def _object(text: str | bytes) -> dict[str, Any]:
    """Read a JSON object; anything else is an empty one."""
    try:
        found = parse_json(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _read(model: type[ModelT], answer: Mapping[str, Any]) -> ModelT:
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        raise ApiError(
            f"The API answered in another form than {model.__name__}: `ragstack` and the stack have different versions"
        ) from error


def _message(answer: Mapping[str, Any]) -> str | None:
    """Return the message of an error in the API's form, in one line; None if it has another form."""
    error = answer.get("error")
    if isinstance(error, str):  # of a tool
        return error
    if not (isinstance(error, dict) and {"code", "message"} <= error.keys()):
        return None
    return f"{error['code']}: {error['message']}"


def _rejected(url: str, status: int, data: bytes) -> ApiError:
    answer = _object(data)
    if message := _message(answer):
        if status == HTTPStatus.UNAUTHORIZED:
            message += "; run `ragstack login`"
        return InvalidApiRequestError(message) if status == HTTPStatus.BAD_REQUEST else ApiError(message)
    if code := _CODE_OF_S3.search(data):
        return ApiError(
            f"{url} answered {status} as S3 does ({code[1].decode()}): does --api-url end with the API's stage, such as"
            " /prod?"
        )
    # API Gateway uses both spellings.
    text = answer.get("message", answer.get("Message", answer)) or data.decode(errors="replace")
    said = f"The API answered {status}: {' '.join(str(text).split()):.300}"
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return ApiError(f"{said}; {HOW_TO_AUTHENTICATE}")
    lacks_stage = urlsplit(url).path.startswith("/api/")
    return ApiError(f"{said}; does --api-url end with the API's stage, such as /prod?" if lacks_stage else said)
