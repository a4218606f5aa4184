"""A full disk delays documents, and everyone reads why."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_bedrock import service
from local_bedrock.ingestion import workers
from local_bedrock.options import Pace
from local_bedrock.store import database
from local_bedrock.store.database import Database, DiskFullError
from ragstack_common.ingestion.requests import text_document
from tests.local_bedrock.support import Clock, s3_document, s3_identifier, serving
from tests.support.waiting import eventually

LONG = "The heron stands in shallow water and waits for fish. " * 2000


@dataclass
class Disk:
    """The disk of the newest data folder, which SQLite believes to be full."""

    database: Database

    def fill(self) -> None:
        self._limit(1)  # never less than the present number of pages

    def free(self) -> None:
        self._limit(1_000_000)

    def _limit(self, pages: int) -> None:
        with self.database._writing:
            self.database._writer.execute(f"PRAGMA max_page_count = {pages}")


@pytest.fixture
def disks(monkeypatch: pytest.MonkeyPatch) -> list[Disk]:
    found: list[Disk] = []

    def opened(folder: Path, **options: bool) -> Database:
        found.append(Disk(Database(folder, **options)))
        return found[-1].database

    monkeypatch.setattr(service, "Database", opened)
    for module in (database, workers):
        monkeypatch.setattr(module, "RETRY_SECONDS", 0.02)
    return found


def test_a_change_that_did_not_fit_can_be_repeated(tmp_path: Path) -> None:
    disk = Disk(Database(tmp_path))
    changes = disk.database
    statement = "INSERT INTO resource_tag VALUES ('arn', 'key', hex(zeroblob(1000000)))"

    disk.fill()
    with pytest.raises(DiskFullError, match=f"disk of the data folder {tmp_path} is full: free space"), changes.write():
        changes._writer.execute(statement)
    noticed = changes.obstacle
    disk.free()
    with changes.write() as change:
        change.connection.execute(statement)

    assert str(noticed).startswith("The disk")
    assert changes.obstacle is None
    changes.close()


def test_documents_wait_for_room_and_say_so(
    disks: list[Disk], s3: Any, bucket: str, s3_url: str, tmp_path: Path
) -> None:
    s3.put_object(Bucket=bucket, Key="long.txt", Body=LONG.encode())
    clock = Clock()
    with serving(tmp_path, s3_endpoint=s3_url, pace=Pace(indexing_seconds=3), clock=clock) as bedrock:
        base = bedrock.knowledge_base("full")
        source, inline = bedrock.s3_source(base, bucket), bedrock.custom_source(base)
        source.ingest(s3_document(bucket, "long.txt"))
        disks[0].fill()
        clock.now = 10.0
        waiting = eventually(
            lambda: next((d for d in source.details(s3_identifier(bucket, "long.txt")) if "statusReason" in d), None)
        )
        with pytest.raises(ClientError, match=r"is full: free space on it") as refused:
            inline.ingest(text_document("note", LONG))
        found = bedrock.search(base, "heron")
        disks[0].free()
        settled = source.settled(s3_identifier(bucket, "long.txt"))

    assert waiting["status"] in ("PENDING", "IN_PROGRESS")
    assert "is full: free space" in waiting["statusReason"]
    assert refused.value.response["Error"]["Code"] == "InternalServerException"
    assert found == []
    assert [(detail["status"], detail.get("statusReason")) for detail in settled] == [("INDEXED", None)]


def test_an_ingestion_job_continues_when_there_is_room(
    disks: list[Disk], s3: Any, bucket: str, s3_url: str, tmp_path: Path
) -> None:
    for number in range(4):
        s3.put_object(Bucket=bucket, Key=f"{number}.txt", Body=LONG.encode())
    with serving(tmp_path, s3_endpoint=s3_url, clock=Clock()) as bedrock:
        source = bedrock.s3_source(bedrock.knowledge_base("full"), bucket)
        disks[0].fill()
        job = source.start_job()
        eventually(lambda: disks[0].database.obstacle)
        disks[0].free()
        found = source.ended(job)

    assert (found["status"], found["statistics"]["numberOfNewDocumentsIndexed"]) == ("COMPLETE", 4)
