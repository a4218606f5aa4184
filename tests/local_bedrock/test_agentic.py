"""AgenticRetrieveStream, with a programmed model and without one."""

import json
import threading
from typing import Any

import pytest
from botocore.exceptions import ClientError, EventStreamError

from local_bedrock.operations.agentic import MAX_RETRIEVERS, MAX_SEARCHES, PAGE
from local_bedrock.operations.generate import UNABLE
from ragstack_common.ingestion.requests import text_document
from tests.local_bedrock.support import TEXT_MODEL, Bedrock, Source, refusal
from tests.support.language_model import WAITING_SECONDS, LanguageModel
from tests.support.waiting import eventually

FACTS = {
    "heron": "The heron eats fish. It stands in shallow water.",
    "kite": "The kite eats mice. It circles over fields.",
    "menu": "The canteen serves soup.",
}
QUESTION = "What do the heron and the kite eat?"
ANSWER = ("The heron eats fish [1]. The ki", "te eats mice [2, 9].")
MODEL_ARN = f"arn:aws:bedrock:us-east-1::foundation-model/{TEXT_MODEL}"
MODEL = {
    "type": "BEDROCK_FOUNDATION_MODEL",
    "bedrockFoundationModelConfiguration": {"modelConfiguration": {"modelArn": MODEL_ARN}},
}
NO_MORE = ('{"searches": []}',)


def filled(bedrock: Bedrock, **parameters: Any) -> Source:
    source = bedrock.connector(bedrock.managed_base("agentic"), "CUSTOM", **parameters)
    source.ingested(*(text_document(name, text, {"kind": name}) for name, text in FACTS.items()))
    return source


@pytest.fixture(scope="module")
def facts(bedrock: Bedrock) -> Source:
    return filled(bedrock)


@pytest.fixture(scope="module")
def planned(forwarding: Bedrock) -> Source:
    return filled(forwarding)


def request(*bases: str, question: str = QUESTION, **more: Any) -> dict[str, Any]:
    overrides = more.pop("overrides", {})
    retrievers = [
        {"configuration": {"knowledgeBase": {"knowledgeBaseId": base, "retrievalOverrides": overrides}}}
        for base in bases
    ]
    configuration = more.pop("configuration", {})
    return {
        "messages": [{"role": "user", "content": {"text": question}}],
        "retrievers": retrievers,
        "agenticRetrieveConfiguration": configuration,
        **more,
    }


def events(source: Source, **more: Any) -> list[dict[str, Any]]:
    asked = request(source.knowledge_base_id, **more)
    return list(source.bedrock.runtime.agentic_retrieve_stream(**asked)["stream"])


def traces(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event["traceEvent"]["attributes"] for event in found if "traceEvent" in event]


def steps(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(trace["step"], trace["status"]) for trace in traces(found)]


def queries(trace: dict[str, Any]) -> list[str]:
    return [action["retrieve"]["inputQuery"]["text"] for action in trace["actions"]]


def sources(result: dict[str, Any]) -> list[str]:
    return [each["metadata"]["_source_uri"] for each in result["results"]]


def plan(*searches: str, **more: Any) -> tuple[str, ...]:
    return (json.dumps({"searches": [{"query": query, **more} for query in searches]}),)


def test_without_a_model_one_retrieval_is_quoted(facts: Source) -> None:
    found = events(facts, question="What does the heron eat?")

    result = found[-1]["result"]
    assert steps(found) == [("Retrieval", "SUCCEEDED")]
    assert queries(traces(found)[0]) == ["What does the heron eat?"]
    assert [next(iter(event)) for event in found] == ["traceEvent", "responseEvent", "result"]
    assert "The heron eats fish." in result["generatedResponse"]["answer"]
    (citation,) = result["generatedResponse"]["citations"]
    assert [sources(result)[each["resultIndex"]] for each in citation["references"]] == ["heron"]


def test_a_result_has_its_text_its_metadata_and_its_retriever(facts: Source) -> None:
    found = events(facts, question="What does the heron eat?")

    best, base = found[-1]["result"]["results"][0], facts.knowledge_base_id
    assert best["content"] == {"mimeType": "text/plain", "text": FACTS["heron"]}
    assert best["metadata"]["kind"] == "heron"
    assert best["sourceRetriever"] == {"identifier": base}
    assert traces(found)[0]["retrievalResponse"] == found[-1]["result"]["results"]
    assert traces(found)[0]["retrievalMetadata"] == [{"identifier": base, "retrievalType": "BedrockKnowledgeBase"}]


