"""Requests to the HTTP API, as any program would send them."""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import boto3
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

from ragstack_common.errors import ConfigurationError
from ragstack_local.connection import Connection
from ragstack_local.errors import ApiError

TIMEOUT_SECONDS: Final = 30.0
"""API Gateway answers within 29."""

THROTTLED_SECONDS: Final = 60.0
"""How long requests are repeated that the API rejects because there are too many a second."""

THROTTLED_PAUSE_SECONDS: Final = 0.5

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
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False, compare=False)

    @classmethod
    def of(cls, connection: Connection, api_key: str | None = None, token: str | None = None) -> "ApiClient":
        """Use a stack's API: unsigned on this machine or with a key or token, otherwise signed."""
        return cls(connection.api_url, api_key, token, sign=not (connection.is_local or api_key or token))

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
        payload = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        if self.api_key:
            headers["x-api-key"] = self.api_key
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        waited = 0.0
        while True:
            signed = self._signed(method, url, payload, headers) if self.sign else headers
            try:
                response = urllib3.request(
                    method, url, body=payload, headers=signed, timeout=TIMEOUT_SECONDS, retries=False
                )
            except urllib3.exceptions.HTTPError as error:
                raise ApiError(f"{url} cannot be reached: {error}; is the stack up? See `ragstack status`") from error
            if response.status != HTTPStatus.TOO_MANY_REQUESTS or waited >= THROTTLED_SECONDS:
                return self._answer(response, member)
            self.sleep(THROTTLED_PAUSE_SECONDS)
            waited += THROTTLED_PAUSE_SECONDS

    def _answer(self, response: urllib3.BaseHTTPResponse, member: str) -> dict[str, Any]:
        try:
            answer = json.loads(response.data)
        except ValueError:
            answer = response.data.decode(errors="replace")
        if response.status in SUCCESS and isinstance(answer, dict) and member in answer:
            return answer
        error = answer.get("error") if isinstance(answer, dict) else None
        if isinstance(error, dict) and {"code", "message"} <= error.keys():
            raise ApiError(f"{error['code']}: {error['message']}")
        # API Gateway uses both spellings.
        text = answer.get("message", answer.get("Message", answer)) if isinstance(answer, dict) else answer
        said = f"The API answered {response.status}: {' '.join(str(text).split()):.300}"
        raise ApiError(f"{said}; {_HOW_TO_AUTHENTICATE}" if response.status in REFUSED else said)

    def _signed(self, method: str, url: str, payload: bytes | None, headers: dict[str, str]) -> dict[str, str]:
        session = boto3.Session()
        credentials, region = session.get_credentials(), self.region or session.region_name
        if credentials is None or region is None:
            raise ApiError(f"The API needs signed requests, and there are no AWS credentials: {_HOW_TO_AUTHENTICATE}")
        request = AWSRequest(method, url, data=payload, headers=headers)
        SigV4Auth(credentials, "execute-api", region).add_auth(request)
        return dict(request.headers)


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
