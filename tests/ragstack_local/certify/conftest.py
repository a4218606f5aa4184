"""A site on a real local Bedrock and moto's S3, whose facts a test can change."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from ragstack_local.certify import fixtures
from ragstack_local.certify.journal import Journal
from ragstack_local.certify.services import managed_fixtures
from ragstack_local.certify.site import Place, Site
from tests.ragstack_local.certify.faults import Facts


@pytest.fixture(scope="package")
def place(bedrock_url: str, moto_url: str) -> Place:
    services = ("bedrock-agent", "bedrock-agent-runtime", "bedrock-runtime", "s3vectors")
    return Place("us-east-1", endpoints={"": moto_url, **dict.fromkeys(services, bedrock_url)})


@pytest.fixture
def session() -> Any:
    return boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")


@pytest.fixture(scope="package")
def facts() -> Facts:
    return Facts()


@pytest.fixture(scope="package")
def site(place: Place, facts: Facts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One for all tests, with its documents: they are ingested while no fact is changed."""
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
    facts.watch(session)
    journal = Journal.begin(tmp_path_factory.mktemp("journals"), "facts", place.fields)
    made = Site(session, place, "facts", journal, clock=facts.clock)
    made.shared(fixtures.ingested)
    made.shared(managed_fixtures.ingested)
    yield made
    journal.end()
