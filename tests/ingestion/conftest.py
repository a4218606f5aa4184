"""Moto's S3, SQS, DynamoDB and EventBridge, and a real local Bedrock that reads documents from the same S3."""

from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws
from moto.server import ThreadedMotoServer

from local_bedrock.server import running

pytest.register_assert_rewrite("tests.ingestion.world")

from ragstack_common.settings.names import MANAGED  # noqa: E402 - after the line above
from tests.ingestion.clock import Clock  # noqa: E402
from tests.ingestion.services import Aws  # noqa: E402
from tests.ingestion.world import World  # noqa: E402
from tests.local_bedrock.support import Bedrock, Source  # noqa: E402

BUCKET = "documents"


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def bedrock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bedrock]:
    """The knowledge bases; documents are read over HTTP from a server that keeps what moto keeps in this process."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ACCESS_KEY_ID", "test")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        endpoint = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
        with running(tmp_path_factory.mktemp("bedrock"), s3_endpoint=endpoint, admin=True) as url:
            yield Bedrock.at(url)
    server.stop()


@pytest.fixture(scope="session")
def source(bedrock: Bedrock) -> Source:
    return bedrock.s3_source(bedrock.knowledge_base("ingestion"), BUCKET)


@pytest.fixture(scope="session")
def managed_source(bedrock: Bedrock) -> Source:
    return bedrock.connector(bedrock.managed_base("ingestion"), "CUSTOM")


@pytest.fixture(scope="session")
def clients(bedrock: Bedrock) -> Aws:
    """Making them takes a second."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ACCESS_KEY_ID", "test")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        return Aws(bedrock.url, Clock())


@pytest.fixture
def aws(clients: Aws, credentials: None) -> Iterator[Aws]:
    with mock_aws():
        made = clients
        made.forget()
        made.s3.create_bucket(Bucket=BUCKET)
        made.s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        yield made


@pytest.fixture
def world(aws: Aws, source: Source) -> Iterator[World]:
    """A world whose parts must agree after the test."""
    made = World.of(aws, source, BUCKET)
    yield made
    made.check()


@pytest.fixture
def make_world(aws: Aws, source: Source, managed_source: Source) -> Any:
    """Make worlds that share services and nothing else, and are not checked; settings by name."""

    def make(**settings: Any) -> World:
        of_store = managed_source if settings.get("vector_store") == MANAGED else source
        return World.of(aws, of_store, BUCKET, **settings)

    return make
