"""HTTP requests and answers, without the server that carries them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from local_bedrock.wire.eventstream import Messages

ERROR_TYPE_HEADER: Final = "x-amzn-ErrorType"
REQUEST_ID_HEADER: Final = "x-amzn-RequestId"


@dataclass(frozen=True)
class Request:
    """An HTTP request as it came.

    Attributes:
        method: In capitals.
        path: Still percent-encoded, without the query.
        query: The raw query string.
        headers: Names in lower case.
        body: As sent.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Response:
    """An HTTP answer to send.

    Attributes:
        body: The whole body; empty where there is a stream.
        stream: The parts of a body that is sent while it is made; to be closed when the client has gone.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    stream: Messages | None = None


class HeadedAnswer(dict[str, Any]):
    """An answer of an operation that carries HTTP headers which its model does not have.

    Args:
        members: By the operation's output shape.
        headers: Sent beside those of the model.
    """

    def __init__(self, members: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        super().__init__(members)
        self.headers = headers
