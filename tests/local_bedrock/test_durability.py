import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from botocore.exceptions import ClientError

from local_bedrock.options import Options, Pace
from local_bedrock.server import PortInUseError, running
from local_bedrock.service import Service
from local_bedrock.store.condition import FILE_NAME
from ragstack_common import embedding
from ragstack_common.embedding import EmbeddingError
from ragstack_common.ingestion.requests import text_document
from tests.local_bedrock.support import Bedrock, Source, bytes_document, custom_identifier, serving
from tests.support.children import END_SECONDS, child
from tests.support.forked_bedrock import forked_bedrock
from tests.support.soak import SOAK
from tests.support.waiting import eventually

START_LIMIT = 4.0
"""Processor seconds that its libraries take by themselves."""
LIBRARIES = "import apsw, boto3, numpy, starlette.applications, typer, uvicorn"
SEEDS = range(3) if SOAK else range(1)
ROUNDS = 4 if SOAK else 2


@contextmanager
def process(data_dir: Path, *options: str) -> Iterator[tuple[Bedrock, "subprocess.Popen[str]", str]]:
    """Run the server as users do, on a free port."""
    command = [sys.executable, "-m", "local_bedrock", "--port", "0", "--data-dir", str(data_dir), *options]
    with child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        url = re.search(r"http://\S+:\d+", line)
        assert url, f"said {line!r} and {server.stderr.read() if server.stderr else ''!r}"
        yield Bedrock.at(url[0]), server, line


