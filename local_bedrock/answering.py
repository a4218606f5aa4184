"""Shared parts of the operations that write answers: the provider, the sessions, and a parser."""

import asyncio
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import aclosing
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Final

from cachetools import TTLCache

from local_bedrock.http.connections import when_gone
from local_bedrock.http.errors import ServiceError, Throttled
from local_bedrock.http.wire import header_value
from local_bedrock.options import Options
from local_bedrock.reading.parsing import Parser
from ragstack_common.answers.models.protocol import (
    ModelMessage,
    ModelPiece,
    ModelProvider,
    ModelRequest,
    NumberedPassage,
)
from ragstack_common.answers.quote.extractive import ExtractiveProvider
from ragstack_common.core.deadline import begin
from ragstack_common.core.errors import GenerationError, ModelThrottledError
from ragstack_common.search import RetrievedChunk
from ragstack_common.settings.names import GENERATOR_HEADER

LIFETIME_SECONDS: Final = 24 * 3600.0
"""Life of a session after its last question: a guess, because AWS publishes no figure."""

MAX_SESSIONS: Final = 1_000
MAX_TURNS: Final = 20

MAX_WAITING: Final = 16
"""Pieces that wait for their reader before the model is made to wait."""


class Sessions:
    """The last conversations, in memory."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._lock = threading.Lock()
        self._turns: TTLCache[str, tuple[ModelMessage, ...]] = TTLCache(MAX_SESSIONS, LIFETIME_SECONDS, timer=clock)

    def begin(self) -> str:
        """Start a session and return its id."""
        session_id = str(uuid.uuid4())
        self.remember(session_id)
        return session_id

    def turns(self, session_id: str) -> tuple[ModelMessage, ...] | None:
        """Return the turns of a session; None if it is unknown or expired."""
        with self._lock:
            return self._turns.get(session_id)

    def remember(self, session_id: str, *turns: ModelMessage) -> None:
        """Add turns to a session, and extend its life."""
        with self._lock:
            self._turns[session_id] = (*self._turns.get(session_id, ()), *turns)[-MAX_TURNS:]


@dataclass(frozen=True)
class Answering:
    """The provider, the sessions, and a parser for the documents of requests.

    Attributes:
        parser: Separate from that of the ingestion, so that answers don't wait for files that are being indexed.
    """

    provider: ModelProvider
    sessions: Sessions
    parser: Parser

    @property
    def description(self) -> str:
        """A few words for the user."""
        if self.provider.quotes:
            return "answers quote the documents (no model; --llm-url forwards to one)"
        return f"answers by {getattr(self.provider, 'description', self.provider.model)}"

    @classmethod
    def from_options(cls, options: Options, clock: Callable[[], float]) -> "Answering":
        """Choose the provider: the language model of the options, or quotations.

        Raises:
            GenerationError: The URL of the language model is not valid.
        """
        provider: ModelProvider = ExtractiveProvider()
        if options.llm_url:
            from ragstack_common.answers.models.openai import OpenAIProvider  # noqa: PLC0415 - takes a second

            provider = OpenAIProvider(options.llm_url, options.llm_model, options.llm_api_key)
        return cls(provider, Sessions(clock), Parser())

    def headers(self) -> dict[str, str]:
        """Return the headers of an answer."""
        return {GENERATOR_HEADER: header_value(self.provider.model)}

    def pieces(self, request: ModelRequest, failure: type[ServiceError]) -> Iterator[ModelPiece]:
        """Yield an answer. The call of the model ends with the iterator, and when the client disconnects.

        Raises:
            Throttled: The model's request rate is exceeded.
            ServiceError: *failure*, if no answer could be generated.
        """
        received: SimpleQueue[ModelPiece | None] = SimpleQueue()

        async def receive() -> None:
            async with aclosing(self.provider.stream(request)) as stream:
                async for piece in stream:
                    received.put(piece)
                    while received.qsize() > MAX_WAITING:  # noqa: ASYNC110 - its reader is a thread
                        await asyncio.sleep(0.01)

        work = begin(receive())
        work.add_done_callback(lambda _work: received.put(None))
        when_gone(work.cancel)
        try:
            while (piece := received.get()) is not None:
                yield piece
            work.result()
        except CancelledError:
            raise failure("The client has disconnected") from None
        except ModelThrottledError as error:
            raise Throttled(str(error)) from error
        except GenerationError as error:
            raise failure(str(error)) from error
        finally:
            work.cancel()  # closes the connection, so that the server stops


def numbered_passage(number: int, text: str, context: str | None = None) -> NumberedPassage:
    """Return a passage of a prompt for a provider that quotes."""
    return NumberedPassage(number, RetrievedChunk(content=text, context=context, score=0.0, source=""))
