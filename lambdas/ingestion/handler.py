"""Takes S3 events from the queue and submits the documents to the knowledge base."""

import gc

# What the imports make lives as long as the process: looking for garbage in it is a tenth of a cold start.
gc.disable()

import os
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.logging.utils import copy_config_to_registered_loggers
from aws_lambda_powertools.utilities.typing import LambdaContext

from ragstack_common.config import IngestionSettings
from ragstack_common.ingestion.messages import messages_of
from ragstack_common.ingestion.services import Services
from ragstack_common.ingestion.submit import IngestionService
from ragstack_common.telemetry import stack_dimension

gc.freeze()
gc.enable()


logger = Logger()
copy_config_to_registered_loggers(logger, include={"ragstack"})
metrics = Metrics()
metrics.set_default_dimensions(**stack_dimension(os.environ))


@cache
def service() -> IngestionService:
    """Build the service on the first event and keep it for the life of the container."""
    return IngestionService(Services.of(IngestionSettings.from_env(os.environ), metrics=metrics))


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Process a batch; the answer names the messages to deliver again."""
    seconds_left = context.get_remaining_time_in_millis() / 1000
    again = service().process(messages_of(event), seconds_left)
    return {"batchItemFailures": [{"itemIdentifier": name} for name in again]}
