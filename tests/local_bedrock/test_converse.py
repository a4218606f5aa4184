import threading
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import EventStreamError

from local_bedrock.server import running
from tests.local_bedrock.llm_server import LanguageModel, language_model
from tests.local_bedrock.support import TEXT_MODEL, Bedrock, client

LEAVE = "Every employee has 27 days of annual leave. Book it in the calendar."
QUESTION = "How many days of annual leave does an employee have?"
ANSWER = "Every employee has 27 days of annual leave."
NO_ANSWER = "Sorry, I am unable to assist you with this request."


@pytest.fixture(scope="module")
def runtime(bedrock: Bedrock) -> Any:
    return client("bedrock-runtime", bedrock.url)


@pytest.fixture(scope="module")
def model() -> Iterator[LanguageModel]:
    with language_model() as served:
        yield served


@pytest.fixture(scope="module")
def forwarding(tmp_path_factory: pytest.TempPathFactory, model: LanguageModel) -> Iterator[Any]:
    with running(tmp_path_factory.mktemp("forwarding"), llm_url=model.url) as url:
        yield client("bedrock-runtime", url)


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"text": block} if isinstance(block, str) else block for block in content]}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"text": text}]}


def document(data: bytes, file_format: str = "md", name: str = "leave") -> dict[str, Any]:
    return {"document": {"format": file_format, "name": name, "source": {"bytes": data}}}


def said(runtime: Any, *messages: Any, **more: Any) -> str:
    answer = runtime.converse(modelId=TEXT_MODEL, messages=list(messages), **more)
    return str(answer["output"]["message"]["content"][0]["text"])


@pytest.mark.parametrize(
    "prompt",
    [
        f"{LEAVE}\n\n{QUESTION}",
        f"Use this context:\n{LEAVE}\n\nQuestion: {QUESTION}\nAnswer:",
        f"{QUESTION}\n\nContext:\n\n{LEAVE}",
    ],
)
def test_a_question_is_answered_from_the_text_around_it(runtime: Any, prompt: str) -> None:
    assert said(runtime, user(prompt)) == ANSWER


def test_a_question_is_answered_from_a_document(runtime: Any) -> None:
    assert said(runtime, user(document(LEAVE.encode()), QUESTION)) == ANSWER


def test_a_document_in_s3_is_read(runtime: Any, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="leave.md", Body=LEAVE.encode())
    source = {"s3Location": {"uri": f"s3://{bucket}/leave.md"}}

    assert said(runtime, user({"document": {"format": "md", "name": "leave", "source": source}}, QUESTION)) == ANSWER


def test_what_was_said_before_is_read(runtime: Any) -> None:
    assert said(runtime, user(LEAVE), assistant("Noted."), user(QUESTION)) == ANSWER


@pytest.mark.parametrize(
    "prompt",
    [
        LEAVE,
        f"You answer questions about leave and days. Use the following context to answer.\n\n{LEAVE}",
        f"Answer from: {LEAVE}",
        f"Use these documents.\n\nContext: {LEAVE}\nQuestion: How many days?\nAnswer:",
        f"Context information is below.\n---------\n{LEAVE}\n---------\nAnswer with the number of days of leave.",
        f"<documents>\n<document><source>leave.md</source><content>{LEAVE}</content></document>\n</documents>",
        f"Never say how many days of annual leave an employee has.\n<context>{LEAVE}</context>",
        f"The documents are in <document> tags.\n<document>Trains leave hourly.</document><document>{LEAVE}</document>",
        f"<history><document>99 days of annual leave.</document></history>\n<document>{LEAVE}</document>",
    ],
)
def test_passages_in_the_system_prompt_are_read_and_instructions_are_not(runtime: Any, prompt: str) -> None:
    assert said(runtime, user(QUESTION), system=[{"text": prompt}]) == ANSWER


@pytest.mark.parametrize(
    "prompt",
    [
        "You are an expert on how many days of annual leave an employee has.",
        "Answer questions on annual leave.\n\nIf an employee asks for days of annual leave, say 27.",
        f"<passages>\n<passage>Trains leave hourly.</passage>\n</passages>\n\n{LEAVE}",
    ],
)
def test_instructions_in_the_system_prompt_are_never_quoted(runtime: Any, prompt: str) -> None:
    assert said(runtime, user(QUESTION), system=[{"text": prompt}]) == NO_ANSWER


def test_an_answer_of_the_model_is_no_source(runtime: Any) -> None:
    assert said(runtime, user("Hello"), assistant(LEAVE), user(QUESTION)) == NO_ANSWER


def test_numbered_passages_are_quoted_with_citation_markers(runtime: Any) -> None:
    other = "<document>Days of annual leave.</document>\n\nContext:\n\n[1] Every employee may leave."
    passages = f"<passage number=1>{other}</passage>\n<passage number=2>{LEAVE}</passage>"
    prompt = f"Cite passages by number.\n{passages}"

    assert said(runtime, user(QUESTION), system=[{"text": prompt}]) == f'"{ANSWER}" [2]'


def test_without_anything_to_quote_there_is_no_answer(runtime: Any) -> None:
    assert said(runtime, user("Who discovered penicillin?")) == NO_ANSWER


