"""Records to items of the table and back, in the form of DynamoDB's own interface.

What the table is asked for by name, in keys, conditions and indexes, is an attribute of its own; the rest is JSON.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, TypeAlias

from ragstack_common.registry.records import (
    DocumentRecord,
    Observation,
    Operation,
    OperationKind,
    Status,
    Transition,
)
from ragstack_common.registry.table import (
    CORPUS,
    DOCUMENT,
    EXPIRES_AT,
    FULL_URI,
    KIND,
    LONGEST_KEY_BYTES,
    URI,
    document_key,
    uri_in_indexes,
)

Item: TypeAlias = dict[str, Any]

REVISION: Final = "revision"
WRITE: Final = "write"
"""Names the write that made an item, so that a writer whose answer was lost recognizes its own."""

_NUMBERS: Final = (
    "revision",
    "attempts",
    "created_at",
    "received_at",
    "updated_at",
    "finished_at",
    EXPIRES_AT,
    "knowledge_base_updated_at",
)
_TEXTS: Final = ("status", "reason", "sequencer", "sidecar_sequencer", "knowledge_base_status")
_FLAGS: Final = ("again", "in_knowledge_base", "in_index")
_OBSERVED_TEXTS: Final = ("etag", "version_id", "sidecar_etag", "sidecar_version_id", "refusal")
_OBSERVED_NUMBERS: Final = ("size", "last_modified", "sidecar_last_modified")


def item_of(record: DocumentRecord, write: str) -> Item:
    """Write a record as an item."""
    observed = record.observed
    item = _texts({**document_key(record.uri), KIND: DOCUMENT, WRITE: write, CORPUS: _index_key(record.corpus)})
    item |= _texts({URI: uri_in_indexes(record.uri), FULL_URI: record.uri})
    item |= _texts({name: getattr(record, name) for name in _TEXTS})
    item |= _texts({name: getattr(observed, name) for name in _OBSERVED_TEXTS})
    item |= _numbers({name: getattr(record, name) for name in _NUMBERS})
    item |= _numbers({name: getattr(observed, name) for name in _OBSERVED_NUMBERS})
    item |= {name: {"BOOL": getattr(record, name)} for name in _FLAGS}
    item["attributes"] = _json(dict(observed.attributes))
    item["counted"] = _json(record.counted)
    item["history"] = _json([[line.at, line.status, line.reason] for line in record.history])
    if record.operation is not None:
        item["operation"] = _json(asdict(record.operation))
    return item


def record_of(item: Mapping[str, Any]) -> DocumentRecord:
    """Read an item of a document; one from an index lacks what the index does not repeat."""
    plain = plain_of(item)
    operation = json.loads(plain["operation"]) if "operation" in plain else None
    return DocumentRecord(
        uri=plain[FULL_URI],
        **{name: plain[name] for name in (*_TEXTS, *_NUMBERS, *_FLAGS) if name in plain and name != "status"},
        status=Status(plain["status"]),
        observed=Observation(
            **{name: plain[name] for name in (*_OBSERVED_TEXTS, *_OBSERVED_NUMBERS) if name in plain},
            attributes=json.loads(plain.get("attributes", "{}")),
        ),
        operation=Operation(**{**operation, "kind": OperationKind(operation["kind"])}) if operation else None,
        counted=tuple((key, value) for key, value in json.loads(plain.get("counted", "[]"))),
        history=tuple(
            Transition(at, Status(status), reason) for at, status, reason in json.loads(plain.get("history", "[]"))
        ),
    )


def plain_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """Take the type off each attribute: texts, flags, and numbers as int where they are whole."""
    return {name: _plain(value) for name, value in item.items()}


def _plain(value: Mapping[str, Any]) -> Any:
    (kind, inner), *_ = value.items()
    if kind != "N":
        return inner
    number = float(inner)
    return int(number) if number.is_integer() else number


def _index_key(corpus: str | None) -> str | None:
    """Leave a corpus out of its index whose name is no name any more."""
    return corpus if corpus and len(_whole(corpus).encode()) <= LONGEST_KEY_BYTES else None


def _texts(values: Mapping[str, str | None]) -> Item:
    return {name: {"S": _whole(str(value))} for name, value in values.items() if value}


def _whole(text: str) -> str:
    """Replace half characters, which JSON can hold and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def _numbers(values: Mapping[str, float | None]) -> Item:
    return {name: {"N": _shortest(value)} for name, value in values.items() if value is not None}


def _shortest(number: float) -> str:
    """Write a number as DynamoDB itself would: a repeated request must be the same to the letter."""
    return repr(int(number)) if float(number).is_integer() else repr(number)


def _json(value: Any) -> dict[str, str]:
    return {"S": json.dumps(value, separators=(",", ":"))}
