"""A bucket and a registry in moto, and a knowledge base in the local Bedrock."""

import itertools
import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.server import ThreadedMotoServer

from local_bedrock.server import running
from ragstack_common.settings.names import MANAGED, OTHER_STORE
from tests.local_bedrock.support import REGION, Bedrock
from tests.ragstack_common.reconciliation.stack import Stack
from tests.support.registry_table import create_table

_numbers = itertools.count()


@pytest.fixture(scope="session")
def aws_url() -> Iterator[str]:
    """Where what moto keeps in this process is to be had over HTTP, as the local Bedrock reads it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _host, port = server.get_host_and_port()
    yield f"http://127.0.0.1:{port}"
    server.stop()


@pytest.fixture(scope="session")
def bedrock(tmp_path_factory: pytest.TempPathFactory, aws_url: str) -> Iterator[Bedrock]:
    with pytest.MonkeyPatch.context() as environment:
        # The threads of the server look for credentials where every process does.
        environment.setenv("AWS_ACCESS_KEY_ID", "test")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        with running(tmp_path_factory.mktemp("bedrock"), s3_endpoint=aws_url) as url:
            yield Bedrock.at(url)


@pytest.fixture(scope="session")
def aws_clients() -> SimpleNamespace:
    """Made once: their models are large."""
    session: Any = boto3.Session("test", "test", region_name=REGION)
    return SimpleNamespace(**{name: session.client(name) for name in ("s3", "sqs", "dynamodb", "events")})


@pytest.fixture(scope="package")
def aws(aws_clients: SimpleNamespace) -> Iterator[SimpleNamespace]:
    """The services; calls do not leave the process, which takes a third of the time that HTTP takes."""
    with mock_aws():
        yield aws_clients


@pytest.fixture(scope="package")
def new_stack(aws: SimpleNamespace, bedrock: Bedrock) -> Callable[..., Stack]:
    def make(vector_store: str = OTHER_STORE) -> Stack:
        name = f"reconciled-{os.getpid()}-{next(_numbers)}"
        aws.s3.create_bucket(Bucket=name)
        aws.s3.create_bucket(Bucket=f"{name}-snapshot")
        create_table(aws.dynamodb, name)
        queues = {kind: aws.sqs.create_queue(QueueName=f"{name}-{kind}")["QueueUrl"] for kind in Stack.QUEUES}
        if vector_store == MANAGED:
            source = bedrock.connector(bedrock.managed_base(name), "CUSTOM")
        else:
            source = bedrock.s3_source(bedrock.knowledge_base(name), name)
        return Stack(aws, name, queues, source, vector_store)

    return make


@pytest.fixture
def stack(new_stack: Callable[..., Stack]) -> Stack:
    """With nothing in it."""
    return new_stack()


@pytest.fixture
def managed_stack(new_stack: Callable[..., Stack]) -> Stack:
    """The same on a managed knowledge base."""
    return new_stack(MANAGED)
