"""Answers requests about documents and ingestion jobs over HTTP."""

import gc

# What the imports make lives as long as the process: looking for garbage in it is a tenth of a cold start.
gc.disable()

import os
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.logging.utils import copy_config_to_registered_loggers
from aws_lambda_powertools.utilities.typing import LambdaContext

from ragstack_common.api.http import Api
from ragstack_common.api.routes import DocumentService, add_routes
from ragstack_common.telemetry import stack_dimension

gc.freeze()
gc.enable()

logger = Logger()
copy_config_to_registered_loggers(logger, include={"ragstack"})
metrics = Metrics()
metrics.set_default_dimensions(**stack_dimension(os.environ))


@cache
def service() -> DocumentService:
    """Build the services on the first request and keep them for the life of the container."""
    return DocumentService.from_env(os.environ)


app = Api(logger)
add_routes(app, service)


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Route a request of API Gateway."""
    metrics.add_metric("Requests", "Count", 1)
    return app.resolve(event, context)
