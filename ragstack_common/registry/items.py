"""Records to items of the table and back, in the form of DynamoDB's own interface.

What the table is asked for by name, in keys, conditions and indexes, is an attribute of its own; the rest is JSON.

An item is read whole and sound, or not at all: what somebody edited by hand must not be half believed. A text where a
number belongs would fail far from here; a revision that is gone would make every write fail, without end; a count that
cannot be written would stop the catalogue. What a later version added beside the attributes below is passed over.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, TypeAlias

from ragstack_common.errors import RegistryError
from ragstack_common.registry.attributes import (
    CheckedAttributes,
    attributes_of,
    counted_from,
    history_of,
    operation_of,
)
from ragstack_common.registry.records import (
    DocumentRecord,
    Observation,
    Status,
)
from ragstack_common.registry.table import (
    CORPUS,
    DOCUMENT,
    EXPIRES_AT,
    FULL_URI,
    KIND,
    LONGEST_KEY_BYTES,
    PARTITION_KEY,
    SORT_KEY,
    STATUS,
    URI,
    document_key,
    uri_in_indexes,
)

Item: TypeAlias = dict[str, Any]

FORMAT: Final = "format"
"""Says in which form an item is written: a number, and where there is none, 1. A version that changes what an item
means, so that this one would read it wrongly, or lose a part of it when writing it again, has to write a higher one."""

KNOWN_FORMAT: Final = 1

REVISION: Final = "revision"
WRITE: Final = "write"
"""Names the write that made an item, so that a writer whose answer was lost recognizes its own."""

COUNTS: Final = ("attempts", "size")
TIMES: Final = (
    "created_at",
    "received_at",
    "updated_at",
    "finished_at",
    EXPIRES_AT,
    "knowledge_base_updated_at",
    "last_modified",
    "sidecar_last_modified",
)
TEXTS: Final = ("reason", "sequencer", "sidecar_sequencer", "knowledge_base_status")
FLAGS: Final = ("again", "in_knowledge_base")
OBSERVED_TEXTS: Final = ("etag", "version_id", "sidecar_etag", "sidecar_version_id", "refusal")
OBSERVED_NUMBERS: Final = ("size", "last_modified", "sidecar_last_modified")
JSON_TEXTS: Final = ("attributes", "counted", "history", "operation")

ATTRIBUTES: Final = frozenset(
    {
        *(KIND, FORMAT, WRITE, CORPUS, URI, FULL_URI, STATUS, REVISION),
        *(COUNTS + TIMES + TEXTS + FLAGS + OBSERVED_TEXTS + JSON_TEXTS),
    }
)
"""Everything that stands in a document's item beside its keys."""

_S3_URI: Final = re.compile(r"s3://[^/]+/.+", re.DOTALL)
_LISTED: Final = (FULL_URI, STATUS)
_WHOLE: Final = (
    *_LISTED,
    *(KIND, URI, REVISION, "created_at", "received_at", "updated_at", "attributes", "counted", "history"),
    *(COUNTS + FLAGS),
)
"""What an item has in an index, and what it has in the table, whatever became of the document."""

_NUMBERS: Final = (REVISION, *(name for name in COUNTS + TIMES if name not in OBSERVED_NUMBERS))


def item_of(record: DocumentRecord, write: str) -> Item:
    """Write a record as an item."""
    observed = record.observed
    item = _texts({**document_key(record.uri), KIND: DOCUMENT, WRITE: write, CORPUS: _index_key(record.corpus)})
    item |= _texts({URI: uri_in_indexes(record.uri), FULL_URI: record.uri, STATUS: record.status})
    item |= _texts({name: getattr(record, name) for name in TEXTS})
    item |= _texts({name: getattr(observed, name) for name in OBSERVED_TEXTS})
    item |= _numbers({name: getattr(record, name) for name in _NUMBERS})
    item |= _numbers({name: getattr(observed, name) for name in OBSERVED_NUMBERS})
    item |= {name: {"BOOL": getattr(record, name)} for name in FLAGS}
    item["attributes"] = _json(dict(observed.attributes))
    item["counted"] = _json(record.counted)
    item["history"] = _json([[line.at, line.status, line.reason] for line in record.history])
    if record.operation is not None:
        item["operation"] = _json(asdict(record.operation))
    return item


def record_of(item: Mapping[str, Any], uri: str = "") -> DocumentRecord:
    """Read the whole item of a document.

    Args:
        item: In the form of DynamoDB's own interface.
        uri: The document's, where it is known, to be named if the item does not name it.

    Raises:
        RegistryError: It cannot be read: somebody edited it, or a newer version wrote it. The message names it and
            says what to do.
    """
    return _record(item, _WHOLE, uri)


def listed_of(item: Mapping[str, Any]) -> DocumentRecord:
    """Read what an index repeats of a document's item: no history, and no operation. Errors as of :func:`record_of`."""
    return _record(item, _LISTED, "")


