"""Several searches in parallel under one deadline."""

import asyncio
from typing import Any

import pytest

from ragstack_common.core import errors
from ragstack_common.search import SearchRequest
from ragstack_common.search.models import SliceReport
from ragstack_common.search.parts import Parts, joint_failure, one_line, search_together
from tests.support.backends import Shelf, chunk, names
from tests.support.virtual_time import in_virtual_time

DOWN = errors.ServiceUnavailableError("no way\nto it")
SLOW = errors.ThrottledError("too many requests")
UNABLE = errors.InvalidFilterError("equals(v) cannot be expressed")


def shelf(error: BaseException | None = None, *, late: bool = False, parts: tuple[SliceReport, ...] = ()) -> Shelf:
    made = Shelf(chunk("one"))
    made.error, made.parts = error, parts
    if late:
        made.gate.clear()
    return made


async def together(**shelves: Shelf) -> Parts:
    return await search_together("backend", {name: (each, SearchRequest("q")) for name, each in shelves.items()}, 0.02)


@in_virtual_time
async def test_failed_and_late_parts_are_reported_and_the_others_answer() -> None:
    late = shelf(late=True)

    parts = await together(late=late, down=shelf(DOWN), broken=shelf(OSError("disk")), up=shelf())
    await asyncio.sleep(0)

    assert {name: names(chunks) for name, chunks in parts.rankings.items()} == {"up": "one"}
    assert [(part.name, part.status, part.hits, part.error) for part in parts.reports] == [
        ("late", "timeout", 0, "The backend late did not answer within 0.02 seconds"),
        ("down", "failed", 0, "no way to it"),
        ("broken", "failed", 0, "OSError"),
        ("up", "ok", 1, None),
    ]
    assert late.cancelled == 1


async def test_a_search_of_several_parts_is_reported_part_by_part() -> None:
    slices = (
        SliceReport(slice="unfiltered", status="ok", milliseconds=1.0, hits=1),
        SliceReport(slice="filtered", status="failed", milliseconds=1.0, hits=0, error="throttled"),
    )

    parts = await together(kb=shelf(parts=slices), one=shelf(parts=slices[1:]))

    assert [(part.name, part.status, part.error) for part in parts.reports] == [
        ("kb: unfiltered", "ok", None),
        ("kb: filtered", "failed", "throttled"),
        ("one: filtered", "failed", "throttled"),
    ]


async def test_if_all_fail_the_error_names_every_cause() -> None:
    with pytest.raises(errors.RetrievalError) as raised:
        await together(a=shelf(DOWN), b=shelf(SLOW), c=shelf(OSError("disk")))

    message = str(raised.value)
    assert type(raised.value) is errors.RetrievalError
    assert all(part in message for part in ["a: no way to it", "b: too many requests", "c: OSError"])
    assert isinstance(raised.value.__cause__, ExceptionGroup)
    assert raised.value.__cause__.exceptions[:2] == (DOWN, SLOW)


@pytest.mark.parametrize(
    ("causes", "kind"),
    [
        ([SLOW, errors.ThrottledError("y")], errors.ThrottledError),
        ([SLOW, DOWN], errors.RetrievalError),
        ([UNABLE, UNABLE, errors.RetrievalTimeoutError("late")], errors.InvalidFilterError),
        ([UNABLE, errors.InvalidQueryError("y")], errors.InvalidRequestError),
        ([UNABLE, SLOW], errors.RetrievalError),
        ([KeyError("x"), KeyError("x")], errors.RetrievalError),
        ([errors.UnknownEngineError("x", []), errors.UnknownEngineError("y", [])], errors.ConfigurationError),
    ],
)
def test_errors_of_all_slices_have_their_nearest_common_class(causes: list[Exception], kind: type) -> None:
    assert type(joint_failure(dict(zip("abc", causes, strict=False)))) is kind


@pytest.mark.parametrize(
    ("error", "line"), [(DOWN, "no way to it"), (OSError("disk"), "OSError"), (OSError(), "OSError")]
)
def test_an_error_is_shown_in_one_line(error: Any, line: str) -> None:
    assert one_line(error) == line
