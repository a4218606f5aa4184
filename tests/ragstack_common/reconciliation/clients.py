"""Clients of AWS that remove delays, wait for a result, or end the function that calls them."""

from dataclasses import dataclass
from typing import Any

from tests.local_bedrock.support import Source


class Undelayed:
    """The client of SQS, whose messages come at once; all else is the real client's."""

    def __init__(self, sqs: Any) -> None:
        self._sqs = sqs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sqs, name)

    def send_message_batch(self, QueueUrl: str, Entries: Any) -> Any:  # noqa: N803 - boto3's names
        """Send without delay, after having checked that the real delay is one that SQS takes."""
        assert all(0 <= entry["DelaySeconds"] <= 900 for entry in Entries)
        entries = [{**entry, "DelaySeconds": 0} for entry in Entries]
        return self._sqs.send_message_batch(QueueUrl=QueueUrl, Entries=entries)


class Patient:
    """The client of bedrock-agent, whose answer about an ingestion job waits until the job has ended.

    How often a function asks until then depends on the speed of the machine, and each time costs more than waiting.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source.bedrock.agent, name)

    def get_ingestion_job(self, **parameters: Any) -> Any:
        """Answer as the service does, once the job has come to its end."""
        self._source.ended(parameters["ingestionJobId"])
        return self._source.bedrock.agent.get_ingestion_job(**parameters)


class KilledError(BaseException):
    """The process was ended; nothing catches this."""


@dataclass
class Death:
    """Ends the process at a call of AWS, before or after it is carried out."""

    at: int
    after: bool = False
    calls: int = 0

    def __call__(self, client: Any) -> Any:
        return _Mortal(client, self)


class _Mortal:
    def __init__(self, client: Any, death: Death) -> None:
        self._client = client
        self._death = death

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if name == "get_paginator" or not callable(method):
            return method

        def call(**parameters: Any) -> Any:
            self._death.calls += 1
            dies = self._death.calls == self._death.at
            if dies and not self._death.after:
                raise KilledError
            try:
                return method(**parameters)
            finally:
                if dies:
                    raise KilledError

        return call