def test_the_model_divides_the_question_and_judges_what_was_found(planned: Source, model: LanguageModel) -> None:
    model.says(replies=[plan("heron diet", "kite diet"), NO_MORE], pieces=ANSWER)
    model.asked.clear()

    found = events(planned, overrides={"maxNumberOfResults": 1})

    assert steps(found) == [
        ("SpeculativeRetrieval", "SUCCEEDED"),
        ("Planning", "SUCCEEDED"),
        ("Retrieval", "SUCCEEDED"),
        ("Retrieval", "SUCCEEDED"),
        ("Planning", "SUCCEEDED"),
    ]
    assert [queries(trace) for trace in traces(found)] == [
        [QUESTION],
        ["heron diet", "kite diet"],
        ["heron diet"],
        ["kite diet"],
        [],
    ]
    first, second, answering = (each["messages"] for each in model.asked)
    assert first[-1]["content"] == second[-1]["content"] == answering[-1]["content"] == QUESTION
    assert "- kite diet" in second[0]["content"]
    assert FACTS["kite"] in second[0]["content"]
    assert FACTS["kite"] in answering[0]["content"]
    assert sorted(sources(found[-1]["result"])) == ["heron", "kite"]


def test_citations_are_spans_of_the_answer_and_name_results(planned: Source, model: LanguageModel) -> None:
    model.says(replies=[NO_MORE], pieces=ANSWER)

    found = events(planned)

    response = found[-1]["result"]["generatedResponse"]
    texts = [event["responseEvent"]["text"] for event in found if "responseEvent" in event]
    spans = [response["answer"][each["startIndex"] : each["endIndex"]] for each in response["citations"]]
    assert response["answer"] == "".join(texts) == "The heron eats fish. The kite eats mice."
    assert spans == ["The heron eats fish.", "The kite eats mice."]
    # There is no ninth result.
    assert [each["references"] for each in response["citations"]] == [[{"resultIndex": 0}], [{"resultIndex": 1}]]


def test_a_chunk_that_several_searches_find_is_one_result(planned: Source, model: LanguageModel) -> None:
    model.says(replies=[plan("heron", "heron fish", "kite"), NO_MORE], pieces=ANSWER)

    found = events(planned)

    assert sorted(sources(found[-1]["result"])) == sorted(FACTS)


@pytest.mark.parametrize("iterations", [2, 3])
def test_the_request_limits_the_iterations(planned: Source, model: LanguageModel, iterations: int) -> None:
    model.says(replies=[plan(f"search {number}") for number in range(iterations)], pieces=ANSWER)
    model.asked.clear()

    found = events(planned, configuration={"maxAgentIteration": iterations})

    assert len(model.asked) == iterations + 1
    assert sum(step == "Planning" for step, _ in steps(found)) == iterations


def test_a_plan_has_a_maximum_of_searches_and_repeats_none(planned: Source, model: LanguageModel) -> None:
    repeated = plan(QUESTION, *(f"search {number % 8}" for number in range(20)))
    model.says(replies=[repeated, repeated, repeated], pieces=ANSWER)

    found = events(planned)

    plans = [queries(trace) for trace in traces(found) if trace["step"] == "Planning"]
    assert plans == [[f"search {n}" for n in range(MAX_SEARCHES)], [f"search {n}" for n in range(MAX_SEARCHES, 8)], []]


@pytest.mark.parametrize(
    "reply",
    [
        "I would search for herons.",
        "",
        '{"searches": "heron"}',
        '{"searches": [{"query": ""}]}',
        '{"searches": [{"query": "heron", "knowledge_base": 2}]}',
        '{"searches": [{"query": "heron"}',
        '{"searches": [{"query": "heron\\ud800"}]}',
        f'{{"searches": [{{"query": "{"heron " * 2000}"}}]}}',
        '{"searches": ' + "[" * 100_000,
        "[1]",
    ],
)
def test_a_plan_that_cannot_be_used_ends_the_planning(planned: Source, model: LanguageModel, reply: str) -> None:
    model.says(replies=[(reply,)], pieces=ANSWER)

    found = events(planned)

    assert steps(found) == [("SpeculativeRetrieval", "SUCCEEDED"), ("Planning", "FAILED")]
    assert traces(found)[-1]["failures"]
    assert found[-1]["result"]["generatedResponse"]["answer"] == "The heron eats fish. The kite eats mice."


def test_a_plan_may_have_text_around_it(planned: Source, model: LanguageModel) -> None:
    fenced = ("Sure!\n```json\n", *plan("heron diet"), "\n```\nThat is all.")
    model.says(replies=[fenced, NO_MORE], pieces=ANSWER)

    assert ("Retrieval", "SUCCEEDED") in steps(events(planned))


