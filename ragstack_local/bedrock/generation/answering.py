"""What the operations that answer work with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ragstack_common.embedding import Embedding
from ragstack_local.bedrock.generation import forwarding
from ragstack_local.bedrock.generation.extractive import ExtractiveGenerator
from ragstack_local.bedrock.generation.sessions import Sessions
from ragstack_local.bedrock.generation.types import Generator
from ragstack_local.bedrock.options import Options
from ragstack_local.bedrock.reading.parsing import Parser

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
