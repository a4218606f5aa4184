"""A knowledge base for tests: real clients and a real search, without an account and without mocks.

Enable the plugin in the conftest.py of your tests, or start pytest with ``-p local_bedrock.pytest_plugin``. Other test
runs are not affected. Example::

    pytest_plugins = ["local_bedrock.pytest_plugin"]  # in the conftest.py

    def test_the_handbook_answers(knowledge_base):
        knowledge_base.add({"leave": "Employees have thirty days of leave.", "lunch": "Lunch is at noon."})
        runtime = knowledge_base.client("bedrock-agent-runtime")

        found = runtime.retrieve(knowledgeBaseId=knowledge_base.id, retrievalQuery={"text": "days of leave"})

        assert found["retrievalResults"][0]["content"]["text"] == "Employees have thirty days of leave."

Fixtures: ``bedrock_endpoint``, ``bedrock_options`` and ``knowledge_base``.
"""

import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any, Final

import pytest

from local_bedrock.creation import create_knowledge_base
from ragstack_common.core.errors import MissingPackageError, needs_extra

DOCUMENTS_PER_CALL: Final = 10
WAITING: Final = ("STARTING", "PENDING", "IN_PROGRESS")
WAIT_SECONDS: Final = 60.0

AttributeValue = str | float | bool | list[str]


class NotIndexedError(Exception):
    """A document was not indexed; the message says which and why."""


@dataclass(frozen=True)
class TemporaryKnowledgeBase:
    """A knowledge base with one CUSTOM data source.

    Attributes:
        endpoint: URL of the local Bedrock.
    """

    endpoint: str
    id: str
    data_source_id: str

    @property
    def ids(self) -> dict[str, str]:
        """Both ids, as arguments of boto3."""
        return {"knowledgeBaseId": self.id, "dataSourceId": self.data_source_id}

    def client(self, service: str, **options: Any) -> Any:
        """Make a boto3 client of ``bedrock-agent``, ``bedrock-agent-runtime`` or ``bedrock-runtime``."""
        return _session().client(service, endpoint_url=self.endpoint, **options)

    def add(
        self,
        texts: str | Iterable[str] | Mapping[str, str],
        attributes: Mapping[str, AttributeValue] | None = None,
        *,
        timeout_seconds: float = WAIT_SECONDS,
    ) -> list[str]:
        """Add documents and wait until a search finds them.

        Args:
            texts: One text, several, or a mapping from document ids to texts. An existing id is replaced.
            attributes: Metadata of every document.
            timeout_seconds: Positive.

        Returns:
            The ids, in the order of the texts.

        Raises:
            NotIndexedError: A document failed, or the time limit was reached.
            ClientError: The local Bedrock rejected the documents.
        """
        from ragstack_common.ingestion.requests import text_document  # noqa: PLC0415 - imports boto3

        several = [texts] if isinstance(texts, str) else texts
        if not isinstance(several, Mapping):
            several = {sha256(text.encode()).hexdigest()[:16]: text for text in several}
        named = dict(several)
        agent = self.client("bedrock-agent")
        for some in _tens(list(named)):
            documents = [text_document(name, named[name], attributes) for name in some]
            agent.ingest_knowledge_base_documents(**self.ids, documents=documents)
        deadline = time.monotonic() + timeout_seconds
        for some in _tens(list(named)):
            self._wait(agent, some, deadline)
        return list(named)

    def _wait(self, agent: Any, names: Sequence[str], deadline: float) -> None:
        identifiers = [{"dataSourceType": "CUSTOM", "custom": {"id": name}} for name in names]
        while True:
            answer = agent.get_knowledge_base_documents(**self.ids, documentIdentifiers=identifiers)
            details = answer["documentDetails"]
            if all(detail["status"] == "INDEXED" for detail in details):
                return
            others = [detail for detail in details if detail["status"] not in (*WAITING, "INDEXED")]
            if others or time.monotonic() > deadline:
                raise NotIndexedError("; ".join(map(_explained, others or details)))
            time.sleep(0.02)


@pytest.fixture(scope="session")
def bedrock_options() -> Mapping[str, Any]:
    """Override this to set fields of :class:`local_bedrock.options.Options`."""
    return {}


@pytest.fixture(scope="session")
def bedrock_endpoint(tmp_path_factory: pytest.TempPathFactory, bedrock_options: Mapping[str, Any]) -> Iterator[str]:
    """Run a local Bedrock on a free port, with its data in a temporary folder, and return its URL."""
    try:
        # Imported by the first test that needs it.
        with needs_extra("local", "The local Bedrock"):
            from local_bedrock.server import running  # noqa: PLC0415
    except MissingPackageError as error:
        pytest.fail(str(error), pytrace=False)
    with running(tmp_path_factory.mktemp("bedrock"), **bedrock_options) as url:
        yield url


@pytest.fixture
def knowledge_base(bedrock_endpoint: str) -> Iterator[TemporaryKnowledgeBase]:
    """Create an empty knowledge base for the test, and delete it afterwards."""
    agent = _session().client("bedrock-agent", endpoint_url=bedrock_endpoint)
    identifier = create_knowledge_base(agent, f"test-{uuid.uuid4().hex}")
    source = agent.create_data_source(
        knowledgeBaseId=identifier, name="texts", dataSourceConfiguration={"type": "CUSTOM"}
    )
    yield TemporaryKnowledgeBase(bedrock_endpoint, identifier, source["dataSource"]["dataSourceId"])
    with suppress(agent.exceptions.ResourceNotFoundException, agent.exceptions.ValidationException):
        # The test may have deleted it.
        agent.delete_knowledge_base(knowledgeBaseId=identifier)


@cache
def _session() -> Any:
    """Create a session that ignores the user's settings, so that a test can't reach an AWS account."""
    import boto3  # noqa: PLC0415 - imported by the first test that needs it
    import botocore.session  # noqa: PLC0415

    unset = (None, None, None, None)
    nowhere = (None, None, os.devnull, None)
    core = botocore.session.Session({"profile": unset, "config_file": nowhere, "credentials_file": nowhere})
    return boto3.Session(
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 - any will do
        region_name="us-east-1",
        botocore_session=core,
    )


def _tens(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), DOCUMENTS_PER_CALL):
        yield names[start : start + DOCUMENTS_PER_CALL]


def _explained(detail: Mapping[str, Any]) -> str:
    reason = detail.get("statusReason", "no reason is given")
    return f"{detail['identifier']['custom']['id']} is {detail['status']}: {reason}"
