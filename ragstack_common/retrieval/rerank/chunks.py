"""Rerankers of chunks, by name; only what is named is imported."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from ragstack_common.deadline import in_thread
from ragstack_common.errors import ConfigurationError, needs_extra
from ragstack_common.retrieval.models import Ranking, RetrievedChunk
from ragstack_common.retrieval.rerank.lexical import LexicalReranker, Passage, RerankingWeights

ENTRY_POINTS: Final = "ragstack.rerankers"
"""The group under which other packages name their rerankers: ``acme = "package.module:AcmeReranker"``.

What is named is called with the text behind the colon of ``acme:TEXT`` where there is one, and with the options of a
configuration as keyword arguments.
"""

FORMS: Final = "lexical, bedrock[:MODEL_ARN] or cross_encoder:FOLDER"


@runtime_checkable
class ChunkReranker(Protocol):
    """Puts chunks in a better order.

    Attributes:
        name: What notes and spans call it.
        max_chunks: It takes so many at once.
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
"""A reranker, its name (:data:`FORMS`), or as JSON ``{"type": NAME, ...}`` with what its class takes."""


class LexicalChunkReranker:
    """:class:`~ragstack_common.retrieval.rerank.LexicalReranker` for chunks, beside the event loop.

    The header of a chunk that was indexed with one is read before its text, and its score is the one that it was
    ranked by, which may be over 1.

    Args:
        lexical: The reranker.
    """

    name = "lexical"
    max_chunks = 10_000

    def __init__(self, lexical: LexicalReranker | None = None) -> None:
        self.lexical = lexical or LexicalReranker()

    async def rerank(self, query: str, chunks: Sequence[RetrievedChunk]) -> list[RetrievedChunk]:
        """Order chunks by phrase, keywords, their nearness, attributes, and the score of the search."""
        passages = [Passage(text_of(chunk), chunk.metadata, score_of(chunk)) for chunk in chunks]
        order = await in_thread(lambda: self.lexical.order(query, passages))
        return [scored(chunks[number], signals.score, signals.as_numbers()) for number, signals in order]

    async def close(self) -> None:
        """Do nothing."""


def text_of(chunk: RetrievedChunk) -> str:
    """Return what a reranker reads: the header that the chunk was indexed with, and its text."""
    return f"{chunk.context}\n{chunk.content}" if chunk.context else chunk.content


def score_of(chunk: RetrievedChunk) -> float:
    """Return the score that the search ranked a chunk by."""
    return chunk.score if chunk.ranking is None else chunk.ranking.score


def scored(chunk: RetrievedChunk, score: float, signals: dict[str, float]) -> RetrievedChunk:
    """Give a chunk the score of a reranker; how it was found is kept."""
    before = chunk.ranking or Ranking(base_score=chunk.score, score=chunk.score)
    return chunk.ranked(replace(before, score=score, signals=signals))


def by_score(chunks: Sequence[RetrievedChunk], scores: Sequence[float], signal: str) -> list[RetrievedChunk]:
    """Order chunks by scores from 0 to 1; equal ones by their scores before, then as they came."""
    order = sorted(range(len(chunks)), key=lambda number: (-scores[number], -score_of(chunks[number]), number))
    return [scored(chunks[number], scores[number], {signal: scores[number]}) for number in order]


def load_reranker(choice: RerankerChoice) -> ChunkReranker:
    """Return the chosen reranker.

    Raises:
        ConfigurationError: There is none of that name, or it cannot be made; the message says which there are.
        MissingPackageError: Its package is not installed.
    """
    if isinstance(choice, LexicalReranker):
        return LexicalChunkReranker(choice)
    if not isinstance(choice, str | Mapping):
        if isinstance(choice, ChunkReranker):
            return choice
        raise ConfigurationError(
            f"A {type(choice).__name__} is no reranker: it needs name, max_chunks, rerank and close"
        )
    options = {"type": choice} if isinstance(choice, str) else dict(choice)
    name, _, argument = str(options.pop("type", "")).partition(":")
    arguments = [argument] if argument else []
    try:
        return _maker(name)(*arguments, **options)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"The reranker {name} cannot be made from this configuration: {error}") from error


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
