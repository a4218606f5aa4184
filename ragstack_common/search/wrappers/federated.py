"""Several backends searched as one."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args

from ragstack_common.core.deadline import await_together
from ragstack_common.core.errors import InvalidRequestError, RagStackError
from ragstack_common.search.base import ReportingBackend, RetrievalBackend
from ragstack_common.search.engine import DEFAULT_TIMEOUT_SECONDS
from ragstack_common.search.merge import CANDIDATES_PER_DOCUMENT, best_first, fuse, select_best
from ragstack_common.search.models import (
    MAX_TOP_K,
    RetrievedChunk,
    SearchOutcome,
    SearchRequest,
    check_over_zero,
    check_top_k,
)
from ragstack_common.search.parts import joint_failure, search_together
from ragstack_common.search.tracing import describe_span

CANDIDATES: Final = 50
"""Chunks requested of each backend. Up to this many results, a longer ranking begins with a shorter one."""

FederatedMerge: TypeAlias = Literal["ranks", "scores"]
"""How the rankings of backends become one."""


class FederatedBackend(ReportingBackend):
    """Searches several backends in parallel and fuses their rankings (:func:`~ragstack_common.search.merge.fuse`).

    A backend that fails, is late, or cannot express a filter is a failed part of the outcome, under its name; the
    others answer without it, and no filter is loosened. If all fail, the error names every cause.

    Scores come from the fusion: they depend on ranks, not on similarity, and ``min_score`` applies to them. A chunk
    that is first in every backend scores 1; two backends without a common document reach at most .5.

    With ``merge="scores"``, chunks keep their scores and are ordered by them, as if one backend had all documents. It
    is for backends whose scores are comparable, such as knowledge bases with the same embedding.

    Args:
        backends: By name, or a list, which is numbered: ``chroma-1``, ``chroma-2``. If several backends have the same
            chunk, the first backend's is returned.
        weights: Weight of each backend, over 0, by name; 1 by default.
        timeout_seconds: Deadline of the backends, over 0 and finite.
        candidates: Chunks requested of each backend; more if a search requests more, or one chunk per document.

    Raises:
        ValueError: An argument is out of range; the message names it.
    """

    name = "federated"

    def __init__(
        self,
        backends: Mapping[str, RetrievalBackend] | Sequence[RetrievalBackend],
        *,
        weights: Mapping[str, float] | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        candidates: int = CANDIDATES,
        merge: FederatedMerge = "ranks",
    ) -> None:
        if not isinstance(backends, Mapping):
            backends = {f"{backend.name}-{number}": backend for number, backend in enumerate(backends, start=1)}
        if not backends:
            raise ValueError("backends must hold one backend at least")
        unknown = sorted(set(weights or {}) - set(backends))
        if unknown:
            raise ValueError(f"weights names {', '.join(unknown)}; the backends are {', '.join(backends)}")
        self.backends = MappingProxyType(dict(backends))
        self.weights = MappingProxyType(dict.fromkeys(backends, 1.0) | dict(weights or {}))
        check_over_zero(
            timeout_seconds=timeout_seconds, **{f"the weight of {name}": each for name, each in self.weights.items()}
        )
        if not 1 <= candidates <= MAX_TOP_K:
            raise ValueError(f"candidates must be 1 to {MAX_TOP_K}, not {candidates!r}")
        if merge not in get_args(FederatedMerge):
            raise ValueError(f"merge must be ranks or scores, not {merge!r}")
        if weights and merge == "scores":
            raise ValueError("weights are for merge=ranks: leave them out")
        self.merge = merge
        self.timeout_seconds = timeout_seconds
        self.candidates = candidates
        self.max_top_k = min(MAX_TOP_K, sum(backend.max_top_k for backend in self.backends.values()))

    def _first_page(self, page_size: int) -> int:
        """Ask for the usual candidates: up to there, a larger fusion begins with the smaller one."""
        return max(page_size, self.candidates)

    async def get_by_id(self, chunk_id: str) -> RetrievedChunk | None:
        """Return the chunk from the first backend that has it.

        Raises:
            RagStackError: A backend failed, or cannot look up chunks, and no other had the chunk.
        """
        errors: dict[str, Exception] = {}
        for name, backend in self.backends.items():
            try:
                chunk = await backend.get_by_id(chunk_id)
            except RagStackError as error:
                errors[name] = error
            else:
                if chunk is not None:
                    return chunk
        if errors:
            raise joint_failure(errors)
        return None

    async def index(self, documents: Sequence[Mapping[str, Any]]) -> list[str]:
        """Refuse, with an error that names the backends: the caller chooses the backend of a document."""
        raise InvalidRequestError(
            f"A federation does not choose where {len(documents)} documents belong: index into one of its backends, "
            f"with backends[NAME].index(...); they are {', '.join(self.backends)}"
        )

    async def health_check(self) -> bool:
        """Return whether at least one backend would answer before the deadline."""
        checks = [backend.health_check for backend in self.backends.values()]
        return any(end.value for end in await await_together(checks, self.timeout_seconds))

    async def close(self) -> None:
        """Close every backend, even if closing one fails."""
        async with AsyncExitStack() as stack:
            for backend in self.backends.values():
                stack.push_async_callback(backend.close)

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        check_top_k(request.top_k, self.max_top_k)
        depth = request.top_k if self.merge == "scores" else max(self.candidates, request.top_k)
        if request.deduplicate_by == "document":
            depth *= CANDIDATES_PER_DOCUMENT
        describe_span({"large_retrieval_size": depth})
        # By chunk, because two backends may find different chunks of a document to be its best.
        deeper = replace(
            request,
            min_score=None,
            min_relevance=None,
            deduplicate_by="chunk",
            documents=request.documents_wanted,
        )
        searches = {
            name: (backend, replace(deeper, top_k=min(depth, backend.max_top_k)))
            for name, backend in self.backends.items()
        }
        parts = await search_together("backend", searches, self.timeout_seconds)
        if self.merge == "scores":
            merged = best_first(chain.from_iterable(parts.rankings.values()))
        else:
            merged = fuse(parts.rankings, self.weights, "text")
        return parts.outcome(select_best(merged, request), request)