def is_of_newer_version(item: Mapping[str, Any]) -> bool:
    """Tell whether an item says that it is written in a form that this version does not know.

    Such an item is left alone by everybody, reconciliation included: what this version does not know of it would be
    lost. Made anew, it would also be written in the old form under functions that run the newer version, as they do
    side by side during a deployment. Who has gone back to an older version for good deletes the item.
    """
    try:
        return (CheckedAttributes(item).count(FORMAT) or KNOWN_FORMAT) > KNOWN_FORMAT
    except ValueError:
        return False


def uri_of(item: Mapping[str, Any]) -> str | None:
    """Tell which document an item is about, as far as that can be read; None where its URI is not that of its key."""
    try:
        uri = CheckedAttributes(item).text(FULL_URI)
        is_its_own = uri is not None and item[PARTITION_KEY] == {"S": document_key(uri)[PARTITION_KEY]}
    except ValueError:
        return None
    return uri if is_its_own and uri is not None and _S3_URI.fullmatch(uri) else None


def counted_of(item: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Tell what the catalogue counts an item under, whatever the rest of it says.

    Raises:
        ValueError: That cannot be read, and so nothing is counted.
    """
    return counted_from(CheckedAttributes(item).json("counted"))


def plain_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """Take the type off each attribute: texts, flags, and numbers as int where they are whole."""
    return {name: _plain(value) for name, value in item.items()}


def _index_key(corpus: str | None) -> str | None:
    """Leave a corpus out of its index whose name is no name any more."""
    return corpus if corpus and len(_whole(corpus).encode()) <= LONGEST_KEY_BYTES else None


def _texts(values: Mapping[str, str | None]) -> Item:
    """Write texts; none is written where there is nothing to say, which an index would refuse."""
    return {name: {"S": _whole(str(value))} for name, value in values.items() if value}


def _plain(value: Mapping[str, Any]) -> Any:
    (kind, inner), *_ = value.items()
    if kind != "N":
        return inner
    number = float(inner)
    return int(number) if number.is_integer() else number


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


def _record(item: Mapping[str, Any], needed: tuple[str, ...], uri: str) -> DocumentRecord:
    if is_of_newer_version(item):
        raise RegistryError(
            f"{_name(item, uri)} was written by a newer version of RAGStack, in the form {item[FORMAT]['N']}, and this"
            f" version knows the form {KNOWN_FORMAT}: it is left alone. Deploy the newer version again"
        )
    try:
        return _checked(item, needed)
    except ValueError as error:
        raise RegistryError(
            f"{_name(item, uri)} cannot be read: {error}. `ragstack reconcile` makes it anew from what lies in the"
            " bucket"
        ) from error


def _checked(item: Mapping[str, Any], needed: tuple[str, ...]) -> DocumentRecord:
    of = CheckedAttributes(item)
    of.needs(*needed)
    of.count(FORMAT)
    uri = uri_of(item)
    if uri is None:
        raise ValueError(f"its {FULL_URI} is not that of its key")
    status = Status(str(of.text(STATUS)))
    if status is Status.UPLOADED:
        raise ValueError("its status is UPLOADED, which is never written")
    observed = Observation(
        **_there({name: of.text(name) for name in OBSERVED_TEXTS}),
        **_there({"size": of.count("size")}),
        **_there({name: of.time(name) for name in OBSERVED_NUMBERS if name in TIMES}),
        attributes=attributes_of(of.json("attributes")),
    )
    record = DocumentRecord(
        uri=uri,
        status=status,
        observed=observed,
        **_there({name: of.text(name) for name in TEXTS}),
        **_there({name: of.count(name) for name in (REVISION, "attempts")}),
        **_there({name: of.time(name) for name in TIMES if name not in OBSERVED_NUMBERS}),
        **_there({name: of.flag(name) for name in FLAGS}),
        operation=operation_of(of.json("operation")),
        counted=counted_of(item),
        history=history_of(of.json("history")),
    )
    if REVISION in needed:
        _check_keys(item, record)
    return record


def _check_keys(item: Mapping[str, Any], record: DocumentRecord) -> None:
    """Check what writes and indexes go by."""
    if record.revision == 0:
        raise ValueError(f"its {REVISION} is 0, which is that of what was never written")
    right = _texts({KIND: DOCUMENT, URI: uri_in_indexes(record.uri), CORPUS: _index_key(record.corpus)})
    for name in (KIND, URI, CORPUS):
        if item.get(name) != right.get(name):
            raise ValueError(f"its {name} is not that of the document")


def _there(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _name(item: Mapping[str, Any], uri: str) -> str:
    key = "/".join(str(item[name]["S"]) for name in (PARTITION_KEY, SORT_KEY))
    about = uri_of(item) or uri
    return f"The registry's record of {about} (item {key})" if about else f"The registry's item {key}"
