"""Audit events: who was refused what, who changed a rule, looked at another caller's view, or erased a person.

An erasure has an event before it begins and one after it ends; without the second, it was interrupted.

An event has no text of a question or a document. It is a line of the structured log, and an event on the bus if the
deployment names one. Which documents each caller saw is recorded if the deployer chose so, and in the log alone:
otherwise every search would wait for the bus.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, TypeAlias

from ragstack_common.access.callers import Caller
from ragstack_common.core.telemetry import LOGGER

ErasureKind: TypeAlias = Literal["erasure began", "erasure failed", "person erased"]
AuditKind: TypeAlias = Literal["refused", "rule changed", "view as", "limit reached"] | ErasureKind

AUDIT: Final = "audit"
"""The member of a line of the log, and the detail type of an event, that holds an audit event."""

AuditSink: TypeAlias = Callable[[dict[str, Any]], None]
"""Receives events in addition to the log."""

ReadKind: TypeAlias = Literal["searched", "opened", "downloaded"]


def record(
    kind: AuditKind,
    caller: Caller,
    *,
    right: str | None = None,
    resource: str = "",
    rule: str = "",
    sink: AuditSink | None = None,
) -> None:
    """Write an audit event about what a caller did or tried.

    The resource is a route, a document's URI, a label or a person; the rule is the one that decided, or the change.
    """
    event = {
        "kind": kind,
        "caller": caller.name,
        "right": right,
        "resource": resource[:300],
        "rule": rule,
    }
    LOGGER.info("audit: %s", kind, extra={AUDIT: event})
    if sink is not None:
        sink(event)


def record_read(kind: ReadKind, caller: Caller, uris: Iterable[str]) -> None:
    """Write which documents a caller saw, in the order in which they were found, without their text."""
    event = {"kind": kind, "caller": caller.name, "documents": [*dict.fromkeys(uris)]}
    LOGGER.info("audit: %s", kind, extra={AUDIT: event})
