"""``ragstack mcp``."""

import logging
import signal
import sys
from functools import cache

from ragstack_common.core.errors import RagStackError, needs_extra
from ragstack_local.connection.address import Address
from ragstack_local.connection_options import ConnectionOptions, with_options
from ragstack_local.errors import ApiError
from ragstack_local.show import display


@with_options
def mcp(stack: ConnectionOptions) -> None:
    """Serve the tools of a stack over the Model Context Protocol, for Claude, VS Code, Cursor and other assistants.

    The assistant starts this command and talks to it over standard input and output; messages go to standard error.

    Example:  claude mcp add ragstack -- ragstack mcp

    An API anywhere:  ragstack mcp --api-url https://abcde12345.execute-api.eu-west-1.amazonaws.com/prod
    """
    import anyio  # noqa: PLC0415 - other commands start without it

    with needs_extra("mcp", "`ragstack mcp`"):
        from mcp.server.stdio import stdio_server  # noqa: PLC0415

        from ragstack_common.http.mcp import build_server  # noqa: PLC0415
        from ragstack_local.api.http_operations import HttpOperations  # noqa: PLC0415

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python would wait for the next line of standard input
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(message)s")
    is_fixed = stack.is_api or stack.aws
    address = cache(stack.address) if is_fixed else stack.address  # a local stack can move to other ports

    def find() -> Address:
        from boto3.exceptions import Boto3Error  # noqa: PLC0415 - slow to import
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

        try:
            return address()
        except (RagStackError, ClientError, BotoCoreError, Boto3Error, OSError) as error:
            raise ApiError(str(error)) from error

    try:
        find()
    except ApiError as error:
        # The assistant shows the same message when it calls a tool; the stack may be up by then.
        display.errors.print(str(error), soft_wrap=True)
    server = build_server(HttpOperations(find))

    async def serve() -> None:
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())

    anyio.run(serve)
