"""Deployments on moto, whose clients live as long as the tests of this folder."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from moto import mock_aws

from ragstack_common.core.clients import cloudwatch_client, dynamodb_client, s3_client, sqs_client
from tests.access.world import ACCOUNT, REGION


@pytest.fixture(scope="package", autouse=True)
def _account() -> Iterator[None]:
    with account():
        yield


@contextmanager
def account() -> Iterator[None]:
    """Have every client talk to moto."""
    clients = (cloudwatch_client, dynamodb_client, s3_client, sqs_client)
    with mock_aws(), pytest.MonkeyPatch.context() as env:
        env.setenv("AWS_REGION", REGION)
        env.setenv("AWS_DEFAULT_REGION", REGION)
        for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
            env.delenv(name, raising=False)
        ACCOUNT.forget()
        for client in clients:
            client.cache_clear()
        yield
    for client in clients:
        client.cache_clear()
