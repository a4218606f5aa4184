"""The administrative routes: off by default, and for programs on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import urllib3
from botocore.exceptions import ClientError

from local_bedrock.limits.quotas import Quotas
from local_bedrock.server import running
from ragstack_common.ingestion.requests import text_document
from tests.local_bedrock.support import Bedrock


@contextmanager
def started(folder: Path) -> Iterator[Bedrock]:
    with running(
        folder, admin=True, llm_api_key="very secret", quotas=Quotas().with_settings(["rerank_per_second=off"])
    ) as url:
        yield Bedrock.at(url)


@pytest.fixture(scope="module")
def everybodys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bedrock]:
    with started(tmp_path_factory.mktemp("administered")) as bedrock:
        yield bedrock


@pytest.fixture
def administered(everybodys: Bedrock) -> Bedrock:
    """A local Bedrock in which no faults are in force."""
    ask(everybodys.url, "DELETE", "faults")
    return everybodys


def ask(url: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    more = {} if body is None else {"json": body}
    answer = urllib3.request(method, f"{url}/_ragstack/{path}", retries=False, **more)
    return answer.status, answer.json()


@pytest.mark.parametrize("path", ["faults", "metrics", "options"])
def test_without_admin_its_routes_are_unknown(bedrock: Bedrock, path: str) -> None:
    status, _ = ask(bedrock.url, "GET", path)
    unknown = urllib3.request("GET", f"{bedrock.url}/anything", retries=False)

    assert status == unknown.status == 404


def test_faults_are_set_listed_and_removed(administered: Bedrock) -> None:
    rule = {"operation": "ListKnowledgeBases", "kind": "internal", "count": 5}

    status, put = ask(administered.url, "PUT", "faults", {"rules": [rule]})
    with pytest.raises(ClientError):
        administered.agent.list_knowledge_bases()
    _, listed = ask(administered.url, "GET", "faults")
    _, deleted = ask(administered.url, "DELETE", "faults")
    administered.agent.list_knowledge_bases()

    assert status == 200
    assert put["rules"][0].items() >= {**rule, "happened": 0}.items()
    assert listed["rules"][0]["happened"] == 1
    assert deleted == {"rules": []}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "The body must be"),
        ({"rules": ["kind=drop"]}, "The body must be"),
        ({"rules": [{"kind": "teapot"}]}, "kind: "),
        ({"rules": [{"kind": "drop", "operation": "Retreive"}]}, "No operation matches"),
    ],
)
def test_invalid_rules_change_nothing(administered: Bedrock, body: Any, words: str) -> None:
    ask(administered.url, "PUT", "faults", {"rules": [{"kind": "latency", "milliseconds": 1}]})

    status, answer = ask(administered.url, "PUT", "faults", body)
    _, listed = ask(administered.url, "GET", "faults")

    assert status == 400
    assert words in answer["message"]
    assert [rule["kind"] for rule in listed["rules"]] == ["latency"]


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_form_cannot_put_faults(administered: Bedrock, content_type: str) -> None:
    url = f"{administered.url}/_ragstack/faults"

    answer = urllib3.request("PUT", url, body=b'{"rules": []}', headers={"Content-Type": content_type}, retries=False)

    assert answer.status == 415


@pytest.fixture
def unasked(tmp_path: Path) -> Iterator[Bedrock]:
    """One that has counted nothing yet."""
    with started(tmp_path) as bedrock:
        yield bedrock


def test_metrics_count_calls_and_errors(unasked: Bedrock) -> None:
    source = unasked.custom_source(unasked.knowledge_base("measured"))
    source.ingested(text_document("heron", "A heron waits in the shallow water."))
    unasked.search(source.knowledge_base_id, "heron")
    with pytest.raises(ClientError):
        unasked.search("ABCDEFGHIJ", "heron")
    ask(unasked.url, "PUT", "faults", {"rules": [{"operation": "Retrieve", "kind": "unavailable", "count": 1}]})
    with pytest.raises(ClientError):
        unasked.search(source.knowledge_base_id, "heron")

    _, metrics = ask(unasked.url, "GET", "metrics")

    retrieve = metrics["operations"]["Retrieve"]
    assert retrieve["calls"] == 3
    assert retrieve["errors"] == {"ResourceNotFoundException": 1, "ServiceUnavailableException": 1}


def test_options_are_listed_without_the_secret(administered: Bedrock) -> None:
    answer = urllib3.request("GET", f"{administered.url}/_ragstack/options", retries=False)

    options = answer.json()
    assert options["admin"] is True
    assert options["quotas"]["retrieve_per_second"] == 20
    assert options["quotas"]["rerank_per_second"] is None
    assert b"secret" not in answer.data
