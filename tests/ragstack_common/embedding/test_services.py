"""Embeddings of other services: OpenAI's protocol, Amazon Bedrock, and the hub that fastembed downloads from."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from botocore.response import StreamingBody
from botocore.stub import Stubber

from local_bedrock.server import running
from ragstack_common import embedding
from ragstack_common.embedding import EmbeddingClosed, EmbeddingError
from ragstack_common.embedding import bedrock as bedrock_module
from ragstack_common.embedding.bedrock import BedrockEmbedding
from tests.local_bedrock.support import Bedrock, client
from tests.support.embedding_models import embedding_server, make_model_folder
from tests.support.redirecting_server import redirecting_server

TITAN = "amazon.titan-embed-text-v2:0"


@pytest.fixture(scope="module")
def bedrock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bedrock]:
    with running(tmp_path_factory.mktemp("bedrock")) as url:
        yield Bedrock.at(url)


def invoked(answer: Any) -> dict[str, Any]:
    data = json.dumps(answer).encode()
    body = StreamingBody(io.BytesIO(data), len(data))
    return {"body": body, "contentType": "application/json"}


def sent_bodies(runtime: Any) -> list[Any]:
    """Record the bodies of later requests."""
    sent: list[Any] = []
    runtime.meta.events.register("before-parameter-build", lambda params, **_: sent.append(json.loads(params["body"])))
    return sent


def test_a_server_embeds_in_order_and_its_vectors_are_scaled() -> None:
    with embedding_server() as server:
        model = embedding.load(f"openai:{server.url}#embedder")
        texts = ["x" * (number + 1) for number in range(150)]

        found = model.embed(texts)

    assert (model.name, model.dimension) == ("openai:embedder", 3)
    assert model.description == f"openai:embedder at {server.url}/"
    assert np.allclose(np.linalg.norm(found, axis=1), 1)
    assert np.allclose(found[:, 0] / found[:, 1], np.arange(1, 151))
    assert sorted(len(call) for call in server.calls) == [1, 22, 64, 64]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_transient_errors_are_retried(status: int) -> None:
    with embedding_server() as server:
        model = embedding.load(f"openai:{server.url}#embedder")
        server.failures += [status] * 3

        found = model.embed(["heron"])

    assert found.shape == (1, 3)


def test_a_text_that_is_too_long_is_halved_until_it_fits() -> None:
    with embedding_server(longest=1000) as server:
        model = embedding.load(f"openai:{server.url}#embedder")

        found = model.embed(["x" * 3000, "y"])

    assert found[0, 0] / found[0, 1] == pytest.approx(750)
    assert found[1, 0] / found[1, 1] == pytest.approx(1)


def test_the_api_key_of_the_environment_is_sent() -> None:
    with embedding_server(key="secret") as server:
        model = embedding.load(f"openai:{server.url}#embedder", None, {"RAGSTACK_EMBEDDING_API_KEY": "secret"})
        with pytest.raises(EmbeddingError, match="needs a key: set RAGSTACK_EMBEDDING_API_KEY"):
            embedding.load(f"openai:{server.url}#embedder", None, {})

    assert "secret" not in model.description


def test_the_description_of_a_server_has_no_password() -> None:
    with embedding_server() as server:
        model = embedding.load(f"openai:{server.url.replace('://', '://user:pa55word@')}#embedder")

    assert model.description == f"openai:embedder at {server.url}/"


def test_a_key_is_not_sent_unencrypted_to_another_machine() -> None:
    with pytest.raises(EmbeddingError, match=r"^http://gpu.example/v1 is not encrypted, so no API key is sent to it"):
        embedding.load("openai:http://gpu.example/v1#m", environment={"RAGSTACK_EMBEDDING_API_KEY": "secret"})


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ("openai:{url}#other", "answered with status 404: .*model other not found"),
        ("openai:http://127.0.0.1:9/v1#m", "cannot be reached: start that server, or choose another --embedding"),
        ("openai:127.0.0.1:9", "is not URL#MODEL: write for example openai:http"),
    ],
)
def test_an_unusable_server_is_an_error_at_once(choice: str, words: str) -> None:
    with embedding_server() as server, pytest.raises(EmbeddingError, match=words):
        embedding.load(choice.format(url=server.url))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_of_the_embedding_server_is_not_followed(status: int) -> None:
    with embedding_server() as server, redirecting_server(server.url.removesuffix("/v1"), status) as url:
        with pytest.raises(EmbeddingError, match="redirects to another address, which is not followed"):
            embedding.load(f"openai:{url}/v1#embedder")

        assert server.calls == []


def test_an_answer_without_embeddings_is_an_error() -> None:
    with embedding_server() as server:
        model = embedding.load(f"openai:{server.url}#embedder")
        server.failures.append(200)

        with pytest.raises(EmbeddingError, match="did not answer with embeddings: check the URL"):
            model.embed(["heron"])


def test_a_server_whose_model_changes_is_an_error() -> None:
    with embedding_server() as server:
        model = embedding.load(f"openai:{server.url}#embedder")
        server.dimension = 5

        with pytest.raises(EmbeddingError, match="5 dimensions where it returned 3 before"):
            model.embed(["heron"])


def test_a_titan_model_embeds(bedrock: Bedrock) -> None:
    model = BedrockEmbedding(TITAN, client("bedrock-runtime", bedrock.url))
    texts = [f"Bird number {number} stands in the water." for number in range(20)]

    found = model.embed(texts)

    assert (model.name, model.dimension) == (f"bedrock:{TITAN}@hashed", 1024)
    assert np.allclose(found, embedding.HashedEmbedding().embed(texts), atol=1e-6)
    assert np.allclose(model.embed_query(texts[3]), found[3])
    model.close()
    with pytest.raises(EmbeddingClosed):
        model.embed(texts)


def test_a_text_that_is_too_long_for_titan_is_halved() -> None:
    runtime = client("bedrock-runtime", "http://127.0.0.1:9")
    sent = sent_bodies(runtime)
    with Stubber(runtime) as stub:
        stub.add_response("invoke_model", invoked({"embedding": [3.0, 4.0]}))
        for _ in range(2):
            message = "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 24000"
            stub.add_client_error("invoke_model", "ValidationException", message)
        stub.add_response("invoke_model", invoked({"embedding": [3.0, 4.0]}))
        model = BedrockEmbedding(TITAN, runtime)

        found = model.embed(["東京" * 20_000])

    assert np.allclose(found, [[0.6, 0.8]])
    assert [len(body["inputText"]) for body in sent[1:]] == [24_000, 12_000, 6_000]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("cohere.embed-english-v3", {"embeddings": [[3.0, 4.0]]}),
        ("us.cohere.embed-v4:0", {"embeddings": {"float": [[3.0, 4.0]]}}),
    ],
)
def test_a_cohere_model_distinguishes_queries_and_passages(name: str, answer: Any) -> None:
    runtime = client("bedrock-runtime", "http://127.0.0.1:9")
    sent = sent_bodies(runtime)
    with Stubber(runtime) as stub:
        for _ in range(3):
            stub.add_response("invoke_model", invoked(answer))
        model = BedrockEmbedding(name, runtime)

        passage, query = model.embed(["x" * 3000])[0], model.embed_query("heron")

    assert np.allclose(passage, [0.6, 0.8])
    assert np.allclose(query, [0.6, 0.8])
    assert [request["input_type"] for request in sent] == ["search_document", "search_document", "search_query"]
    assert len(sent[1]["texts"][0]) == (2048 if name.endswith("v3") else 3000)
    assert sent[1]["truncate"] == ("END" if name.endswith("v3") else "RIGHT")


def test_the_endpoint_of_a_local_stack_is_ignored(bedrock: Bedrock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")

    elsewhere = bedrock_module._client().meta.endpoint_url
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", bedrock.url)
    model = embedding.load(f"bedrock:{TITAN}")

    assert elsewhere == "https://bedrock-runtime.us-east-1.amazonaws.com"
    assert model.description == f"bedrock:{TITAN} at {bedrock.url}"
    model.close()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("AccessDeniedException", "allow bedrock:InvokeModel; .* needs an agreement"),
        ("ValidationException", "check that this Region has the model"),
    ],
)
def test_an_error_of_bedrock_says_what_to_do(code: str, words: str) -> None:
    runtime = client("bedrock-runtime", "http://127.0.0.1:9")
    with Stubber(runtime) as stub:
        stub.add_client_error("invoke_model", code, "No.")

        with pytest.raises(EmbeddingError, match=words):
            BedrockEmbedding(TITAN, runtime)


def test_a_failed_download_is_an_error_with_the_alternatives(tmp_path: Path) -> None:
    pytest.importorskip("fastembed", reason="needs ragstack-kb[semantic]")
    program = (
        "from ragstack_common import embedding\n"
        "try:\n    embedding.load('fastembed')\n"
        "except embedding.EmbeddingError as error:\n    print(error)"
    )
    environment = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "FASTEMBED_CACHE_PATH": str(tmp_path)}

    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60, check=True
    )

    assert ended.stdout.startswith(f"The model BAAI/bge-small-en-v1.5 is not in {tmp_path} and cannot be downloaded")
    assert "Start once with access to huggingface.co" in ended.stdout
    assert "--embedding onnx:FOLDER" in ended.stdout
    assert "--embedding hashed" in ended.stdout
    assert ended.stderr == ""


def test_a_model_of_fastembed_embeds(tmp_path: Path) -> None:
    fastembed = pytest.importorskip("fastembed", reason="needs ragstack-kb[semantic]")
    from fastembed.common.model_description import ModelSource, PoolingType  # noqa: PLC0415 - an extra

    from ragstack_common.embedding.fastembed import FastEmbedding  # noqa: PLC0415 - as the test above it

    configurations = {
        "config.json": {"pad_token_id": 2},
        "tokenizer_config.json": {"model_max_length": 8, "pad_token": "[UNK]"},
        "special_tokens_map.json": {"unk_token": "[UNK]"},
    }
    folder = make_model_folder(tmp_path, configurations=configurations)
    if not any(known["model"] == "test/birds" for known in fastembed.TextEmbedding.list_supported_models()):
        fastembed.TextEmbedding.add_custom_model(
            "test/birds",
            pooling=PoolingType.MEAN,
            normalization=True,
            sources=ModelSource(hf="test/birds"),
            dim=6,
            model_file="model.onnx",
        )
    model = FastEmbedding(fastembed.TextEmbedding("test/birds", specific_model_path=str(folder)))

    found = model.embed(["heron heron", "bridge"])

    assert (model.name, model.dimension) == ("fastembed:test/birds", 6)
    assert np.allclose(found[0], np.array([1, 1, 0, 2, 0, 0]) / 6**0.5, atol=1e-6)
    assert np.allclose(model.embed_query("bridge"), found[1], atol=1e-6)
    model.close()
    with pytest.raises(EmbeddingClosed):
        model.embed(["heron"])
