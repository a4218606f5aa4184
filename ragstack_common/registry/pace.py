"""How long the knowledge base takes at present, so that it is asked when there is something to hear.

The function that follows documents learns it; the one that submits them reads it, when it says when to ask first. What
was learned a while ago is forgotten: the next load is another one.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.registry.table import PACE, PARTITION_KEY, SORT_KEY

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

FORGOTTEN_AFTER_SECONDS: Final = 300.0

WEIGHT: Final = 0.4
"""Of what was heard last, in the moving average."""

WORTH_WRITING: Final = 0.2
"""The share by which the average must have moved, so that not every invocation writes."""

READ_EVERY_SECONDS: Final = 5.0

_KEY: Final[Any] = {PARTITION_KEY: {"S": PACE}, SORT_KEY: {"S": PACE}}


@dataclass(frozen=True)
class _Learned:
    seconds: float
    at: float


class Pace:
    """How long it is from the acceptance of documents to the end of the last of them: an average that falls at once."""

    def __init__(self, client: "DynamoDBClient", table: str, *, clock: Callable[[], float] = time.time) -> None:
        """Bind the registry's table."""
        self._client = client
        self._table = table
        self._clock = clock
        self._known: _Learned | None = None
        self._written: _Learned | None = None
        self._read_at = float("-inf")

    def expected_seconds(self) -> float | None:
        """Tell how long documents take at present; None when there were none in the last minutes.

        Raises:
            ClientError: The table cannot be read.
        """
        self._read()
        return self._known.seconds if self._known else None

    def learn(self, seconds: float) -> None:
        """Take in how long documents took that were asked about together.

        Raises:
            ClientError: The table cannot be written.
        """
        self._read()
        now = self._clock()
        known, written = self._known, self._written
        if known is None or seconds < known.seconds:
            # To ask too early costs one call; to ask too late makes everybody wait.
            average = seconds
        else:
            average = known.seconds + WEIGHT * (seconds - known.seconds)
        self._known = _Learned(average, now)
        if (
            written is None
            or now - written.at > FORGOTTEN_AFTER_SECONDS / 2
            or abs(average - written.seconds) > WORTH_WRITING * written.seconds
        ):
            item = {**_KEY, "seconds": {"N": f"{average:.3f}"}, "at": {"N": f"{now:.3f}"}}
            self._client.put_item(TableName=self._table, Item=item)
            self._written = self._known

    def _read(self) -> None:
        now = self._clock()
        if now - self._read_at >= READ_EVERY_SECONDS:
            item = self._client.get_item(TableName=self._table, Key=_KEY).get("Item")
            self._written = _learned(item) if item else None
            if self._written and (self._known is None or self._written.at > self._known.at):
                self._known = self._written
            self._read_at = now
        if self._known is not None and now - self._known.at > FORGOTTEN_AFTER_SECONDS:
            self._known = None


def _learned(item: Mapping[str, Any]) -> _Learned | None:
    """Read what was learned; None where somebody edited it, until it is learned anew."""
    try:
        return _Learned(float(item["seconds"]["N"]), float(item["at"]["N"]))
    except (KeyError, ValueError):
        return None
