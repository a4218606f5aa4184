import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from local_bedrock.server import running
from local_bedrock.store.vectors import resized
from ragstack_common.embedding import EmbeddingError, embedding_choice
from ragstack_common.embedding.bedrock import BedrockEmbedding
from ragstack_common.settings.model_cache import AUTOMATIC
from tests.local_bedrock.support import Bedrock, client
from tests.support.embedding_models import add_minilm, shared_sentence_model

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
def with_minilm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """As `make setup` leaves a machine: MiniLM is in the cache, and nothing chooses an embedding."""
    folder = tmp_path_factory.mktemp("minilm")
    add_minilm(folder / "cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        with running(folder / "data", embedding=AUTOMATIC) as url:
            yield client("bedrock-runtime", url)


TEXTS = ("Herons eat fish.", "A heron hunts for fish.", "Interest rates rose again.", "The central bank met.")
SIZES = [(V2, {}, 1024), (V2, {"dimensions": 512}, 512), (V2, {"dimensions": 256}, 256), (V1, {}, 1536)]


def cosines(vectors: Any) -> Any:
    made = np.array(vectors)
    return made @ made.T


@pytest.mark.parametrize(("model", "body", "dimension"), SIZES)
def test_titan_has_its_own_dimensions_with_the_default_model(
    with_minilm: Any, model: str, body: dict[str, Any], dimension: int
) -> None:
    vectors = [embedded(with_minilm, model, inputText=text, **body)["embedding"] for text in TEXTS]

    assert {len(vector) for vector in vectors} == {dimension}
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    own = cosines(shared_sentence_model().embed(TEXTS))
    if dimension >= 384:
        assert cosines(vectors) == pytest.approx(own, abs=5e-4)  # of 16 bits
    else:
        assert np.abs(cosines(vectors) - own).max() < 0.2
        assert cosines(vectors)[0, 1] > cosines(vectors)[0, 2:].max()


def test_titan_has_both_types_with_the_default_model(with_minilm: Any) -> None:
    answer = embedded(with_minilm, inputText=TEXTS[0], normalize=False, embeddingTypes=["float", "binary"])

    bits = answer["embeddingsByType"]["binary"]
    assert bits == [int(value > 0) for value in answer["embedding"]]
    assert 100 < sum(bits) < 284


def test_the_header_names_the_default_model(with_minilm: Any) -> None:
    answer = with_minilm.invoke_model(modelId=V2, body='{"inputText": "x"}')

    assert answer["ResponseMetadata"]["HTTPHeaders"]["x-ragstack-embedding"].startswith("onnx:minilm-int8@")


vectors = arrays(np.float32, st.integers(1, 40), elements=st.floats(-1, 1, width=32))


@given(st.lists(st.integers(0, 2**32 - 1), min_size=2, max_size=2), st.integers(1, 40), st.integers(0, 40))
def test_longer_vectors_have_the_same_cosines(seeds: list[int], dimension: int, more: int) -> None:
    first, second = (unit_vector(seed, dimension) for seed in seeds)

    longer = [resized(vector, dimension + more) for vector in (first, second)]

    assert float(longer[0] @ longer[1]) == pytest.approx(float(first @ second), abs=1e-6)


@given(vectors, st.integers(1, 80))
@example(np.array([2e-37], dtype=np.float32), 1)
def test_resized_vectors_have_unit_length_or_are_zero(vector: Any, dimension: int) -> None:
    made = resized(vector, dimension)

    assert made.shape == (dimension,)
    assert np.linalg.norm(made) == pytest.approx(1, abs=1e-4) or not made.any()


def unit_vector(seed: int, dimension: int) -> Any:
    vector = np.random.default_rng(seed).normal(size=dimension).astype(np.float32)
    return vector / np.linalg.norm(vector)


def test_an_embedding_of_the_local_titan_is_named_by_what_made_it(runtime: Any, with_minilm: Any) -> None:
    """So that vectors of two local Bedrocks never come into one index."""
    hashed, minilm = BedrockEmbedding(V2, runtime), BedrockEmbedding(V2, with_minilm)

    assert hashed.name == f"bedrock:{V2}@hashed"
    assert minilm.name.startswith(f"bedrock:{V2}@onnx:minilm-int8@")
    assert {embedding_choice(hashed.name), embedding_choice(minilm.name)} == {f"bedrock:{V2}"}


def test_an_embedding_notices_that_the_local_bedrock_has_another_one(runtime: Any, with_minilm: Any) -> None:
    model = BedrockEmbedding(V2, runtime)
    model._client = with_minilm  # restarted with another embedding

    with pytest.raises(EmbeddingError, match=r"has another embedding than before \(onnx:minilm-int8@"):
        model.embed(["Herons eat fish."])
