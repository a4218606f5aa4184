"""The registry's table as moto's DynamoDB keeps it."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from tests.ingestion.clock import Clock
from tests.support.registry_table import TABLE, create_table


@pytest.fixture
def dynamodb() -> Iterator[Any]:
    """A client of a DynamoDB that has the registry's table, and nothing in it."""
    with mock_aws():
        client = boto3.client("dynamodb", region_name="eu-west-1")
        create_table(client, TABLE)
        yield client


@pytest.fixture
def clock() -> Clock:
    """Time that a test makes pass."""
    return Clock(1_700_000_000.123)
