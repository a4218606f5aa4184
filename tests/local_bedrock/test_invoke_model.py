import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from botocore.exceptions import ClientError

from local_bedrock.server import running
from tests.local_bedrock.support import Bedrock, client

V1 = "amazon.titan-embed-text-v1"
V2 = "amazon.titan-embed-text-v2:0"
ARN = f"arn:aws:bedrock:us-east-1::foundation-model/{V2}"


@pytest.fixture(scope="module")
def runtime(bedrock: Bedrock) -> Any:
    return client("bedrock-runtime", bedrock.url)


def embedded(runtime: Any, model: str = V2, **body: Any) -> dict[str, Any]:
    answer = runtime.invoke_model(modelId=model, body=json.dumps(body))
    return dict(json.load(answer["body"]))


@pytest.mark.parametrize("model", [V2, ARN])
def test_a_text_is_embedded_in_the_form_of_titan(runtime: Any, model: str) -> None:
    answer = embedded(runtime, model, inputText="Herons eat fish.")

    assert answer.keys() == {"embedding", "embeddingsByType", "inputTextTokenCount"}
    assert answer["embeddingsByType"] == {"float": answer["embedding"]}
    assert answer["inputTextTokenCount"] == 4
    assert len(answer["embedding"]) == 1024
    assert np.linalg.norm(answer["embedding"]) == pytest.approx(1, abs=1e-5)


def test_a_vector_has_the_requested_dimensions_and_types(runtime: Any) -> None:
    both = embedded(runtime, inputText="Herons eat fish.", dimensions=256, embeddingTypes=["float", "binary"])
    binary = embedded(runtime, inputText="Herons eat fish.", dimensions=256, embeddingTypes=["binary"])

    signs = [int(value > 0) for value in both["embedding"]]
    assert len(signs) == 256
    assert both["embeddingsByType"] == {"float": both["embedding"], "binary": signs}
    assert "embedding" not in binary
    assert binary["embeddingsByType"] == {"binary": signs}


def test_the_first_version_has_one_form(runtime: Any) -> None:
    answer = embedded(runtime, V1, inputText="Herons eat fish.")

    assert answer.keys() == {"embedding", "inputTextTokenCount"}
    assert len(answer["embedding"]) == 1536


def test_the_embedding_is_named_in_a_header(runtime: Any) -> None:
    answer = runtime.invoke_model(modelId=V2, body='{"inputText": "x"}')

    headers = answer["ResponseMetadata"]["HTTPHeaders"]
    assert headers["x-ragstack-embedding"] == "hashed"
    assert headers["x-amzn-bedrock-input-token-count"] == "1"
    assert answer["contentType"] == "application/json"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("{", "#/: Invalid JSON"),
        ("[]", "#/: "),
        ("{}", "#/inputText: Field required"),
        ('{"inputText": 1}', "#/inputText: Input should be a valid string"),
        ('{"inputText": ""}', "#/inputText: .* at least 1 character"),
        (json.dumps({"inputText": "x" * 50_001}), "#/inputText: .* at most 50000 characters"),
        ('{"inputText": "x", "texts": []}', "#/texts: Extra inputs"),
        ('{"inputText": "x", "dimensions": 300}', "#/dimensions: Input should be 1024, 512 or 256"),
        ('{"inputText": "x", "normalize": "yes"}', "#/normalize: Input should be a valid boolean"),
        ('{"inputText": "x", "embeddingTypes": ["int8"]}', "#/embeddingTypes/0: Input should be 'float' or 'binary'"),
        ('{"inputText": "x", "embeddingTypes": []}', "#/embeddingTypes: .* at least 1 item"),
    ],
)
def test_a_malformed_body_is_refused_by_the_name_of_its_mistake(runtime: Any, body: str, place: str) -> None:
    with pytest.raises(runtime.exceptions.ValidationException, match=rf"Malformed input request: {place}.*, please"):
        runtime.invoke_model(modelId=V2, body=body)


def test_too_many_tokens_are_refused(runtime: Any) -> None:
    with pytest.raises(runtime.exceptions.ValidationException, match=r"Max input tokens: 8192, request .* count: 8193"):
        embedded(runtime, inputText="abcd" * 8_193)


@pytest.mark.parametrize(
    "model", ["anthropic.claude-3-haiku-20240307-v1:0", "cohere.embed-english-v3", "amazon.titan-embed-text-v2"]
)
def test_any_other_model_is_refused_by_name(runtime: Any, model: str) -> None:
    with pytest.raises(runtime.exceptions.ValidationException, match=f"not for {model}: use Converse"):
        embedded(runtime, model, inputText="x")


@pytest.mark.parametrize(
    "more",
    [
        {"contentType": "text/plain"},
        {"accept": "image/png"},
        {"guardrailIdentifier": "abc", "guardrailVersion": "1"},
        {"performanceConfigLatency": "optimized"},
    ],
)
def test_unsupported_features_are_refused(runtime: Any, more: dict[str, str]) -> None:
    with pytest.raises(runtime.exceptions.ValidationException):
        runtime.invoke_model(modelId=V2, body='{"inputText": "x"}', **more)


@pytest.fixture(scope="module")
def with_a_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = Path(__file__).parents[3] / "shared" / "models" / "all-minilm-l6-v2-int8"
    if not folder.is_dir():
        pytest.skip("the embedding model is not on this machine")
    with running(tmp_path_factory.mktemp("onnx"), embedding=f"onnx:{folder}") as url:
        yield client("bedrock-runtime", url)


def test_an_unsupported_dimension_is_rejected_with_the_right_one(with_a_model: Any) -> None:
    with pytest.raises(ClientError, match="has 384 dimensions, not 256") as caught:
        embedded(with_a_model, inputText="x", dimensions=256)

    assert caught.value.response["Error"]["Code"] == "ValidationException"
