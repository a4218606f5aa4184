"""Compares the documents that the knowledge base is done with, and gives each its final state."""

from ragstack_common.function import entry_point, metrics

import os
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from ragstack_common.access.policy import policy_from_env
from ragstack_common.core.clients import READ_SECONDS, retrieval_client, s3_client
from ragstack_common.ingestion.messages import parse_messages
from ragstack_common.ingestion.receipts import ReceiptService
from ragstack_common.ingestion.services import Services
from ragstack_common.reading.census.counting import CountingProcess
from ragstack_common.settings.ingestion import IngestionSettings


@cache
def service() -> ReceiptService:
    """Build the service on the first message and keep it for the life of the container."""
    settings = IngestionSettings.from_env(os.environ)
    services = Services(settings, metrics=metrics, policy=policy_from_env(os.environ))
    return ReceiptService(services, retrieval_client(READ_SECONDS), s3_client(), CountingProcess().count)


@entry_point
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Process a batch; the answer names the messages to deliver again."""
    again = service().process(parse_messages(event), lambda: context.get_remaining_time_in_millis() / 1000)
    return {"batchItemFailures": [{"itemIdentifier": name} for name in again]}
