import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_bedrock.options import Pace
from local_bedrock.server import running
from ragstack_common.ingestion.requests import text_document
from tests.local_bedrock.support import Bedrock, Clock, Source, custom_identifier, s3_document, s3_identifier, serving
from tests.support.waiting import eventually


def put(s3: Any, bucket: str, **bodies: str) -> None:
    for name, body in bodies.items():
        s3.put_object(Bucket=bucket, Key=f"{name}.txt", Body=body.encode())


def counts(job: dict[str, Any]) -> dict[str, int]:
    return {name.removeprefix("numberOf"): number for name, number in job["statistics"].items() if number}


def test_a_job_indexes_a_bucket(s3: Any, bucket: str, s3_source: Source) -> None:
    put(s3, bucket, heron="Herons stand in the shallow water.", osprey="Ospreys dive from great height.")
    s3.put_object(Bucket=bucket, Key="folder/", Body=b"")
    s3.put_object(Bucket=bucket, Key="heron.txt.metadata.json", Body=b'{"metadataAttributes": {"topic": "waders"}}')

    job = s3_source.synchronised()

    assert job["status"] == "COMPLETE"
    assert counts(job) == {"DocumentsScanned": 2, "MetadataDocumentsScanned": 1, "NewDocumentsIndexed": 2}
    found = s3_source.bedrock.search(
        s3_source.knowledge_base_id, "birds", filter={"equals": {"key": "topic", "value": "waders"}}
    )
    assert [result["content"]["text"] for result in found] == ["Herons stand in the shallow water."]


def test_a_second_job_works_off_the_difference(s3: Any, bucket: str, s3_source: Source) -> None:
    put(s3, bucket, heron="Herons stand.", osprey="Ospreys dive.", gull="Gulls cry.", kite="Kites soar.")
    s3_source.synchronised()
    put(s3, bucket, heron="Herons wade.", tern="Terns hover.")
    s3.delete_object(Bucket=bucket, Key="osprey.txt")
    s3.put_object(Bucket=bucket, Key="kite.txt.metadata.json", Body=b'{"metadataAttributes": {"topic": "raptors"}}')

    job = s3_source.synchronised()

    assert counts(job) == {
        "DocumentsScanned": 4,
        "MetadataDocumentsScanned": 1,
        "NewDocumentsIndexed": 1,
        "ModifiedDocumentsIndexed": 1,
        "MetadataDocumentsModified": 1,
        "DocumentsDeleted": 1,
        "DocumentsSkipped": 1,
    }
    assert set(s3_source.texts("birds")) == {"Herons wade.", "Terns hover.", "Gulls cry.", "Kites soar."}


def test_a_job_looks_only_under_its_prefix(bedrock: Bedrock, s3: Any, bucket: str, knowledge_base: str) -> None:
    s3.put_object(Bucket=bucket, Key="birds/heron.txt", Body=b"Herons stand.")
    s3.put_object(Bucket=bucket, Key="fish/trout.txt", Body=b"Trouts swim.")
    source = bedrock.s3_source(knowledge_base, bucket, s3={"inclusionPrefixes": ["birds/"]})

    source.synchronised()

    assert source.texts("animals") == ["Herons stand."]


def test_a_job_counts_what_failed_and_says_why(s3: Any, bucket: str, s3_source: Source) -> None:
    put(s3, bucket, heron="Herons stand.")
    s3.put_object(Bucket=bucket, Key="broken.pdf", Body=b"%PDF nonsense")
    s3.put_object(Bucket=bucket, Key="slides.pptx", Body=b"PK")

    job = s3_source.synchronised()

    assert job["status"] == "COMPLETE"
    assert counts(job) == {"DocumentsScanned": 3, "NewDocumentsIndexed": 1, "DocumentsFailed": 2}
    sentences = [json.loads(reason)[0] for reason in job["failureReasons"]]
    assert len(sentences) == 2
    assert all(sentence.startswith("Encountered error: Ignored 1 files: The ") for sentence in sentences)
    assert any(f"[Files: s3://{bucket}/broken.pdf]." in s and "The .pdf file is damaged" in s for s in sentences)
    assert any(f"[Files: s3://{bucket}/slides.pptx]." in s and "type .pptx is not" in s for s in sentences)


def test_files_with_the_same_failure_share_one_reason(s3: Any, bucket: str, s3_source: Source) -> None:
    for number in range(60):
        s3.put_object(Bucket=bucket, Key=f"a-folder-with-a-long-name/slides-{number}.pptx", Body=b"PK")

    job = s3_source.synchronised()

    sentences = [json.loads(reason)[0] for reason in job["failureReasons"]]
    named = [uri for sentence in sentences for uri in re.findall(r"s3://[^,\]]+", sentence)]
    assert job["statistics"]["numberOfDocumentsFailed"] == 60
    assert max(map(len, job["failureReasons"])) <= 2048
    assert 1 < len(sentences) < 10
    assert sum(int(re.findall(r"Ignored (\d+) files", sentence)[0]) for sentence in sentences) == 60
    assert sorted(set(named)) == sorted(named)
    assert len(named) == 60