def test_the_model_sends_each_search_to_the_knowledge_base_that_it_chooses(
    forwarding: Bedrock, planned: Source, model: LanguageModel
) -> None:
    other = forwarding.connector(forwarding.managed_base("other"), "CUSTOM")
    other.ingested(text_document("owl", "The owl eats mice at night."))
    model.says(replies=[plan("owl", knowledge_base=2), plan("birds"), NO_MORE], pieces=ANSWER)
    model.asked.clear()
    asked = request(planned.knowledge_base_id, other.knowledge_base_id)
    asked["retrievers"][1]["description"] = "Birds of the night"

    found = list(forwarding.runtime.agentic_retrieve_stream(**asked)["stream"])

    both = [planned.knowledge_base_id, other.knowledge_base_id]
    searched = [trace["retrievalMetadata"] for trace in traces(found) if trace["step"] != "Planning"]
    assert [[each["identifier"] for each in metadata] for metadata in searched] == [both, both[1:], both]
    assert "2. Birds of the night" in model.asked[0]["messages"][0]["content"]
    retrievers = {each["metadata"]["_source_uri"]: each["sourceRetriever"] for each in found[-1]["result"]["results"]}
    assert retrievers["owl"] == {"identifier": other.knowledge_base_id}


def test_a_conversation_reaches_the_model(planned: Source, model: LanguageModel) -> None:
    model.says(replies=[NO_MORE], pieces=ANSWER)
    model.asked.clear()
    before = [
        {"role": "user", "content": {"text": "Tell me about birds."}},
        {"role": "assistant", "content": {"text": "Gladly."}},
    ]
    asked = request(planned.knowledge_base_id)

    list(planned.bedrock.runtime.agentic_retrieve_stream(**{**asked, "messages": before + asked["messages"]})["stream"])

    for each in model.asked:
        assert [message["content"] for message in each["messages"][1:]] == ["Tell me about birds.", "Gladly.", QUESTION]


def test_without_a_response_there_are_results_only(planned: Source, model: LanguageModel) -> None:
    model.says(replies=[NO_MORE])
    model.asked.clear()

    found = events(planned, generateResponse=False)

    assert [next(iter(event)) for event in found] == ["traceEvent", "traceEvent", "result"]
    assert found[-1]["result"].keys() == {"results"}
    assert len(model.asked) == 1


def test_without_results_the_model_does_not_answer(planned: Source, model: LanguageModel) -> None:
    model.says(replies=[NO_MORE], pieces=("I know it anyway.",))
    nothing = {"filter": {"equals": {"key": "kind", "value": "dodo"}}}

    found = events(planned, overrides=nothing)

    assert found[-1]["result"] == {"results": [], "generatedResponse": {"answer": UNABLE, "citations": []}}


def test_a_failure_of_the_model_is_a_member_of_the_stream(planned: Source, model: LanguageModel) -> None:
    model.says(failure=(500, "out of memory"))
    stream = planned.bedrock.runtime.agentic_retrieve_stream(**request(planned.knowledge_base_id))["stream"]
    received = []

    with pytest.raises(EventStreamError) as caught:
        received.extend(stream)

    assert [next(iter(event)) for event in received] == ["traceEvent"]
    assert caught.value.response["Error"]["Code"] == "dependencyFailedException"


def test_a_disconnect_ends_the_planning(planned: Source, model: LanguageModel) -> None:
    model.says(thinking=threading.Event())
    model.abandoned.clear()
    model.asked.clear()

    stream = planned.bedrock.runtime.agentic_retrieve_stream(**request(planned.knowledge_base_id))["stream"]
    first = next(iter(stream))
    eventually(lambda: model.asked)
    stream.close()

    assert "traceEvent" in first
    assert model.abandoned.wait(WAITING_SECONDS)


def test_filters_and_users_restrict_every_search(forwarding: Bedrock, model: LanguageModel) -> None:
    source = forwarding.connector(forwarding.managed_base("closed"), "CUSTOM", aclEnabled=True)
    documents = [text_document(name, text, {"kind": name}) for name, text in FACTS.items()]
    for document, user in zip(documents, ("ann", "ann", "ben"), strict=True):
        document["metadata"]["accessControlList"] = [{"name": user, "type": "USER", "access": "ALLOW"}]
    source.ingested(*documents)
    without_herons = {"filter": {"notEquals": {"key": "kind", "value": "heron"}}}
    seen = []

    for context in ({"userContext": {"userId": "ann"}}, {"userContext": {"userId": "ben"}}, {}):
        model.says(replies=[plan("heron", "soup"), NO_MORE], pieces=ANSWER)
        found = events(source, overrides=without_herons, **context)
        shown = {
            each["metadata"]["_source_uri"] for trace in traces(found) for each in trace.get("retrievalResponse", ())
        }
        seen.append((sources(found[-1]["result"]), shown))

    assert seen == [(["kite"], {"kite"}), (["menu"], {"menu"}), ([], set())]


