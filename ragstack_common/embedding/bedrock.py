"""An embedding model of Amazon Bedrock, through boto3 with its usual settings.

``AWS_ENDPOINT_URL`` is ignored: the service there may have no models. Use ``AWS_ENDPOINT_URL_BEDROCK_RUNTIME``.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import boto3
import numpy as np
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError

from ragstack_common.embedding.protocol import MODEL_FUSION_WEIGHT, Embedding, EmbeddingClosed, Vectors, unit
from ragstack_common.errors import EmbeddingError
from ragstack_common.retrieval_errors import reason_of

OWN_ENDPOINT_VARIABLE: Final = "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"
ATTEMPTS: Final = 8
CALLS_AT_ONCE: Final = 8
LEAST_CHARACTERS: Final = 200
"""If a text of this length is too long, the message means something else."""

PROBE: Final = "A text that shows how long a vector is."


_TOO_LONG: Final = re.compile(r"too many input tokens|maxLength|too long|exceed", re.IGNORECASE)


@dataclass(frozen=True)
class _Shape:
    """Request and response of a family of models.

    Attributes:
        texts_in_call: Maximum number of texts in a call.
        characters_in_text: Longer texts are truncated.
        body: Makes the request; the flag says whether the texts are queries.
        vectors: Returns the vectors of a response.
    """

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


class BedrockEmbedding(Embedding):
    """A model of Amazon Bedrock.

    Args:
        model: Identifier of a model or an inference profile, or its ARN.
        client: A ``bedrock-runtime`` client; by default made from boto3's settings.

    Raises:
        EmbeddingError: The model is not supported, or AWS rejects the call.
    """

    fusion_weight = MODEL_FUSION_WEIGHT

    def __init__(self, model: str, client: Any = None) -> None:
        self._model = model
        self._shape = _shape(model)
        self.name = f"bedrock:{model}"
        self._client = client or _client()
        self.description = f"{self.name} at {self._client.meta.endpoint_url}"
        self._closed = False
        self._threads = ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="embedding")
        found = self._asked([PROBE], is_query=False)
        self.dimension = unit(found, rows=1, dimension=None, source=self.description).shape[1]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, with up to eight calls at once."""
        size = self._shape.texts_in_call
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        try:
            for number, found in enumerate(self._threads.map(self._passages, batches)):
                vectors[number * size : number * size + len(found)] = found
        except (CancelledError, RuntimeError):
            if self._closed:
                raise EmbeddingClosed from None
            raise
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Embed a query."""
        found = self._asked([text], is_query=True)
        (vector,) = unit(found, rows=1, dimension=self.dimension, source=self.description)
        return np.asarray(vector)

    def close(self) -> None:
        """Stop after the calls in progress."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _passages(self, texts: Sequence[str]) -> Vectors:
        found = self._asked(texts, is_query=False)
        return unit(found, rows=len(texts), dimension=self.dimension, source=self.description)

    def _asked(self, texts: Sequence[str], *, is_query: bool) -> Any:
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
                return self._shape.vectors(json.loads(answer["body"].read()))
            except (ClientError, BotoCoreError) as error:
                if longest <= LEAST_CHARACTERS or not _is_too_long(error):
                    raise _explained(error, f"The model {self._model}") from error
                longest //= 2


def _shape(model: str) -> _Shape:
    for family, shape in _SHAPES.items():
        if family in model:
            return shape
    raise EmbeddingError(f"The model {model} is not supported: choose one of {', '.join(_SHAPES)}")


def _client() -> Any:
    session: Any = boto3.Session()
    settings: dict[str, Any] = {
        "retries": {"mode": "standard", "total_max_attempts": ATTEMPTS},
        "connect_timeout": 5,
        "read_timeout": 60,
        "max_pool_connections": 2 * CALLS_AT_ONCE,
        "ignore_configured_endpoint_urls": OWN_ENDPOINT_VARIABLE not in os.environ,
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
    if isinstance(error, NoCredentialsError):
        advice = "log in to AWS (aws login, or AWS_PROFILE)"
    elif isinstance(error, NoRegionError):
        advice = "set AWS_DEFAULT_REGION"
    elif isinstance(error, ClientError) and error.response["Error"]["Code"] == "AccessDeniedException":
        advice = "allow bedrock:InvokeModel, and request access to the model in the Bedrock console"
    elif isinstance(error, ClientError):
        advice = "check that this Region has the model"
    else:
        advice = "check that AWS can be reached"
    return EmbeddingError(f"{subject} cannot be used ({reason_of(error)}): {advice}, or use --embedding hashed")
