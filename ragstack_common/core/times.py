"""Times in requests and responses."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"}, examples=["2026-02-03T04:05:06.789Z"])]
"""ISO 8601, in UTC."""


def to_time(seconds: float | None) -> str | None:
    """Write a time; None for None and 0."""
    return iso(seconds) if seconds else None


def iso(seconds: float) -> str:
    """Write seconds since 1970 as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
