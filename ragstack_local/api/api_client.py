"""Requests to the HTTP API, as any program would send them."""

import json
import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import boto3
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

from ragstack_common.core.errors import ConfigurationError
from ragstack_local.errors import ApiError, InvalidApiRequestError
from ragstack_local.target.connection import Connection

if TYPE_CHECKING:
    import httpx2

TIMEOUT_SECONDS: Final = 30.0
"""API Gateway answers within 29."""

SILENT_SECONDS: Final = 45.0
"""How long a stream of events may be silent; the API sends a heartbeat every 10."""

MAX_EVENT_BYTES: Final = 64 * 1024 * 1024
"""A limit against servers that are not an API: the event with a whole answer has its sources too."""

THROTTLED_SECONDS: Final = 60.0
"""How long requests are repeated that the API rejects because there are too many a second."""

THROTTLED_PAUSE_SECONDS: Final = 0.5

DONE: Final = "done"
"""The last event of an answer, which is the response of ``POST /api/ask``."""

ERROR: Final = "error"

EVENT_STREAM: Final = "text/event-stream"

SUCCESS: Final = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED)
REFUSED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)

LOOPBACK: Final = re.compile(r"127(\.\d+){3}|::1|(.+\.)?localhost")
_EXECUTE_API: Final = re.compile(r"[\w-]+\.execute-api\.([a-z0-9-]+)\.(vpce\.)?amazonaws\.com(\.cn)?")
"""Source: Amazon API Gateway developer guide, invoking REST APIs."""

_HOW_TO_AUTHENTICATE: Final = (
    "set RAGSTACK_API_KEY or --api-key (auth=api_key), RAGSTACK_TOKEN or --token (a bearer token), or AWS credentials"
    " and a region, for an identity that may execute-api:Invoke (auth=iam)"
)


@dataclass(frozen=True)
class ApiClient:
    """Sends requests to an API."""

    api_url: str
    api_key: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    sign: bool = False
    region: str | None = None  # of the signature; None for that of the AWS settings
    answers_url: str | None = None  # where answers stream, if elsewhere
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False, compare=False)

    @classmethod
    def of(cls, connection: Connection, api_key: str | None = None, token: str | None = None) -> "ApiClient":
        """Use a stack's API: unsigned on this machine or with a key or token, otherwise signed."""
        sign = not (connection.is_local or api_key or token)
        return cls(connection.api_url, api_key, token, sign=sign, answers_url=connection.answers_url)

    @classmethod
    def at(cls, url: str, api_key: str | None = None, token: str | None = None) -> "ApiClient":
        """Use an API given only its URL, without access to the rest of its stack.

        Without a key or a token, requests are signed: to a host of API Gateway for the region in its name; to another
        host, by https, if there are AWS credentials, because it may be a custom domain of API Gateway. Requests to this
        machine are not signed.

        Raises:
            ConfigurationError: The URL is not an API's.
        """
        scheme, host = _checked(url)
        found = _EXECUTE_API.fullmatch(host)
        if found and not urlsplit(url).path.strip("/"):
            raise ConfigurationError(f"{url!r} lacks the API's stage: write {url.rstrip('/')}/prod, for example")
        may_sign = not (api_key or token or LOOPBACK.fullmatch(host))
        may_be_custom = scheme == "https" and boto3.Session().get_credentials() is not None
        sign = may_sign and (found is not None or may_be_custom)
        return cls(url.rstrip("/"), api_key, token, sign=sign, region=found[1] if found else None)

    def retrieve(self, body: dict[str, Any]) -> dict[str, Any]:
        """POST /api/retrieve. Errors are those of :meth:`request`."""
        return self.request("POST", "/api/retrieve", "results", body)

    def look_up(self, name: str) -> dict[str, Any]:
        """GET /api/NAME, whose response has a member of that name. Errors are those of :meth:`request`."""
        return self.request("GET", f"/api/{name}", name)

    def ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask a question, and return the response of ``POST /api/ask``. Errors are those of :meth:`ask_stream`.

        It reads the stream, whose heartbeats keep the connection open, however long the answer takes.
        """
        return last_of(self.ask_stream(body))

    def ask_stream(self, body: Mapping[str, Any]) -> Generator[tuple[str, dict[str, Any]], None, None]:
        """POST /api/ask/stream: yield the name and the data of each event, ``done`` last.

        Closing the iterator closes the connection, which ends the answer and the call of the model.

        Raises:
            ApiError: The API rejected the request, could not be reached, reported an error, or stopped in between.
        """
        import httpx2  # noqa: PLC0415 - its reader of events is for answers only, and takes 50 ms to import

        url = f"{self.answers_url or self.api_url}/api/ask/stream"
        payload = _encoded(body)
        timeout = httpx2.Timeout(TIMEOUT_SECONDS, read=SILENT_SECONDS)
        # As for the other requests, neither a proxy nor certificates of the user's environment count.
        with httpx2.Client(trust_env=False, timeout=timeout) as client:
            for is_last in self._attempts():
                headers = self._headers("POST", url, payload)
                try:
                    with client.sse(
                        url, method="POST", content=payload, headers=headers, max_event_size=MAX_EVENT_BYTES
                    ) as events:
                        status = events.response.status_code
                        if status == HTTPStatus.OK and _has_events(events.response):
                            yield from _answer(url, events)
                            return
                        text = events.response.read()
                except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                    raise _unreachable(url, error) from error
                if is_last or status != HTTPStatus.TOO_MANY_REQUESTS:
                    raise _rejected(url, status, text)

    def request(self, method: str, path: str, member: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request with the key, the token or the signature, again if the API says that it is throttled.

        Args:
            method: GET, POST or DELETE.
            path: Begins with a slash; URL-quoted.
            member: What the response must have, to recognise a response from another server.
            body: Sent as JSON; None for no body.

        Raises:
            ApiError: The API rejected the request or could not be reached; the message says why in one line.
        """
        url = self.api_url + path
        payload = None if body is None else _encoded(body)
        for is_last in self._attempts():
            try:
                response = urllib3.request(
                    method,
                    url,
                    body=payload,
                    headers=self._headers(method, url, payload),
                    timeout=TIMEOUT_SECONDS,
                    retries=False,
                )
            except urllib3.exceptions.HTTPError as error:
                raise _unreachable(url, error) from error
            if is_last or response.status != HTTPStatus.TOO_MANY_REQUESTS:
                break
        answer = _object(response.data)
        if response.status in SUCCESS and member in answer:
            return answer
        raise _rejected(url, response.status, response.data)

    def _attempts(self) -> Iterator[bool]:
        """Yield whether an attempt is the last one; pause between them, for requests that the API throttles."""
        pauses = int(THROTTLED_SECONDS / THROTTLED_PAUSE_SECONDS)
        for _ in range(pauses):
            yield False
            self.sleep(THROTTLED_PAUSE_SECONDS)
        yield True

    def _headers(self, method: str, url: str, payload: bytes | None) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self.api_key:
            headers["x-api-key"] = self.api_key
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return self._signed(method, url, payload, headers) if self.sign else headers

    def _signed(self, method: str, url: str, payload: bytes | None, headers: dict[str, str]) -> dict[str, str]:
        session = boto3.Session()
        credentials, region = session.get_credentials(), self.region or session.region_name
        if credentials is None or region is None:
            raise ApiError(f"The API needs signed requests, and there are no AWS credentials: {_HOW_TO_AUTHENTICATE}")
        request = AWSRequest(method, url, data=payload, headers=headers)
        SigV4Auth(credentials, "execute-api", region).add_auth(request)
        return dict(request.headers)


