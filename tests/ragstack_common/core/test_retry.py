"""The back-off, without waiting for it."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError, ReadTimeoutError

from ragstack_common.core.retry import Backoff

CONFLICT = ClientError({"Error": {"Code": "ConflictException", "Message": "busy"}}, "StartIngestionJob")
DENIED = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "StartIngestionJob")


class Operation:
    """Raises the errors given, one a call, then returns done."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def backoff(delays: list[float], *, most: bool = True, **options: Any) -> Backoff:
    return Backoff(
        **{"retries": 5, "base_seconds": 2.0, **options},
        sleep=delays.append,
        uniform=lambda least, greatest: greatest if most else least,
    )


@pytest.mark.parametrize(
    ("most", "ceiling", "expected"),
    [(True, 60, [2, 4, 8, 16, 32]), (False, 60, [1, 2, 4, 8, 16]), (True, 5, [2, 4, 5, 5, 5])],
)
def test_delays_double_up_to_the_ceiling(most: bool, ceiling: float, expected: list[float]) -> None:
    """Jitter takes away at most half of each delay."""
    delays: list[float] = []

    backoff(delays, most=most, ceiling_seconds=ceiling).call(Operation(*[CONFLICT] * 5), retry_on=lambda _: True)

    assert delays == expected


@pytest.mark.parametrize("retries", [0, 1, 5])
def test_the_last_error_after_all_retries_propagates(retries: int) -> None:
    """The first call does not count as a retry."""
    delays: list[float] = []
    last = ClientError({"Error": {"Code": "ConflictException", "Message": "still"}}, "StartIngestionJob")
    operation = Operation(*[CONFLICT] * retries, last, last)

    with pytest.raises(ClientError) as caught:
        backoff(delays, retries=retries).call(operation, retry_on=lambda _: True)

    assert caught.value is last
    assert operation.calls == retries + 1
    assert len(delays) == retries


def test_an_error_that_another_attempt_cannot_save_is_raised_at_once() -> None:
    delays: list[float] = []
    operation = Operation(CONFLICT, DENIED)

    with pytest.raises(ClientError) as caught:
        backoff(delays).call(operation, retry_on=lambda error: error is CONFLICT)

    assert caught.value is DENIED
    assert (operation.calls, delays) == (2, [2.0])


@pytest.mark.parametrize(
    "error",
    [
        EndpointConnectionError(endpoint_url="http://127.0.0.1:1"),
        ConnectionClosedError(endpoint_url="http://127.0.0.1:1"),
        ReadTimeoutError(endpoint_url="http://127.0.0.1:1"),
    ],
)
def test_a_lost_connection_can_be_retried(error: Exception) -> None:
    asked: list[Exception] = []

    def retry(failure: Exception) -> bool:
        asked.append(failure)
        return True

    backoff([]).call(Operation(error), retry_on=retry)

    assert asked == [error]
