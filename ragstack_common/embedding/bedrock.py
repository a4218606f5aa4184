"""An embedding model of Amazon Bedrock, through boto3 with its usual settings.

``AWS_ENDPOINT_URL`` is ignored: the service there may have no models. Use ``AWS_ENDPOINT_URL_BEDROCK_RUNTIME``.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.core.aws_errors import Meaning, meaning, public_reason
from ragstack_common.core.errors import EmbeddingError
from ragstack_common.embedding.protocol import ModelEmbedding
from ragstack_common.settings.names import EMBEDDING_HEADER

CALLS_AT_ONCE: Final = 8

SERVED: Final = "@"
"""Separates the model's name from the embedding that a local Bedrock runs in its place."""

MIN_CHARACTERS: Final = 200
"""If a text of this length is too long, the message means something else."""

_MEANINGS: Final[Mapping[str, Meaning]] = {
    "AccessDeniedException": (
        EmbeddingError,
        "allow bedrock:InvokeModel; a model of AWS Marketplace also needs an agreement of the account",
    ),
    "ResourceNotFoundException": (EmbeddingError, "check that this Region has the model"),
    "ValidationException": (EmbeddingError, "check that this Region has the model"),
}
_TOO_LONG: Final = re.compile(r"too many input tokens|maxLength|too long|exceed", re.IGNORECASE)


@dataclass(frozen=True)
class _Shape:
    """Request and response of a family of models; the flag of *body* says whether the texts are queries."""

    texts_in_call: int
    characters_in_text: int
    body: Callable[[Sequence[str], bool], Mapping[str, Any]]
    vectors: Callable[[Mapping[str, Any]], Any]


def _cohere_body(texts: Sequence[str], is_query: bool) -> Mapping[str, Any]:
    return {"texts": list(texts), "input_type": "search_query" if is_query else "search_document", "truncate": "END"}


def _cohere_vectors(answer: Mapping[str, Any]) -> Any:
    found = answer.get("embeddings")
    return found.get("float") if isinstance(found, Mapping) else found


# Source: Amazon Bedrock User Guide, "Inference request parameters": Titan Text Embeddings, Cohere Embed v3 and v4.
# Titan rejects more than 8,192 tokens: 24,000 characters at three each, and fewer in some scripts.
_SHAPES: Final[Mapping[str, _Shape]] = {
    "amazon.titan-embed-text-v1": _Shape(
        1, 24_000, lambda texts, _: {"inputText": texts[0]}, lambda answer: [answer.get("embedding")]
    ),
    "amazon.titan-embed-text-v2": _Shape(
        1, 24_000, lambda texts, _: {"inputText": texts[0], "normalize": True}, lambda answer: [answer.get("embedding")]
    ),
    "cohere.embed-english-v3": _Shape(96, 2_048, _cohere_body, _cohere_vectors),
    "cohere.embed-multilingual-v3": _Shape(96, 2_048, _cohere_body, _cohere_vectors),
    "cohere.embed-v4": _Shape(
        96,
        100_000,
        lambda texts, is_query: {**_cohere_body(texts, is_query), "truncate": "RIGHT", "embedding_types": ["float"]},
        _cohere_vectors,
    ),
}


class BedrockEmbedding(ModelEmbedding):
    """A model of Amazon Bedrock.

    Args:
        model: Identifier of a model or an inference profile, or its ARN.
        client: A ``bedrock-runtime`` client; by default made from boto3's settings.
    """

    def __init__(self, model: str, client: Any = None) -> None:
        self._model = model
        self._shape = _shape(model)
        self._client = client or _client()
        self.texts_in_call = self._shape.texts_in_call
        self._served: str | None = None
        super().__init__(f"bedrock:{model}", f"bedrock:{model} at {self._client.meta.endpoint_url}", CALLS_AT_ONCE)
        self.name += self._served or ""

    def _vectors(self, texts: Sequence[str], *, is_query: bool) -> Any:
        longest = min(self._shape.characters_in_text, max(map(len, texts)))
        while True:
            body = self._shape.body([text[:longest] for text in texts], is_query)
            try:
                answer = self._client.invoke_model(
                    modelId=self._model,
                    body=json.dumps(body),
                    contentType="application/json",
                    accept="application/json",
                )
                self._check_server(answer)
                return self._shape.vectors(json.loads(answer["body"].read()))
            except (ClientError, BotoCoreError) as error:
                if longest <= MIN_CHARACTERS or not _is_too_long(error):
                    raise _explained(error, f"The model {self._model}") from error
                longest //= 2

    def _check_server(self, answer: Mapping[str, Any]) -> None:
        """Check and record which embedding a local Bedrock runs under the model's name; Amazon Bedrock sends none."""
        headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        served = f"{SERVED}{headers[EMBEDDING_HEADER]}" if EMBEDDING_HEADER in headers else ""
        if self._served not in (None, served):
            raise EmbeddingError(
                f"{self.description} has another embedding than before ({served.removeprefix(SERVED) or 'its own'}): "
                "its vectors do not fit the earlier ones, so embed all texts again"
            )
        self._served = served


def _shape(model: str) -> _Shape:
    for family, shape in _SHAPES.items():
        if family in model:
            return shape
    raise EmbeddingError(f"The model {model} is not supported: choose one of {', '.join(_SHAPES)}")


def _client() -> Any:
    session: Any = boto3.Session()
    settings: dict[str, Any] = {
        "retries": {"mode": "standard", "total_max_attempts": 8},
        "connect_timeout": 5,
        "read_timeout": 60,
        "max_pool_connections": 2 * CALLS_AT_ONCE,
        "ignore_configured_endpoint_urls": "AWS_ENDPOINT_URL_BEDROCK_RUNTIME" not in os.environ,
    }
    try:
        return session.client("bedrock-runtime", config=Config(**settings))
    except BotoCoreError as error:
        raise _explained(error, "Amazon Bedrock") from error


def _is_too_long(error: Exception) -> bool:
    return (
        isinstance(error, ClientError)
        and error.response["Error"]["Code"] == "ValidationException"
        and _TOO_LONG.search(str(error)) is not None
    )


def _explained(error: Exception, subject: str) -> EmbeddingError:
    _, advice = meaning(error, _MEANINGS)
    return EmbeddingError(f"{subject} cannot be used ({public_reason(error)}): {advice}, or use --embedding hashed")
