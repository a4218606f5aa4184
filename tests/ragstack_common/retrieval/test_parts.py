"""Several calls at once, under one deadline, none of which can fail the others."""

import asyncio

import pytest

from ragstack_common.errors import RetrievalTimeoutError, ThrottledError
from ragstack_common.retrieval.parts import ask_together, one_line


async def value(found: int, turns: int = 0) -> int:
    for _ in range(turns):
        await asyncio.sleep(0)
    return found


async def failing() -> int:
    raise ThrottledError("slow down")


async def waiting() -> int:
    return await asyncio.get_running_loop().create_future()


@pytest.mark.asyncio
async def test_endings_have_the_order_of_the_calls_whoever_ends_first() -> None:
    ended = await ask_together({"late": value(1, turns=9), "made": lambda: value(2), "down": failing()}, 5)

    assert [(name, end.value, end.status) for name, end in ended.items()] == [
        ("late", 1, "ok"),
        ("made", 2, "ok"),
        ("down", None, "failed"),
    ]
    assert isinstance(ended["down"].error, ThrottledError)
    assert all(end.milliseconds >= 0 for end in ended.values())


@pytest.mark.asyncio
async def test_what_is_late_ends_with_an_error_that_names_it_and_the_time() -> None:
    ended = await ask_together({"stuck": waiting(), "up": value(1)}, 0.01)

    assert ended["up"].value == 1
    assert ended["stuck"].status == "timeout"
    assert isinstance(ended["stuck"].error, RetrievalTimeoutError)
    assert str(ended["stuck"].error) == "The backend stuck did not answer within 0.01 seconds"


@pytest.mark.asyncio
async def test_an_error_of_making_the_call_is_that_of_its_part() -> None:
    def broken() -> asyncio.Future[int]:
        raise ValueError("cannot be asked")

    ended = await ask_together({"broken": broken, "up": lambda: value(1)}, 5)

    assert one_line(ended["broken"].error or OSError()) == "ValueError"
    assert ended["up"].value == 1


@pytest.mark.parametrize(
    ("error", "line"),
    [(ThrottledError("slow\n  down"), "slow down"), (OSError("disk"), "OSError"), (OSError(), "OSError")],
)
def test_an_error_is_told_in_one_line(error: Exception, line: str) -> None:
    assert one_line(error) == line
