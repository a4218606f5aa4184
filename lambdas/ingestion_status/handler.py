"""Follows the documents that the knowledge base accepted, until each is in a final state."""

from ragstack_common.function import entry_point, metrics

import os
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from ragstack_common.access.policy import policy_from_env
from ragstack_common.ingestion.follow import FollowingService
from ragstack_common.ingestion.messages import parse_messages
from ragstack_common.ingestion.services import Services
from ragstack_common.settings.ingestion import IngestionSettings


@cache
def service() -> FollowingService:
    """Build the service on the first message and keep it for the life of the container."""
    settings = IngestionSettings.from_env(os.environ)
    return FollowingService(Services(settings, metrics=metrics, policy=policy_from_env(os.environ)))


@entry_point
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Process a batch; the answer names the messages to deliver again."""
    again = service().process(parse_messages(event))
    return {"batchItemFailures": [{"itemIdentifier": name} for name in again]}
