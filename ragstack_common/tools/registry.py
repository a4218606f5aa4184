"""Tools by name, and how they are run."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from ragstack_common.errors import ConfigurationError, InvalidRequestError, RagStackError

T = TypeVar("T")

logger: Final = logging.getLogger("ragstack.tools")


class UnknownToolError(InvalidRequestError):
    """No tool of that name is registered."""


class DuplicateToolError(ConfigurationError):
    """A tool of that name is registered already."""


@dataclass(frozen=True)
class ToolInput:
    """What a tool is asked.

    Attributes:
        name: The tool.
        data: Its input, as JSON holds it.
    """

    name: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolResult:
    """What a tool answered.

    Attributes:
        success: Whether *data* is the answer.
        data: The answer, as the tool's output schema describes it; None where there is none.
        error: What went wrong, for the caller to read; None of a success.
        seconds: Time of the run.
        cause: The error behind *error*, where there was one. It is not part of the result's JSON.
    """

    success: bool
    data: Mapping[str, Any] | None = None
    error: str | None = None
    seconds: float = 0.0
    cause: Exception | None = field(default=None, compare=False)

    def as_json(self) -> dict[str, Any]:
        """Return ``{"success": true, "data": {...}}`` or ``{"success": false, "error": "..."}``."""
        if self.success:
            return {"success": True, "data": self.data}
        return {"success": False, "error": self.error}


class ToolError(InvalidRequestError):
    """A tool's input cannot be used; the message is for the caller, word for word."""


class Tool(Protocol):
    """Something that a caller, often a language model, can have done.

    Attributes:
        name: What it is called by.
        description: What it does and when to use it.
        input_schema: JSON schema of its input.
        output_schema: JSON schema of its answer.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]

    async def run(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Do it.

        Raises:
            RagStackError: It cannot be done; the message goes to the caller.
        """
        ...

    async def close(self) -> None:
        """Release connections, files and threads."""
        ...


class Registry:
    """Holds tools, tells what they take, and runs them.

    Any thread may use it; :meth:`execute` may run on any event loop.
    """

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}

    def register(self, tool: Tool) -> None:
        """Make a tool known by its name.

        Raises:
            DuplicateToolError: There is one of that name.
            ConfigurationError: It has no name.
        """
        if not isinstance(tool.name, str) or not tool.name:
            raise ConfigurationError(f"A tool needs a name, not {tool.name!r}")
        if self._tools.setdefault(tool.name, tool) is not tool:
            raise DuplicateToolError(f"The tool {tool.name} is registered already: give this one another name")

    def get(self, name: str) -> Tool:
        """Return the tool of that name.

        Raises:
            UnknownToolError: There is none.
        """
        try:
            return self._tools[name]
        except (KeyError, TypeError):
            known = ", ".join(sorted(self._tools)) or "none"
            raise UnknownToolError(f"unknown tool: {name!s:.80}; registered: {known}") from None

    def list(self) -> list[dict[str, Any]]:
        """Describe the tools in the order of their names: name, description, input_schema, output_schema."""
        return [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.input_schema,
                "output_schema": tool.output_schema,
            }
            for _, tool in sorted(self._tools.items())
        ]

    async def execute(self, request: ToolInput) -> ToolResult:
        """Run a tool. What goes wrong in it is in the result, whatever it is.

        Raises:
            UnknownToolError: There is no tool of that name.
        """
        tool = self.get(request.name)
        start = time.perf_counter()
        try:
            data = await tool.run(request.data)
        except RagStackError as error:
            return ToolResult(success=False, error=str(error), seconds=time.perf_counter() - start, cause=error)
        except Exception as error:
            # A tool is somebody else's code: its callers get an answer, and the log what broke.
            logger.exception("The tool %s is broken", request.name)
            text = f"the tool {request.name} failed: {type(error).__name__}"
            return ToolResult(success=False, error=text, seconds=time.perf_counter() - start, cause=error)
        return ToolResult(success=True, data=data, seconds=time.perf_counter() - start)

    def execute_now(self, request: ToolInput) -> ToolResult:
        """Run a tool and wait for it, where no event loop is running; none is left behind.

        Raises:
            UnknownToolError: As :meth:`execute`.
            RuntimeError: An event loop is running in this thread: await :meth:`execute`.
        """
        return now(lambda: self.execute(request))

    async def close(self) -> None:
        """Close every tool."""
        for tool in self._tools.values():
            await tool.close()


def now(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run something on an event loop of its own, and leave none behind.

    Raises:
        RuntimeError: One is running in this thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    raise RuntimeError("An event loop is running in this thread: await the asynchronous form")
