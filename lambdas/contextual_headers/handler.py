"""Gives the chunks of a knowledge base their contextual headers, before Bedrock embeds them."""

import gc

# What the imports make lives as long as the process: looking for garbage in it is a tenth of a cold start.
gc.disable()

import os
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.logging.utils import copy_config_to_registered_loggers
from aws_lambda_powertools.utilities.typing import LambdaContext

from ragstack_common.chunk_transformation import ChunkTransformation, TransformationEvent
from ragstack_common.errors import RagStackError
from ragstack_common.telemetry import stack_dimension

gc.freeze()
gc.enable()


logger = Logger()
copy_config_to_registered_loggers(logger, include={"ragstack"})
metrics = Metrics()
metrics.set_default_dimensions(**stack_dimension(os.environ))


@cache
def service() -> ChunkTransformation:
    """Build the service on the first event and keep it for the life of the container."""
    return ChunkTransformation(metrics=metrics)


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Transform the chunks of an event. An error fails the invocation, so that Bedrock reports the files as failed."""
    try:
        return service().transform(TransformationEvent.from_event(event))
    except RagStackError:
        logger.exception("transformation failed")
        raise
