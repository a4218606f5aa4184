"""Clients of moto and the local Bedrock, whose every call tests can intercept."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ConnectionClosedError

from tests.ingestion.clock import Clock

REGION = "us-east-1"
MAX_VISIBILITY = 43_200
MAX_DELAY = 900

HELD_SECONDS = 40_000
"""Longer than any test: tests decide when a received message is due again."""

Intercept = Callable[[str, str, dict[str, Any]], None]
"""Called with "before" or "after", the operation, and the request or the response, which it may change; an exception
that it raises is the result of the call."""


class Killed(BaseException):
    """The function is killed here."""


def nothing(_moment: str, _operation: str, _data: dict[str, Any]) -> None:
    """Change no call."""


def raising(moment: str, operation: str, failure: Callable[[], BaseException]) -> Intercept:
    """Fail each call of one operation, before it is made or after it was carried out."""

    def intercept(now: str, called: str, _data: dict[str, Any]) -> None:
        if (now, called) == (moment, operation):
            raise failure()

    return intercept


def lost() -> BaseException:
    """Return the error of a connection that was closed before the response."""
    return ConnectionClosedError(endpoint_url="https://service")


@dataclass
class Aws:
    """The clients of the functions, and a record of their calls.

    Attributes:
        clock: By which the delays of queues count.
        intercept: Stands around every call.
        calls: The operations, in order.
        published: What the event bus took.
        delays: Until when a message that was given back waits, by receipt handle.
        unread: The queues to which something was sent since they were read.
    """

    agent_url: str
    clock: Clock
    intercept: Intercept = nothing
    calls: list[str] = field(default_factory=list)
    published: list[dict[str, Any]] = field(default_factory=list)
    delays: dict[str, float] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._publishing = threading.local()
        self._session: Any = boto3.Session()
        self.agent = self._client("bedrock-agent", self.agent_url)
        self.runtime = self._client("bedrock-agent-runtime", self.agent_url)
        self.dynamodb = self._client("dynamodb")
        self.events = self._client("events")
        self.s3 = self._client("s3")
        self.sqs = self._client("sqs")

    def forget(self) -> None:
        """Reset everything."""
        self.clock.now = Clock.now
        self.intercept = nothing
        for taken in (self.calls, self.published, self.delays, self.unread):
            taken.clear()

    @contextmanager
    def intercepted(self, intercept: Intercept) -> Iterator[None]:
        before, self.intercept = self.intercept, intercept
        try:
            yield
        finally:
            self.intercept = before

    def _client(self, service: str, url: str | None = None) -> Any:
        config = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=30)
        client = self._session.client(service, region_name=REGION, endpoint_url=url, config=config)
        hooks = client.meta.events
        hooks.register("provide-client-params.sqs.SendMessage", self._sent)
        hooks.register("provide-client-params.sqs.SendMessageBatch", self._delayed)
        hooks.register("provide-client-params.sqs.ChangeMessageVisibility", self._given_back)
        hooks.register("provide-client-params.events.PutEvents", self._to_publish)
        hooks.register("before-call", self._before)
        hooks.register("after-call", self._after)
        return client

    def _before(self, model: Any, params: dict[str, Any], **_: Any) -> None:
        self.intercept("before", model.name, params)
        self.calls.append(model.name)

    def _after(self, model: Any, parsed: dict[str, Any], **_: Any) -> None:
        if model.name == "PutEvents" and not parsed.get("FailedEntryCount"):
            self.published += self._publishing.entries
        self.intercept("after", model.name, parsed)

    def _to_publish(self, params: dict[str, Any], **_: Any) -> None:
        self._publishing.entries = params["Entries"]

    def _sent(self, params: dict[str, Any], **_: Any) -> None:
        self.unread.add(params["QueueUrl"])

    def _delayed(self, params: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Send the message without its delay, and with the due time as an attribute."""
        self._sent(params)
        entries = []
        for entry in params["Entries"]:
            delay = entry.get("DelaySeconds", 0)
            assert isinstance(delay, int)
            assert 0 <= delay <= MAX_DELAY, "the queue would refuse it"
            due = {"DataType": "Number", "StringValue": repr(self.clock() + delay)}
            entries.append(
                {**entry, "DelaySeconds": 0, "MessageAttributes": {**entry.get("MessageAttributes", {}), "Due": due}}
            )
        return {**params, "Entries": entries}

    def _given_back(self, params: dict[str, Any], **_: Any) -> dict[str, Any]:
        seconds = params["VisibilityTimeout"]
        assert isinstance(seconds, int)
        assert 0 <= seconds <= MAX_VISIBILITY, "the queue would refuse it"
        self.delays[params["ReceiptHandle"]] = self.clock() + seconds
        return {**params, "VisibilityTimeout": HELD_SECONDS}
