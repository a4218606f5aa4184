"""Audit events on an event bus, next to those in the log."""

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.access.audit import AUDIT, AuditSink
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.settings.access import AccessSettings
from ragstack_common.settings.names import EVENT_SOURCE

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient


def put_on_bus(client: "EventBridgeClient", bus: str, event: dict[str, Any]) -> None:
    """Put an audit event on a bus. If the bus does not take it, requests do not fail: the log has event and error."""
    entry: Any = {"Source": EVENT_SOURCE, "DetailType": AUDIT, "Detail": json.dumps(event), "EventBusName": bus}
    try:
        answer = client.put_events(Entries=[entry])
    except (ClientError, BotoCoreError) as error:
        LOGGER.error("audit event is not on the bus %s: %s", bus, error)
        return
    if answer["FailedEntryCount"]:
        LOGGER.error("audit event is not on the bus %s: %s", bus, answer["Entries"][0].get("ErrorMessage"))


def audit_sink(settings: AccessSettings) -> AuditSink | None:
    """Return the sink that the settings describe; None for the log alone."""
    if settings.audit_bus is None:
        return None
    from ragstack_common.core.clients import events_client  # noqa: PLC0415 - most deployments have no bus for this

    return partial(put_on_bus, events_client(), settings.audit_bus)
