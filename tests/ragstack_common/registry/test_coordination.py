"""The rate of calls that functions share, and the gate that stops direct ingestion."""

import threading
from itertools import pairwise
from math import ceil
from typing import Any

import pytest
from botocore.exceptions import ConnectionError as LostConnection
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common.registry.coordination import CallRate, Gate
from tests.ingestion.clock import Clock
from tests.support.changed_client import changed_client
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


def test_every_operation_has_a_rate_of_its_own(dynamodb: Any) -> None:
    clock = Clock()
    for _ in range(10):
        called(dynamodb, clock, operation="get")

    assert called(dynamodb, clock, operation="ingest") == clock.now


def test_every_second_has_at_most_one_call_more_than_the_rate(dynamodb: Any) -> None:
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


def test_threads_share_the_rate(dynamodb: Any) -> None:
    clock = Clock()
    calls: list[float] = []
    one_at_a_time = threading.Lock()

    def update(method: Any, **parameters: Any) -> Any:
        """Moto's table takes one writer at a time, as DynamoDB does for one item."""
        with one_at_a_time:
            return method(**parameters)

    table = changed_client(dynamodb, "update_item", update)

    def work() -> None:
        rate = CallRate(table, TABLE, RATE, clock=clock, sleep=lambda seconds: calls.append(clock.now + seconds))
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


def test_a_lost_response_wastes_a_turn_but_never_grants_it_twice(dynamodb: Any) -> None:
    clock = Clock()
    lost: list[int] = []

    def update(method: Any, **parameters: Any) -> Any:
        answer = method(**parameters)
        if len(lost) < 4:
            lost.append(1)
            raise LostConnection(error=OSError("gone"))
        return answer

    losing = changed_client(dynamodb, "update_item", update)
    calls = []
    for _ in range(12):
        slept: list[float] = []
        rate = CallRate(losing, TABLE, RATE, clock=clock, sleep=slept.append)
        try:
            rate.wait("get")
        except LostConnection:
            continue
        calls.append(clock.now + sum(slept))

    assert len(calls) == 8
    assert most_in_a_second(calls) <= RATE + ALLOWANCE
    assert len({round(call, 3) for call in calls}) == 8


@pytest.fixture
def gate(dynamodb: Any, clock: Clock) -> Gate:
    clock.now = 1_000.0
    return Gate(dynamodb, TABLE, clock=clock)


def test_a_gate_opens_when_its_time_is_over(gate: Gate, clock: Clock) -> None:
    gate.close("one", 1_060.0)
    clock.now = 1_060.0

    assert gate.closed_until() is None


def test_another_job_cannot_move_a_closed_gate(gate: Gate) -> None:
    gate.close("one", 1_060.0)

    assert not gate.close("two", 2_000.0)
    assert not gate.open("two")
    assert gate.closed_until() == 1_060.0


def test_another_job_can_close_an_expired_gate(gate: Gate, clock: Clock) -> None:
    gate.close("one", 1_060.0)
    clock.now = 1_061.0

    assert gate.close("two", 2_000.0)
    assert not gate.open("one")
    assert not gate.close("one", 3_000.0)
    assert gate.closed_until() == 2_000.0
