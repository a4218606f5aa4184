"""Requests to the HTTP interface, as any program would send them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import boto3
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

from ragstack_common.errors import RagStackError
from ragstack_local.connection import Connection

TIMEOUT_SECONDS: Final = 30.0
"""API Gateway answers within 29."""

SUCCESS: Final = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED)


class ApiError(RagStackError):
    """The API answered with an error, or not at all."""


@dataclass(frozen=True)
class Caller:
    """How requests are sent.

    Attributes:
        api_url: Without a slash at the end.
        api_key: Sent where the API asks for one.
        sign: Whether requests carry a signature of the AWS credentials.
    """

    api_url: str
    api_key: str | None = None
    sign: bool = False

    @classmethod
    def of(cls, connection: Connection, api_key: str | None = None) -> "Caller":
        """Call a stack's API: openly on this machine, by key where there is one, else signed."""
        return cls(connection.api_url, api_key, sign=not connection.is_local and not api_key)

    def retrieve(self, body: dict[str, Any]) -> dict[str, Any]:
        """POST /api/retrieve. Errors are those of :meth:`ask`."""
        return self.ask("POST", "/api/retrieve", "results", body)

    def look_up(self, name: str) -> dict[str, Any]:
        """GET /api/NAME, whose answer has a member of that name. Errors are those of :meth:`ask`."""
        return self.ask("GET", f"/api/{name}", name)

    def ask(self, method: str, path: str, member: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request, with the key or the signature that the API asks for.

        Args:
            method: GET, POST or DELETE.
            path: Begins with a slash; quoted as a URL has it.
            member: What the answer must have, so that nobody else's answer is taken for the API's.
            body: Sent as JSON; None for no body.

        Raises:
            ApiError: The API refused or could not be reached; the message says why in one line.
        """
        url = self.api_url + path
        payload = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        if self.api_key:
            headers["x-api-key"] = self.api_key
        if self.sign:
            headers = _signed(method, url, payload, headers)
        try:
            response = urllib3.request(
                method, url, body=payload, headers=headers, timeout=TIMEOUT_SECONDS, retries=False
            )
        except urllib3.exceptions.HTTPError as error:
            raise ApiError(f"{url} cannot be reached: {error}; is the stack up? See `ragstack status`") from error
        return _answer(response, member)


def _answer(response: urllib3.BaseHTTPResponse, member: str) -> dict[str, Any]:
    try:
        answer = json.loads(response.data)
    except ValueError:
        answer = response.data.decode(errors="replace")
    if response.status in SUCCESS and isinstance(answer, dict) and member in answer:
        return answer
    error = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(error, dict) and {"code", "message"} <= error.keys():
        raise ApiError(f"{error['code']}: {error['message']}")
    text = answer.get("message", answer) if isinstance(answer, dict) else answer
    raise ApiError(f"The API answered {response.status}: {' '.join(str(text).split()):.300}")


def _signed(method: str, url: str, payload: bytes | None, headers: dict[str, str]) -> dict[str, str]:
    session = boto3.Session()
    credentials = session.get_credentials()
    if credentials is None or session.region_name is None:
        raise ApiError("The API takes signed requests: configure the AWS credentials and the region")
    request = AWSRequest(method, url, data=payload, headers=headers)
    SigV4Auth(credentials, "execute-api", session.region_name).add_auth(request)
    return dict(request.headers)
