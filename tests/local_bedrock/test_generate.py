import threading
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EventStreamError
from hypothesis import given, settings
from hypothesis import strategies as st

from local_bedrock.answering import LIFETIME_SECONDS, MAX_SESSIONS, Sessions
from local_bedrock.http.wire import header_value
from local_bedrock.operations.generate import UNABLE, Part, with_parts, without_markers
from local_bedrock.server import running
from ragstack_common.answers.models.protocol import ModelMessage
from ragstack_common.answers.phrases import CLOSEST_PASSAGES
from ragstack_common.core.errors import GenerationError
from tests.local_bedrock.handbook import ANSWER, QUESTION, fill, request, sources
from tests.local_bedrock.support import S3_VECTORS, Bedrock, client
from tests.support.language_model import MODEL, WAITING_SECONDS, LanguageModel


@pytest.fixture(scope="module")
def runtime(bedrock: Bedrock) -> Any:
    return client("bedrock-agent-runtime", bedrock.url)


@pytest.fixture(scope="module")
def filled(bedrock: Bedrock) -> str:
    return fill(bedrock).knowledge_base_id


def test_an_answer_is_quoted_with_its_source(runtime: Any, filled: str) -> None:
    answer = runtime.retrieve_and_generate(**request(filled))

    (citation,) = answer["citations"]
    part = citation["generatedResponsePart"]["textResponsePart"]
    assert answer["output"]["text"] == f'"{ANSWER}"'
    assert part == {"text": f'"{ANSWER}"', "span": {"start": 0, "end": len(ANSWER) + 1}}
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


def test_without_an_answer_it_is_unable_to_assist(runtime: Any, filled: str) -> None:
    answer = runtime.retrieve_and_generate(**request(filled, "Who discovered penicillin?"))

    (citation,) = answer["citations"]
    assert answer["output"]["text"] == UNABLE
    assert citation["retrievedReferences"] == []


@pytest.mark.parametrize("template", ["$search_results$", "Q: $query$ $search_results$ $output_format_instructions$"])
def test_a_template_changes_no_quotation(runtime: Any, filled: str, template: str) -> None:
    generation = {"promptTemplate": {"textPromptTemplate": template}}

    answer = runtime.retrieve_and_generate(**request(filled, generationConfiguration=generation))

    assert answer["output"]["text"] == f'"{ANSWER}"'
    assert sources(answer["citations"][0]) == ["leave"]


def test_quotations_that_may_not_answer_say_so(runtime: Any, filled: str) -> None:
    answer = runtime.retrieve_and_generate(**request(filled, "Who opens the canteen at the weekend?"))

    assert answer["output"]["text"].startswith(f"{CLOSEST_PASSAGES}\n")
    assert sources(answer["citations"][0]) == ["canteen"]


def test_a_filter_restricts_the_sources(runtime: Any, filled: str) -> None:
    search = {"vectorSearchConfiguration": {"filter": {"equals": {"key": "topic", "value": "food"}}}}

    answer = runtime.retrieve_and_generate(**request(filled, retrievalConfiguration=search))

    assert answer["output"]["text"] == UNABLE


def test_the_search_type_goes_to_the_search(bedrock: Bedrock, runtime: Any) -> None:
    base = bedrock.knowledge_base("vectors-only", S3_VECTORS)
    search = {"vectorSearchConfiguration": {"overrideSearchType": "HYBRID"}}

    with pytest.raises(ClientError, match="HYBRID"):
        runtime.retrieve_and_generate(**request(base, retrievalConfiguration=search))


