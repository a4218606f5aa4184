"""An MCP client that starts the knowledge-base server over standard input and output, as an assistant does."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal
from lines import serve
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

SERVER = Path(sys.executable).with_name("awslabs.bedrock-kb-retrieval-mcp-server")


@asynccontextmanager
async def connected() -> AsyncIterator[ClientSession]:
    server = StdioServerParameters(command=str(SERVER), env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


with start_blocking_portal() as portal, portal.wrap_async_context_manager(connected()) as session:

    def tools() -> list[str]:
        return [tool.name for tool in portal.call(session.list_tools).tools]

    def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer = portal.call(session.call_tool, tool, arguments)
        dumped = answer.model_dump(by_alias=True)
        return {"text": "".join(part["text"] for part in dumped["content"]), "failed": bool(dumped["isError"])}

    serve(tools=tools, call=call)
