"""Takes S3 events from the queue and submits the documents to the knowledge base."""

from ragstack_common.function import entry_point, metrics

import os
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from ragstack_common.access.policy import policy_from_env
from ragstack_common.ingestion.messages import parse_messages
from ragstack_common.ingestion.services import Services
from ragstack_common.ingestion.submit import IngestionService
from ragstack_common.settings.ingestion import IngestionSettings


@cache
def service() -> IngestionService:
    """Build the service on the first event and keep it for the life of the container."""
    settings = IngestionSettings.from_env(os.environ)
    return IngestionService(Services(settings, metrics=metrics, policy=policy_from_env(os.environ)))


@entry_point
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Process a batch; the answer names the messages to deliver again."""
    seconds_left = context.get_remaining_time_in_millis() / 1000
    again = service().process(parse_messages(event), seconds_left)
    return {"batchItemFailures": [{"itemIdentifier": name} for name in again]}
