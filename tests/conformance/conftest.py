"""One local Bedrock for all of these tests, and requests as boto3 sends them."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from local_bedrock.server import running
from tests.conformance.exchange import Wire
from tests.conformance.world import World
from tests.local_bedrock.conftest import _credentials, s3, s3_url, shared_data
from tests.local_bedrock.support import Bedrock

__all__ = ["_credentials", "s3", "s3_url", "shared_data"]


@pytest.fixture(scope="session")
def bedrock(tmp_path_factory: pytest.TempPathFactory, s3_url: str) -> Iterator[Bedrock]:
    with running(tmp_path_factory.mktemp("conformance"), s3_endpoint=s3_url) as url:
        yield Bedrock.at(url)


@pytest.fixture(scope="session")
def wire(bedrock: Bedrock) -> Wire:
    return Wire(bedrock.url)


@pytest.fixture(scope="session")
def world(bedrock: Bedrock, s3: Any) -> World:
    bucket = f"conformance-{os.getpid()}"
    s3.create_bucket(Bucket=bucket)
    return World.made(bedrock, s3, bucket)