def ended(process: "subprocess.Popen[str]") -> float:
    """Wait for the end of a process; the seconds that it had a processor."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def run(*options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "local_bedrock", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_an_index_damaged_while_it_is_used_is_named_as_the_cause(tmp_path: Path) -> None:
    with serving(tmp_path) as bedrock:
        source = bedrock.custom_source(bedrock.knowledge_base("damaged"))
        apsw.Connection(str(tmp_path / FILE_NAME)).wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        with (tmp_path / FILE_NAME).open("r+b") as file:
            file.seek(4096)
            file.write(b"damaged " * 20_000)

        with pytest.raises(ClientError, match=r"The index is damaged\. Restart: `ragstack up` rebuilds it") as refused:
            source.ingest(text_document("heron", "The heron waits."))
    found = run("--port", "0", "--data-dir", str(tmp_path))

    assert refused.value.response["Error"]["Code"] == "InternalServerException"
    assert (found.returncode, found.stdout) == (2, "")
    assert re.fullmatch(r"Error: The index \S+ is damaged \(.*\)\. Start with --replace-index: .*\n", found.stderr)


def test_it_starts_soon_announces_its_embedding_and_ends_cleanly(tmp_path: Path) -> None:
    with process(tmp_path) as (bedrock, server, line):
        bedrock.knowledge_base("first")
        server.send_signal(signal.SIGTERM)
        used = ended(server)
        errors = server.stderr.read() if server.stderr else ""
    with child([sys.executable, "-c", LIBRARIES], text=True) as libraries:
        needed = ended(libraries)

    # Not the time that passed: the machine may be slow, or busy with other tests.
    assert used < START_LIMIT * needed
    assert "embedding hashed (1024 dimensions)" in line
    assert server.returncode == 0
    assert errors == ""


def test_sigterm_right_after_the_announcement_ends_it_cleanly(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from local_bedrock.options import Options\n"
        "from local_bedrock.server import run\n"
        "run(Options(Path(sys.argv[1]), port=0), announce=lambda _line: os.kill(os.getpid(), signal.SIGTERM))\n"
        "print('ended')\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, timeout=120, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


@pytest.mark.slow
def test_stopped_during_a_long_conversion_it_ends_soon_and_resumes(tmp_path: Path) -> None:
    endless = b"<html><body>" + b"<div><p>word " * 300_000
    with process(tmp_path) as (bedrock, server, _line):
        source = bedrock.custom_source(bedrock.knowledge_base("stopped"))
        source.ingest(bytes_document("endless", endless, "text/html"))
        eventually(lambda: source.details(custom_identifier("endless"))[0]["status"] == "IN_PROGRESS")
        server.send_signal(signal.SIGTERM)
        code = server.wait(END_SECONDS)

    with process(tmp_path) as (bedrock, _server, _line):
        again = Source(bedrock, source.knowledge_base_id, source.id)
        status = again.details(custom_identifier("endless"))[0]["status"]
        others = again.ingested(text_document("heron", "Herons stand in the shallow water."))

    assert code == 0
    assert status in ("PENDING", "IN_PROGRESS")
    assert others[0]["status"] == "INDEXED"


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_job_that_is_killed_repeatedly_counts_right(
    tmp_path: Path, s3: Any, s3_url: str, bucket: str, seed: int
) -> None:
    moment = random.Random(seed)
    for number in range(40):
        s3.put_object(Bucket=bucket, Key=f"{number}.txt", Body=f"Heron number {number} stands. ".encode() * 500)
    s3.put_object(Bucket=bucket, Key="slides.pptx", Body=b"PK")
    job_id, ids = "", {}
    for _ in range(ROUNDS):
        with forked_bedrock(tmp_path, s3_endpoint=s3_url) as url:
            if not job_id:
                bedrock = Bedrock.at(url)
                source = bedrock.s3_source(bedrock.knowledge_base("killed-often"), bucket)
                ids, job_id = source.ids, source.start_job()
            time.sleep(moment.uniform(0, 0.5))

    with forked_bedrock(tmp_path, s3_endpoint=s3_url) as url:
        job = Source(Bedrock.at(url), ids["knowledgeBaseId"], ids["dataSourceId"]).ended(job_id)

    assert job["status"] == "COMPLETE"
    assert {name: count for name, count in job["statistics"].items() if count} == {
        "numberOfDocumentsScanned": 41,
        "numberOfNewDocumentsIndexed": 40,
        "numberOfDocumentsFailed": 1,
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["VECTOR", "MANAGED"])
@pytest.mark.parametrize("seed", SEEDS)
def test_kills_lose_no_acknowledged_document(
    tmp_path: Path, s3: Any, s3_url: str, bucket: str, seed: int, kind: str
) -> None:
    moment = random.Random(seed)
    options = {"pace": Pace(indexing_seconds=0.4, deletion_seconds=0.3), "s3_endpoint": s3_url}
    for number in range(20):
        s3.put_object(Bucket=bucket, Key=f"{number}.txt", Body=b"Herons stand. " * 200)
    expected: dict[str, set[str]] = {}
    jobs: list[str] = []
    custom: dict[str, str] = {}
    scanned: dict[str, str] = {}

    for round_ in range(ROUNDS):
        with forked_bedrock(tmp_path, **options) as url:
            bedrock = Bedrock.at(url)
            if not custom:
                custom, scanned = (source.ids for source in _sources(bedrock, kind, bucket))
            source = Source(bedrock, custom["knowledgeBaseId"], custom["dataSourceId"])
            names = [f"{round_}-{number}" for number in range(10)]
            source.ingest(*(text_document(name, f"{name} stands.") for name in names))
            expected |= {name: {"INDEXED"} for name in names}
            gone = moment.sample(sorted(expected), 5)
            source.delete(*map(custom_identifier, gone))
            # The answer says whether there was a document to delete; acknowledged deletions are durable.
            expected |= {name: {"NOT_FOUND"} for name in gone}
            try:
                jobs.append(bedrock.agent.start_ingestion_job(**scanned)["ingestionJob"]["ingestionJobId"])
                if moment.random() < 0.5:
                    bedrock.agent.stop_ingestion_job(**scanned, ingestionJobId=jobs[-1])
            except bedrock.agent.exceptions.ConflictException:
                pass
            time.sleep(moment.uniform(0, 0.7))

    with forked_bedrock(tmp_path, **options) as url:
        bedrock = Bedrock.at(url)
        source = Source(bedrock, custom["knowledgeBaseId"], custom["dataSourceId"])
        names = sorted(expected)
        settled = {
            detail["identifier"]["custom"]["id"]: {detail["status"]}
            for start in range(0, len(names), 10)
            for detail in source.settled(*map(custom_identifier, names[start : start + 10]))
        }
        of_bucket = Source(bedrock, scanned["knowledgeBaseId"], scanned["dataSourceId"])
        statuses = {of_bucket.ended(job_id)["status"] for job_id in jobs}
        last = of_bucket.synchronised()
        listed = bedrock.agent.list_knowledge_base_documents(**scanned)["documentDetails"]

    assert settled == expected
    assert statuses <= {"COMPLETE", "STOPPED"}
    assert last["status"] == "COMPLETE"
    assert [detail["status"] for detail in listed] == ["INDEXED"] * 20


def _sources(bedrock: Bedrock, kind: str, bucket: str) -> tuple[Source, Source]:
    """A source for direct ingestion, and one of a bucket, of a new knowledge base."""
    if kind == "MANAGED":
        base = bedrock.managed_base("killed-at-random")
        in_bucket = bedrock.connector(base, "S3", connectionConfiguration={"bucketName": bucket})
        return bedrock.connector(base, "CUSTOM"), in_bucket
    base = bedrock.knowledge_base("killed-at-random")
    return bedrock.custom_source(base), bedrock.s3_source(base, bucket)


def test_a_restart_changes_no_result(tmp_path: Path) -> None:
    with running(tmp_path) as url:
        source = Bedrock.at(url).custom_source(Bedrock.at(url).knowledge_base("restarted"))
        source.ingested(*(text_document(str(n), f"Bird number {n} of {n * n}", {"n": n}) for n in range(10)))
        before = [source.bedrock.search(source.knowledge_base_id, "bird 49", overrideSearchType=t) for t in TYPES]

    with serving(tmp_path) as bedrock:
        after = [bedrock.search(source.knowledge_base_id, "bird 49", overrideSearchType=t) for t in TYPES]

    assert after == before


TYPES = ("HYBRID", "SEMANTIC")


def test_an_embedding_of_another_dimension_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path) as url:
        Bedrock.at(url).knowledge_base("embedded")

    monkeypatch.setattr(embedding, "load", lambda *_: embedding.HashedEmbedding(64))
    with pytest.raises(EmbeddingError) as caught:
        Service(Options(tmp_path))

    assert "the embedding hashed of 1024 dimensions, not 64" in str(caught.value)


def test_a_data_folder_is_used_by_one_process(tmp_path: Path) -> None:
    with running(tmp_path):
        refused = run("--data-dir", str(tmp_path), "--port", "0")

    assert refused.returncode == 2
    assert refused.stderr.startswith("Error: ")
    assert refused.stderr.count("\n") == 1
    assert f"The data folder {tmp_path} is in use by another local Bedrock" in refused.stderr


def test_a_port_in_use_is_reported_first(tmp_path: Path, bedrock: Bedrock) -> None:
    port = int(bedrock.url.rpartition(":")[2])

    with pytest.raises(PortInUseError, match=f"Port {port} on 127.0.0.1 cannot be used"), running(tmp_path, port=port):
        pass

    assert list(tmp_path.iterdir()) == []


def test_readers_do_not_wait_for_a_running_ingestion(custom: Source) -> None:
    custom.ingested(text_document("heron", "Herons stand in the shallow water."))
    answered_meanwhile = 0

    def status(identifier: dict[str, Any]) -> str:
        return str(custom.details(identifier)[0]["status"])

    # One document takes long enough, unless the machine is so busy that it ends between two questions.
    for number in range(20):
        custom.ingest(text_document(f"long-{number}", "Nothing at all is said about anything. " * 20_000))
        long = custom_identifier(f"long-{number}")
        eventually(lambda: status(long) != "STARTING")  # noqa: B023 - called at once
        while status(long) == "IN_PROGRESS":
            assert custom.texts("herons", numberOfResults=1) == ["Herons stand in the shallow water."]
            answered_meanwhile += status(long) == "IN_PROGRESS"
        if answered_meanwhile > 5:
            break

    assert answered_meanwhile > 5
