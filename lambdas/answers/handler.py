"""Answers questions over HTTP: an ASGI application, which ``run.sh`` serves behind the Lambda Web Adapter."""

from ragstack_common.function import IS_DEPLOYED, function_spans, logger, metrics, with_imports_frozen

import os
from functools import cache
from typing import TYPE_CHECKING

from ragstack_common.access.callers import Caller
from ragstack_common.access.identity import Callers
from ragstack_common.access.people import People
from ragstack_common.access.tokens import verifier_from_env
from ragstack_common.http.asgi import create_app
from ragstack_common.services.ask import AskService
from ragstack_common.services.documents import Documents

if TYPE_CHECKING:
    from ragstack_common.http.mcp import McpEndpoint
    from ragstack_common.tools import Registry


@cache
def service() -> AskService:
    """Build the service when the server starts and keep it for the life of the container."""
    return AskService.from_env(os.environ, metrics)


@cache
def callers() -> Callers:
    """Read the rules when the first request comes, and verify tokens here: not every path has an authorizer."""
    return Callers.from_env(os.environ, verifier_from_env(os.environ), note=People.note)


@cache
def documents() -> Documents:
    """Find the documents with the first question about one."""
    return Documents.from_env(os.environ)


@cache
def tools() -> "Registry":
    """Build the tools on their first request."""
    from ragstack_common.tools import registry_from_env  # noqa: PLC0415 - most containers run none

    return registry_from_env(os.environ)


@cache
def mcp() -> "McpEndpoint":
    """Build the server of the Model Context Protocol with its first request."""
    from ragstack_common.http.mcp import McpEndpoint  # noqa: PLC0415 - takes half a second
    from ragstack_common.services.operations import ServiceOperations  # noqa: PLC0415

    def operations(caller: Caller) -> ServiceOperations:
        return ServiceOperations(caller, lambda: service().searches, service, documents, tools, metrics)

    return McpEndpoint(operations, metrics, is_local=not IS_DEPLOYED)


application = create_app(service, callers, is_behind_gateway=IS_DEPLOYED, mcp=mcp, logger=logger, metrics=metrics)
spans = function_spans()
app = with_imports_frozen(application if spans is None else spans.wrap_app(application))
