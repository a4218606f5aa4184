"""InvokeModel, for the text embedding models of Amazon Titan."""

import json
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from local_bedrock.errors import InvalidRequest, ModelError
from local_bedrock.generation.answers import estimated_tokens
from local_bedrock.operations.context import Answer, Context, Request
from local_bedrock.wire import HeadedAnswer
from ragstack_common.embedding import Embedding, EmbeddingError
from ragstack_common.embedding.hashed import HashedEmbedding

LONGEST_INPUT: Final = 50_000
"""Characters. Source: Amazon Bedrock User Guide, Amazon Titan Text Embeddings models."""

MOST_TOKENS: Final = 8_192
TYPES: Final = ("float", "binary")
INPUT_TOKENS_HEADER: Final = "X-Amzn-Bedrock-Input-Token-Count"
EMBEDDING_HEADER: Final = "x-ragstack-embedding"
_JSON: Final = ("application/json", "*/*")


@dataclass(frozen=True)
class _Model:
    """An embedding model.

    Attributes:
        dimensions: The supported dimensions, the default first.
        members: The members of its requests.
    """

    dimensions: tuple[int, ...]
    members: frozenset[str]


MODELS: Final = {
    "amazon.titan-embed-text-v1": _Model((1536,), frozenset({"inputText"})),
    "amazon.titan-embed-text-v2:0": _Model(
        (1024, 512, 256), frozenset({"inputText", "dimensions", "normalize", "embeddingTypes"})
    ),
}


def invoke_model(context: Context, request: Request) -> Answer:
    """Embed a text with the local Bedrock's embedding, in the format of a Titan model."""
    model_id: str = request["modelId"]
    name = model_id.rpartition("/")[2] if model_id.startswith("arn:") else model_id
    model = MODELS.get(name)
    if model is None:
        raise InvalidRequest(
            f"The provided model identifier is invalid. The local Bedrock supports InvokeModel for"
            f" {' and '.join(MODELS)}, not for {name}: use Converse for text models"
        )
    _refuse_other_settings(request)
    body = _body(request.get("body", b""), model)
    tokens = estimated_tokens(body["inputText"])
    if tokens > MOST_TOKENS:
        raise InvalidRequest(
            f"400 Bad Request: Too many input tokens. Max input tokens: {MOST_TOKENS}, request input token count:"
            f" {tokens} "
        )
    embedding = _embedding(context.embedding, body.get("dimensions", model.dimensions[0]))
    try:
        vector = embedding.embed([body["inputText"]])[0]
    except EmbeddingError as error:
        raise ModelError(str(error)) from error
    answer = json.dumps({**_written(vector, body, name), "inputTextTokenCount": tokens})
    headers = {EMBEDDING_HEADER: embedding.name, INPUT_TOKENS_HEADER: str(tokens)}
    return HeadedAnswer({"body": answer.encode(), "contentType": "application/json"}, headers)


def _refuse_other_settings(request: Request) -> None:
    for name in ("guardrailIdentifier", "guardrailVersion"):
        if name in request:
            raise InvalidRequest(f"The local Bedrock does not support guardrails: omit {name}")
    if request.get("performanceConfigLatency") == "optimized":
        raise InvalidRequest("The local Bedrock does not support optimized latency: omit performanceConfigLatency")
    for name in ("contentType", "accept"):
        given = request.get(name, "*/*").split(";")[0].strip().lower()
        if given not in _JSON:
            raise InvalidRequest(f"The model supports application/json only, not the {name} {given}")


def _body(data: bytes, model: _Model) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise _malformed("the body is not JSON") from None
    if not isinstance(body, dict):
        raise _malformed(f"expected type: JSONObject, found: {_kind(body)}")
    if "inputText" not in body:
        raise _malformed("#: required key [inputText] not found")
    for name in sorted(body.keys() - model.members):
        raise _malformed(f"#: extraneous key [{name}] is not permitted")
    _check_text(body["inputText"])
    _check_form(body, model)
    return body


def _check_text(text: Any) -> None:
    if not isinstance(text, str):
        raise _malformed(f"#/inputText: expected type: String, found: {_kind(text)}")
    if not text:
        raise _malformed("expected minLength: 1, actual: 0")
    if len(text) > LONGEST_INPUT:
        raise _malformed(f"expected maxLength: {LONGEST_INPUT}, actual: {len(text)}")


def _check_form(body: dict[str, Any], model: _Model) -> None:
    dimensions = body.get("dimensions", model.dimensions[0])
    if isinstance(dimensions, bool) or dimensions not in model.dimensions:
        raise _malformed(f"#/dimensions: {dimensions} is not a valid enum value")
    if not isinstance(body.get("normalize", True), bool):
        raise _malformed(f"#/normalize: expected type: Boolean, found: {_kind(body['normalize'])}")
    types = body.get("embeddingTypes", ["float"])
    if not isinstance(types, list) or not types or any(kind not in TYPES for kind in types):
        raise _malformed(f"#/embeddingTypes: {types} is not a list of {' and '.join(TYPES)}")


def _malformed(why: str) -> InvalidRequest:
    return InvalidRequest(f"Malformed input request: {why}, please reformat your input and try again.")


def _kind(value: Any) -> str:
    names = {bool: "Boolean", int: "Integer", float: "Double", list: "JSONArray", dict: "JSONObject", str: "String"}
    return names.get(type(value), "Null")


def _embedding(own: Embedding, dimension: int) -> Embedding:
    if own.dimension == dimension:
        return own
    if own.name == HashedEmbedding.name:
        return HashedEmbedding(dimension)
    raise InvalidRequest(
        f"The embedding {own.name} of this local Bedrock has {own.dimension} dimensions, not {dimension}:"
        f" request {own.dimension}, or start it with --embedding hashed, which supports any number"
    )


def _written(vector: npt.NDArray[np.float32], body: dict[str, Any], model: str) -> Answer:
    # Every embedding has unit length, so normalize makes no difference.
    floats = [float(value) for value in vector]
    if model == "amazon.titan-embed-text-v1":
        return {"embedding": floats}
    by_type: dict[str, list[Any]] = {}
    types = body.get("embeddingTypes", ["float"])
    if "float" in types:
        by_type["float"] = floats
    if "binary" in types:
        by_type["binary"] = [int(value > 0) for value in floats]
    return {**({"embedding": floats} if "float" in types else {}), "embeddingsByType": by_type}
