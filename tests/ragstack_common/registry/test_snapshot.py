"""The snapshot of attribute values: complete, bounded, and never replaced by an older reading."""

from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from ragstack_common.core.errors import RegistryError
from ragstack_common.registry.catalogue import Catalogue, SharedValues, counted_under
from ragstack_common.registry.documents import DocumentRegistry, RecordChange
from ragstack_common.registry.records import DocumentRecord, Observation, Status
from ragstack_common.registry.snapshot import (
    LOST_SECONDS,
    VALUES_LEFT_OUT,
    SnapshotRequests,
    SnapshotWriter,
    packed,
    read_if_changed,
    unpacked,
)
from ragstack_common.settings.names import SNAPSHOT_KEY
from tests.ingestion.clock import Clock
from tests.support.changed_client import changed_client
from tests.support.registry_table import TABLE

BUCKET = "snapshot"
TOPICS = {"Amcor": 5, "Boeing": 3, "Corning": 2}


class Metrics:
    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def add_metric(self, name: str, unit: str, value: float) -> None:
        assert unit == "Count"
        self.values[name] = value


@pytest.fixture
def s3(dynamodb: Any) -> Any:
    client = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket=BUCKET)
    return client


@pytest.fixture
def write(dynamodb: Any) -> Callable[..., None]:
    """Write a document with these attributes, as the functions of the ingestion path do."""
    numbers = iter(range(1_000))

    def one(**attributes: Any) -> None:
        uri = f"s3://documents/{next(numbers)}"
        found = Observation('"e"', attributes=attributes)
        record = DocumentRecord(uri, status=Status.INDEXED, observed=found, counted=counted_under(attributes))
        assert DocumentRegistry(TABLE, dynamodb).write([RecordChange(DocumentRecord(uri), record)]) == set()

    return one


@pytest.fixture
def topics(write: Callable[..., None]) -> None:
    for topic, documents in TOPICS.items():
        for number in range(documents):
            write(topic=topic, title=f"{topic} {number}", tags=["a", topic], year=2020 + number % 2)


def writer(dynamodb: Any, s3: Any, *attributes: str, most: int = 100, metrics: Any = None) -> SnapshotWriter:
    requests = SnapshotRequests(dynamodb, TABLE)
    return SnapshotWriter(
        Catalogue(dynamodb, TABLE), requests, s3, BUCKET, attributes, most, metrics=metrics or Metrics()
    )


def snapshot(s3: Any) -> SharedValues:
    found = read_if_changed(s3, BUCKET, None)
    assert found is not None
    assert found[0] is not None
    return found[0]


@pytest.mark.usefixtures("topics")
def test_a_snapshot_has_shared_values_but_no_titles_and_lists(dynamodb: Any, s3: Any) -> None:
    report = writer(dynamodb, s3).write()

    values: dict[str, dict[Any, int]] = {"topic": TOPICS, "year": {2020: 6, 2021: 4}}
    assert snapshot(s3) == SharedValues(10, values, left_out=0)
    assert {name: report[name] for name in ("attributes", "values", "left_out")} == {
        "attributes": 2,
        "values": 5,
        "left_out": 0,
    }


@pytest.mark.usefixtures("topics")
def test_a_snapshot_has_only_the_attributes_that_are_allowed(dynamodb: Any, s3: Any) -> None:
    writer(dynamodb, s3, "year", "title", "absent").write()

    assert snapshot(s3).values == {"year": {2020: 6, 2021: 4}}


