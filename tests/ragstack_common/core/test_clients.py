"""The clients that the layer makes for itself."""

import time
from typing import Any

import pytest
from botocore.exceptions import NoRegionError

from ragstack_common.core import clients, errors
from ragstack_common.multislice_retriever import MultiSliceRetriever
from tests.support.aws_service import AwsService, Late
from tests.support.knowledge_base import KNOWLEDGE_BASE, hits

MAKERS = [clients.agent_client, lambda: clients.retrieval_client(5.0)]


@pytest.mark.parametrize("timeout_seconds", [0.3, 5.0])
def test_the_timeouts_of_the_client_for_searches_follow_the_deadline(timeout_seconds: float) -> None:
    config: Any = clients.retrieval_client(timeout_seconds).meta.config

    assert config.connect_timeout == timeout_seconds
    assert config.read_timeout == timeout_seconds


@pytest.mark.parametrize("make", MAKERS)
def test_a_client_is_made_once(make: Any) -> None:
    assert make() is make()


@pytest.mark.parametrize("make", MAKERS)
def test_every_client_has_a_large_pool_and_short_timeouts(make: Any) -> None:
    config = make().meta.config

    assert config.max_pool_connections == 64
    assert config.connect_timeout <= 5
    assert config.read_timeout <= 30


@pytest.mark.parametrize("make", MAKERS)
def test_the_region_comes_from_the_environment(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "ap-southeast-2")

    assert make().meta.region_name == "ap-southeast-2"


def test_a_region_of_boto3_itself_counts_where_aws_region_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")

    assert clients.agent_client().meta.region_name == "us-west-2"


def test_a_missing_region_is_a_matter_of_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")

    with pytest.raises(errors.ConfigurationError, match="region") as caught:
        MultiSliceRetriever().retrieve("Judy", KNOWLEDGE_BASE, None)

    assert isinstance(caught.value.__cause__, NoRegionError)


def test_an_abandoned_call_times_out_on_the_wire(searches: AwsService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME", searches.endpoint)
    searches.program("Retrieve", Late(hits(), seconds=30))
    start = time.monotonic()

    with pytest.raises(Exception, match="timeout"):
        clients.retrieval_client(0.2).retrieve(knowledgeBaseId=KNOWLEDGE_BASE, retrievalQuery={"text": "Judy"})

    assert time.monotonic() - start < 20


def test_the_client_names_the_product_to_the_service(searches: AwsService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME", searches.endpoint)
    searches.program("Retrieve", hits())

    clients.retrieval_client(5.0).retrieve(knowledgeBaseId=KNOWLEDGE_BASE, retrievalQuery={"text": "Judy"})

    assert searches.headers[0]["User-Agent"].startswith("RAGStack Botocore/")
