"""What the operations that answer questions share: the generator, the sessions and a parser."""

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cachetools import TTLCache

from local_bedrock.answers.answers import Generator, Turn
from local_bedrock.answers.extractive import ExtractiveGenerator
from local_bedrock.answers.forwarding import ForwardingGenerator
from local_bedrock.http.wire import header_value
from local_bedrock.options import Options
from local_bedrock.reading.parsing import Parser
from ragstack_common.config import GENERATOR_HEADER

LIFETIME_SECONDS: Final = 24 * 3600.0
"""Time after the last question. AWS publishes no figure for these sessions; this is a guess."""

MOST_SESSIONS: Final = 1_000
TURNS_KEPT: Final = 20


class Sessions:
    """The last conversations, in memory."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._lock = threading.Lock()
        self._turns: TTLCache[str, tuple[Turn, ...]] = TTLCache(MOST_SESSIONS, LIFETIME_SECONDS, timer=clock)

    def begin(self) -> str:
        """Start a session and return its id."""
        session_id = str(uuid.uuid4())
        self.remember(session_id)
        return session_id

    def turns(self, session_id: str) -> tuple[Turn, ...] | None:
        """Return the turns of a session; None if it is unknown or expired."""
        with self._lock:
            return self._turns.get(session_id)

    def remember(self, session_id: str, *turns: Turn) -> None:
        """Add turns to a session, and extend its life."""
        with self._lock:
            self._turns[session_id] = (*self._turns.get(session_id, ()), *turns)[-TURNS_KEPT:]


@dataclass(frozen=True)
class Answering:
    """The generator, the sessions, and a parser for the documents of requests.

    Attributes:
        parser: Separate from that of the ingestion, so that answers don't wait for files that are being indexed.
    """

    generator: Generator
    sessions: Sessions
    parser: Parser

    @classmethod
    def of(cls, options: Options, clock: Callable[[], float]) -> "Answering":
        """Create the generator that the options choose."""
        generator: Generator
        if options.llm_url:
            generator = ForwardingGenerator(options.llm_url, options.llm_model, options.llm_api_key)
        else:
            generator = ExtractiveGenerator()
        return cls(generator, Sessions(clock), Parser())

    def headers(self) -> dict[str, str]:
        """Return the headers of an answer."""
        return {GENERATOR_HEADER: header_value(self.generator.name)}
