"""Compares bucket, registry and knowledge base, and synchronises the whole data source."""

import gc

# What the imports make lives as long as the process: looking for garbage in it is a tenth of a cold start.
gc.disable()

import os
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.logging.utils import copy_config_to_registered_loggers
from aws_lambda_powertools.utilities.typing import LambdaContext

from ragstack_common.config import ReconcileSettings
from ragstack_common.ingestion.messages import messages_of
from ragstack_common.reconciliation.service import ReconcileService
from ragstack_common.telemetry import stack_dimension

gc.freeze()
gc.enable()


logger = Logger()
copy_config_to_registered_loggers(logger, include={"ragstack"})
metrics = Metrics()
metrics.set_default_dimensions(**stack_dimension(os.environ))


@cache
def service() -> ReconcileService:
    """Build the service on the first message and keep it for the life of the container."""
    return ReconcileService.of(ReconcileSettings.from_env(os.environ), metrics=metrics)


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Go on with the jobs of the messages; the answer names the messages to deliver again."""
    again = service().process(messages_of(event), lambda: context.get_remaining_time_in_millis() / 1000)
    return {"batchItemFailures": [{"itemIdentifier": name} for name in again]}
