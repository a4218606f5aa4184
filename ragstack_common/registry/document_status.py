"""The statuses that Bedrock gives to documents."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self


class DocumentStatus(str):
    """A document's status, a string such as INDEXED, with its reason and time.

    Source: bedrock-agent, shape DocumentStatus. UNKNOWN is RAGStack's own, for a call that got no response.
    """

    __slots__ = ("reason", "updated_at")

    reason: str | None
    updated_at: datetime | None

    def __new__(cls, status: str, reason: str | None = None, updated_at: datetime | None = None) -> Self:
        """Create a status with the service's reason and time."""
        made = super().__new__(cls, status)
        made.reason = reason
        made.updated_at = updated_at
        return made

    @classmethod
    def of(cls, detail: Mapping[str, Any]) -> Self:
        """Read an entry of ``documentDetails``."""
        return cls(detail["status"], detail.get("statusReason"), detail.get("updatedAt"))
