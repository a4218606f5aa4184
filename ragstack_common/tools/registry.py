"""Tools by name: how they are run in Python and over HTTP."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Protocol, runtime_checkable

from ragstack_common.access.callers import OPERATOR, Caller
from ragstack_common.access.guard import Guard
from ragstack_common.core.deadline import in_thread, wait_for
from ragstack_common.core.errors import (
    ConfigurationError,
    InvalidRequestError,
    NotAllowedError,
    RagStackError,
    RetrievalError,
)
from ragstack_common.core.reporting import public_message, record_failure
from ragstack_common.core.telemetry import NO_METRICS, MetricSink

Answer = tuple[int, dict[str, Any]]
"""HTTP status and body."""

logger: Final = logging.getLogger("ragstack.tools")


class UnknownToolError(InvalidRequestError):
    """The tool is not registered."""


class DuplicateToolError(ConfigurationError):
    """A tool with this name is already registered."""


class ToolError(InvalidRequestError):
    """The input of a tool is not valid. The caller gets the message word for word."""


class QueryFailedError(RetrievalError):
    """The search of a tool failed; ``__cause__`` is its error."""


@dataclass(frozen=True)
class ToolInput:
    """A call of a tool, with its input from JSON."""

    name: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolResult:
    """The result of a tool.

    Attributes:
        data: The result, as the tool's output schema describes it; None after an error.
        error: The message for the caller; None after success.
        cause: The exception behind *error*. It is not part of the result's JSON.
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


class Tool(Protocol):
    """A function for callers such as language models."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]

    async def run(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run the tool.

        Raises:
            RagStackError: The run failed; the caller gets the message.
        """
        ...

    async def close(self) -> None:
        """Release connections, files and threads."""
        ...


@runtime_checkable
class ScopedTool(Protocol):
    """A tool that restricts its results to what a caller sees. Other tools run only for those who see everything."""

    async def run_as(self, caller: Caller, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run the tool for a caller; otherwise the same as :meth:`Tool.run`."""
        ...


class Registry:
    """Holds, describes and runs tools. Any thread may use it; :meth:`execute` may run on any event loop.

    Without rules, the *guard* shows everything to every caller.
    """

    def __init__(self, guard: Guard | None = None) -> None:
        self._tools: dict[str, Tool] = {}
        self._guard = guard or Guard()

    def register(self, tool: Tool) -> None:
        """Add a tool.

        Raises:
            DuplicateToolError: A tool with this name is already registered.
            ConfigurationError: The tool has no name.
        """
        if not isinstance(tool.name, str) or not tool.name:
            raise ConfigurationError(f"A tool needs a name, not {tool.name!r}")
        if self._tools.setdefault(tool.name, tool) is not tool:
            raise DuplicateToolError(f"The tool {tool.name} is already registered: use another name")

    def get(self, name: str) -> Tool:
        """Return a tool by its name.

        Raises:
            UnknownToolError: The tool is not registered.
        """
        try:
            return self._tools[name]
        except (KeyError, TypeError):
            known = ", ".join(sorted(self._tools)) or "none"
            raise UnknownToolError(f"unknown tool: {name!s:.80}; registered: {known}") from None

    def list(self) -> list[dict[str, Any]]:
        """Return name, description, input_schema and output_schema of all tools, sorted by name."""
        members = ("name", "description", "input_schema", "output_schema")
        return [{member: getattr(tool, member) for member in members} for _, tool in sorted(self._tools.items())]

    async def execute(self, request: ToolInput, caller: Caller = OPERATOR) -> ToolResult:
        """Run a tool on what a caller sees. Every error in it becomes part of the result.

        Raises:
            UnknownToolError: The tool is not registered.
        """
        tool = self.get(request.name)
        start = time.perf_counter()
        try:
            data = await self._run(tool, request.data, caller)
        except RagStackError as error:
            return ToolResult(success=False, error=str(error), seconds=time.perf_counter() - start, cause=error)
        except Exception as error:
            # A bug in a tool: the caller gets an answer, and the log the details.
            logger.exception("The tool %s is broken", request.name)
            text = f"the tool {request.name} failed: {type(error).__name__}"
            return ToolResult(success=False, error=text, seconds=time.perf_counter() - start, cause=error)
        return ToolResult(success=True, data=data, seconds=time.perf_counter() - start)

    async def _run(self, tool: Tool, data: Mapping[str, Any], caller: Caller) -> Mapping[str, Any]:
        if isinstance(tool, ScopedTool):
            return await tool.run_as(caller, data)
        if caller.is_local or (await in_thread(self._guard.rules)).sees_everything(caller):
            return await tool.run(data)
        raise NotAllowedError(f"The tool {tool.name} cannot restrict its results to what {caller.name} sees")

    def execute_now(self, request: ToolInput) -> ToolResult:
        """Run :meth:`execute` and wait for it; not for a thread with a running event loop."""
        return wait_for(self.execute(request))

    async def close(self) -> None:
        """Close all tools."""
        for tool in self._tools.values():
            await tool.close()


def list_tools(registry: Registry) -> dict[str, Any]:
    """Answer ``GET /tools``: ``{"tools": [{name, description, input_schema, output_schema}, ...]}``."""
    return {"tools": registry.list()}


def run_tool(
    registry: Registry, name: str, body: object, caller: Caller = OPERATOR, metrics: MetricSink = NO_METRICS
) -> Answer:
    """Run :func:`answer` and wait for it; not for a thread with a running event loop."""
    return wait_for(answer(registry, name, body, caller, metrics))


async def answer(
    registry: Registry, name: str, body: object, caller: Caller = OPERATOR, metrics: MetricSink = NO_METRICS
) -> Answer:
    """Answer ``POST /tools/{name}``, whose parsed body is ``{"input": {...}}``. Nothing is raised.

    *metrics* counts the failures that alarms watch.

    Returns:
        The status, and ``{"success": true, "output": {...}, "stats": {"execution_time": "1.2s"}}`` or
        ``{"success": false, "error": "..."}``.
    """
    if not isinstance(body, Mapping):
        return _failure("the request body must be a JSON object")
    unknown = sorted(str(member) for member in body if member != "input")
    if unknown:
        return _failure(f"unknown field: {unknown[0]:.80}")
    data = body.get("input")
    if not isinstance(data, Mapping):
        return _failure("input field is required and must be an object")
    try:
        result = await registry.execute(ToolInput(name, data), caller)
    except UnknownToolError as error:
        return _failure(str(error), HTTPStatus.NOT_FOUND)
    if result.success:
        stats = {"execution_time": execution_time(result.seconds)}
        return HTTPStatus.OK.value, {"success": True, "output": result.data, "stats": stats}
    if not isinstance(result.cause, RagStackError):
        return _failure(str(result.error), HTTPStatus.INTERNAL_SERVER_ERROR)
    cause = result.cause.__cause__ if isinstance(result.cause, QueryFailedError) else result.cause
    if not isinstance(cause, RagStackError):
        return _failure(public_message(result.cause), HTTPStatus.INTERNAL_SERVER_ERROR)
    return _failure(public_message(result.cause), record_failure(cause, metrics))


def execution_time(seconds: float) -> str:
    """Format a duration: ``1.2s``, or ``0.012s`` under a second."""
    return f"{seconds:.1f}s" if seconds >= 1 else f"{seconds:.3f}s"


def _failure(error: str, status: int = HTTPStatus.BAD_REQUEST) -> Answer:
    return int(status), {"success": False, "error": error}