def test_a_sidecar_that_is_gone_is_a_modified_metadata_file(s3: Any, bucket: str, s3_source: Source) -> None:
    put(s3, bucket, heron="Herons stand.")
    s3.put_object(Bucket=bucket, Key="heron.txt.metadata.json", Body=b'{"metadataAttributes": {"topic": "waders"}}')
    s3_source.synchronised()
    s3.delete_object(Bucket=bucket, Key="heron.txt.metadata.json")

    job = s3_source.synchronised()

    found = s3_source.bedrock.search(s3_source.knowledge_base_id, "herons")
    assert counts(job) == {"DocumentsScanned": 1, "MetadataDocumentsModified": 1}
    assert "topic" not in found[0]["metadata"]


def test_a_job_skips_documents_under_direct_ingestion(s3: Any, bucket: str, s3_url: str, tmp_path: Path) -> None:
    put(s3, bucket, heron="Herons stand.", osprey="Ospreys dive.")
    clock, pace = Clock(), Pace(indexing_seconds=1 / 32)
    with serving(tmp_path, s3_endpoint=s3_url, pace=pace, clock=clock) as bedrock:
        source = bedrock.s3_source(bedrock.knowledge_base("both"), bucket)
        source.ingest(s3_document(bucket, "heron.txt"))

        job_id = source.start_job()
        eventually(lambda: len(bedrock.agent.list_knowledge_base_documents(**source.ids)["documentDetails"]) == 2)
        clock.now += pace.indexing_seconds
        job = source.ended(job_id)

        settled = source.settled(s3_identifier(bucket, "heron.txt"), s3_identifier(bucket, "osprey.txt"))
    assert counts(job) == {"DocumentsScanned": 2, "NewDocumentsIndexed": 1, "DocumentsSkipped": 1}
    assert [detail["status"] for detail in settled] == ["INDEXED", "INDEXED"]


def test_a_job_over_a_missing_bucket_fails(bedrock: Bedrock, knowledge_base: str) -> None:
    source = bedrock.s3_source(knowledge_base, "no-such-bucket-here")

    job = source.synchronised()

    assert job["status"] == "FAILED"
    assert "no-such-bucket-here cannot be listed" in job["failureReasons"][0]


def test_while_a_job_runs_a_second_and_direct_ingestion_are_refused(
    s3: Any, bucket: str, s3_url: str, tmp_path: Path
) -> None:
    put(s3, bucket, heron="Herons stand.", osprey="Ospreys dive.")
    clock, pace = Clock(), Pace(indexing_seconds=1 / 32)
    with serving(tmp_path, s3_endpoint=s3_url, pace=pace, clock=clock) as bedrock:
        source = bedrock.s3_source(bedrock.knowledge_base("busy"), bucket)
        running = bedrock.agent.start_ingestion_job(**source.ids)["ingestionJob"]

        with pytest.raises(ClientError) as second:
            bedrock.agent.start_ingestion_job(**source.ids)
        with pytest.raises(ClientError) as direct:
            source.ingest(s3_document(bucket, "heron.txt"))
        with pytest.raises(ClientError) as deletion:
            source.delete(s3_identifier(bucket, "heron.txt"))
        eventually(lambda: len(bedrock.agent.list_knowledge_base_documents(**source.ids)["documentDetails"]) == 2)
        clock.now += pace.indexing_seconds
        ended = source.ended(running["ingestionJobId"])

    assert running["status"] == "STARTING"
    assert ended["status"] == "COMPLETE"
    assert second.value.response["Error"]["Code"] == "ConflictException"
    for refused in (direct, deletion):
        assert refused.value.response["Error"]["Code"] == "ValidationException"
        assert "ongoing" in refused.value.response["Error"]["Message"]


def test_a_custom_data_source_has_nothing_to_scan(custom: Source) -> None:
    with pytest.raises(ClientError, match="no bucket to scan"):
        custom.bedrock.agent.start_ingestion_job(**custom.ids)


def test_jobs_are_listed_newest_first_and_by_status(bucket: str, s3_source: Source) -> None:
    ended = [s3_source.synchronised()["ingestionJobId"] for _ in range(3)]
    ask = s3_source.bedrock.agent.list_ingestion_jobs

    pages = list(
        s3_source.bedrock.agent.get_paginator("list_ingestion_jobs").paginate(
            **s3_source.ids, PaginationConfig={"PageSize": 2}
        )
    )
    failed = ask(**s3_source.ids, filters=[{"attribute": "STATUS", "operator": "EQ", "values": ["FAILED"]}])

    listed = [job["ingestionJobId"] for page in pages for job in page["ingestionJobSummaries"]]
    assert listed == ended[::-1]
    assert failed["ingestionJobSummaries"] == []


def test_a_job_leaves_the_documents_of_other_sources_alone(
    bedrock: Bedrock, s3: Any, bucket: str, s3_source: Source
) -> None:
    other = bedrock.custom_source(s3_source.knowledge_base_id)

    other.ingested(text_document("osprey", "Ospreys dive."))

    s3_source.synchronised()

    assert other.details(custom_identifier("osprey"))[0]["status"] == "INDEXED"


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory, s3_url: str) -> Iterator[Bedrock]:
    """A local Bedrock that begins with no document within the life of a test."""
    with running(tmp_path_factory.mktemp("waiting"), s3_endpoint=s3_url, pace=Pace(indexing_seconds=3600.0)) as url:
        yield Bedrock.at(url)


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
    with serving(tmp_path, s3_endpoint=s3_url) as bedrock:
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
