"""One object in S3 with the values that documents share, from which searches infer filters.

Reading the catalogue takes time in proportion to its values, so one function reads it for all that search. A change of
the catalogue requests a snapshot, which is written a little later and covers all changes until then::

    a count changes          SNAPSHOT item set, unless it is there    -> message to the jobs queue, delayed
    the message arrives      SNAPSHOT item deleted, catalogue read, object written if no other worker wrote it meanwhile

A writer deletes the item before it reads, so that a change that it misses requests another snapshot. It replaces only
the object that was there before it read, so that an older reading never replaces a newer one. A snapshot that is lost
with its function leaves the earlier one, until the next change or reconciliation.
"""

import gzip
import hashlib
import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.core.errors import RegistryError
from ragstack_common.core.objects import get_if_changed, put_if, unchanged, unless_absent
from ragstack_common.core.telemetry import LOGGER, NO_METRICS, MetricSink
from ragstack_common.registry.catalogue import Catalogue, SharedValues
from ragstack_common.registry.table import PARTITION_KEY, SNAPSHOT, SORT_KEY, to_item
from ragstack_common.registry.transactions import if_holds
from ragstack_common.settings.names import SNAPSHOT_KEY

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

SNAPSHOT_KIND: Final = "snapshot"
SNAPSHOT_MESSAGE: Final = json.dumps({"start": SNAPSHOT_KIND, "by": "a change"})

VALUES_LEFT_OUT: Final = "InferredValuesLeftOut"
"""Metric: values from which no filter is inferred, because there are more than INFER_VALUES."""

LOST_SECONDS: Final = 120.0
"""A message that has not arrived this long after its delay counts as lost: the next change sends another."""

_ATTEMPTS: Final = 5


class SnapshotRequests:
    """Remembers that a snapshot was requested, so that several changes request one."""

    def __init__(self, client: "DynamoDBClient", table: str, *, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._clock = clock
        self._item: Any = {"TableName": table, "Key": to_item({PARTITION_KEY: SNAPSHOT, SORT_KEY: SNAPSHOT})}

    def make(self, delay_seconds: float) -> bool:
        """Note a request; returns False if an earlier one covers it, so that no message is needed."""
        now = self._clock()
        answer = if_holds(
            lambda: self._client.update_item(
                **self._item,
                UpdateExpression="SET expected_until = :until",
                ConditionExpression="attribute_not_exists(expected_until) OR expected_until < :now",
                ExpressionAttributeValues=to_item({":until": now + delay_seconds + LOST_SECONDS, ":now": now}),
            )
        )
        return answer is not None

    def clear(self) -> None:
        """Forget the request: a change from now on needs another."""
        self._client.delete_item(**self._item)


@dataclass(frozen=True)
class SnapshotWriter:
    """Writes the snapshot."""

    catalogue: Catalogue
    requests: SnapshotRequests
    s3: "S3Client"
    bucket: str
    attributes: Collection[str]
    most: int
    left_out: Collection[str] = ()
    metrics: MetricSink = NO_METRICS

    def write(self) -> dict[str, Any]:
        """Read the catalogue, write the snapshot unless it is the same, and report.

        Raises:
            ClientError, BotoCoreError: The registry or S3 did not answer.
            RegistryError: Others wrote at the same time, repeatedly.
        """
        self.requests.clear()
        for _ in range(_ATTEMPTS):
            head = unless_absent(lambda: self.s3.head_object(Bucket=self.bucket, Key=SNAPSHOT_KEY))
            etag = None if head is None else head["ETag"]
            shared = self.catalogue.shared_values(self.attributes, self.most, self.left_out)
            body = packed(shared)
            if etag != _expected_etag(body) and not put_if(
                unchanged(etag),
                self.s3,
                Bucket=self.bucket,
                Key=SNAPSHOT_KEY,
                Body=body,
                ContentType="application/gzip",
            ):
                continue
            self.metrics.add_metric(VALUES_LEFT_OUT, "Count", shared.left_out)
            if shared.left_out:
                LOGGER.warning(
                    "Filters are inferred from the %d most frequent values; %d others are over INFER_VALUES",
                    self.most,
                    shared.left_out,
                )
            number = sum(map(len, shared.values.values()))
            return {"attributes": len(shared.values), "values": number, "left_out": shared.left_out, "bytes": len(body)}
        raise RegistryError(f"Other workers replaced the snapshot of the catalogue {_ATTEMPTS} times in a row")


def packed(shared: SharedValues) -> bytes:
    """Return the object's content; equal values always give the same."""
    values = {key: [*counts.items()] for key, counts in shared.values.items()}
    content = {"documents": shared.documents, "left_out": shared.left_out, "values": values}
    return gzip.compress(json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode(), mtime=0)


def unpacked(body: bytes) -> SharedValues:
    """Return the values in the object's content."""
    content = json.loads(gzip.decompress(body))
    values = {key: {value: count for value, count in counts} for key, counts in content["values"].items()}  # noqa: C416
    return SharedValues(content["documents"], values, content["left_out"])


def read_if_changed(s3: "S3Client", bucket: str, etag: str | None) -> tuple[SharedValues | None, str | None] | None:
    """Return the snapshot and its entity tag as :func:`get_if_changed` does."""
    found = get_if_changed(s3, bucket, SNAPSHOT_KEY, etag)
    if found is None:
        return None
    body, etag = found
    return None if body is None else unpacked(body), etag


def _expected_etag(body: bytes) -> str:
    """Return the entity tag that S3 gives an object encrypted with its own keys; with another, the object is rewritten.

    Source: Amazon S3 API reference, Object, ETag.
    """
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