def test_further_results_have_a_token(bedrock: Bedrock) -> None:
    bases = []
    for letter in "ab":
        source = bedrock.connector(bedrock.managed_base("many"), "CUSTOM")
        for start in range(0, 60, 10):
            source.ingested(*(text_document(f"{letter}-{start + n}", f"Bird {start + n}.") for n in range(10)))
        bases.append(source.knowledge_base_id)
    asked = request(*bases, question="bird", overrides={"maxNumberOfResults": 100})

    *_, first = bedrock.runtime.agentic_retrieve_stream(**asked)["stream"]
    (second,) = bedrock.runtime.agentic_retrieve_stream(**asked, nextToken=first["result"]["nextToken"])["stream"]

    assert len(first["result"]["results"]) == PAGE
    assert second["result"].keys() == {"results"}
    assert len({*sources(first["result"]), *sources(second["result"])}) == 120
    other = request(bases[0], question="bird")
    assert "nextToken is not valid" in refusal(
        bedrock.runtime.agentic_retrieve_stream, **other, nextToken=first["result"]["nextToken"]
    )


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"memoryConfiguration": {"memoryId": "memory-0123456789"}}, "does not support memoryConfiguration"),
        (
            {"policyConfiguration": {"bedrockGuardrailConfiguration": {"guardrailId": "g", "guardrailVersion": "1"}}},
            "does not support policyConfiguration",
        ),
        (
            {"retrievalInstructionConfiguration": {"retrievalInstructionId": "i"}},
            "does not support retrievalInstructionConfiguration",
        ),
        ({"question": " "}, "every message needs a text"),
        ({"configuration": {"maxAgentIteration": 1}}, "maxAgentIteration must be at least 2"),
        ({"configuration": {"foundationModelType": "CUSTOM"}}, "CUSTOM needs foundationModelConfiguration"),
        ({"configuration": {"foundationModelConfiguration": MODEL}}, "cannot have foundationModelConfiguration"),
        ({"configuration": {"rerankingModelType": "CUSTOM"}}, "CUSTOM needs rerankingConfiguration"),
        ({"overrides": {"maxNumberOfResults": 101}}, "at most 100"),
        ({"overrides": {"filter": {"startsWith": {"key": "kind", "value": "h"}}}}, "startsWith is not supported"),
        (
            {
                "configuration": {
                    "foundationModelType": "CUSTOM",
                    "foundationModelConfiguration": {
                        "type": "MANTLE_FOUNDATION_MODEL",
                        "mantleFoundationModelConfiguration": {"modelConfiguration": {"modelArn": MODEL_ARN}},
                    },
                }
            },
            "not MANTLE_FOUNDATION_MODEL",
        ),
    ],
)
def test_what_is_not_supported_is_refused_by_name(facts: Source, more: dict[str, Any], words: str) -> None:
    assert words in refusal(facts.bedrock.runtime.agentic_retrieve_stream, **request(facts.knowledge_base_id, **more))


def test_a_model_and_a_reranker_of_your_own_are_accepted(facts: Source) -> None:
    reranker = "arn:aws:bedrock:us-east-1::foundation-model/amazon.rerank-v1:0"
    by_model = {
        "type": "BEDROCK_RERANKING_MODEL",
        "bedrockRerankingConfiguration": {"modelConfiguration": {"modelArn": reranker}},
    }
    configuration = {
        "foundationModelType": "CUSTOM",
        "foundationModelConfiguration": MODEL,
        "rerankingModelType": "CUSTOM",
        "rerankingConfiguration": by_model,
    }

    found = events(facts, question="What does the kite eat?", configuration=configuration)

    assert sources(found[-1]["result"])[0] == "kite"


def test_there_are_at_most_five_retrievers_and_all_are_managed(bedrock: Bedrock, facts: Source) -> None:
    call = bedrock.runtime.agentic_retrieve_stream

    assert "maximum is 5" in refusal(call, **request(*[facts.knowledge_base_id] * (MAX_RETRIEVERS + 1)))
    assert "is not MANAGED" in refusal(call, **request(facts.knowledge_base_id, bedrock.knowledge_base("vector")))
    with pytest.raises(ClientError) as caught:
        call(**request(facts.knowledge_base_id, "UNKNOWN000"))
    assert caught.value.response["Error"]["Code"] == "ResourceNotFoundException"
