"""A server that speaks OpenAI's embeddings protocol: OpenAI itself, Ollama, vLLM, llama.cpp and others.

The form is ``openai:URL#MODEL``; for most servers, URL ends in ``/v1``.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from openai import APIConnectionError, APIStatusError, AuthenticationError, OpenAI, OpenAIError

from ragstack_common.embedding.protocol import MODEL_FUSION_WEIGHT, Embedding, EmbeddingClosed, Vectors, unit
from ragstack_common.errors import EmbeddingError

TIMEOUT_SECONDS: Final = 120.0
RETRIES: Final = 4
"""After transient errors (408, 409, 429, 5xx, lost connections), with delays of 0.5 s, doubled each time."""

QUERY_TIMEOUT_SECONDS: Final = 15.0
QUERY_RETRIES: Final = 2
"""A user waits for the answer: AWS's clients time out after a minute."""

TEXTS_IN_CALL: Final = 64
CHARACTERS_IN_TEXT: Final = 24_000
"""OpenAI's limit of 8,191 tokens, at three characters a token."""

LEAST_CHARACTERS: Final = 200
"""If a text of this length is too long, the message means something else."""

PROBE: Final = "A text that shows how long a vector is."

_TOO_LONG: Final = re.compile(
    r"too (long|large)|(maximum|context|sequence|input).{0,40}(length|tokens)|exceed", re.IGNORECASE
)


class OpenAIEmbedding(Embedding):
    """A model of a server.

    Args:
        client: Client of the server.
        model: The server's name for it.

    Raises:
        EmbeddingError: The server cannot be reached, or rejects the call.
    """

    fusion_weight = MODEL_FUSION_WEIGHT

    def __init__(self, client: OpenAI, model: str) -> None:
        self._client, self._model = client, model
        self._closed = False
        self.name = f"openai:{model}"
        self.description = f"{self.name} at {client.base_url}"
        # No retries: a server that is not running should fail at once.
        found = self._asked(client.with_options(max_retries=0), [PROBE])
        self.dimension = unit(found, rows=1, dimension=None, source=self.description).shape[1]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, up to 64 in a call."""
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for start in range(0, len(texts), TEXTS_IN_CALL):
            if self._closed:
                raise EmbeddingClosed
            batch = [text[:CHARACTERS_IN_TEXT] for text in texts[start : start + TEXTS_IN_CALL]]
            vectors[start : start + len(batch)] = unit(
                list(self._fitting(self._client, batch)),
                rows=len(batch),
                dimension=self.dimension,
                source=self.description,
            )
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Embed a query, with a short timeout."""
        client = self._client.with_options(timeout=QUERY_TIMEOUT_SECONDS, max_retries=QUERY_RETRIES)
        found = list(self._fitting(client, [text[:CHARACTERS_IN_TEXT]]))
        (vector,) = unit(found, rows=1, dimension=self.dimension, source=self.description)
        return np.asarray(vector)

    def close(self) -> None:
        """Stop after the call in progress."""
        self._closed = True

    def _fitting(self, client: OpenAI, texts: Sequence[str]) -> Iterator[list[float]]:
        """Embed texts; halve each text that is too long until it fits. One such text fails a whole call."""
        try:
            yield from self._asked(client, texts)
        except _TextTooLongError as error:
            if len(texts) > 1:
                for text in texts:
                    yield from self._fitting(client, [text])
            elif len(texts[0]) > LEAST_CHARACTERS:
                yield from self._fitting(client, [texts[0][: len(texts[0]) // 2]])
            else:
                raise EmbeddingError(str(error)) from error

    def _asked(self, client: OpenAI, texts: Sequence[str]) -> list[list[float]]:
        try:
            answer = client.embeddings.create(model=self._model, input=list(texts), encoding_format="float")
            return [entry.embedding for entry in sorted(answer.data, key=lambda entry: entry.index)]
        except OpenAIError as error:
            raise _explained(error, self.description) from error
        except (AttributeError, TypeError, ValueError) as error:
            raise EmbeddingError(
                f"{self.description} did not answer with embeddings: check the URL, which ends in /v1 for most servers"
            ) from error


class _TextTooLongError(EmbeddingError):
    pass


def load(address: str, api_key: str | None) -> OpenAIEmbedding:
    """Connect to a server.

    Args:
        address: ``URL#MODEL``; ``#MODEL`` is optional if the server has one model.
        api_key: For a server with authentication.

    Raises:
        EmbeddingError: The server cannot be reached, rejects the call, or has several models.
    """
    url, _, model = address.partition("#")
    if not url.startswith(("http://", "https://")):
        raise EmbeddingError(f"{url!r} is not the URL of a server: write openai:http://127.0.0.1:11434/v1#MODEL")
    client = OpenAI(base_url=url, api_key=api_key or "none", timeout=TIMEOUT_SECONDS, max_retries=RETRIES)
    return OpenAIEmbedding(client, model or _only_model(client))


def _only_model(client: OpenAI) -> str:
    try:
        models = [model.id for model in client.with_options(max_retries=0).models.list()]
    except OpenAIError as error:
        raise _explained(error, f"The server at {client.base_url}") from error
    if len(models) != 1:
        raise EmbeddingError(
            f"The server at {client.base_url} has the models {', '.join(models) or 'none'}: choose the one that embeds"
            " texts by writing openai:URL#MODEL"
        )
    return models[0]


def _explained(error: OpenAIError, source: str) -> EmbeddingError:
    if isinstance(error, AuthenticationError):
        return EmbeddingError(f"{source} needs a key: set RAGSTACK_EMBEDDING_API_KEY")
    if isinstance(error, APIConnectionError):
        return EmbeddingError(f"{source} cannot be reached: start that server, or choose another --embedding")
    if isinstance(error, APIStatusError):
        said = error.response.text.strip()[:300] or error.response.reason_phrase
        refused = f"{source} answered with status {error.status_code}: {said}"
        return _TextTooLongError(refused) if _TOO_LONG.search(said) else EmbeddingError(refused)
    return EmbeddingError(f"{source} failed: {error}")
