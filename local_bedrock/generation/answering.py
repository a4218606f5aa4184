"""What the operations that answer work with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from local_bedrock.generation import forwarding
from local_bedrock.generation.extractive import ExtractiveGenerator
from local_bedrock.generation.sessions import Sessions
from local_bedrock.generation.types import Generator
from local_bedrock.options import Options
from local_bedrock.reading.parsing import Parser
from ragstack_common.embedding import Embedding

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
