"""Answers requests about documents and ingestion jobs over HTTP."""

from ragstack_common.function import entry_point, logger, metrics, prepare

import os
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from ragstack_common.access.identity import Callers
from ragstack_common.access.people import People
from ragstack_common.http.powertools import Api
from ragstack_common.http.routes import DocumentService, add_routes


@cache
def callers() -> Callers:
    """Read the rules on the first request."""
    return Callers.from_env(os.environ, note=People.note)


@cache
def service() -> DocumentService:
    """Build the services on the first request and keep them for the life of the container."""
    return DocumentService.from_env(os.environ, metrics)


app = Api(logger, metrics, callers)
add_routes(app, service, lambda: app.caller)


prepare(callers, service)


@entry_point
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Route a request of API Gateway."""
    metrics.add_metric("Requests", "Count", 1)
    return app.resolve(event, context)
