"""The registry of tools."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from ragstack_common.core.errors import ConfigurationError, ThrottledError
from ragstack_common.tools import DuplicateToolError, Registry, ToolInput, UnknownToolError


class Echo:
    description = "Returns its input."
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


def test_tools_are_listed_by_name() -> None:
    listed = registry(Echo("b"), Echo("a")).list()

    assert [tool["name"] for tool in listed] == ["a", "b"]
    assert set(listed[0]) == {"name", "description", "input_schema", "output_schema"}


def test_a_second_tool_with_the_same_name_is_an_error() -> None:
    first = Echo()
    made = registry(first)

    with pytest.raises(DuplicateToolError, match="echo is already registered"):
        made.register(Echo())
    assert made.get("echo") is first


def test_a_tool_without_a_name_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="needs a name"):
        Registry().register(Echo(""))


@pytest.mark.parametrize("name", ["other", "", None, [], "x" * 200])
def test_an_unknown_tool_is_an_error_that_lists_the_registered_ones(name: Any) -> None:
    with pytest.raises(UnknownToolError, match=r"unknown tool: .*; registered: echo") as raised:
        registry(Echo()).execute_now(ToolInput(name))

    assert len(str(raised.value)) < 130


def test_the_message_of_an_error_is_returned() -> None:
    cause = ThrottledError("too many")

    result = registry(Echo(error=cause)).execute_now(ToolInput("echo"))

    assert result.as_json() == {"success": False, "error": "too many"}
    assert result.cause is cause


def test_a_bug_in_a_tool_is_logged_and_its_message_is_not_returned(caplog: pytest.LogCaptureFixture) -> None:
    result = registry(Echo(error=KeyError("password"))).execute_now(ToolInput("echo"))

    assert result.as_json() == {"success": False, "error": "the tool echo failed: KeyError"}
    assert "The tool echo is broken" in caplog.text


def test_closing_closes_every_tool() -> None:
    tools = Echo("a"), Echo("b")

    asyncio.run(registry(*tools).close())

    assert [tool.closed for tool in tools] == [1, 1]
