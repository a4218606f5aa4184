"""Runs that are interrupted or killed leave nothing, and touch nothing that is not their own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragstack_local.certify.fixtures import on_index
from ragstack_local.certify.journal import PLANNED, Journal, Resource
from ragstack_local.certify.site import Place, Site
from ragstack_local.errors import INTERRUPTED
from tests.support.waiting import eventually

pytestmark = pytest.mark.xdist_group("certify-services")

CHECKS = ("ingestion", "managed", "words")
SECONDS = 60.0


class Account:
    """What is in the local services, by the kinds that a run creates."""

    def __init__(self, session: Any, place: Place) -> None:
        def client(service: str) -> Any:
            return session.client(service, place.region, endpoint_url=place.endpoint(service))

        self.s3, self.vectors, self.agent = client("s3"), client("s3vectors"), client("bedrock-agent")

    def names(self) -> set[tuple[str, str]]:
        vector_buckets = [each["vectorBucketName"] for each in self.vectors.list_vector_buckets()["vectorBuckets"]]
        indexes = [
            f"{bucket}/{each['indexName']}"
            for bucket in vector_buckets
            for each in self.vectors.list_indexes(vectorBucketName=bucket)["indexes"]
        ]
        pages = self.agent.get_paginator("list_knowledge_bases").paginate()
        bases = [each["name"] for page in pages for each in page["knowledgeBaseSummaries"]]
        buckets = [each["Name"] for each in self.s3.list_buckets()["Buckets"]]
        found = {"bucket": buckets, "vector bucket": vector_buckets, "index": indexes, "base": bases}
        return {(kind, name) for kind, names in found.items() for name in names}


@pytest.fixture
def account(session: Any, place: Place, tmp_path: Path) -> Iterator[Account]:
    """With resources that are named like those of runs, and belong to nobody's journal."""
    account = Account(session, place)
    name = f"ragstack-certify-foreign-{os.getpid()}"
    account.s3.create_bucket(Bucket=name)
    account.s3.put_object(Bucket=name, Key="kept", Body=b"kept")
    account.vectors.create_vector_bucket(vectorBucketName=name)
    index = {"vectorBucketName": name, "indexName": "chunks"}
    account.vectors.create_index(**index, dataType="float32", dimension=1024, distanceMetric="cosine")
    journal = Journal.begin(tmp_path / "foreign", "foreign", place.fields)
    configuration = on_index(Site(session, place, "foreign", journal), index)
    role = "arn:aws:iam::000000000000:role/local"
    base = account.agent.create_knowledge_base(name=name, roleArn=role, **configuration)["knowledgeBase"]
    yield account
    account.agent.delete_knowledge_base(knowledgeBaseId=base["knowledgeBaseId"])
    eventually(lambda: ("base", name) not in account.names())
    account.vectors.delete_index(**index)
    account.vectors.delete_vector_bucket(vectorBucketName=name)
    account.s3.delete_object(Bucket=name, Key="kept")
    account.s3.delete_bucket(Bucket=name)


def start(place: Place, data: Path, *arguments: str) -> "subprocess.Popen[str]":
    endpoints = ["--bedrock", str(place.endpoint("bedrock-agent")), "--s3-endpoint", str(place.endpoint("s3"))]
    command = [sys.executable, "-m", "ragstack_local", "certify", *endpoints, "--output", str(data), *arguments]
    environment = {**os.environ, "RAGSTACK_DATA": str(data)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def planned(data: Path) -> int:
    """The number of resources in the journals."""
    texts = [path.read_text() for path in (data / "certify").glob("*.jsonl")]
    return sum(text.count('"planned"') for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize("resources", [1, 7])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_an_interrupted_run_leaves_nothing(
    account: Account, place: Place, tmp_path: Path, number: signal.Signals, resources: int
) -> None:
    before = account.names()
    run = start(place, tmp_path, *(part for topic in CHECKS for part in ("--only", topic)))
    deadline = time.monotonic() + SECONDS
    while planned(tmp_path) < resources and run.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)

    run.send_signal(number)
    output, _ = run.communicate(timeout=SECONDS)
    if number == signal.SIGKILL:
        assert account.names() - before or resources == 1
        second = start(place, tmp_path, "--clean-up")
        output, _ = second.communicate(timeout=SECONDS)
        assert second.returncode == 0, output
    else:
        assert run.returncode == INTERRUPTED, output

    assert account.names() == before, output
    assert planned(tmp_path) == 0


def test_the_journal_of_another_place_is_left_alone(place: Place, tmp_path: Path) -> None:
    elsewhere = Place("eu-west-1", "123456789012")
    journal = Journal.begin(tmp_path / "certify", "elsewhere", elsewhere.fields)
    journal.note(Resource("bucket", "kept"), PLANNED)
    journal.end()

    done = start(place, tmp_path, "--clean-up")
    output, _ = done.communicate(timeout=SECONDS)

    assert "Removed 0 resources" in output
    assert "resources in the account 123456789012, eu-west-1" in output
    assert planned(tmp_path) == 1
