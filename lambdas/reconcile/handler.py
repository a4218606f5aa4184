"""Compares bucket, registry and knowledge base, and synchronises the whole data source."""

from ragstack_common.function import entry_point, metrics

import os
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from ragstack_common.access.policy import policy_from_env
from ragstack_common.ingestion.messages import parse_messages
from ragstack_common.reconciliation.service import ReconcileService
from ragstack_common.settings.ingestion import ReconcileSettings


@cache
def service() -> ReconcileService:
    """Build the service on the first message and keep it for the life of the container."""
    settings = ReconcileSettings.from_env(os.environ)
    return ReconcileService.of(settings, metrics=metrics, policy=policy_from_env(os.environ))


@entry_point
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Continue the jobs named in the messages, and return the messages to deliver again."""
    again = service().process(parse_messages(event), lambda: context.get_remaining_time_in_millis() / 1000)
    return {"batchItemFailures": [{"itemIdentifier": name} for name in again]}
