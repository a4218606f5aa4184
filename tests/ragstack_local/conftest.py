"""Real servers on free ports: the local Bedrock, and moto as the other services of AWS."""

import itertools
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from local_bedrock.server import running
from ragstack_local.connection.connection import Connection
from tests.ragstack_local.support import Api, aws, create_knowledge_base, serving_api, stack_at
from tests.support.registry_table import create_table

SETTINGS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}

OURS = ("RAGSTACK_DATA", "RAGSTACK_API_KEY", "NO_PROXY", "no_proxy")

_numbers = itertools.count()


@pytest.fixture(scope="package", autouse=True)
def _settings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_") or name in OURS]:
            patch.delenv(name)
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="package")
def moto_url(_settings: None) -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="package")
def bedrock_url(tmp_path_factory: pytest.TempPathFactory, moto_url: str) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("bedrock"), s3_endpoint=moto_url) as url:
        yield url


@pytest.fixture
def connection(moto_url: str, bedrock_url: str) -> Connection:
    """A local stack without functions: the test itself decides what is ingested."""
    # Named as nothing else is: every server of moto in one process has the same buckets.
    name = f"command-line-{os.getpid()}-{next(_numbers)}"
    s3, sqs = aws("s3", moto_url), aws("sqs", moto_url)
    s3.create_bucket(Bucket=name)
    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    create_table(aws("dynamodb", moto_url), name)
    kinds = ("events", "status", "conversions", "large", "receipts", "jobs", "dead")
    urls = {kind: sqs.create_queue(QueueName=f"{name}-{kind}")["QueueUrl"] for kind in kinds}
    knowledge_base, source = create_knowledge_base(bedrock_url, name, name)
    nothing = stack_at(aws_endpoint=moto_url, bedrock_endpoint=bedrock_url)
    return replace(
        nothing,
        bucket=name,
        knowledge_base_id=knowledge_base,
        data_source_id=source,
        queue_url=urls["events"],
        dead_letter_queue_url=urls["dead"],
        status_queue_url=urls["status"],
        conversion_queue_url=urls["conversions"],
        large_conversion_queue_url=urls["large"],
        receipts_queue_url=urls["receipts"],
        jobs_queue_url=urls["jobs"],
        registry_table=name,
    )


@pytest.fixture
def api() -> Iterator[Api]:
    with serving_api() as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that a user wants to upload."""
    path = tmp_path / "handbook"
    path.mkdir()
    return path
