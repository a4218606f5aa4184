import threading
from typing import Any

import pytest
from botocore.exceptions import EventStreamError

from ragstack_common.answers.phrases import NO_ANSWER
from tests.local_bedrock.support import TEXT_MODEL, Bedrock, client
from tests.support.language_model import LanguageModel

LEAVE = "Every employee has 27 days of annual leave. Book it in the calendar."
QUESTION = "How many days of annual leave does an employee have?"
ANSWER = '"Every employee has 27 days of annual leave."'


@pytest.fixture(scope="module")
def runtime(bedrock: Bedrock) -> Any:
    return client("bedrock-runtime", bedrock.url)


@pytest.fixture(scope="module")
def answering(forwarding: Bedrock) -> Any:
    """A client of a local Bedrock with a model."""
    return client("bedrock-runtime", forwarding.url)


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"text": block} if isinstance(block, str) else block for block in content]}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"text": text}]}


def document(data: bytes, file_format: str = "md", name: str = "leave") -> dict[str, Any]:
    return {"document": {"format": file_format, "name": name, "source": {"bytes": data}}}


PROMPT = user(f"<document>{LEAVE}</document>{QUESTION}")


def said(runtime: Any, *messages: Any, **more: Any) -> str:
    answer = runtime.converse(modelId=TEXT_MODEL, messages=list(messages), **more)
    return str(answer["output"]["message"]["content"][0]["text"])


def test_a_question_is_answered_from_a_document(runtime: Any) -> None:
    assert said(runtime, user(document(LEAVE.encode()), QUESTION)) == f"{ANSWER} [1]"


def test_a_document_in_s3_is_read(runtime: Any, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="leave.md", Body=LEAVE.encode())
    source = {"s3Location": {"uri": f"s3://{bucket}/leave.md"}}
    block = {"document": {"format": "md", "name": "leave", "source": source}}

    assert said(runtime, user(block, QUESTION)) == f"{ANSWER} [1]"


def test_an_earlier_document_is_read(runtime: Any) -> None:
    earlier = [user(document(LEAVE.encode()), "Hello"), assistant("Noted.")]

    assert said(runtime, *earlier, user(QUESTION)) == f"{ANSWER} [1]"


@pytest.mark.parametrize(
    ("prompt", "number"),
    [
        (f"<context>\n{LEAVE}\n</context>", 1),
        (f"<documents><document><source>leave</source><content>{LEAVE}</content></document></documents>", 1),
        (f"<context><document>Trains leave hourly.</document><document>{LEAVE}</document></context>", 2),
        (f"The documents are in <document> tags.\n<document>Trains leave.</document><document>{LEAVE}</document>", 2),
        (f"<history><document>99 days of annual leave.</document></history>\n<document>{LEAVE}</document>", 1),
        (f"<document>99 days of annual leave.</document><passage-a1 number=7>\nFrom leave\n\n{LEAVE}</passage-a1>", 7),
        (f"<passage index='3'>{LEAVE} <document>None.</document></passage>", 3),
    ],
)
def test_passages_in_tags_are_quoted_with_their_numbers(runtime: Any, prompt: str, number: int) -> None:
    instructions = "Never say how many days of annual leave an employee has.\n"
    expected = f"{ANSWER} [{number}]"

    assert said(runtime, user(QUESTION), system=[{"text": instructions + prompt}]) == expected
    assert said(runtime, user(f"{prompt}\n{QUESTION}")) == expected


@pytest.mark.parametrize(
    "messages",
    [
        [user(f"{LEAVE}\n\n{QUESTION}")],
        [user(f"Context:\n{LEAVE}\n\n[1] {LEAVE}\n\nQuestion: {QUESTION}")],
        [user(f"Close <document> tags. {LEAVE} {QUESTION}")],
        [user("Hello"), assistant(f"<document>{LEAVE}</document>"), user(QUESTION)],
    ],
)
def test_without_model_and_passages_it_says_how_to_add_a_model(runtime: Any, messages: list[Any]) -> None:
    with pytest.raises(runtime.exceptions.ValidationException, match=r"has no model .* --llm-url .* RAGSTACK_LLM_URL"):
        runtime.converse(modelId=TEXT_MODEL, messages=messages)


def test_no_passage_answers(runtime: Any) -> None:
    prompt = f"<passages><passage>Trains leave hourly.</passage></passages>\n\n{LEAVE}\n\nWho discovered penicillin?"

    assert said(runtime, user(prompt)) == NO_ANSWER