@pytest.mark.usefixtures("topics")
def test_the_most_frequent_values_are_kept_and_the_rest_reported(
    dynamodb: Any, s3: Any, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics()

    report = writer(dynamodb, s3, most=3, metrics=metrics).write()

    assert snapshot(s3) == SharedValues(10, {"topic": {"Amcor": 5}, "year": {2020: 6, 2021: 4}}, left_out=2)
    assert (report["values"], report["left_out"]) == (3, 2)
    assert metrics.values == {VALUES_LEFT_OUT: 2}
    assert "2 others are over INFER_VALUES" in caplog.text


def test_values_keep_their_types_and_their_letters() -> None:
    shared = SharedValues(9, {"a": {"1": 2, 2: 3, 2.5: 1, True: 1, "Zürich 日本": 2}}, left_out=4)

    read = unpacked(packed(shared))

    assert read == shared
    assert [type(value) for value in read.values["a"]] == [str, int, float, bool, str]


@pytest.mark.usefixtures("topics")
def test_a_reader_that_has_the_snapshot_does_not_read_it_again(
    dynamodb: Any, s3: Any, write: Callable[..., None]
) -> None:
    assert read_if_changed(s3, BUCKET, None) == (None, None)
    writer(dynamodb, s3).write()
    found = read_if_changed(s3, BUCKET, None)
    assert found is not None
    etag = found[1]

    unchanged = read_if_changed(s3, BUCKET, etag)
    writer(dynamodb, s3).write()
    same = read_if_changed(s3, BUCKET, etag)
    write(topic="Amcor")
    writer(dynamodb, s3).write()
    changed = read_if_changed(s3, BUCKET, etag)

    assert (unchanged, same) == (None, None)
    assert changed is not None
    assert changed[0] is not None
    assert changed[0].values["topic"]["Amcor"] == 6


def before_each_put(s3: Any, happens: Callable[[], object]) -> Any:
    def put(method: Any, **parameters: Any) -> Any:
        happens()
        return method(**parameters)

    return changed_client(s3, "put_object", put)


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("exists", [False, True])
def test_a_slow_writer_never_replaces_a_newer_snapshot(
    dynamodb: Any, s3: Any, write: Callable[..., None], exists: bool
) -> None:
    if exists:
        writer(dynamodb, s3).write()
        write(topic="Amcor")
    times = iter([1])

    def once() -> None:
        for _ in times:
            write(topic="Amcor")
            writer(dynamodb, s3).write()

    writer(dynamodb, before_each_put(s3, once)).write()

    assert snapshot(s3).values["topic"]["Amcor"] == (7 if exists else 6)


@pytest.mark.usefixtures("topics")
def test_a_writer_that_always_loses_has_its_message_redelivered(
    dynamodb: Any, s3: Any, write: Callable[..., None]
) -> None:
    def happens() -> None:
        write(topic="Amcor")
        writer(dynamodb, s3).write()
        write(topic="Amcor")

    racing = before_each_put(s3, happens)

    with pytest.raises(RegistryError, match="of the catalogue 5 times"):
        writer(dynamodb, racing).write()


@pytest.mark.usefixtures("topics")
def test_a_change_during_the_reading_requests_another_snapshot(dynamodb: Any, s3: Any) -> None:
    requests = SnapshotRequests(dynamodb, TABLE)
    requested: list[bool] = [requests.make(60)]

    writer(dynamodb, before_each_put(s3, lambda: requested.append(requests.make(60)))).write()

    assert requested == [True, True]


def test_the_changes_of_a_while_request_one_snapshot(dynamodb: Any, clock: Clock) -> None:
    requests = SnapshotRequests(dynamodb, TABLE, clock=clock)

    first, second = requests.make(60), requests.make(60)
    clock.sleep(60 + LOST_SECONDS + 1)
    after_a_lost_message = requests.make(60)

    assert (first, second, after_a_lost_message) == (True, False, True)


@pytest.mark.usefixtures("topics")
def test_a_killed_writer_leaves_the_earlier_snapshot(dynamodb: Any, s3: Any, write: Callable[..., None]) -> None:
    writer(dynamodb, s3).write()
    before = s3.get_object(Bucket=BUCKET, Key=SNAPSHOT_KEY)["ETag"]
    write(topic="Amcor")

    def killed() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        writer(dynamodb, before_each_put(s3, killed)).write()

    assert s3.get_object(Bucket=BUCKET, Key=SNAPSHOT_KEY)["ETag"] == before
    assert SnapshotRequests(dynamodb, TABLE).make(60), "the next change requests another"


def test_a_missing_bucket_is_an_error_and_no_lost_race(dynamodb: Any, s3: Any) -> None:
    s3.delete_bucket(Bucket=BUCKET)

    with pytest.raises(ClientError, match="NoSuchBucket"):
        writer(dynamodb, s3).write()
