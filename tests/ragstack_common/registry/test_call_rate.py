"""A rate of calls that many callers keep together."""

import threading
from itertools import pairwise
from math import ceil
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.exceptions import ConnectionError as LostConnection
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common.registry.coordination import CallRate
from tests.ingestion.clock import Clock
from tests.support.registry_table import TABLE

RATE = 5.0
ALLOWANCE = 1
"""One interval behind the clock: a single call more than the rate in any second."""


def most_in_a_second(calls: list[float]) -> int:
    ordered = sorted(calls)
    return max(sum(start <= call < start + 1 - 1e-5 for call in ordered) for start in ordered)


def called(dynamodb: Any, clock: Clock, rate: float = RATE, operation: str = "get") -> float:
    """Take a turn and tell when it is; the clock goes on by itself."""
    slept: list[float] = []
    CallRate(dynamodb, TABLE, rate, clock=clock, sleep=slept.append).wait(operation)
    assert all(seconds > 0 for seconds in slept)
    return clock.now + sum(slept)


def test_the_first_call_waits_for_nothing(dynamodb: Any) -> None:
    clock = Clock()

    assert called(dynamodb, clock) == clock.now


def test_calls_at_once_are_an_interval_apart(dynamodb: Any) -> None:
    clock = Clock()

    calls = [called(dynamodb, clock) for _ in range(11)]

    assert [round(call - clock.now, 3) for call in calls] == [round(number / RATE, 3) for number in range(11)]


def test_every_operation_has_a_rate_of_its_own(dynamodb: Any) -> None:
    clock = Clock()
    for _ in range(10):
        called(dynamodb, clock, operation="get")

    assert called(dynamodb, clock, operation="ingest") == clock.now


def test_a_pause_earns_no_more_than_one_call(dynamodb: Any) -> None:
    clock = Clock()
    called(dynamodb, clock)
    clock.now += 3600

    calls = [called(dynamodb, clock) for _ in range(20)]

    assert most_in_a_second(calls) <= RATE + ALLOWANCE


def test_no_schedule_of_callers_makes_more_calls_in_a_second_than_the_rate_and_one(dynamodb: Any) -> None:
    numbers = iter(range(10**6))

    @given(
        st.lists(st.floats(0, 0.7), min_size=1, max_size=25),
        st.sampled_from([1.0, 2.5, 5.0, 10.0]),
        st.floats(0, 1),
    )
    @settings(max_examples=20, deadline=None)
    def check(pauses: list[float], rate: float, offset: float) -> None:
        clock = Clock(1_800_000_000.0 + offset)
        operation = f"operation-{next(numbers)}"
        calls = []
        for pause in pauses:
            clock.now += pause
            calls.append(called(dynamodb, clock, rate, operation))

        assert most_in_a_second(calls) <= ceil(rate) + ALLOWANCE
        assert all(later - earlier < 1 / rate + 0.7 + 1e-4 for earlier, later in pairwise(sorted(calls)))

    check()


def test_many_threads_keep_the_rate_together(dynamodb: Any) -> None:
    clock = Clock()
    calls: list[float] = []
    one_at_a_time = threading.Lock()

    class Table:
        """Moto's table takes one writer at a time, as DynamoDB does for one item."""

        def update_item(self, **parameters: Any) -> Any:
            with one_at_a_time:
                return dynamodb.update_item(**parameters)

    def work() -> None:
        rate = CallRate(Table(), TABLE, RATE, clock=clock, sleep=lambda seconds: calls.append(clock.now + seconds))  # type: ignore[arg-type]
        for _ in range(5):
            rate.wait("get")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    # The first call of all waits for nothing, and is not noted.
    assert len(calls) == 39
    assert most_in_a_second(calls) <= RATE + ALLOWANCE
    assert max(calls) - clock.now == pytest.approx(39 / RATE, abs=0.01)


def test_an_answer_that_was_lost_costs_a_turn_and_never_gives_one_twice(dynamodb: Any) -> None:
    clock = Clock()
    lost: list[int] = []

    class Losing:
        def update_item(self, **parameters: Any) -> Any:
            answer = dynamodb.update_item(**parameters)
            if len(lost) < 4:
                lost.append(1)
                raise LostConnection(error="gone")
            return answer

    calls = []
    for _ in range(12):
        slept: list[float] = []
        rate = CallRate(Losing(), TABLE, RATE, clock=clock, sleep=slept.append)  # type: ignore[arg-type]
        try:
            rate.wait("get")
        except LostConnection:
            continue
        calls.append(clock.now + sum(slept))

    assert len(calls) == 8
    assert most_in_a_second(calls) <= RATE + ALLOWANCE
    assert len({round(call, 3) for call in calls}) == 8


def test_a_table_that_cannot_be_written_is_the_callers_error(dynamodb: Any) -> None:
    with pytest.raises(ClientError, match="ResourceNotFound"):
        CallRate(dynamodb, "elsewhere", RATE).wait("get")