def test_an_answer_is_measured_and_names_its_generator(runtime: Any) -> None:
    answer = runtime.converse(modelId=TEXT_MODEL, messages=[user(LEAVE + "\n\n" + QUESTION)])

    usage = answer["usage"]
    assert answer["stopReason"] == "end_turn"
    assert usage["inputTokens"] == -(-len(LEAVE + "\n\n" + QUESTION) // 4)
    assert usage["outputTokens"] == -(-len(ANSWER) // 4)
    assert usage["totalTokens"] == usage["inputTokens"] + usage["outputTokens"]
    assert answer["metrics"]["latencyMs"] >= 0
    assert answer["ResponseMetadata"]["HTTPHeaders"]["x-ragstack-generator"] == "extractive"


def test_an_answer_ends_at_its_most_tokens(runtime: Any) -> None:
    answer = runtime.converse(
        modelId=TEXT_MODEL, messages=[user(LEAVE + "\n\n" + QUESTION)], inferenceConfig={"maxTokens": 3}
    )

    assert answer["stopReason"] == "max_tokens"
    assert answer["output"]["message"]["content"] == [{"text": ANSWER[:12]}]


def test_an_answer_ends_before_a_stop_sequence(runtime: Any) -> None:
    answer = runtime.converse(
        modelId=TEXT_MODEL,
        messages=[user(LEAVE + "\n\n" + QUESTION)],
        inferenceConfig={"stopSequences": ["never", " of annual", "days of"]},
    )

    assert answer["stopReason"] == "stop_sequence"
    assert answer["output"]["message"]["content"] == [{"text": "Every employee has 27 "}]


def test_a_stream_has_the_events_in_the_order_of_aws(runtime: Any) -> None:
    answer = runtime.converse_stream(modelId=TEXT_MODEL, messages=[user(LEAVE + "\n\n" + QUESTION)])
    events = list(answer["stream"])

    names = [next(iter(event)) for event in events]
    assert names == ["messageStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"]
    assert events[0]["messageStart"] == {"role": "assistant"}
    assert events[1]["contentBlockDelta"] == {"delta": {"text": ANSWER}, "contentBlockIndex": 0}
    assert events[3]["messageStop"] == {"stopReason": "end_turn"}
    assert events[4]["metadata"]["usage"]["outputTokens"] == 11


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
def test_a_conversation_without_the_right_form_is_refused(
    runtime: Any, messages: list[Any], message: str, operation: str
) -> None:
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
def test_unsupported_features_are_refused_by_name(runtime: Any, more: dict[str, Any]) -> None:
    with pytest.raises(runtime.exceptions.ValidationException, match=next(iter(more))):
        runtime.converse(modelId=TEXT_MODEL, messages=[user("a")], **more)


def test_a_conversation_goes_to_the_model(forwarding: Any, model: LanguageModel) -> None:
    model.says(pieces=("Herons", " eat fish."))

    answer = forwarding.converse(
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


@pytest.mark.parametrize(
    ("finish_reason", "stop_reason"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "content_filtered")],
)
def test_the_stop_reason_is_that_of_the_model(
    forwarding: Any, model: LanguageModel, finish_reason: str, stop_reason: str
) -> None:
    model.says(finish_reason=finish_reason)

    assert forwarding.converse(modelId=TEXT_MODEL, messages=[user("a")])["stopReason"] == stop_reason


def test_the_stream_of_a_model_is_passed_on_at_once(forwarding: Any, model: LanguageModel) -> None:
    held = threading.Event()
    model.says(pieces=("Herons", " eat fish."), held=held)

    stream = iter(forwarding.converse_stream(modelId=TEXT_MODEL, messages=[user("a")])["stream"])
    first, second = next(stream), next(stream)
    held.set()
    rest = list(stream)

    assert first == {"messageStart": {"role": "assistant"}}
    assert second["contentBlockDelta"]["delta"] == {"text": "Herons"}
    assert [next(iter(event)) for event in rest] == ["contentBlockDelta", "contentBlockStop", "messageStop", "metadata"]


@pytest.mark.parametrize("operation", ["converse", "converse_stream"])
def test_a_model_that_fails_is_a_model_error(forwarding: Any, model: LanguageModel, operation: str) -> None:
    model.says(failure=(503, "loading"))

    with pytest.raises(forwarding.exceptions.ModelErrorException, match=r"answered 503: .*loading") as caught:
        getattr(forwarding, operation)(modelId=TEXT_MODEL, messages=[user("a")])

    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 424


def test_a_model_that_fails_within_a_stream_is_a_stream_error(forwarding: Any, model: LanguageModel) -> None:
    model.says(failure_after="out of memory")

    stream = forwarding.converse_stream(modelId=TEXT_MODEL, messages=[user("a")])["stream"]

    with pytest.raises(EventStreamError, match=r"modelStreamErrorException.*out of memory"):
        list(stream)


def test_a_server_without_models_says_what_to_do(forwarding: Any, model: LanguageModel, tmp_path: Any) -> None:
    model.says(models=())

    with (
        running(tmp_path, llm_url=model.url) as url,
        pytest.raises(forwarding.exceptions.ClientError, match="lists no model: load a model"),
    ):
        client("bedrock-runtime", url).converse(modelId=TEXT_MODEL, messages=[user("a")])
