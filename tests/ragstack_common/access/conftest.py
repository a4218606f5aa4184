"""The registry's table in moto, for changes of rules and labels of documents."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.moto_api._internal.models import moto_api_backend

from tests.support.registry_table import TABLE, create_table


@pytest.fixture(scope="package")
def client() -> Iterator[Any]:
    """Made once: its model is large."""
    with mock_aws():
        yield boto3.client("dynamodb", region_name="eu-west-1")


@pytest.fixture
def dynamodb(client: Any) -> Any:
    moto_api_backend.reset()
    create_table(client, TABLE)
    return client