def last_of(events: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """Return the response of ``POST /api/ask`` from the events of an answer."""
    *_, (_, answer) = events
    return answer


def _has_events(response: "httpx2.Response") -> bool:
    """Whether a response has events. MiniStack buffers them, and labels them as JSON."""
    if response.headers.get("content-type", "").startswith(EVENT_STREAM):
        return True
    if not response.read().startswith((b"event:", b":")):
        return False
    response.headers["content-type"] = EVENT_STREAM
    return True


def _answer(url: str, events: "httpx2.EventSource") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of an answer until the last one.

    Raises:
        ApiError: One of them is an error, or the last one is missing.
    """
    import httpx2  # noqa: PLC0415 - as above

    problem: httpx2.HTTPError | None = None
    try:
        for event in events:
            data = _object(event.data)
            if event.event == ERROR:
                raise ApiError(_message(data) or f"The answer failed: {event.data:.300}")
            yield event.event, data
            if event.event == DONE:
                return
    except httpx2.HTTPError as error:
        problem = error
    reason = f" ({problem})" if problem else ""
    raise ApiError(f"The answer of {url} broke off before its end{reason}: ask again") from problem


def _encoded(body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ApiError("The request has text that is not UTF-8: convert it to UTF-8 first") from error


def _object(text: str | bytes) -> dict[str, Any]:
    """Read a JSON object; anything else is an empty one."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


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
        return InvalidApiRequestError(message) if status == HTTPStatus.BAD_REQUEST else ApiError(message)
    # API Gateway uses both spellings.
    text = answer.get("message", answer.get("Message", answer)) or data.decode(errors="replace")
    said = f"The API answered {status}: {' '.join(str(text).split()):.300}"
    if status in REFUSED:
        return ApiError(f"{said}; {_HOW_TO_AUTHENTICATE}")
    lacks_stage = urlsplit(url).path.startswith("/api/")
    return ApiError(f"{said}; does --api-url end with the API's stage, such as /prod?" if lacks_stage else said)


def _unreachable(url: str, error: Exception) -> ApiError:
    return ApiError(f"{url} cannot be reached: {error}; is the stack up? See `ragstack status`")


def _checked(url: str) -> tuple[str, str]:
    """Return the scheme and the host of an API's URL."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        parts, host = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise ConfigurationError(
            f"{url!r} is not the URL of an API: write it up to the stage, such as"
            " https://abcde12345.execute-api.eu-west-1.amazonaws.com/prod"
        )
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError("Leave the user name and the password out of the URL: use --api-key or --token")
    return parts.scheme, host
