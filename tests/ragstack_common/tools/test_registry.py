"""Tools are known by one name each, and whatever goes wrong in one is in its result."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from ragstack_common.errors import ConfigurationError, ThrottledError
from ragstack_common.tools import DuplicateToolError, Registry, ToolError, ToolInput, UnknownToolError


class Echo:
    description = "Says what it is told."
    input_schema: Mapping[str, Any] = {"type": "object"}
    output_schema: Mapping[str, Any] = {"type": "object"}

    def __init__(self, name: str = "echo", error: Exception | None = None) -> None:
        self.name = name
        self.closed = 0
        self._error = error

    async def run(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._error is not None:
            raise self._error
        return {"said": dict(data)}

    async def close(self) -> None:
        self.closed += 1


def registry(*tools: Echo) -> Registry:
    made = Registry()
    for tool in tools:
        made.register(tool)
    return made


def test_a_tool_is_run_by_its_name() -> None:
    result = registry(Echo()).execute_now(ToolInput("echo", {"a": 1}))

    assert result.as_json() == {"success": True, "data": {"said": {"a": 1}}}
    assert result.seconds > 0


def test_tools_are_listed_in_the_order_of_their_names() -> None:
    listed = registry(Echo("b"), Echo("a")).list()

    assert [tool["name"] for tool in listed] == ["a", "b"]
    assert set(listed[0]) == {"name", "description", "input_schema", "output_schema"}


def test_a_second_tool_of_a_name_is_refused_and_the_first_stays() -> None:
    first = Echo()
    made = registry(first)

    with pytest.raises(DuplicateToolError, match="echo is already registered"):
        made.register(Echo())
    assert made.get("echo") is first


def test_a_tool_without_a_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="needs a name"):
        Registry().register(Echo(""))


@pytest.mark.parametrize("name", ["other", "", None, [], "x" * 200])
def test_an_unknown_tool_is_named_with_those_that_there_are(name: Any) -> None:
    with pytest.raises(UnknownToolError, match=r"unknown tool: .*; registered: echo") as raised:
        registry(Echo()).execute_now(ToolInput(name))

    assert len(str(raised.value)) < 130


def test_an_error_of_ours_is_told_word_for_word() -> None:
    cause = ThrottledError("too many")

    result = registry(Echo(error=cause)).execute_now(ToolInput("echo"))

    assert result.as_json() == {"success": False, "error": "too many"}
    assert result.cause is cause


def test_a_broken_tool_is_logged_and_tells_nothing_of_its_inside(caplog: pytest.LogCaptureFixture) -> None:
    result = registry(Echo(error=KeyError("password"))).execute_now(ToolInput("echo"))

    assert result.as_json() == {"success": False, "error": "the tool echo failed: KeyError"}
    assert "The tool echo is broken" in caplog.text


def test_what_ends_the_process_is_not_held_up() -> None:
    async def cancelled() -> None:
        tool = Echo(error=asyncio.CancelledError())
        await registry(tool).execute(ToolInput("echo"))

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())


def test_a_run_without_an_event_loop_leaves_none_behind() -> None:
    registry(Echo()).execute_now(ToolInput("echo"))

    with pytest.raises(RuntimeError, match="no running event loop"):
        asyncio.get_running_loop()


def test_a_run_to_wait_for_is_refused_where_an_event_loop_runs() -> None:
    async def inside() -> None:
        registry(Echo()).execute_now(ToolInput("echo"))

    with pytest.raises(RuntimeError, match="An event loop is running in this thread"):
        asyncio.run(inside())


def test_closing_closes_every_tool() -> None:
    tools = Echo("a"), Echo("b")

    asyncio.run(registry(*tools).close())

    assert [tool.closed for tool in tools] == [1, 1]


def test_a_tools_own_words_are_its_error() -> None:
    result = registry(Echo(error=ToolError("texts[1] must be a string"))).execute_now(ToolInput("echo"))

    assert result.error == "texts[1] must be a string"
