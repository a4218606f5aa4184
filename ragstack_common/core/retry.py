"""Retries with exponential delays."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from botocore.exceptions import ClientError, ConnectionError, HTTPClientError  # noqa: A004 - botocore's own name

T = TypeVar("T")

LOST = (ConnectionError, HTTPClientError)
"""Errors after which the call may have been carried out; a stable client token makes repeating it safe."""


@dataclass(frozen=True)
class Backoff:
    """Exponential delays with jitter: between half and all of min(ceiling, base * 2**n) seconds.

    *retries* is the number of calls after the first, 0 or more.
    """

    retries: int
    base_seconds: float
    ceiling_seconds: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    uniform: Callable[[float, float], float] = random.uniform

    def call(self, operation: Callable[[], T], *, retry_on: Callable[[Exception], bool]) -> T:
        """Call until it succeeds, fails with another error, or the retries are used up; the last error is raised."""
        for attempt in range(self.retries):
            try:
                return operation()
            except (ClientError, *LOST) as error:
                if not retry_on(error):
                    raise
            self.pause(attempt)
        return operation()

    def pause(self, attempt: int) -> None:
        """Wait as long as after the attempt with this number, counted from 0."""
        delay = min(self.ceiling_seconds, self.base_seconds * 2**attempt)
        self.sleep(self.uniform(delay / 2, delay))