@pytest.mark.parametrize(
    "model",
    ["nonsense", "amazon.titan-embed-text-v2:0", "arn:aws:bedrock:us-east-1::foundation-model/amazon.rerank-v1:0"],
)
def test_a_model_without_text_is_rejected(runtime: Any, filled: str, model: str) -> None:
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
def test_unsupported_settings_are_rejected_by_name(
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
def test_an_invalid_request_is_rejected(runtime: Any, filled: str, more: dict[str, Any], message: str) -> None:
    with pytest.raises(runtime.exceptions.ValidationException, match=message):
        runtime.retrieve_and_generate(**{**request(filled), **more})


def test_sessions_expire_and_are_bounded() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    first = sessions.begin()
    sessions.remember(first, ModelMessage.user("a"))

    assert sessions.turns(first) == (ModelMessage.user("a"),)
    now[0] = LIFETIME_SECONDS
    assert sessions.turns(first) is None
    ids = [sessions.begin() for _ in range(MAX_SESSIONS + 1)]
    assert sessions.turns(ids[0]) is None
    assert sessions.turns(ids[-1]) == ()


def test_a_stream_has_the_same_answer(runtime: Any, filled: str) -> None:
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


@pytest.fixture(scope="module")
def asked_of_model(forwarding: Bedrock) -> tuple[Any, str]:
    return client("bedrock-agent-runtime", forwarding.url), fill(forwarding).knowledge_base_id


def test_a_model_answers_from_the_results(asked_of_model: tuple[Any, str], model: LanguageModel) -> None:
    runtime, base = asked_of_model
    model.says(pieces=("You have 27", " days [", "1", "]. Enjoy", " them."))

    answer = runtime.retrieve_and_generate(**request(base))

    cited, uncited = answer["citations"]
    assert answer["output"]["text"] == "You have 27 days. Enjoy them."
    assert cited["generatedResponsePart"]["textResponsePart"] == {
        "text": "You have 27 days.",
        "span": {"start": 0, "end": 16},
    }
    assert sources(cited) == ["leave"]
    assert uncited["generatedResponsePart"]["textResponsePart"]["span"] == {"start": 18, "end": 28}
    assert uncited["retrievedReferences"] == []
    system, question = model.asked[-1]["messages"]
    assert ANSWER in system["content"]
    assert question == {"role": "user", "content": QUESTION}
    assert model.asked[-1]["model"] == MODEL
    headers = answer["ResponseMetadata"]["HTTPHeaders"]
    assert headers["x-ragstack-generator"] == MODEL


def test_an_unknown_number_is_not_a_citation(asked_of_model: tuple[Any, str], model: LanguageModel) -> None:
    runtime, base = asked_of_model
    model.says(pieces=("Yes [9]. No [1][2].",))

    answer = runtime.retrieve_and_generate(**request(base))

    (citation,) = answer["citations"]
    assert answer["output"]["text"] == "Yes. No."
    assert sorted(sources(citation)) == ["canteen", "leave"]


def test_a_template_is_filled_in(asked_of_model: tuple[Any, str], model: LanguageModel) -> None:
    runtime, base = asked_of_model
    model.says(pieces=("See [1].",))
    template = "Q: $query$ R: $search_results$"

    answer = runtime.retrieve_and_generate(
        **request(base, generationConfiguration={"promptTemplate": {"textPromptTemplate": template}})
    )

    sent = model.asked[-1]["messages"][0]["content"]
    assert sent.startswith(f"Q: {QUESTION} R: [1]\n# Leave")
    # Without $output_format_instructions$ a model is not asked for sources, and its brackets are its own.
    assert answer["output"]["text"] == "See [1]."
    assert answer["citations"][0]["retrievedReferences"] == []


def test_inference_settings_go_to_the_model(asked_of_model: tuple[Any, str], model: LanguageModel) -> None:
    runtime, base = asked_of_model
    model.says()
    given = {"maxTokens": 50, "temperature": 0.5, "topP": 0.75, "stopSequences": ["END"]}

    runtime.retrieve_and_generate(
        **request(base, generationConfiguration={"inferenceConfig": {"textInferenceConfig": given}})
    )

    asked = model.asked[-1]
    assert (asked["max_tokens"], asked["temperature"], asked["top_p"], asked["stop"]) == (50, 0.5, 0.75, ["END"])


def test_a_session_reminds_the_model(asked_of_model: tuple[Any, str], model: LanguageModel) -> None:
    runtime, base = asked_of_model
    model.says(pieces=("27 days [1].",))
    session = runtime.retrieve_and_generate(**request(base))["sessionId"]

    runtime.retrieve_and_generate(**request(base, "And leave in part-time?"), sessionId=session)

    assert [turn["content"] for turn in model.asked[-1]["messages"][1:]] == [
        QUESTION,
        "27 days.",
        "And leave in part-time?",
    ]


def test_a_stream_is_sent_while_the_model_writes(asked_of_model: tuple[Any, str], model: LanguageModel) -> None:
    runtime, base = asked_of_model
    held = threading.Event()
    model.says(pieces=("You have", " 27 days [1]."), held=held)

    stream = iter(runtime.retrieve_and_generate_stream(**request(base))["stream"])
    first = next(stream)
    held.set()
    rest = list(stream)

    assert first == {"output": {"text": "You have"}}
    assert "".join(event["output"]["text"] for event in rest if "output" in event) == " 27 days."


def test_a_disconnect_ends_the_work_of_the_model(asked_of_model: tuple[Any, str], model: LanguageModel) -> None:
    runtime, base = asked_of_model
    held = threading.Event()
    model.abandoned.clear()
    model.says(pieces=("Word. ",) * 100_000, held=held)

    stream = runtime.retrieve_and_generate_stream(**request(base))["stream"]
    next(iter(stream))
    stream.close()
    held.set()

    assert model.abandoned.wait(WAITING_SECONDS)


def test_a_failure_within_a_stream_is_an_event(asked_of_model: tuple[Any, str], model: LanguageModel) -> None:
    runtime, base = asked_of_model
    model.says(failure_after="out of memory")

    stream = iter(runtime.retrieve_and_generate_stream(**request(base))["stream"])
    first = next(stream)

    assert "output" in first
    with pytest.raises(EventStreamError, match=r"dependencyFailedException.*out of memory"):
        list(stream)


@pytest.mark.parametrize("operation", ["retrieve_and_generate", "retrieve_and_generate_stream"])
@pytest.mark.parametrize(("status", "error"), [(500, "DependencyFailedException"), (429, "ThrottlingException")])
def test_a_failing_model_is_a_modelled_error(
    asked_of_model: tuple[Any, str], model: LanguageModel, status: int, error: str, operation: str
) -> None:
    runtime, base = asked_of_model
    model.says(failure=(status, "no memory left"))

    with pytest.raises(getattr(runtime.exceptions, error), match="no memory left"):
        getattr(runtime, operation)(**request(base))


def test_the_model_and_the_key_can_be_chosen(tmp_path: Path, model: LanguageModel) -> None:
    model.says()
    with running(tmp_path, llm_url=model.url, llm_model="large", llm_api_key="k") as url:
        base = fill(Bedrock.at(url)).knowledge_base_id

        client("bedrock-agent-runtime", url).retrieve_and_generate(**request(base))

    assert model.asked[-1]["model"] == "large"
    assert model.keys[-1] == "Bearer k"


def test_an_invalid_url_of_a_model_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(GenerationError, match="is not a URL"):
        running(tmp_path, llm_url="localhost:11434").__enter__()


def test_a_header_is_one_line_of_ascii() -> None:
    assert header_value("größe\nx: y") == "gr??e x: y"


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a ", "[1]", " [2", "]", ".", "[", "3, 1]", " b", "[9]", "\n"]), max_size=12))
def test_markers_are_found_however_the_answer_is_cut(pieces: list[str]) -> None:
    assert _joined(without_markers(pieces, 3)) == _joined(without_markers(["".join(pieces)], 3))


def _joined(pieces: Any) -> list[Any]:
    """Join texts that follow each other."""
    joined: list[Any] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        elif piece:
            joined.append(piece)
    return joined


@settings(deadline=None)
@given(st.lists(st.text(max_size=8) | st.tuples(st.integers(0, 3)), max_size=8))
def test_the_parts_of_an_answer_match_their_spans(pieces: list[str | tuple[int, ...]]) -> None:
    found = list(with_parts(pieces))

    answer = "".join(piece for piece in found if isinstance(piece, str))
    parts = [piece for piece in found if isinstance(piece, Part)]
    assert [answer[part.start : part.end + 1] for part in parts] == [part.text for part in parts]
    ends = [-1, *(part.end for part in parts)]
    assert all(part.start > before for part, before in zip(parts, ends, strict=False))
    assert "".join(answer.split()) == "".join("".join(part.text.split()) for part in parts)
