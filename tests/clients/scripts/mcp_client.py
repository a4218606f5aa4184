"""An MCP client that starts the knowledge-base server over standard input and output, as an assistant does."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from lines import serve
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

SERVER = Path(sys.executable).with_name("awslabs.bedrock-kb-retrieval-mcp-server")


def tools() -> list[str]:
    return asyncio.run(_with_server(_tools))


def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    async def ask(session: ClientSession) -> dict[str, Any]:
        answer = await session.call_tool(tool, arguments)
        dumped = answer.model_dump(by_alias=True)
        return {"text": "".join(part["text"] for part in dumped["content"]), "failed": bool(dumped["isError"])}

    return asyncio.run(_with_server(ask))


async def _tools(session: ClientSession) -> list[str]:
    return [tool.name for tool in (await session.list_tools()).tools]


async def _with_server(ask: Any) -> Any:
    server = StdioServerParameters(command=str(SERVER), env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        return await ask(session)


serve(tools=tools, call=call)
