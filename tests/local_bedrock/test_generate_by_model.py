import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EventStreamError

from local_bedrock.answers.answering import Answering, Sessions
from local_bedrock.answers.answers import Settings, Task, Turn
from local_bedrock.answers.forwarding import ForwardingGenerator
from local_bedrock.reading.parsing import Parser
from local_bedrock.server import running
from ragstack_common.core.errors import GenerationError
from tests.local_bedrock.handbook import ANSWER, QUESTION, fill, request, sources
from tests.local_bedrock.llm_server import MODEL, WAITING_SECONDS, LanguageModel, language_model
from tests.local_bedrock.support import Bedrock, client
from tests.support.redirecting_server import redirecting_server


@pytest.fixture(scope="module")
def model() -> Iterator[LanguageModel]:
    with language_model() as served:
        yield served


@pytest.fixture(scope="module")
def forwarding(tmp_path_factory: pytest.TempPathFactory, model: LanguageModel) -> Iterator[Bedrock]:
    with running(tmp_path_factory.mktemp("forwarding"), llm_url=model.url) as url:
        yield Bedrock.at(url)


@pytest.fixture(scope="module")
def asked_of_model(forwarding: Bedrock) -> tuple[Any, str]:
    return client("bedrock-agent-runtime", forwarding.url), fill(forwarding).knowledge_base_id


def test_a_model_answers_from_what_was_found(asked_of_model: tuple[Any, str], model: LanguageModel) -> None:
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
    assert headers["x-ragstack-generator"].startswith(f"{MODEL} at 127.0.0.1:")


def test_a_number_of_no_result_is_no_citation(asked_of_model: tuple[Any, str], model: LanguageModel) -> None:
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


def test_settings_go_to_the_model(asked_of_model: tuple[Any, str], model: LanguageModel) -> None:
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


def test_an_error_of_the_model_within_a_stream_is_an_event(
    asked_of_model: tuple[Any, str], model: LanguageModel
) -> None:
    runtime, base = asked_of_model
    model.says(failure_after="out of memory")

    stream = iter(runtime.retrieve_and_generate_stream(**request(base))["stream"])
    first = next(stream)

    assert "output" in first
    with pytest.raises(EventStreamError, match=r"dependencyFailedException.*out of memory"):
        list(stream)


@pytest.mark.parametrize("operation", ["retrieve_and_generate", "retrieve_and_generate_stream"])
@pytest.mark.parametrize(
    ("says", "message"),
    [
        ({"failure": (500, "no memory left")}, "answered 500: .*no memory left"),
        ({"failure": (401, "who are you")}, "rejected the API key .*RAGSTACK_LLM_API_KEY"),
        ({"failure": (404, "no such model")}, f"has no model {MODEL}.*--llm-model"),
        ({"pieces": (), "finish_reason": None}, "stopped in the middle"),
        ({"raw": b"<html></html>"}, "stopped in the middle"),
        ({"raw": b"data: {nonsense\n\n"}, "not OpenAI-compatible: check that --llm-url ends in /v1"),
        ({"raw": b'data: {"choices": 5}\n\n'}, "not OpenAI-compatible"),
        ({"raw": b'data: {"choices": [{}]}\n\n'}, "not OpenAI-compatible|stopped in the middle"),
    ],
)
def test_a_model_that_fails_is_a_failed_dependency(
    asked_of_model: tuple[Any, str], model: LanguageModel, says: dict[str, Any], message: str, operation: str
) -> None:
    runtime, base = asked_of_model
    model.says(**says)

    with pytest.raises(runtime.exceptions.DependencyFailedException, match=message) as caught:
        getattr(runtime, operation)(**request(base))

    assert model.url in str(caught.value)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 424


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    with running(tmp_path, llm_url="http://127.0.0.1:9/v1") as url:
        base = fill(Bedrock.at(url)).knowledge_base_id

        with pytest.raises(ClientError, match=r"http://127\.0\.0\.1:9/v1 cannot be reached: start it"):
            client("bedrock-agent-runtime", url).retrieve_and_generate(**request(base))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_of_the_model_server_is_not_followed(model: LanguageModel, status: int) -> None:
    model.says()
    before = len(model.asked)
    with redirecting_server(model.url.removesuffix("/v1"), status) as url:
        generator = ForwardingGenerator(f"{url}/v1", MODEL)

        with pytest.raises(GenerationError, match="redirects to another address, which is not followed: set --llm-url"):
            list(generator.generate(Task("Who?", (), (Turn("user", "Who?"),)), Settings()))

    assert len(model.asked) == before


def test_the_list_of_models_is_not_redirected_either(model: LanguageModel) -> None:
    with redirecting_server(model.url.removesuffix("/v1")) as url:
        generator = ForwardingGenerator(f"{url}/v1")

        with pytest.raises(GenerationError, match="is not followed"):
            list(generator.generate(Task("Who?", (), (Turn("user", "Who?"),)), Settings()))


def test_the_model_and_the_key_can_be_chosen(tmp_path: Path, model: LanguageModel) -> None:
    model.says()
    with running(tmp_path, llm_url=model.url, llm_model="large", llm_api_key="k") as url:
        base = fill(Bedrock.at(url)).knowledge_base_id

        client("bedrock-agent-runtime", url).retrieve_and_generate(**request(base))

    assert model.asked[-1]["model"] == "large"
    assert model.keys[-1] == "Bearer k"


@pytest.mark.parametrize("url", ["localhost:11434", "not a url", "ftp://x/v1", "http://", "http://[::1"])
def test_an_address_of_no_server_is_refused_at_the_start(tmp_path: Path, url: str) -> None:
    with pytest.raises(GenerationError, match="is not a URL: write, for example, http://"):
        running(tmp_path, llm_url=url).__enter__()


def test_a_name_that_no_header_can_carry_is_written_with_what_it_can() -> None:
    answering = Answering(ForwardingGenerator("http://x/v1", "größe\nx: y"), Sessions(lambda: 0.0), Parser())

    assert answering.headers() == {"x-ragstack-generator": "gr??e x: y at x"}


def test_a_password_in_the_url_is_never_shown() -> None:
    generator = ForwardingGenerator("http://me:secret@127.0.0.1:1/v1", "a-model")

    with pytest.raises(GenerationError) as caught:
        list(generator.generate(Task("Who?", (), ()), Settings()))

    for shown in (str(caught.value), generator.name, generator.description):
        assert "127.0.0.1:1" in shown
        assert "secret" not in shown
