"""How statuses pass with time: in the tables at given moments, and over HTTP with a short pace."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_bedrock.options import Pace
from local_bedrock.server import running
from local_bedrock.store import database as database_module
from local_bedrock.store import documents, resources, submissions
from local_bedrock.store.database import Database
from local_bedrock.store.documents import DocumentKey
from local_bedrock.store.resources import KnowledgeBase
from tests.local_bedrock.support import (
    Bedrock,
    Clock,
    Source,
    bytes_document,
    client,
    custom_identifier,
    knowledge_base_request,
    running_by,
    text_document,
)
from tests.support.waiting import eventually

BASE, SOURCE = "KB12345678", "DS12345678"
STATUS_SECONDS = 1 / 32
"""Of the clock, which stands still until a test has seen what it must."""
MILLISECOND = 1 / 1000
"""The times that the service tells are cut to whole ones."""
PACE = Pace(creation_seconds=STATUS_SECONDS, indexing_seconds=3 * STATUS_SECONDS, deletion_seconds=2 * STATUS_SECONDS)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path)
    with opened.write() as change:
        resources.add_knowledge_base(
            change, KnowledgeBase(BASE, "kb", "CREATING", "S3_VECTORS", "hashed", 64, {}, 0.0, 0.0, due_at=5.0)
        )
    yield opened
    opened.close()


def submit(database: Database, name: str, action: str, *, now: float, seconds: float) -> None:
    record = DocumentKey(BASE, SOURCE, "CUSTOM", name)
    with database.write() as change:
        submissions.submit(change, record, action, now=now, request={}, seconds=seconds)


def status(database: Database, name: str, now: float) -> str:
    with database.write() as change:
        submissions.advance(change, now)
        found = documents.find(change.connection, SOURCE, name)
    assert found is not None
    return found.status


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (submissions.INGEST, ["STARTING", "STARTING", "PENDING", "PENDING", "IN_PROGRESS", "IN_PROGRESS"]),
        (submissions.DELETE, ["DELETING", "DELETING", "DELETING", "DELETE_IN_PROGRESS", "DELETE_IN_PROGRESS"]),
    ],
)
def test_every_status_is_visible_for_its_share_of_the_time(
    database: Database, action: str, expected: list[str]
) -> None:
    submit(database, "a", action, now=100.0, seconds=6.0)

    seen = [status(database, "a", 100.0 + second) for second in range(len(expected))]

    assert seen == expected


def test_work_starts_when_it_is_due_and_not_before(database: Database) -> None:
    submit(database, "slow", submissions.INGEST, now=100.0, seconds=6.0)
    submit(database, "quick", submissions.INGEST, now=100.0, seconds=1.0)

    def taken(now: float) -> list[str]:
        with database.write() as change:
            return [submission.document.name for submission in submissions.take_up(change, now)]

    assert [taken(now) for now in (100.9, 101.0, 101.1, 105.9, 106.0)] == [[], ["quick"], [], [], ["slow"]]


def test_missed_statuses_are_caught_up(database: Database) -> None:
    submit(database, "a", submissions.INGEST, now=100.0, seconds=6.0)

    assert status(database, "a", 1000.0) == "IN_PROGRESS"


def test_the_next_change_is_known_in_advance(database: Database) -> None:
    submit(database, "a", submissions.INGEST, now=100.0, seconds=6.0)
    seen = []

    for now in (100.0, 102.0, 104.0, 106.0):
        status(database, "a", now)
        with database.read() as view:
            seen.append(submissions.next_change(view.connection, now))

    assert seen == [102.0, 104.0, 106.0, None]


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock(1_700_000_000.0)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> Iterator[Bedrock]:
    with running_by(clock, tmp_path_factory.mktemp("slow"), pace=PACE) as url:
        yield Bedrock.at(url)


def passed(clock: Clock, look: Callable[[], str], changes: int) -> list[str]:
    """Note the statuses in their order, of which each stays until its time has passed."""
    seen = [look()]
    for _ in range(changes):
        clock.now += STATUS_SECONDS
        seen.append(eventually(lambda: now if (now := look()) != seen[-1] else None))
    return seen


def base_status(bedrock: Bedrock, knowledge_base_id: str) -> str:
    try:
        return str(bedrock.agent.get_knowledge_base(knowledgeBaseId=knowledge_base_id)["knowledgeBase"]["status"])
    except bedrock.agent.exceptions.ResourceNotFoundException:
        return "gone"


def active(bedrock: Bedrock, clock: Clock, name: str) -> str:
    made = bedrock.knowledge_base(name)
    clock.now += PACE.creation_seconds
    eventually(lambda: base_status(bedrock, made) == "ACTIVE")
    return made


def look_at(source: Source, name: str) -> Callable[[], str]:
    return lambda: str(source.details(custom_identifier(name))[0]["status"])


def test_a_knowledge_base_is_created_and_deleted_in_its_time(slow: Bedrock, clock: Clock) -> None:
    made = slow.agent.create_knowledge_base(**knowledge_base_request("timed"))["knowledgeBase"]["knowledgeBaseId"]
    with pytest.raises(ClientError, match="is in status CREATING"):
        slow.custom_source(made)
    created = passed(clock, lambda: base_status(slow, made), 1)

    slow.agent.delete_knowledge_base(knowledgeBaseId=made)
    clock.now += STATUS_SECONDS  # a half of its time
    deleted = passed(clock, lambda: base_status(slow, made), 1)

    assert created == ["CREATING", "ACTIVE"]
    assert deleted == ["DELETING", "gone"]


def test_a_document_passes_every_status_there_and_back(slow: Bedrock, clock: Clock) -> None:
    source = slow.custom_source(active(slow, clock, "passing"))
    source.ingest(text_document("heron", "Herons stand in the shallow water."))
    ingested = passed(clock, look_at(source, "heron"), 3)

    source.delete(custom_identifier("heron"))
    deleted = passed(clock, look_at(source, "heron"), 2)

    assert ingested == ["STARTING", "PENDING", "IN_PROGRESS", "INDEXED"]
    assert deleted == ["DELETING", "DELETE_IN_PROGRESS", "NOT_FOUND"]


def test_a_failure_comes_no_earlier_than_success_would(slow: Bedrock, clock: Clock) -> None:
    source = slow.custom_source(active(slow, clock, "failing"))
    started = source.ingest(bytes_document("broken", b"no PDF", "application/pdf"))[0]["updatedAt"]

    seen = passed(clock, look_at(source, "broken"), 3)

    ended = source.details(custom_identifier("broken"))[0]["updatedAt"]
    assert (ended - started).total_seconds() > PACE.indexing_seconds - MILLISECOND
    assert seen == ["STARTING", "PENDING", "IN_PROGRESS", "FAILED"]


def test_documents_that_wait_for_their_time_do_not_wait_for_one_another(slow: Bedrock, clock: Clock) -> None:
    source = slow.custom_source(active(slow, clock, "together"))
    identifiers = [custom_identifier(f"bird-{number}") for number in range(10)]

    def all_are(expected: str) -> bool:
        return {detail["status"] for detail in source.details(*identifiers)} == {expected}

    source.ingest(*(text_document(entry["custom"]["id"], "Herons stand.") for entry in identifiers))

    for seconds, expected in ((2 * STATUS_SECONDS, "IN_PROGRESS"), (STATUS_SECONDS, "INDEXED")):
        clock.now += seconds
        eventually(partial(all_are, expected))


def test_due_times_survive_a_restart_and_closing_is_prompt(tmp_path: Path) -> None:
    with running(tmp_path, pace=Pace(indexing_seconds=3600.0)) as url:
        bedrock = Bedrock.at(url)
        source = bedrock.custom_source(bedrock.knowledge_base("restarted"))
        source.ingest(text_document("late", "Herons stand."))

    with running(tmp_path) as url:
        again = Source(Bedrock.at(url), source.knowledge_base_id, source.id)
        others = again.ingested(text_document("now", "Ospreys dive."))
        late: dict[str, Any] = again.details(custom_identifier("late"))[0]

    assert others[0]["status"] == "INDEXED"
    assert late["status"] == "STARTING"


@pytest.mark.parametrize("deleted", ["documents", "knowledge base", "vector index"])
def test_deletions_release_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deleted: str) -> None:
    monkeypatch.setattr(database_module, "RELEASED_PAGES", 10)
    names = [str(number) for number in range(10)]
    with running(tmp_path) as url:
        bedrock = Bedrock.at(url)
        base = bedrock.knowledge_base("large")
        if deleted == "vector index":
            s3_vectors = client("s3vectors", url)
            place = {"vectorBucketName": "large-bucket", "indexName": "large-index"}
            s3_vectors.create_vector_bucket(vectorBucketName=place["vectorBucketName"])
            s3_vectors.create_index(**place, dataType="float32", dimension=1, distanceMetric="euclidean")
            rows = [{"key": name, "data": {"float32": [1.0]}, "metadata": {"t": "x" * 2000}} for name in names * 20]
            put = [{**row, "key": f"{at}"} for at, row in enumerate(rows)]
            s3_vectors.put_vectors(**place, vectors=put)
        else:
            source = bedrock.custom_source(base)
            source.ingested(*(text_document(name, f"heron {name} " * 4000) for name in names))
        full = space(tmp_path)

        if deleted == "documents":
            source.delete(*map(custom_identifier, names))
        elif deleted == "knowledge base":
            bedrock.agent.delete_knowledge_base(knowledgeBaseId=base)
        else:
            s3_vectors.delete_index(**place)

        assert full > 500_000
        eventually(lambda: space(tmp_path) < full / 2)


def space(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())
