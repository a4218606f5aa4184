"""A server that speaks OpenAI's embeddings protocol: OpenAI itself, Ollama, vLLM, llama.cpp and others.

The form is ``openai:URL#MODEL``; for most servers, URL ends in ``/v1``.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from openai import (
    APIConnectionError,
    APIStatusError,
    AuthenticationError,
    DefaultHttpxClient,
    OpenAI,
    OpenAIError,
)

from ragstack_common.core.addresses import keeps_secrets
from ragstack_common.core.errors import EmbeddingError
from ragstack_common.embedding.protocol import ModelEmbedding

CALLS_AT_ONCE: Final = 2
CHARACTERS_IN_TEXT: Final = 24_000
"""OpenAI's limit of 8,191 tokens, at three characters a token."""

MIN_CHARACTERS: Final = 200
"""If a text of this length is too long, the message means something else."""

_TOO_LONG: Final = re.compile(
    r"too (long|large)|(maximum|context|sequence|input).{0,40}(length|tokens)|exceed", re.IGNORECASE
)


class OpenAIEmbedding(ModelEmbedding):
    """A model of a server."""

    texts_in_call = 64

    def __init__(self, client: OpenAI, model: str) -> None:
        self._client, self._model = client.with_options(max_retries=0), model
        address = client.base_url.copy_with(userinfo=b"")  # messages and manifests have no password
        super().__init__(f"openai:{model}", f"openai:{model} at {address}", CALLS_AT_ONCE)
        self._client = client  # the first call had no retries: a server that is not running should fail at once

    def _vectors(self, texts: Sequence[str], *, is_query: bool) -> list[list[float]]:
        client = self._client
        if is_query:
            # A user waits for the answer: AWS's clients time out after a minute.
            client = client.with_options(timeout=15.0, max_retries=2)
        return list(self._fitting(client, [text[:CHARACTERS_IN_TEXT] for text in texts]))

    def _fitting(self, client: OpenAI, texts: Sequence[str]) -> Iterator[list[float]]:
        """Embed texts; halve each text that is too long until it fits. One such text fails a whole call."""
        try:
            yield from self._request(client, texts)
        except _TextTooLongError as error:
            if len(texts) > 1:
                for text in texts:
                    yield from self._fitting(client, [text])
            elif len(texts[0]) > MIN_CHARACTERS:
                yield from self._fitting(client, [texts[0][: len(texts[0]) // 2]])
            else:
                raise EmbeddingError(str(error)) from error

    def _request(self, client: OpenAI, texts: Sequence[str]) -> list[list[float]]:
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
    """Connect to the server of ``URL#MODEL``."""
    url, _, model = address.partition("#")
    if not url.startswith(("http://", "https://")) or not model:
        raise EmbeddingError(f"{address!r} is not URL#MODEL: write for example openai:http://127.0.0.1:11434/v1#MODEL")
    if api_key and not keeps_secrets(url):
        raise EmbeddingError(f"{url} is not encrypted, so no API key is sent to it: use https, or unset the key")
    client = OpenAI(
        base_url=url,
        api_key=api_key or "none",
        timeout=120.0,
        max_retries=4,  # after transient errors (408, 409, 429, 5xx, lost connections), from 0.5 s on, doubled
        # A redirect would send the documents to another host.
        http_client=DefaultHttpxClient(follow_redirects=False),
    )
    return OpenAIEmbedding(client, model)


def _explained(error: OpenAIError, source: str) -> EmbeddingError:
    if isinstance(error, AuthenticationError):
        return EmbeddingError(f"{source} needs a key: set RAGSTACK_EMBEDDING_API_KEY")
    if isinstance(error, APIConnectionError):
        return EmbeddingError(f"{source} cannot be reached: start that server, or choose another --embedding")
    if isinstance(error, APIStatusError) and error.response.is_redirect:
        return EmbeddingError(
            f"{source} redirects to another address, which is not followed: choose the address that answers"
        )
    if isinstance(error, APIStatusError):
        said = error.response.text.strip()[:300] or error.response.reason_phrase
        refused = f"{source} answered with status {error.status_code}: {said}"
        return _TextTooLongError(refused) if _TOO_LONG.search(said) else EmbeddingError(refused)
    return EmbeddingError(f"{source} failed: {error}")
