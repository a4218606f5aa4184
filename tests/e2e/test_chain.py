"""From an object in the bucket to an answer through API Gateway."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.answers.answer import TokenEvent
from ragstack_common.services.ask_models import AskRequest, AskResponse, SourcesEvent
from ragstack_local.api.calls import each
from ragstack_local.api.http_operations import HttpOperations
from ragstack_local.connection.address import Address
from tests.e2e.support import ROOT, LocalStack
from tests.support.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("local stack")]

QUESTIONS = json.loads((ROOT / "samples" / "questions.json").read_text())


def sidecar(**attributes: Any) -> str:
    return json.dumps({"metadataAttributes": attributes})


def test_an_uploaded_document_is_found_through_api_gateway(stack: LocalStack) -> None:
    uri = stack.put("birds/heron.md", "# Herons\n\nThe grey heron waits motionless for frogs at the pond.")

    statuses = stack.settled(uri)
    status, answer = stack.request("POST", "/api/retrieve", {"query": "What does the grey heron wait for?"})

    assert statuses == {uri: "INDEXED"}
    assert status == 200
    assert answer["results"][0]["source"] == uri
    assert "waits motionless for frogs" in answer["results"][0]["content"]
    assert answer["complete"] is True
    assert [part["status"] for part in answer["slices"]] == ["ok"]


def test_an_answer_streams_and_the_stage_returns_the_same_one(stack: LocalStack, handbook: Path) -> None:
    question = {"question": "How many requests a minute may one API key make?", "metadata_filter": {"current": True}}
    operations = HttpOperations(lambda: Address.for_stack(stack.connection))

    events = list(each(operations.ask(AskRequest.model_validate(question))))
    status, answer = stack.request("POST", "/api/ask", question)
    rejected, error = stack.request("POST", "/api/ask/stream", {"question": ""})

    last = events[-1]
    assert isinstance(events[0], SourcesEvent)
    assert isinstance(last, AskResponse)
    assert "".join(event.text for event in events if isinstance(event, TokenEvent)) == last.answer
    assert "600" in answer["answer"]
    assert any(source["cited"] for source in answer["sources"])
    assert (status, rejected, error["error"]["code"]) == (200, 400, "InvalidRequest")
    streamed = last.model_dump(mode="json")
    assert {name: answer[name] for name in ("answer", "sentences")} == {
        name: streamed[name] for name in ("answer", "sentences")
    }


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["id"])
def test_every_sample_question_finds_its_documents_and_its_answer(
    stack: LocalStack, handbook: Path, question: dict[str, Any]
) -> None:
    more = {"metadata_filter": question["filter"]} if "filter" in question else {}

    results = stack.search(question["text"], top_k=5, **more)

    best = {result["source"]: result["content"] for result in results[: question["within"]]}
    wanted = [f"s3://{stack.connection.bucket}/samples/documents/{name}" for name in question["expected"]]
    assert set(wanted) <= set(best)
    assert any(question["answer"] in " ".join(best[uri].split()) for uri in wanted)


def test_a_filter_ranks_matching_documents_first_and_says_why(stack: LocalStack, handbook: Path) -> None:
    query = "How many requests a minute may one API key make?"

    plain = stack.search(query, explain=True)
    filtered = stack.search(query, metadata_filter={"version": {"$eq": "1"}}, explain=True)

    assert filtered[0]["metadata"]["version"] == "1"
    assert filtered[0]["ranking"]["ranks"]["filtered"] == 1
    assert all(result["ranking"]["ranks"] == {} for result in plain)


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("odd/a b  c.md", "aardvark"),
        ("odd/plus+and%2B percent%.md", "bandicoot"),
        ("odd/Zürich & Büro/Öffnungszeiten.md", "capybara"),
        ("odd/日本語の文書.md", "dromedary"),
        ("odd/it's & that=this?#.md", "echidna"),
    ],
)
def test_keys_of_any_letters_are_indexed_and_named_as_they_are(stack: LocalStack, key: str, word: str) -> None:
    uri = stack.put(key, f"The {word} lives in this file alone.")

    statuses = stack.settled(uri)
    result = stack.found(f"Where does the {word} live?", word)

    assert statuses == {uri: "INDEXED"}
    assert result["source"] == uri


def test_a_sidecar_that_comes_before_its_document_waits_for_it(stack: LocalStack) -> None:
    stack.put("early/osprey.md.metadata.json", sidecar(topic="fishers"))

    uri = stack.put("early/osprey.md", "The osprey dives feet first.")
    result = stack.found("osprey dives", "feet first", metadata_filter={"topic": "fishers"})

    assert result["source"] == uri
    assert result["metadata"]["topic"] == "fishers"


def test_a_deleted_object_is_no_longer_found(stack: LocalStack) -> None:
    uri = stack.put("gone/dodo.md", "The dodo of Mauritius could not fly.")
    stack.settled(uri)

    stack.delete("gone/dodo.md")
    eventually(lambda: stack.statuses(uri)[uri] == "NOT_FOUND")

    assert uri not in [result["source"] for result in stack.search("The dodo of Mauritius", top_k=50)]


def test_an_overwritten_object_answers_with_its_new_text_only(stack: LocalStack) -> None:
    uri = stack.put("changed/tariff.md", "The tariff of the ferry is eleven crowns.")
    stack.settled(uri)

    stack.put("changed/tariff.md", "The tariff of the ferry is ninety-nine crowns.")
    stack.found("tariff of the ferry", "ninety-nine crowns")
    chunks = stack.search("tariff of the ferry eleven crowns", deduplicate_by="chunk", top_k=50)

    assert [chunk["content"] for chunk in chunks if chunk["source"] == uri] == [
        "The tariff of the ferry is ninety-nine crowns."
    ]


def test_the_interface_describes_itself(stack: LocalStack) -> None:
    status, schema = stack.request("GET", "/openapi.json")

    assert status == 200
    assert schema["info"]["title"] == "RAGStack"
    assert schema["servers"] == [{"url": stack.connection.api_url}]
    assert {"/api/retrieve", "/api/ask", "/api/documents"} <= schema["paths"].keys()
    assert "metadata_filter" in json.dumps(schema["components"]["schemas"]["RetrieveRequest"])