def test_an_answer_is_measured_and_names_its_generator(runtime: Any) -> None:
    answer = runtime.converse(modelId=TEXT_MODEL, messages=[PROMPT])

    usage = answer["usage"]
    assert answer["stopReason"] == "end_turn"
    assert usage["inputTokens"] == -(-len(LEAVE) // 4) + -(-len(QUESTION) // 4)
    assert usage["outputTokens"] == -(-len(f"{ANSWER} [1]") // 4)
    assert usage["totalTokens"] == usage["inputTokens"] + usage["outputTokens"]
    assert answer["metrics"]["latencyMs"] >= 0
    assert answer["ResponseMetadata"]["HTTPHeaders"]["x-ragstack-generator"] == "extractive"


@pytest.mark.parametrize(
    ("inference", "reason", "text"),
    [
        ({"maxTokens": 3}, "max_tokens", ANSWER[:12]),
        ({"stopSequences": ["never", " of annual", "days of"]}, "stop_sequence", '"Every employee has 27 '),
    ],
)
def test_an_answer_ends_where_the_settings_say(runtime: Any, inference: dict[str, Any], reason: str, text: str) -> None:
    answer = runtime.converse(modelId=TEXT_MODEL, messages=[PROMPT], inferenceConfig=inference)

    assert answer["stopReason"] == reason
    assert answer["output"]["message"]["content"] == [{"text": text}]


def test_a_stream_has_the_events_in_the_order_of_aws(runtime: Any) -> None:
    answer = runtime.converse_stream(modelId=TEXT_MODEL, messages=[PROMPT])
    events = list(answer["stream"])

    names = [next(iter(event)) for event in events]
    assert names == ["messageStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"]
    assert events[0]["messageStart"] == {"role": "assistant"}
    assert events[1]["contentBlockDelta"] == {"delta": {"text": f"{ANSWER} [1]"}, "contentBlockIndex": 0}
    assert events[3]["messageStop"] == {"stopReason": "end_turn"}
    assert events[4]["metadata"]["usage"]["outputTokens"] == 13


@pytest.mark.parametrize("operation", ["converse", "converse_stream"])
@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], "must start with a user message"),
        ([assistant("a"), user("b")], "must start with a user message"),
        ([user("a"), user("b")], "must alternate between user and assistant roles"),
        ([user("a"), assistant("b")], "must end with a user message"),
        ([user()], "content field in the Message object at messages.0 is empty"),
        ([user("a"), assistant("b"), user(" ")], "at messages.2.content.0 is blank"),
        ([user({"image": {"format": "png", "source": {"bytes": b"x"}}}, "a")], "does not support image at messages.0"),
        ([user({"toolResult": {"toolUseId": "a", "content": []}})], "does not support toolResult"),
        ([user({"guardContent": {"text": {"text": "a"}}})], "does not support guardContent"),
        ([user(document(b"x"))], "also needs a text"),
        ([user(*[document(b"x")] * 6, "a")], "the maximum is 5"),
        ([user(document(b"x" * 4_500_001), "a")], "the maximum is 4,500,000"),
        ([user(document(b"no pdf", "pdf"), "a")], "not that of a .pdf file"),
        ([user(document(b"x", name="a.md"), "a")], "The name of the document"),
    ],
)
def test_an_invalid_conversation_is_rejected(runtime: Any, messages: list[Any], message: str, operation: str) -> None:
    with pytest.raises(runtime.exceptions.ValidationException, match=message):
        getattr(runtime, operation)(modelId=TEXT_MODEL, messages=messages)


@pytest.mark.parametrize(
    "more",
    [
        {"toolConfig": {"tools": [{"toolSpec": {"name": "t", "inputSchema": {"json": {}}}}]}},
        {"guardrailConfig": {"guardrailIdentifier": "abc", "guardrailVersion": "1"}},
        {"additionalModelRequestFields": {"top_k": 5}},
        {"additionalModelResponseFieldPaths": ["/stop_sequence"]},
        {"outputConfig": {"effort": "low"}},
        {"serviceTier": {"type": "flex"}},
    ],
)
def test_unsupported_features_are_rejected_by_name(runtime: Any, more: dict[str, Any]) -> None:
    with pytest.raises(runtime.exceptions.ValidationException, match=next(iter(more))):
        runtime.converse(modelId=TEXT_MODEL, messages=[user("a")], **more)


def test_a_conversation_goes_to_the_model(answering: Any, model: LanguageModel) -> None:
    model.says(pieces=("Herons", " eat fish."))

    answer = answering.converse(
        modelId=TEXT_MODEL,
        messages=[user("Hello"), assistant("Hi."), user(document(b"Herons.", "txt"), "What do they eat?")],
        system=[{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        inferenceConfig={"maxTokens": 9, "stopSequences": ["END"], "temperature": 0.25, "topP": 0.5},
    )

    assert answer["output"]["message"]["content"] == [{"text": "Herons eat fish."}]
    assert answer["usage"] == {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18}
    asked = model.asked[-1]
    assert asked["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "leave\n\nHerons.\n\nWhat do they eat?"},
    ]
    assert (asked["max_tokens"], asked["stop"], asked["temperature"], asked["top_p"]) == (9, ["END"], 0.25, 0.5)


def test_a_stream_is_passed_on_at_once(answering: Any, model: LanguageModel) -> None:
    held = threading.Event()
    model.says(pieces=("Herons", " eat fish."), held=held)

    stream = iter(answering.converse_stream(modelId=TEXT_MODEL, messages=[user("a")])["stream"])
    first, second = next(stream), next(stream)
    held.set()
    rest = list(stream)

    assert first == {"messageStart": {"role": "assistant"}}
    assert second["contentBlockDelta"]["delta"] == {"text": "Herons"}
    assert [next(iter(event)) for event in rest] == ["contentBlockDelta", "contentBlockStop", "messageStop", "metadata"]


@pytest.mark.parametrize("operation", ["converse", "converse_stream"])
def test_a_failing_model_is_a_model_error(answering: Any, model: LanguageModel, operation: str) -> None:
    model.says(failure=(503, "loading"))

    with pytest.raises(answering.exceptions.ModelErrorException, match=r"answered 503: .*loading") as caught:
        getattr(answering, operation)(modelId=TEXT_MODEL, messages=[user("a")])

    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 424


def test_a_failure_within_a_stream_is_an_event(answering: Any, model: LanguageModel) -> None:
    model.says(failure_after="out of memory")

    stream = answering.converse_stream(modelId=TEXT_MODEL, messages=[user("a")])["stream"]

    with pytest.raises(EventStreamError, match=r"modelStreamErrorException.*out of memory"):
        list(stream)
