"""Corpora, versions and tools of the sample handbook."""

import json
from pathlib import Path

import pytest

from tests.e2e.support import LocalStack
from tests.support.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("local stack")]

QUESTION = "How many requests a minute may one API key make?"


def test_the_command_line_shows_corpora_versions_and_why(stack: LocalStack, handbook: Path) -> None:
    corpora = stack.run("corpora")
    versions = stack.run("versions", "--json")
    shown = stack.run("query", QUESTION, "--doc-version", "2", "--corpus", "product", "--explain")

    assert "engineering  5 documents" in corpora.stdout
    assert {"1", "2", "4", "2025", "2026"} <= set(json.loads(versions.stdout)["versions"])
    assert shown.returncode == 0, shown.stderr
    assert "How the results were ranked" in shown.stdout
    assert "api-rate-limits-v2.md" in shown.stdout
    assert "api-rate-limits-v1.md" not in shown.stdout


def test_values_in_the_question_are_preferred_by_default(stack: LocalStack, handbook: Path) -> None:
    question = "What does the People handbook say about leave?"

    # The function reads the registry after its first answers.
    shown = eventually(lambda: next(iter(stack.run("query", question).stdout.split("Inferred filter ")[1:]), None))
    without = stack.run("query", question, "--no-infer", "--json")

    assert "The question names corpus = people" in str(shown)
    assert json.loads(without.stdout)["inferred_filter"] is None


def test_a_tool_searches_the_knowledge_base_of_the_stack(stack: LocalStack, handbook: Path) -> None:
    collection = stack.connection.knowledge_base_id
    body = {"input": {"collection_name": collection, "partition_name": "product", "texts": [QUESTION], "top_k": 2}}

    listed = stack.request("GET", "/tools")
    status, answer = stack.request("POST", "/tools/retriever", body)
    unknown = stack.request("POST", "/tools/hammer", {"input": {}})

    assert [tool["name"] for tool in listed[1]["tools"]] == ["retriever"]
    assert (status, answer["success"], answer["output"]["count"]) == (200, True, 2)
    assert all(result["metadata"]["corpus"] == "product" for result in answer["output"]["results"])
    assert answer["stats"]["execution_time"].endswith("s")
    assert unknown == (404, {"success": False, "error": "unknown tool: hammer; registered: retriever"})


def test_without_corpora_all_is_balanced_over_those_of_the_registry(stack: LocalStack, handbook: Path) -> None:
    status, answer = stack.request("POST", "/api/retrieve", {"query": QUESTION, "corpus_filter": "all"})

    results = {count["name"]: count["results"] for count in answer["corpora"]}
    assert (status, answer["complete"], len(answer["results"])) == (200, True, 10)
    assert {note["kind"] for note in answer["notes"]} <= {"version"}
    assert {"people", "product", "engineering"} <= results.keys()
    assert results["product"] > 0
