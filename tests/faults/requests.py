"""Which operation of which service a request is, and how that service says that something went wrong."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_SCOPE: Final = re.compile(r"Credential=[^/]+/\d{8}/[^/]+/([^/]+)/aws4_request")
_FORM: Final = "multipart/form-data"
_TARGETS: Final = {"DynamoDB_20120810": "dynamodb", "AmazonSQS": "sqs", "AWSEvents": "events"}


@dataclass(frozen=True)
class Operation:
    """What a request asks for; the service is empty for one that no fault is known for."""

    service: str
    name: str

    def __str__(self) -> str:
        return f"{self.service} {self.name}"


@dataclass(frozen=True)
class Answer:
    """An answer that the proxy makes itself."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Failure:
    """An error in the words of a service."""

    status: int
    code: str
    message: str
    more: Mapping[str, Any] | None = None

    def answer(self, operation: Operation) -> Answer:
        """Say it in the protocol that the service's clients speak."""
        if operation.service == "s3":
            head = operation.name.startswith("Head")
            text = (
                f"<Error><Code>{self.code}</Code><Message>{self.message}</Message><RequestId>FAULT</RequestId></Error>"
            )
            body = b"" if head else b'<?xml version="1.0" encoding="UTF-8"?>\n' + text.encode()
            return Answer(self.status, {"Content-Type": "application/xml"}, body)
        name = f"{_PREFIXES[operation.service]}{self.code}"
        headers = {"Content-Type": "application/x-amz-json-1.0", "x-amzn-RequestId": "FAULT"}
        if operation.service == "sqs":
            # Source: Smithy, awsQueryCompatible: SQS repeats the code of its former protocol in this header.
            headers["x-amzn-query-error"] = f"{self.code};{'Sender' if self.status < 500 else 'Receiver'}"
        return Answer(
            self.status, headers, json.dumps({"__type": name, "message": self.message, **(self.more or {})}).encode()
        )


_PREFIXES: Final = {"dynamodb": "com.amazonaws.dynamodb.v20120810#", "sqs": "com.amazonaws.sqs#", "events": ""}

THROTTLED: Final[Mapping[str, tuple[Failure, ...]]] = {
    "dynamodb": (
        Failure(400, "ProvisionedThroughputExceededException", "The level of configured throughput was exceeded"),
        Failure(400, "ThrottlingException", "Rate of requests exceeds the allowed throughput"),
        Failure(400, "RequestLimitExceeded", "Throughput exceeds the current throughput limit for your account"),
    ),
    "s3": (Failure(503, "SlowDown", "Please reduce your request rate."),),
    "sqs": (
        Failure(400, "RequestThrottled", "The request was denied due to request throttling"),
        Failure(400, "ThrottlingException", "Rate exceeded"),
    ),
    "events": (Failure(400, "ThrottlingException", "Rate exceeded"),),
}

BROKEN: Final[Mapping[str, tuple[Failure, ...]]] = {
    "dynamodb": (Failure(500, "InternalServerError", "Internal server error"),),
    "s3": (
        Failure(500, "InternalError", "We encountered an internal error. Please try again."),
        Failure(503, "ServiceUnavailable", "Please try again."),
    ),
    "sqs": (
        Failure(500, "InternalFailure", "We encountered an internal error. Please try again."),
        Failure(503, "ServiceUnavailable", "Service is unavailable."),
    ),
    "events": (Failure(500, "InternalException", "An internal error has occurred"),),
}


def cancelled(actions: int, struck: int) -> Failure:
    """Cancel a transaction because of one of its actions, as DynamoDB does when another one is in the way."""
    reasons: list[dict[str, Any]] = [{"Code": "None"}] * actions
    reasons[struck] = {"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}
    names = ", ".join(reason["Code"] for reason in reasons)
    return Failure(
        400,
        "TransactionCanceledException",
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{names}]",
        {"CancellationReasons": reasons},
    )


def operation_of(method: str, path: str, headers: Mapping[str, str]) -> Operation:
    """Return the operation of a request, by the headers of boto3's clients or of an uploaded form."""
    prefix, _, name = headers.get("x-amz-target", "").partition(".")
    if prefix in _TARGETS:
        return Operation(_TARGETS[prefix], name)
    scope = _SCOPE.search(headers.get("authorization", ""))
    key = path.partition("?")[0].strip("/").partition("/")[2]
    if scope is None and method == "POST" and not key and headers.get("content-type", "").startswith(_FORM):
        return Operation("s3", "PostObject")
    if scope is None or scope[1] != "s3":
        return Operation("", method)
    if not key:
        return Operation("s3", {"GET": "ListObjects", "HEAD": "HeadBucket"}.get(method, f"{method} bucket"))
    return Operation("s3", f"{method.capitalize()}Object")
