"""Calls in parallel under one deadline."""

import asyncio
import os
import time
from threading import Event, current_thread
from typing import Any

import pytest

from ragstack_common.core import deadline
from ragstack_common.core.deadline import await_together, in_thread, inner_deadline, seconds_left, wait_for
from tests.support.virtual_time import in_virtual_time

NEVER_MIND_SECONDS = 30.0


@pytest.mark.usefixtures("new_threads")
def test_consecutive_blocking_calls_share_one_thread() -> None:
    async def names() -> set[str]:
        return {await in_thread(lambda: current_thread().name) for _ in range(200)}

    assert len(asyncio.run(names())) == 1


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_and_an_event_loop_of_its_own() -> None:
    assert wait_for(in_thread(lambda: 1)) == 1

    child = os.fork()
    if child == 0:
        os._exit(0 if wait_for(in_thread(lambda: 2)) == 2 else 1)

    assert os.waitpid(child, 0)[1] == 0


async def _value(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


async def _failure(error: Exception) -> Any:
    raise error


async def test_ends_have_the_order_of_the_calls() -> None:
    """Each end has the value or the error of its call."""
    error = ValueError("no")
    second_has_ended = asyncio.Event()

    async def first() -> str:
        await second_has_ended.wait()
        return "first"

    async def second() -> str:
        second_has_ended.set()
        return "second"

    ends = await await_together([first, second, lambda: _failure(error)], NEVER_MIND_SECONDS)

    assert [(end.value, end.error) for end in ends] == [("first", None), ("second", None), (None, error)]


async def test_a_late_call_is_cancelled_without_waiting() -> None:
    cancelled = asyncio.Event()

    async def stubborn() -> int:
        try:
            await asyncio.sleep(NEVER_MIND_SECONDS)
        except asyncio.CancelledError:
            cancelled.set()
            await asyncio.sleep(0.05)  # it takes its time even then
        return 1

    start = time.monotonic()
    late, done = await await_together([stubborn, lambda: _value(7)], 0.3)

    assert time.monotonic() - start < NEVER_MIND_SECONDS / 3
    assert (late.value, late.error, done.value) == (None, None, 7)
    assert late.milliseconds >= 300
    await asyncio.wait_for(cancelled.wait(), NEVER_MIND_SECONDS)


async def test_cancelling_the_caller_cancels_what_it_awaits() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def call() -> None:
        begun.set()
        try:
            await asyncio.sleep(NEVER_MIND_SECONDS)
        finally:
            cancelled.set()

    caller = asyncio.ensure_future(await_together([call], NEVER_MIND_SECONDS))
    await begun.wait()
    caller.cancel()

    await asyncio.wait_for(cancelled.wait(), NEVER_MIND_SECONDS)
    with pytest.raises(asyncio.CancelledError):
        await caller


@pytest.mark.usefixtures("new_threads")
async def test_a_call_cancelled_in_the_queue_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "THREADS", 1)
    release, made = Event(), Event()
    blocking = asyncio.ensure_future(in_thread(lambda: release.wait(NEVER_MIND_SECONDS)))
    queued = asyncio.ensure_future(in_thread(made.set))
    await asyncio.sleep(0)

    queued.cancel()
    await asyncio.sleep(0)
    release.set()
    await blocking
    await in_thread(lambda: None)

    assert not made.is_set()


@in_virtual_time
async def test_inner_deadlines_come_before_outer_ones_at_every_level() -> None:
    clock = asyncio.get_running_loop().time
    ends: list[float] = []

    async def hang(levels: int) -> None:
        if levels:
            await await_together([lambda: hang(levels - 1)], 5.0)
        else:
            await asyncio.sleep(NEVER_MIND_SECONDS)
        ends.append(clock())

    [end] = await await_together([lambda: hang(2)], 5.0)

    assert ends == [pytest.approx(4.5125)] * 2  # so each level has time left to return what it has
    assert not end.late


@in_virtual_time
async def test_an_inner_deadline_of_its_own_counts_where_it_comes_sooner() -> None:
    with inner_deadline(10.0):
        assert seconds_left(1.0) == 1.0
        assert seconds_left(60.0) == 9.75
        with inner_deadline(1.0):
            assert seconds_left(60.0) == 0.95
        with inner_deadline(60.0):
            assert seconds_left(60.0) == 9.5
    assert seconds_left(60.0) == 60.0


@in_virtual_time
async def test_calls_side_by_side_do_not_shorten_each_others_deadline() -> None:
    async def left(after: float) -> float:
        await asyncio.sleep(after)
        with inner_deadline(2.0):
            await asyncio.sleep(1.0)
        return seconds_left(60.0)

    first, second = await await_together([lambda: left(0.0), lambda: left(0.5)], 10.0)

    assert (first.value, second.value) == (8.75, 8.25)
