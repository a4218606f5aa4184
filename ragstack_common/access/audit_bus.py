"""Audit events on an event bus, next to those in the log."""

import json
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.access.audit import AUDIT, AuditSink
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.settings.access import AccessSettings
from ragstack_common.settings.ingestion import EVENT_SOURCE

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient


class AuditBus:
    """Puts audit events on a bus.

    A bus that does not take an event fails no request: the log has the event, and an error line that says so.

    Args:
        client: The client.
        bus: The bus's name.
    """

    def __init__(self, client: "EventBridgeClient", bus: str) -> None:
        self._client = client
        self._bus = bus

    def __call__(self, event: dict[str, Any]) -> None:
        """Put an event on the bus."""
        entry: Any = {
            "Source": EVENT_SOURCE,
            "DetailType": AUDIT,
            "Detail": json.dumps(event),
            "EventBusName": self._bus,
        }
        try:
            answer = self._client.put_events(Entries=[entry])
        except (ClientError, BotoCoreError) as error:
            LOGGER.error("audit event is not on the bus %s: %s", self._bus, error)
            return
        if answer["FailedEntryCount"]:
            LOGGER.error("audit event is not on the bus %s: %s", self._bus, answer["Entries"][0].get("ErrorMessage"))


def audit_sink(settings: AccessSettings) -> AuditSink | None:
    """Return the sink that the settings describe; None for the log alone."""
    if settings.audit_bus is None:
        return None
    from ragstack_common.core.clients import events_client  # noqa: PLC0415 - most deployments have no bus for this

    return AuditBus(events_client(), settings.audit_bus)
