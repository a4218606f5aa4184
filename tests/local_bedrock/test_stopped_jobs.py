"""StopIngestionJob."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_bedrock.options import Pace
from local_bedrock.server import running
from tests.local_bedrock.support import Bedrock, Source, s3_identifier
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory, s3_url: str) -> Iterator[Bedrock]:
    """A local Bedrock that begins with no document within the life of a test."""
    with running(tmp_path_factory.mktemp("waiting"), s3_endpoint=s3_url, pace=Pace(indexing_seconds=3600.0)) as url:
        yield Bedrock.at(url)


def put(s3: Any, bucket: str, **bodies: str) -> None:
    for name, body in bodies.items():
        s3.put_object(Bucket=bucket, Key=f"{name}.txt", Body=body.encode())


def listed(source: Source) -> dict[str, str]:
    found = source.bedrock.agent.list_knowledge_base_documents(**source.ids)["documentDetails"]
    return {detail["identifier"]["s3"]["uri"].rpartition("/")[2]: detail["status"] for detail in found}


def test_stopping_a_job_removes_its_unstarted_new_documents(s3: Any, bucket: str, waiting: Bedrock) -> None:
    put(s3, bucket, heron="Herons stand.", osprey="Ospreys dive.")
    source = waiting.s3_source(waiting.knowledge_base("stop-new"), bucket)
    job_id = source.start_job()
    eventually(lambda: len(listed(source)) == 2)

    answer = waiting.agent.stop_ingestion_job(**source.ids, ingestionJobId=job_id)["ingestionJob"]

    ended = source.ended(job_id)
    assert (answer["status"], ended["status"]) == ("STOPPING", "STOPPED")
    assert (ended["statistics"]["numberOfDocumentsScanned"], ended["statistics"]["numberOfNewDocumentsIndexed"]) == (
        2,
        0,
    )
    assert ended["updatedAt"] >= ended["startedAt"]
    assert listed(source) == {}
    assert source.details(s3_identifier(bucket, "heron.txt"))[0]["status"] == "NOT_FOUND"


def test_a_stopped_job_restores_its_documents(s3: Any, bucket: str, s3_url: str, tmp_path: Path) -> None:
    with running(tmp_path, s3_endpoint=s3_url) as url:
        bedrock = Bedrock.at(url)
        source = bedrock.s3_source(bedrock.knowledge_base("stopped"), bucket)
        put(s3, bucket, heron="Herons stand.", osprey="Ospreys dive.")
        s3.put_object(Bucket=bucket, Key="broken.pdf", Body=b"no PDF")
        source.synchronised()
        before = listed(source)
    put(s3, bucket, heron="Herons wade.", osprey="Ospreys dive deep.", tern="Terns hover.")

    with running(tmp_path, s3_endpoint=s3_url, pace=Pace(indexing_seconds=3600.0)) as url:
        slow = Source(Bedrock.at(url), source.knowledge_base_id, source.id)
        job_id = slow.start_job()
        eventually(lambda: set(listed(slow).values()) == {"STARTING"})
        slow.bedrock.agent.stop_ingestion_job(**slow.ids, ingestionJobId=job_id)
        slow.ended(job_id)
        between, texts = listed(slow), slow.texts("herons", numberOfResults=1)
    with running(tmp_path, s3_endpoint=s3_url) as url:
        again = Source(Bedrock.at(url), source.knowledge_base_id, source.id)
        statistics = again.synchronised()["statistics"]

    assert before == {"heron.txt": "INDEXED", "osprey.txt": "INDEXED", "broken.pdf": "FAILED"}
    assert between == before
    assert texts == ["Herons stand."]
    assert (statistics["numberOfNewDocumentsIndexed"], statistics["numberOfModifiedDocumentsIndexed"]) == (1, 2)


def test_stopping_is_idempotent_and_frees_the_knowledge_base(s3: Any, bucket: str, waiting: Bedrock) -> None:
    put(s3, bucket, heron="Herons stand.")
    source = waiting.s3_source(waiting.knowledge_base("stop-twice"), bucket)
    job_id = source.start_job()

    for _ in range(2):
        waiting.agent.stop_ingestion_job(**source.ids, ingestionJobId=job_id)
    source.ended(job_id)
    again = waiting.agent.stop_ingestion_job(**source.ids, ingestionJobId=job_id)["ingestionJob"]

    assert again["status"] == "STOPPED"
    assert source.start_job() != job_id


def test_a_finished_job_cannot_be_stopped(s3_source: Source) -> None:
    job_id = s3_source.synchronised()["ingestionJobId"]

    with pytest.raises(ClientError) as caught:
        s3_source.bedrock.agent.stop_ingestion_job(**s3_source.ids, ingestionJobId=job_id)

    assert caught.value.response["Error"]["Code"] == "ConflictException"
    assert "is COMPLETE and cannot be stopped" in caught.value.response["Error"]["Message"]


def test_jobs_and_stops_in_quick_succession_leave_no_job_running(s3: Any, bucket: str, s3_source: Source) -> None:
    for number in range(30):
        s3.put_object(Bucket=bucket, Key=f"{number}.txt", Body=b"Herons stand in the shallow water. " * 300)
    agent = s3_source.bedrock.agent

    for _ in range(5):
        job_id = s3_source.start_job()
        # A job that has ended before anybody could stop it is complete.
        with suppress(agent.exceptions.ConflictException):
            agent.stop_ingestion_job(**s3_source.ids, ingestionJobId=job_id)
        s3_source.ended(job_id)
    last = s3_source.synchronised()

    assert last["status"] == "COMPLETE"
    assert set(listed(s3_source).values()) == {"INDEXED"}
    assert len(listed(s3_source)) == 30
