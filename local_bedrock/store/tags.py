"""The tags of knowledge bases in the tables."""

from collections.abc import Iterable, Mapping

import apsw

from local_bedrock.store.database import Change


def of(connection: apsw.Connection, knowledge_base_id: str) -> dict[str, str]:
    """Return the tags of a knowledge base by key."""
    rows = connection.execute(
        "SELECT key, value FROM tag WHERE knowledge_base_id = ? ORDER BY key", (knowledge_base_id,)
    )
    return {str(key): str(value) for key, value in rows}


def put(change: Change, knowledge_base_id: str, tags: Mapping[str, str]) -> None:
    """Add tags; a key that is there takes the new value."""
    change.connection.executemany(
        "INSERT OR REPLACE INTO tag VALUES (?, ?, ?)",
        [(knowledge_base_id, key, value) for key, value in tags.items()],
    )


def remove(change: Change, knowledge_base_id: str, keys: Iterable[str]) -> None:
    """Remove tags; a key that is not there is no error."""
    change.connection.executemany(
        "DELETE FROM tag WHERE knowledge_base_id = ? AND key = ?", [(knowledge_base_id, key) for key in keys]
    )
