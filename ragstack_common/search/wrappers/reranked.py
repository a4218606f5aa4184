"""A backend whose results are reranked."""

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import replace

from ragstack_common.core.aws_errors import public_reason
from ragstack_common.core.deadline import inner_deadline, seconds_left
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.search.base import RetrievalBackend, Wrapper
from ragstack_common.search.errors import describe
from ragstack_common.search.merge import select_best
from ragstack_common.search.models import (
    Note,
    RetrievedChunk,
    SearchOutcome,
    SearchRequest,
    check_over_zero,
    check_top_k,
)
from ragstack_common.search.rerank.chunks import ChunkReranker
from ragstack_common.search.rerank.factory import RerankerChoice, load_reranker
from ragstack_common.search.tracing import Attributes, describe_span, traced_reranking
from ragstack_common.settings.names import DEFAULT_RERANKER


async def reranked(
    reranker: ChunkReranker, query: str, chunks: Sequence[RetrievedChunk], timeout_seconds: float
) -> tuple[list[RetrievedChunk], tuple[Note, ...]]:
    """Rerank chunks before a deadline, or an earlier one around the search; chunks over the maximum are dropped.

    Returns:
        The chunks, and notes. If the reranker failed or was late, the chunks are as they were and a note says so.
    """
    if not chunks:
        return [], ()
    seconds = max(0.0, seconds_left(timeout_seconds))
    try:
        async with asyncio.timeout(seconds):
            best = chunks[: reranker.max_chunks]
            return await traced_reranking(reranker.name, query, best, reranker.rerank), ()
    except TimeoutError:
        reason = f"did not answer within {seconds:.3g} seconds"
    except Exception as error:  # noqa: BLE001 - the search still has an answer
        LOGGER.warning("the reranker %s failed: %s", reranker.name, describe(error, query))
        reason = f"failed ({public_reason(error)})"
    note = f"The reranker {reranker.name} {reason}: the results are in the order of the search"
    LOGGER.warning("%s", note)
    return list(chunks), (Note("reranker", note),)


class RerankedBackend(Wrapper):
    """Searches for more candidates than wanted, and keeps the ones that a reranker ranks first.

    ``min_score`` is compared with the reranker's scores, which have their own scale. If the reranker fails, the chunks
    keep the engine's order and scores, ``min_score`` is compared with these, and a note of the outcome says so.

    A search for one chunk of each document reranks the best chunk of each, as the wrapped backend sees it.

    Args:
        reranker: ``lexical``, ``bedrock[:MODEL_ARN]``, ``cross_encoder:FOLDER``, a name of another package's,
            a configuration ``{"type": NAME, ...}``, or a reranker.
        candidates: Chunks requested of the backend; more if a search requests more.
        timeout_seconds: Deadline of the reranker, over 0 and finite; the wrapped backend has its own.

    Raises:
        ConfigurationError: The reranker is unknown, or cannot be created.
    """

    name = "reranked"

    def __init__(
        self,
        backend: RetrievalBackend,
        reranker: RerankerChoice = DEFAULT_RERANKER,
        candidates: int = 50,
        *,
        timeout_seconds: float = 2.0,
    ) -> None:
        super().__init__(backend)
        check_over_zero(timeout_seconds=timeout_seconds)
        self._reranker = load_reranker(reranker)
        self._timeout_seconds = timeout_seconds
        maximum = self._reranker.max_chunks
        if not 1 <= candidates <= maximum:
            raise ValueError(
                f"candidates must be 1 to {maximum}, the most that the reranker accepts, not {candidates!r}"
            )
        self._candidates = candidates
        self.max_top_k = min(backend.max_top_k, maximum)

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        check_top_k(request.top_k, self.max_top_k)
        start = time.perf_counter()
        count = min(self.max_top_k, max(self._candidates, request.top_k))
        describe_span({"large_retrieval_size": count})
        wider = replace(request, top_k=count, min_score=None, min_relevance=None, documents=request.documents_wanted)
        with inner_deadline(math.inf):  # a deadline around both leaves the reranker some time
            found = await self.backend.search(wider)
        chunks, notes = await reranked(self._reranker, request.query, found.chunks, self._timeout_seconds)
        return replace(
            found,
            chunks=select_best(chunks, request),
            notes=(*found.notes, *notes),
            milliseconds=(time.perf_counter() - start) * 1000,
        )

    def _first_page(self, page_size: int) -> int:  # noqa: ARG002 - independent of the page size
        """Ask for everything at once: a larger search may be reranked to another beginning."""
        return self.max_top_k

    async def close(self) -> None:
        """Close the reranker and the wrapped backend."""
        await self._reranker.close()
        await super().close()

    def span_attributes(self) -> Attributes:
        """Show the reranker."""
        return {"reranker_name": self._reranker.name}
