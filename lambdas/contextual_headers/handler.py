"""Adds contextual headers to the chunks of a knowledge base, before Bedrock embeds them."""

from ragstack_common.function import entry_point, logger, metrics

from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from ragstack_common.core.errors import RagStackError
from ragstack_common.ingestion.chunk_transformation import ChunkTransformation, TransformationEvent


@cache
def service() -> ChunkTransformation:
    """Build the service on the first event and keep it for the life of the container."""
    return ChunkTransformation(metrics=metrics)


@entry_point
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Transform the chunks of an event. An error fails the invocation, so that Bedrock reports the files as failed."""
    try:
        return service().transform(TransformationEvent.from_event(event))
    except RagStackError:
        logger.exception("transformation failed")
        raise
