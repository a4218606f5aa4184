from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_bedrock.answers.answering import LIFETIME_SECONDS, MOST_SESSIONS, Sessions
from local_bedrock.answers.answers import Turn
from tests.local_bedrock.handbook import ANSWER, fill, request, sources
from tests.local_bedrock.support import S3_VECTORS, Bedrock, client

NO_ANSWER = "Sorry, I am unable to assist you with this request."


@pytest.fixture(scope="module")
def runtime(bedrock: Bedrock) -> Any:
    return client("bedrock-agent-runtime", bedrock.url)


@pytest.fixture(scope="module")
def filled(bedrock: Bedrock) -> str:
    return fill(bedrock).knowledge_base_id


def test_an_answer_is_quoted_with_where_it_stands(runtime: Any, filled: str) -> None:
    answer = runtime.retrieve_and_generate(**request(filled))

    (citation,) = answer["citations"]
    part = citation["generatedResponsePart"]["textResponsePart"]
    assert answer["output"]["text"] == ANSWER
    assert part == {"text": ANSWER, "span": {"start": 0, "end": len(ANSWER) - 1}}
    assert sources(citation) == ["leave"]
    assert citation["retrievedReferences"][0]["content"]["type"] == "TEXT"
    assert ANSWER in citation["retrievedReferences"][0]["content"]["text"]
    assert citation["retrievedReferences"][0]["metadata"]["topic"] == "leave"


def test_every_span_is_that_part_of_the_answer(runtime: Any, filled: str) -> None:
    answer = runtime.retrieve_and_generate(**request(filled, "When is the canteen open, and which days have leave?"))

    text = answer["output"]["text"]
    parts = [citation["generatedResponsePart"]["textResponsePart"] for citation in answer["citations"]]
    assert parts
    assert [text[part["span"]["start"] : part["span"]["end"] + 1] for part in parts] == [p["text"] for p in parts]


def test_what_the_documents_do_not_say_is_not_answered(runtime: Any, filled: str) -> None:
    answer = runtime.retrieve_and_generate(**request(filled, "Who discovered penicillin?"))

    (citation,) = answer["citations"]
    assert answer["output"]["text"] == NO_ANSWER
    assert citation["retrievedReferences"] == []


def test_a_filter_decides_what_is_answered_from(runtime: Any, filled: str) -> None:
    search = {"vectorSearchConfiguration": {"filter": {"equals": {"key": "topic", "value": "food"}}}}

    answer = runtime.retrieve_and_generate(**request(filled, retrievalConfiguration=search))

    assert answer["output"]["text"] == NO_ANSWER


def test_the_search_type_goes_to_the_search(bedrock: Bedrock, runtime: Any) -> None:
    base = bedrock.knowledge_base("vectors-only", S3_VECTORS)
    search = {"vectorSearchConfiguration": {"overrideSearchType": "HYBRID"}}

    with pytest.raises(ClientError, match="HYBRID"):
        runtime.retrieve_and_generate(**request(base, retrievalConfiguration=search))


@pytest.mark.parametrize(
    "model",
    ["nonsense", "amazon.titan-embed-text-v2:0", "arn:aws:bedrock:us-east-1::foundation-model/amazon.rerank-v1:0"],
)
def test_a_model_that_does_not_write_text_is_refused(runtime: Any, filled: str, model: str) -> None:
    with pytest.raises(runtime.exceptions.ValidationException, match="model"):
        runtime.retrieve_and_generate(**request(filled, model=model))


@pytest.mark.parametrize(
    ("configuration", "named"),
    [
        ({"generationConfiguration": {"additionalModelRequestFields": {"top_k": 5}}}, "additionalModelRequestFields"),
        (
            {"generationConfiguration": {"promptTemplate": {"textPromptTemplate": "Answer."}}},
            r"needs the placeholder \$search_results\$",
        ),
        (
            {"generationConfiguration": {"inferenceConfig": {"textInferenceConfig": {"maxTokens": 0}}}},
            "maxTokens must be at least 1",
        ),
        (
            {"orchestrationConfiguration": {"queryTransformationConfiguration": {"type": "QUERY_DECOMPOSITION"}}},
            "queryTransformationConfiguration",
        ),
        ({"retrievalConfiguration": {"managedSearchConfiguration": {}}}, "MANAGED"),
    ],
)
def test_unsupported_settings_are_refused_by_name(
    runtime: Any, filled: str, configuration: dict[str, Any], named: str
) -> None:
    with pytest.raises(runtime.exceptions.ValidationException, match=named):
        runtime.retrieve_and_generate(**request(filled, **configuration))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"sessionConfiguration": {"kmsKeyArn": f"arn:aws:kms:us-east-1:123456789012:key/{'a' * 36}"}},
            "sessionConfiguration",
        ),
        ({"userContext": {"userId": "u"}}, "userContext"),
        ({"input": {"text": " "}}, "ask a question"),
        ({"sessionId": "unknown"}, "Session with Id unknown is not valid"),
        ({"retrieveAndGenerateConfiguration": {"type": "EXTERNAL_SOURCES"}}, "not EXTERNAL_SOURCES"),
    ],
)
def test_a_request_that_cannot_be_answered_is_refused(
    runtime: Any, filled: str, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(runtime.exceptions.ValidationException, match=message):
        runtime.retrieve_and_generate(**{**request(filled), **more})


def test_sessions_expire_and_are_bounded() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    first = sessions.begin()
    sessions.remember(first, Turn("user", "a"))

    assert sessions.turns(first) == (Turn("user", "a"),)
    now[0] = LIFETIME_SECONDS
    assert sessions.turns(first) is None
    ids = [sessions.begin() for _ in range(MOST_SESSIONS + 1)]
    assert sessions.turns(ids[0]) is None
    assert sessions.turns(ids[-1]) == ()


def test_a_stream_has_the_same_answer_and_its_session_in_a_header(runtime: Any, filled: str) -> None:
    whole = runtime.retrieve_and_generate(**request(filled))

    answer = runtime.retrieve_and_generate_stream(**request(filled))
    events = list(answer["stream"])
    again = runtime.retrieve_and_generate_stream(**request(filled), sessionId=answer["sessionId"])

    citations = [event["citation"] for event in events if "citation" in event]
    assert "".join(event["output"]["text"] for event in events if "output" in event) == whole["output"]["text"]
    assert [citation["citation"] for citation in citations] == whole["citations"]
    assert all(citation.items() >= citation["citation"].items() for citation in citations)
    headers = answer["ResponseMetadata"]["HTTPHeaders"]
    assert headers["x-amzn-bedrock-knowledge-base-session-id"] == answer["sessionId"] == again["sessionId"]
    assert headers["content-type"] == "application/vnd.amazon.eventstream"


def test_an_error_before_a_stream_is_an_ordinary_error(runtime: Any) -> None:
    with pytest.raises(runtime.exceptions.ResourceNotFoundException) as caught:
        runtime.retrieve_and_generate_stream(**request("UNKNOWN123"))

    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404
