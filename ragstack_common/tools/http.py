"""The tools over HTTP: what ``GET /tools`` and ``POST /tools/{name}`` answer."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from ragstack_common.error_responses import STATUS_OF, message_of
from ragstack_common.errors import RagStackError
from ragstack_common.tools.registry import Registry, ToolInput, UnknownToolError, now
from ragstack_common.tools.retriever import QueryFailedError

Answer = tuple[int, dict[str, Any]]


def list_tools(registry: Registry) -> dict[str, Any]:
    """Answer ``GET /tools``: ``{"tools": [{name, description, input_schema, output_schema}, ...]}``."""
    return {"tools": registry.list()}


def run_tool(registry: Registry, name: str, body: object) -> Answer:
    """Answer ``POST /tools/{name}`` where no event loop is running; none is left behind.

    Args:
        registry: The tools.
        name: The tool, from the path.
        body: The request's JSON, parsed: ``{"input": {...}}``.

    Returns:
        The status, and ``{"success": true, "output": {...}, "stats": {"execution_time": "1.2s"}}`` or
        ``{"success": false, "error": "..."}``.

    Raises:
        RuntimeError: An event loop is running in this thread: await :func:`answer`. Nothing else is raised.
    """
    return now(lambda: answer(registry, name, body))


async def answer(registry: Registry, name: str, body: object) -> Answer:
    """Answer as :func:`run_tool` does, on the event loop that is running."""
    if not isinstance(body, Mapping):
        return _refused("the request body must be a JSON object")
    unknown = sorted(str(member) for member in body if member != "input")
    if unknown:
        return _refused(f"unknown field: {unknown[0]:.80}")
    data = body.get("input")
    if not isinstance(data, Mapping):
        return _refused("input field is required and must be an object")
    try:
        result = await registry.execute(ToolInput(name, data))
    except UnknownToolError as error:
        return _refused(str(error), _status(error))
    if not result.success:
        told = message_of(result.cause) if isinstance(result.cause, RagStackError) else str(result.error)
        return _refused(told, _status(result.cause))
    stats = {"execution_time": execution_time(result.seconds)}
    return HTTPStatus.OK.value, {"success": True, "output": result.data, "stats": stats}


def execution_time(seconds: float) -> str:
    """Write a time as the interface does: ``1.2s``; under a second with milliseconds, ``0.012s``."""
    return f"{seconds:.1f}s" if seconds >= 1 else f"{seconds:.3f}s"


def _refused(error: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> Answer:
    return status.value, {"success": False, "error": error}


def _status(error: Exception | None) -> HTTPStatus:
    if isinstance(error, UnknownToolError):
        return HTTPStatus.NOT_FOUND
    known: Mapping[type, HTTPStatus] = STATUS_OF
    cause = error.__cause__ if isinstance(error, QueryFailedError) else error
    return next((known[kind] for kind in type(cause).__mro__ if kind in known), HTTPStatus.INTERNAL_SERVER_ERROR)
