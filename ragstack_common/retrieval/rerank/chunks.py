"""Rerankers of chunks by name; only the named one is imported."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from ragstack_common.deadline import in_thread
from ragstack_common.errors import ConfigurationError, needs_extra
from ragstack_common.retrieval.models import RetrievedChunk
from ragstack_common.retrieval.rerank.lexical import LexicalReranker, Passage, RerankingWeights

ENTRY_POINTS: Final = "ragstack.rerankers"
"""Entry points of other packages' rerankers: ``acme = "package.module:AcmeReranker"``.

The class is called with TEXT for ``acme:TEXT``, and with the options of a configuration as keyword arguments.
"""

FORMS: Final = "lexical, bedrock[:MODEL_ARN] or cross_encoder:FOLDER"


@runtime_checkable
class ChunkReranker(Protocol):
    """Puts chunks in a better order.

    Attributes:
        name: Name in notes and spans.
        max_chunks: Maximum number of chunks at once.
    """

    name: str
    max_chunks: int

    async def rerank(self, query: str, chunks: Sequence[RetrievedChunk]) -> list[RetrievedChunk]:
        """Return the same chunks, best first, with new scores and the signals behind them in their rankings."""
        ...

    async def close(self) -> None:
        """Release what is held; a second call does nothing."""
        ...


RerankerChoice: TypeAlias = ChunkReranker | LexicalReranker | Mapping[str, Any] | str
"""A reranker, its name (:data:`FORMS`), or ``{"type": NAME, ...}`` with the arguments of its class."""


class LexicalChunkReranker:
    """:class:`~ragstack_common.retrieval.rerank.LexicalReranker` for chunks, run in a thread.

    It reads the contextual header of a chunk before its text, and uses the score that the chunk was ranked by, which
    may be over 1.

    Args:
        lexical: The reranker.
    """

    name = "lexical"
    max_chunks = 10_000

    def __init__(self, lexical: LexicalReranker | None = None) -> None:
        self.lexical = lexical or LexicalReranker()

    async def rerank(self, query: str, chunks: Sequence[RetrievedChunk]) -> list[RetrievedChunk]:
        """Order chunks by phrase, keywords, proximity, attributes, and the score of the search."""
        passages = [Passage(text_of(chunk), chunk.metadata, chunk.ranked_by.score) for chunk in chunks]
        order = await in_thread(lambda: self.lexical.order(query, passages))
        return [scored(chunks[number], signals.score, signals.as_numbers()) for number, signals in order]

    async def close(self) -> None:
        """Do nothing."""


def text_of(chunk: RetrievedChunk) -> str:
    """Return the text for a reranker: the contextual header of the chunk, and its content."""
    return f"{chunk.context}\n{chunk.content}" if chunk.context else chunk.content


def scored(chunk: RetrievedChunk, score: float, signals: dict[str, float]) -> RetrievedChunk:
    """Give a chunk the score of a reranker; the rest of its ranking stays."""
    return chunk.ranked(replace(chunk.ranked_by, score=score, signals=signals))


def by_score(chunks: Sequence[RetrievedChunk], scores: Sequence[float], signal: str) -> list[RetrievedChunk]:
    """Order chunks by new scores, 0 to 1; equal ones by their old scores, then in the given order."""
    order = sorted(range(len(chunks)), key=lambda number: (-scores[number], -chunks[number].ranked_by.score, number))
    return [scored(chunks[number], scores[number], {signal: scores[number]}) for number in order]


def load_reranker(choice: RerankerChoice) -> ChunkReranker:
    """Return the chosen reranker.

    Raises:
        ConfigurationError: The reranker is unknown, or cannot be created; the message lists the known ones.
        MissingPackageError: Its package is not installed.
    """
    if isinstance(choice, LexicalReranker):
        return LexicalChunkReranker(choice)
    if not isinstance(choice, str | Mapping):
        if isinstance(choice, ChunkReranker):
            return choice
        raise ConfigurationError(
            f"A {type(choice).__name__} is not a reranker: it needs name, max_chunks, rerank and close"
        )
    options = {"type": choice} if isinstance(choice, str) else dict(choice)
    name, _, argument = str(options.pop("type", "")).partition(":")
    arguments = [argument] if argument else []
    try:
        return _maker(name)(*arguments, **options)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"The reranker {name} cannot be created from this configuration: {error}") from error


def _lexical(
    *,
    weights: Mapping[str, float] | None = None,
    wanted: Mapping[str, Any] | None = None,
    metadata_fields: Sequence[str] | None = None,
) -> ChunkReranker:
    own = None if weights is None else RerankingWeights(**weights)
    return LexicalChunkReranker(LexicalReranker(own, wanted=wanted, metadata_fields=metadata_fields))


def _maker(name: str) -> Callable[..., ChunkReranker]:
    match name:
        case "lexical":
            return _lexical
        case "bedrock":
            from ragstack_common.retrieval.rerank.bedrock import BedrockReranker  # noqa: PLC0415 - imports a client

            return BedrockReranker
        case "cross_encoder":
            with needs_extra("local", "The reranker cross_encoder"):
                from ragstack_common.retrieval.rerank.cross_encoder import CrossEncoderReranker  # noqa: PLC0415 - an extra

            return CrossEncoderReranker
    others = _third_parties()
    if name in others:
        with needs_extra(None, f"The reranker {name}"):
            loaded: Callable[..., ChunkReranker] = others[name].load()
        return loaded
    raise ConfigurationError(f"There is no reranker {name!r}: choose {', '.join([FORMS, *sorted(others)])}")


@cache
def _third_parties() -> dict[str, Any]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}
