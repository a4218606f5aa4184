"""Documents that are followed in the registry until each is as it is awaited."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pytest

from ragstack_common.core.uris import s3_uri
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.records import DocumentRecord, Observation, Status
from ragstack_local.connection.connection import Connection
from ragstack_local.connection.following import NO_SIDECAR, Gone, Uploaded, follow, open_registry, read_statuses
from ragstack_local.files.bucket import Bucket
from tests.ragstack_local import functions

INDEXED = DocumentRecord(
    "s3://documents/leave.md",
    revision=3,
    status=Status.INDEXED,
    observed=Observation(etag='"a"', version_id="v2", sidecar_etag='"s"'),
)


def nothing(_: Mapping[str, DocumentStatus]) -> None:
    pass


def put(connection: Connection, key: str, text: str = "Thirty days of leave.") -> tuple[str, Uploaded]:
    answer = connection.client("s3").put_object(Bucket=connection.bucket, Key=key, Body=text.encode())
    return s3_uri(connection.bucket, key), Uploaded(answer["ETag"], answer["VersionId"])


class Time:
    """A clock that only sleeping advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(
    ("awaited", "ended"),
    [
        (Uploaded('"a"', "v2"), True),
        (Uploaded('"a"', "v1"), False),
        (Uploaded('"a"', "v3"), False),
        (Uploaded('"a"', "v2", sidecar_etag='"s"'), True),
        (Uploaded('"a"', "v2", sidecar_etag='"t"'), False),
        (Uploaded('"a"', "v2", sidecar_etag=NO_SIDECAR), False),
        (Gone(), False),
    ],
    ids=str,
)
def test_a_final_record_counts_only_for_its_own_version(awaited: Uploaded | Gone, ended: bool) -> None:
    assert awaited.is_ended_by(INDEXED) is ended
    assert awaited.is_ended_by(replace(INDEXED, again=True)) is False
    assert awaited.is_ended_by(replace(INDEXED, status=Status.INDEXING)) is False


@pytest.mark.parametrize(
    ("record", "ended"),
    [
        (DocumentRecord("s3://documents/a.md"), True),
        (DocumentRecord("s3://documents/a.md", revision=5, status=Status.DELETED), True),
        (DocumentRecord("s3://documents/a.md", revision=5, status=Status.DELETED, again=True), False),
        (DocumentRecord("s3://documents/a.md", revision=5, status=Status.DELETING), False),
        (DocumentRecord("s3://documents/a.md", revision=5, status=Status.FAILED), False),
    ],
    ids=str,
)
def test_a_deletion_ends_when_the_registry_forgets_the_document(record: DocumentRecord, ended: bool) -> None:
    assert Gone().is_ended_by(record) is ended


def test_an_upload_is_followed_from_the_bucket_to_the_index(connection: Connection) -> None:
    uri, uploaded = put(connection, "leave.md")
    registry, seen = open_registry(connection), []

    seen.append(read_statuses(registry, {uri: uploaded})[uri])
    functions.submit(connection, uri)
    seen.append(read_statuses(registry, {uri: uploaded})[uri])
    functions.end(connection, uri)
    seen.append(follow(partial(read_statuses, registry), {uri: uploaded}, nothing, 5)[uri])

    assert seen == ["UPLOADED", "INDEXING", "INDEXED"]
    assert seen[0].reason == "The upload has not been processed yet"


def test_indexed_of_the_version_before_is_never_taken_for_the_new_one(connection: Connection) -> None:
    uri, _ = put(connection, "leave.md")
    functions.index(connection, uri)
    registry, time = open_registry(connection), Time()

    # Even with the same content, at the same second.
    _, second = put(connection, "leave.md")
    before = follow(partial(read_statuses, registry), {uri: second}, nothing, 3, clock=time.clock, sleep=time.sleep)
    functions.index(connection, uri)

    assert before == {uri: "UPLOADED"}
    assert 3 <= time.now < 7
    assert follow(partial(read_statuses, registry), {uri: second}, nothing, 3) == {uri: "INDEXED"}


def test_a_replaced_upload_is_followed_as_the_new_object(connection: Connection) -> None:
    uri, ours = put(connection, "leave.md")
    put(connection, "leave.md", "Somebody else's.")
    functions.index(connection, uri)
    time = Time()

    statuses = follow(
        partial(read_statuses, open_registry(connection)),
        {uri: ours},
        nothing,
        60,
        current=Bucket.for_stack(connection).current,
        clock=time.clock,
        sleep=time.sleep,
    )

    assert statuses == {uri: "INDEXED"}
    assert 5 < time.now < 12
