"""A record for a document whose item cannot be read, and the write that puts it there."""

import time
from dataclasses import replace
from typing import Any, Final

from ragstack_common.registry.attributes import CheckedAttributes
from ragstack_common.registry.catalogue import count_changes, count_writes
from ragstack_common.registry.items import ATTRIBUTES, REVISION, Item, counted_of, item_of
from ragstack_common.registry.life import become
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_common.registry.table import PARTITION_KEY, SORT_KEY
from ragstack_common.registry.transactions import Write

_NAME: Final = "item"


def made_anew(item: Item, uri: str, reason: str, now: float) -> DocumentRecord:
    """Say of a document what is sure when its item cannot be read: that somebody must look at it.

    Nothing of the item is believed but what the catalogue counts it under, which stays until a look has ended, as for
    any document on its way. The knowledge base may have it, and searches may find it.
    """
    record = DocumentRecord(uri, in_knowledge_base=True, counted=_counted(item), created_at=now, received_at=now)
    return become(record, Status.WAITING, reason, now)


def replacement(item: Item, record: DocumentRecord | None, write: str) -> list[Write]:
    """Write the transaction that replaces an item, or removes it, if it is still as it was read.

    Each attribute of ours is compared, not the revision alone: it may be missing, and who edits a table by hand does
    not raise it. What others added beside them is not compared: its number has no bound, and an expression has.
    """
    condition = _is_still(item)
    before = DocumentRecord("", counted=_counted(item))
    if record is None:
        key = {name: item[name] for name in (PARTITION_KEY, SORT_KEY)}
        change = Write(_NAME, {"Delete": {"Key": key, **condition}})
    else:
        after = replace(record, revision=_revision(item) + 1)
        change = Write(_NAME, {"Put": {"Item": item_of(after, write), **condition}}, mark=write)
    counts = count_changes([(before, record or DocumentRecord(""))])
    return [change, *count_writes(sorted(counts.items()))]


def _is_still(item: Item) -> dict[str, Any]:
    names = {f"#a{number}": name for number, name in enumerate(sorted(ATTRIBUTES))}
    values = {f":{short[1:]}": item[name] for short, name in names.items() if name in item}
    parts = [
        f"{short} = :{short[1:]}" if name in item else f"attribute_not_exists({short})" for short, name in names.items()
    ]
    return {
        "ConditionExpression": " AND ".join([f"attribute_exists({PARTITION_KEY})", *parts]),
        "ExpressionAttributeNames": names,
        **({"ExpressionAttributeValues": values} if values else {}),
    }


def _counted(item: Item) -> tuple[tuple[str, str], ...]:
    try:
        return counted_of(item)
    except ValueError:
        return ()


def _revision(item: Item) -> int:
    """Tell the revision; where that cannot be read, a number that none has come to by counting."""
    try:
        return CheckedAttributes(item).count(REVISION) or int(time.time())
    except ValueError:
        return int(time.time())
