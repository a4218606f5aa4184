"""Shows documents over HTTP, with the quoted characters marked."""

from ragstack_common.function import entry_point, logger, metrics

import os
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from ragstack_common.access.identity import Callers
from ragstack_common.http.powertools import Api
from ragstack_common.http.view_route import add_view
from ragstack_common.services.view import Viewer


@cache
def callers() -> Callers:
    """Read the rules on the first request."""
    return Callers.from_env(os.environ)


@cache
def viewer() -> Viewer:
    """Build the viewer on the first request and keep it for the life of the container."""
    return Viewer.from_env(os.environ)


app = Api(logger, metrics, callers)
add_view(app, viewer, lambda: app.caller)


@entry_point
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Route a request of API Gateway."""
    metrics.add_metric("Requests", "Count", 1)
    return app.resolve(event, context)
