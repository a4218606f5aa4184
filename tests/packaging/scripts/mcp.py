"""Call a tool of a server over services of one's own, and start the server of the command line."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client

from ragstack_common.access.callers import OPERATOR
from ragstack_common.http.mcp import build_server
from ragstack_common.search import RetrievalBackend, RetrievedChunk
from ragstack_common.services.ask import AskService
from ragstack_common.services.operations import ServiceOperations
from ragstack_common.services.search import QueryService
from ragstack_common.settings.search import QuerySettings
from ragstack_common.tools import Registry


class Leave(RetrievalBackend):
    name = "leave"

    async def retrieve(self, *_: Any, **__: Any) -> list[RetrievedChunk]:
        return [RetrievedChunk(content="Employees have thirty days of leave.", score=1.0, source="leave.md")]


def no_answers() -> AskService:
    raise NotImplementedError


async def main() -> None:
    searches = QueryService(QuerySettings(retrieval_engine="leave"), Leave())
    operations = ServiceOperations(OPERATOR, lambda: searches, no_answers, registry=Registry)
    async with Client(build_server(operations)) as client:
        result = await client.call_tool("search", {"query": "days of leave"})
    (content,) = result.content
    assert content.type == "text", result
    assert content.text == "[1] leave.md\n> Employees have thirty days of leave.", result
    ragstack = str(Path(sys.executable).parent / "ragstack")
    parameters = StdioServerParameters(command=ragstack, args=["mcp", "--api-url", "http://127.0.0.1:9"])
    async with Client(stdio_client(parameters)) as client:
        listed = await client.list_tools()
    assert "search" in {tool.name for tool in listed.tools}, listed


asyncio.run(main())
