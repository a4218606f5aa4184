"""Tags of knowledge bases, by ARN."""

from collections.abc import Iterable, Mapping

import apsw

from local_bedrock.store.database import Change


def tags_of(connection: apsw.Connection, arn: str) -> dict[str, str]:
    """Return the tags of a resource by key."""
    return dict(connection.execute("SELECT key, value FROM resource_tag WHERE arn = ? ORDER BY key", (arn,)))


def put(change: Change, arn: str, tags: Mapping[str, str]) -> None:
    """Add tags or replace their values."""
    rows = [(arn, key, value) for key, value in tags.items()]
    change.connection.executemany("INSERT OR REPLACE INTO resource_tag VALUES (?, ?, ?)", rows)


def remove(change: Change, arn: str, keys: Iterable[str]) -> None:
    """Remove tags; unknown keys are ignored."""
    change.connection.executemany("DELETE FROM resource_tag WHERE arn = ? AND key = ?", [(arn, key) for key in keys])


def remove_all(change: Change, arn: str) -> None:
    """Remove the tags of a deleted resource."""
    change.connection.execute("DELETE FROM resource_tag WHERE arn = ?", (arn,))
