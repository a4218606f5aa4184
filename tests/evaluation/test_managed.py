"""Evaluations of managed knowledge bases: a local one beside others, and one of AWS that is calibrated."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evaluation.setups import Setup
from ragstack_common.access.callers import OPERATOR
from ragstack_common.core import clients
from ragstack_common.search.engines import bedrock
from ragstack_common.search.engines.found_store import store_of
from ragstack_common.services.search import QueryService
from ragstack_common.services.search_models import RetrieveRequest
from ragstack_common.settings.base import read_settings
from tests.evaluation.conftest import InProcess
from tests.evaluation.support import results
from tests.support.aws_service import AwsService, aws_service
from tests.support.knowledge_base import KNOWLEDGE_BASE, described_knowledge_base, hits

FILES = {f"file-{number}.md": f"topic{number}" for number in range(12)}
UNANSWERABLE = "Nothing is said about it."


@pytest.fixture
def on_aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsService]:
    """A service whose reranker scores near 1, without the headers of the local Bedrock."""

    def answer(parameters: dict[str, Any]) -> Any:
        search = parameters["retrievalConfiguration"]["managedSearchConfiguration"]
        asked = parameters["retrievalQuery"]["text"]
        found: list[dict[str, Any]] = []
        for name, topic in FILES.items():
            score = 0.995 if re.search(rf"{topic}\b", asked) else 0.96 - int(topic.removeprefix("topic")) / 1000
            uri = f"s3://documents/{name}"
            location = {"type": "CUSTOM", "customDocumentLocation": {"id": uri}}
            metadata = {"_source_uri": uri}
            content = {"type": "TEXT", "text": f"About {topic}."}
            found.append({"content": content, "location": location, "metadata": metadata, "score": score})
        return hits(*sorted(found, key=lambda hit: -hit["score"])[: search["numberOfResults"]])

    with aws_service("bedrock-agent-runtime") as service, aws_service("bedrock-agent") as agent:
        service.program("Retrieve", answer)
        agent.program("GetKnowledgeBase", described_knowledge_base(knowledgeBaseConfiguration={"type": "MANAGED"}))
        monkeypatch.setattr(clients, "discovery_client", cache(agent.client))
        monkeypatch.setattr(bedrock, "retrieval_client", cache(lambda _: service.client()))
        store_of.cache_clear()
        yield service
        store_of.cache_clear()


def test_a_managed_knowledge_base_of_aws_is_calibrated_and_deployed(
    on_aws: AwsService, tmp_path: Path, in_process: InProcess
) -> None:
    rows = [f"What is said about {topic}?,{name}" for name, topic in FILES.items()]
    (tmp_path / "questions.csv").write_text("\n".join(("question,file", *rows)))
    (tmp_path / "aws.json").write_text(json.dumps({"type": "bedrock", "knowledge_base_id": KNOWLEDGE_BASE}))
    settings = tmp_path / "settings.json"
    where = ("--setup", f"engine={tmp_path / 'aws.json'}", "--output", tmp_path / "out")

    in_process("eval", "relevance", tmp_path / "questions.csv", *where, "--calibrate", settings, data=tmp_path)

    (made,) = read_settings(settings)["relevance_calibration"]["calibrations"]
    assert (made["embedding"], made["search_type"], [*made["weights"]]) == (None, "MANAGED", ["score"])
    env = {"KNOWLEDGE_BASE_ID": KNOWLEDGE_BASE}
    calibrated = {**env, "RELEVANCE_CALIBRATION": json.dumps({"calibrations": [made]})}
    answerable = RetrieveRequest(query="What is said about topic3?", min_score=0.5)
    before, after = (QueryService.from_env(each).retrieve(answerable, OPERATOR) for each in (env, calibrated))
    other = QueryService.from_env(calibrated).retrieve(RetrieveRequest(query=UNANSWERABLE), OPERATOR)
    assert {result.relevance for result in before.results} == {None}
    assert [result.source for result in before.results] == [result.source for result in after.results]
    assert (after.answerable, other.answerable) == (True, False)
    assert (after.best_relevance or 0) > 0.5 > (other.best_relevance or 1)
    assert on_aws.refusals == []


def test_a_managed_knowledge_base_is_measured_beside_others(birds: Path, tmp_path: Path, in_process: InProcess) -> None:
    others = ("--compare", "store=managed", "--compare", "store=s3_vectors")

    in_process("eval", "search", birds, *others, "--output", tmp_path / "out", data=tmp_path)

    setups = {setup["label"]: setup["by_query"]["nDCG@10"] for setup in results(tmp_path / "out")["setups"]}
    assert [*setups] == ["HYBRID, hashed", "HYBRID, hashed, store=managed", "HYBRID, hashed, store=s3_vectors"]
    assert [*setups.values()] == [[1, 1, 1]] * 3


def test_a_managed_knowledge_base_has_one_kind_of_search() -> None:
    with pytest.raises(Exception, match="store=managed is always HYBRID: leave search out"):
        Setup.of("store=managed,search=SEMANTIC")
