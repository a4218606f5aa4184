"""Requests sent by boto3 with its own validation off, and the answers as they came over the wire."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore import xform_name
from botocore.eventstream import EventStreamBuffer, EventStreamMessage
from botocore.exceptions import ClientError, EventStreamError
from botocore.model import OperationModel

from tests.conformance.models import SERVICES
from tests.local_bedrock.support import client

ERROR_TYPE = "x-amzn-errortype"

Change = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Exchange:
    """An answer.

    Attributes:
        operation: What was asked for.
        status: The HTTP status.
        headers: Names in lower case.
        body: As it came; of an event stream all of it.
        parsed: What boto3 made of it, None of an error.
    """

    operation: OperationModel
    status: int
    headers: Mapping[str, str]
    body: bytes
    parsed: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def succeeded(self) -> bool:
        return self.status < 300

    @property
    def code(self) -> str:
        """The code of an error; empty of a success."""
        return self.headers.get(ERROR_TYPE, "").split(":")[0]

    @property
    def document(self) -> Any:
        return json.loads(self.body) if self.body else {}

    @property
    def message(self) -> str:
        return str(self.document.get("message", ""))

    @property
    def events(self) -> list[EventStreamMessage]:
        """The messages of an event stream, their checksums proven."""
        buffer = EventStreamBuffer()
        buffer.add_data(self.body)
        return list(buffer)


class _Replayed:
    """An event stream that was read already, as botocore reads one."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self) -> Iterator[bytes]:
        yield self._body

    def close(self) -> None:
        """There is nothing left to close."""


class Wire:
    """Speaks with the local Bedrock through boto3's clients; not for several threads at once."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._clients = {service: client(service, url, validate=False) for service in SERVICES}
        self._change: Change | None = None
        self._answer: dict[str, Any] = {}
        for each in self._clients.values():
            each.meta.events.register("before-call", self._before_call)
            each.meta.events.register("before-parse", self._before_parse)

    def send(self, operation: OperationModel, request: Mapping[str, Any], change: Change | None = None) -> Exchange:
        """Send a request.

        Args:
            operation: Which.
            request: Its members.
            change: Makes another JSON body of the one that botocore wrote.
        """
        self._change, self._answer = change, {}
        parsed = None
        try:
            parsed = getattr(self._clients[operation.service_model.service_name], xform_name(operation.name))(**request)
            if operation.has_event_stream_output:
                _read_all(parsed)
        except (ClientError, EventStreamError):
            pass
        headers = {name.lower(): value for name, value in self._answer["headers"].items()}
        return Exchange(operation, self._answer["status_code"], headers, self._answer["body"], parsed)

    def _before_call(self, params: dict[str, Any], **_event: Any) -> None:
        if self._change is not None:
            changed = self._change(json.loads(params["body"] or b"{}"))
            params["body"] = json.dumps(changed, default=_in_base64).encode()

    def _before_parse(self, operation_model: OperationModel, response_dict: dict[str, Any], **_event: Any) -> None:
        self._answer = dict(response_dict)
        body = response_dict["body"]
        if operation_model.has_event_stream_output and response_dict["status_code"] < 300:
            self._answer["body"] = body.read()
            response_dict["body"] = _Replayed(self._answer["body"])
        elif operation_model.has_streaming_output and response_dict["status_code"] < 300:
            self._answer["body"] = body.read()


def _in_base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _read_all(parsed: Mapping[str, Any]) -> None:
    for value in parsed.values():
        if hasattr(value, "close"):
            list(value)
