"""Corpora, versions and tools of the sample handbook: a stack that is balanced over corpora, and one that is not."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support import ROOT, LocalStack, iterate
from tests.support.otlp import Collector, attributes, collector
from tests.support.spans import FIVE
from tests.support.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("local stack")]

CORPORA = ["people", "product", "law"]
QUESTION = "How many requests a minute may one API key make?"


@pytest.fixture(scope="module")
def collecting() -> Iterator[Collector]:
    with collector() as collecting:
        yield collecting


@pytest.fixture(scope="module")
def balanced(installed: None, tmp_path_factory: pytest.TempPathFactory, collecting: Collector) -> Iterator[LocalStack]:
    """A stack with two corpora of the handbook, and one that has no document; its functions export spans."""
    folder = tmp_path_factory.mktemp("balanced")
    corpora = (f"multi_corpus_metadata={','.join(CORPORA)}", "search_k=6")
    exported = f"otel_exporter_otlp_endpoint={collecting.endpoint}"
    for stack in iterate(LocalStack(folder, context=(*corpora, exported))):
        done = stack.run("ingest", ROOT / "samples" / "documents", timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        yield stack


def names(results: list[dict[str, Any]]) -> list[str]:
    return [Path(result["source"]).name for result in results]


def test_a_search_draws_on_every_corpus_and_says_how_much_each_gave(balanced: LocalStack) -> None:
    status, answer = balanced.request("POST", "/api/retrieve", {"query": "What does the company pay for?"})

    counts = {count["name"]: (count["candidates"], count["results"]) for count in answer["corpora"]}
    assert (status, answer["complete"]) == (200, True)
    assert list(counts) == CORPORA
    assert counts["people"][0] > 0
    assert counts["product"][0] > 0
    assert counts["law"] == (0, 0)
    assert sum(results for _, results in counts.values()) == len(answer["results"]) == 6
    assert {result["metadata"]["corpus"] for result in answer["results"]} == {"people", "product"}


def test_the_spans_of_a_deployed_search_reach_a_collector(balanced: LocalStack, collecting: Collector) -> None:
    balanced.search(QUESTION, corpus_filter="product")

    def of_product() -> Any:
        spans = collecting.named("retrieve balanced")
        return next((span for span in spans if attributes(span)["corpus_filter"] == "product"), None)

    search = eventually(of_product)
    assert {name: attributes(search)[name] for name in FIVE} == {
        "search_type": "balanced",
        "search_k": 6,
        "large_retrieval_size": 500,
        "pooling": "unknown",
        "corpus_filter": "product",
    }
    assert search.trace_id in {span.trace_id for span in collecting.named("function query")}
    assert QUESTION not in str(collecting.requests)


def test_corpora_are_those_configured_and_those_that_documents_have(balanced: LocalStack) -> None:
    status, answer = balanced.request("GET", "/api/corpora")

    assert status == 200
    assert answer == {
        "corpora": [
            {"name": "people", "configured": True, "searchable": True, "documents": 5},
            {"name": "product", "configured": True, "searchable": True, "documents": 6},
            {"name": "law", "configured": True, "searchable": False, "documents": 0},
            {"name": "engineering", "configured": False, "searchable": True, "documents": 5},
        ],
        "complete": True,
    }


def test_the_command_line_shows_corpora_versions_and_why(balanced: LocalStack) -> None:
    corpora = balanced.run("corpora")
    versions = balanced.run("versions", "--json")
    counted = balanced.run("versions")
    shown = balanced.run("query", QUESTION, "--doc-version", "2", "--corpus", "product", "--explain")

    assert "law  configured  no searchable documents" in corpora.stdout
    assert "engineering  5 documents" in corpora.stdout
    assert json.loads(versions.stdout)["versions"] == ["1", "2", "4", "2025", "2026"]
    assert "2025  1 document\n2026  11 documents" in counted.stdout
    assert shown.returncode == 0, shown.stderr
    assert "How the results were ranked" in shown.stdout
    assert "api-rate-limits-v2.md" in shown.stdout
    assert "api-rate-limits-v1.md" not in shown.stdout


def test_values_in_the_question_are_preferred_by_default(balanced: LocalStack) -> None:
    question = "What does the People handbook say about leave?"

    shown = eventually(lambda: named(balanced.run("query", question).stdout))
    without = balanced.run("query", question, "--no-infer", "--json")

    assert shown.count("Inferred filter trusted 0.30. The question names corpus = people") == 1
    assert json.loads(without.stdout)["inferred_filter"] is None


def named(shown: str) -> str | None:
    """Return the output once the function has read the registry."""
    return shown if "The question names" in shown else None


def test_a_tool_searches_the_knowledge_base_of_the_stack(balanced: LocalStack) -> None:
    collection = balanced.connection.knowledge_base_id
    body = {"input": {"collection_name": collection, "partition_name": "product", "texts": [QUESTION], "top_k": 2}}

    listed = balanced.request("GET", "/tools")
    status, answer = balanced.request("POST", "/tools/retriever", body)

    assert [tool["name"] for tool in listed[1]["tools"]] == ["retriever"]
    assert (status, answer["success"], answer["output"]["count"]) == (200, True, 2)
    assert all(result["metadata"]["corpus"] == "product" for result in answer["output"]["results"])
    assert answer["stats"]["execution_time"].endswith("s")


def test_an_error_of_a_tool_keeps_its_form_through_api_gateway(balanced: LocalStack) -> None:
    answer = balanced.request("POST", "/tools/hammer", {"input": {}})

    assert answer == (404, {"success": False, "error": "unknown tool: hammer; registered: retriever"})


def test_without_corpora_all_is_balanced_over_those_of_the_registry(stack: LocalStack, handbook: Path) -> None:
    status, answer = stack.request("POST", "/api/retrieve", {"query": QUESTION, "corpus_filter": "all"})

    results = {count["name"]: count["results"] for count in answer["corpora"]}
    assert (status, answer["complete"], len(answer["results"])) == (200, True, 10)
    assert {note["kind"] for note in answer["notes"]} <= {"version"}
    assert {"people", "product", "engineering"} <= results.keys()
    assert results["product"] > 0
