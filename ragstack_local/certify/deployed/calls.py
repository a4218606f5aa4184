"""HTTP requests of checks, as browsers and programs send them."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from typing import Any, Final

import httpx2

from ragstack_common.core.json_text import parse_json
from ragstack_local.certify.check import NotTried

TIMEOUT_SECONDS: Final = 60.0
"""A cold start and a search; API Gateway itself waits 29 seconds, except for routes that stream."""


@dataclass(frozen=True)
class Answer:
    """The answer to a request.

    Attributes:
        headers: By their names in lower case.
        arrivals: When each part of the body arrived, in seconds after the first one.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes
    arrivals: tuple[float, ...] = ()

    @property
    def succeeded(self) -> bool:
        """Whether the status says so."""
        return self.status < HTTPStatus.MULTIPLE_CHOICES

    @property
    def content(self) -> Any:
        """The JSON of the body.

        Raises:
            ValueError: It is something else.
        """
        return parse_json(self.body)

    @property
    def error_code(self) -> str | None:
        """The code of an error in the API's form; None if the body has another form."""
        try:
            code = self.content["error"]["code"]
        except (ValueError, KeyError, TypeError):
            return None
        return code if isinstance(code, str) else None


def send(
    method: str,
    url: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    form: Mapping[str, str] | None = None,
) -> Answer:
    """Send a request, and note when the parts of the answer arrive. Redirects are not followed.

    Args:
        method: HTTP method.
        url: Where to.
        body: The body, or the file of a form.
        headers: Headers.
        form: The fields of a form before its file.

    Raises:
        NotTried: The connection was lost, or could not be made.
    """
    content: dict[str, Any] = {"content": body}
    if form is not None:
        content = {"data": dict(form), "files": {"file": ("file", body or b"")}}
    parts, arrivals = [], []
    try:
        with _client(is_secure=not url.startswith("http:")).stream(
            method, url, headers=dict(headers or {}), **content
        ) as response:
            for part in response.iter_raw():
                parts.append(part)
                arrivals.append(time.monotonic())
    except httpx2.TransportError as error:
        raise NotTried(f"a server did not answer ({type(error).__name__})") from error
    found = {name.lower(): value for name, value in response.headers.items()}
    since_first = tuple(arrival - arrivals[0] for arrival in arrivals)
    return Answer(response.status_code, found, b"".join(parts), since_first)


@cache
def _client(*, is_secure: bool) -> httpx2.Client:
    """Make a client without a proxy and certificates of the user's environment; without TLS it loads none."""
    client = httpx2.Client(trust_env=False, verify=is_secure, timeout=TIMEOUT_SECONDS)
    client.headers["Accept-Encoding"] = "identity"
    return client
