"""What the operations that answer questions share: the generator, the sessions and a parser."""

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from local_bedrock.generation import forwarding
from local_bedrock.generation.answers import Generator, Turn
from local_bedrock.generation.extractive import ExtractiveGenerator
from local_bedrock.options import Options
from local_bedrock.reading.parsing import Parser
from ragstack_common.embedding import Embedding

LIFETIME_SECONDS: Final = 24 * 3600.0
"""After the last question. AWS publishes none for these sessions; this is a guess."""

MOST_SESSIONS: Final = 1_000
TURNS_KEPT: Final = 20


class Sessions:
    """Conversations in memory; the one that was used longest ago goes first.

    Args:
        clock: Seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, tuple[float, tuple[Turn, ...]]] = OrderedDict()

    def begin(self) -> str:
        """Make a session and return its id."""
        session_id = str(uuid.uuid4())
        self.remember(session_id)
        return session_id

    def turns(self, session_id: str) -> tuple[Turn, ...] | None:
        """Return what was said in a session; None where there is none of this id."""
        with self._lock:
            used, turns = self._sessions.get(session_id, (0.0, ()))
            return turns if session_id in self._sessions and self._clock() - used < LIFETIME_SECONDS else None

    def remember(self, session_id: str, *turns: Turn) -> None:
        """Add to a session."""
        with self._lock:
            _used, before = self._sessions.pop(session_id, (0.0, ()))
            self._sessions[session_id] = (self._clock(), (*before, *turns)[-TURNS_KEPT:])
            if len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)


GENERATOR_HEADER: Final = "x-ragstack-generator"
"""Says who wrote an answer; no member of the models has a place for it."""


@dataclass(frozen=True)
class Answering:
    """The generator, the sessions, and a parser for the documents of requests.

    Attributes:
        parser: Not that of the ingestion: nobody's answer waits for a file that is being indexed.
    """

    generator: Generator
    sessions: Sessions
    parser: Parser

    @classmethod
    def of(cls, options: Options, embedding: Embedding, clock: Callable[[], float]) -> "Answering":
        """Choose the generator by the options."""
        quoting = ExtractiveGenerator(embedding)
        generator = forwarding.load(options.llm_url, options.llm_model, options.llm_api_key, quoting)
        return cls(generator, Sessions(clock), Parser())

    def headers(self) -> dict[str, str]:
        """Return the headers of an answer."""
        name = " ".join(self.generator.name.split())
        return {GENERATOR_HEADER: name.encode("ascii", "replace").decode()}

    def close(self) -> None:
        """End the parser's processes."""
        self.parser.close()
