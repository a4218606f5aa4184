"""Unit tests talk to nothing but this machine, and know nothing of its user's AWS account."""

from collections.abc import Iterator

import pytest
from pytest_socket import socket_allow_hosts

from ragstack_common.core import clients, deadline
from ragstack_common.search import factory
from ragstack_common.search.engines.index_words import words_of
from tests.support.aws_service import AwsService, aws_service
from tests.support.language_model import LanguageModel, language_model


@pytest.fixture(autouse=True)
def only_this_machine() -> None:
    socket_allow_hosts(["127.0.0.1"], allow_unix_socket=True)


@pytest.fixture(autouse=True)
def no_account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    yield
    cached = (
        clients.retrieval_client,
        clients.vectors_client,
        words_of,
        clients.model_client,
        clients.agent_client,
        clients.s3_client,
        clients.s3_signer,
        clients.sqs_client,
        clients.dynamodb_client,
        clients.events_client,
        clients.secrets_client,
        clients._session,
    )
    for made in cached:
        made.cache_clear()


@pytest.fixture(autouse=True)
def own_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is known to no other."""
    monkeypatch.setattr(factory, "_registered", dict(factory._registered))


@pytest.fixture
def new_threads() -> Iterator[None]:
    """Threads for calls that no other test has started or keeps busy."""
    deadline._threads.cache_clear()
    yield
    deadline._threads.cache_clear()


@pytest.fixture
def searches() -> Iterator[AwsService]:
    """The service behind Retrieve."""
    with aws_service("bedrock-agent-runtime") as service:
        yield service


@pytest.fixture(scope="session")
def model() -> Iterator[LanguageModel]:
    """An OpenAI-compatible server."""
    with language_model() as served:
        yield served


@pytest.fixture
def agent() -> Iterator[AwsService]:
    """The service behind ingestion."""
    with aws_service("bedrock-agent") as service:
        yield service
