"""Clients of AWS that remove delays, wait for a result, fail, or end the function that calls them."""

from dataclasses import dataclass
from typing import Any

from tests.local_bedrock.support import Source
from tests.support.changed_client import changed_client


def undelayed(sqs: Any) -> Any:
    """Send messages without delay, after checking that SQS takes the real one."""

    def send(method: Any, Entries: Any, **parameters: Any) -> Any:  # noqa: N803 - boto3's names
        assert all(0 <= entry["DelaySeconds"] <= 900 for entry in Entries)
        return method(**parameters, Entries=[{**entry, "DelaySeconds": 0} for entry in Entries])

    return changed_client(sqs, "send_message_batch", send)


def patient(*sources: Source) -> Any:
    """Answer about an ingestion job once it has ended: asking again and again costs more than waiting."""
    by_id = {source.id: source for source in sources}

    def get(method: Any, **parameters: Any) -> Any:
        by_id[parameters["dataSourceId"]].ended(parameters["ingestionJobId"])
        return method(**parameters)

    return changed_client(sources[0].bedrock.agent, "get_ingestion_job", get)


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
