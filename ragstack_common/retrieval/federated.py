"""Several backends searched as one."""

import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count
from types import MappingProxyType
from typing import Any, Final, TypeVar, get_args

from ragstack_common.errors import InvalidRequestError
from ragstack_common.retrieval.base import QUERIES_AT_ONCE, ReportingBackend, RetrievalBackend
from ragstack_common.retrieval.engine import DEFAULT_TIMEOUT_SECONDS
from ragstack_common.retrieval.merge import (
    CANDIDATES_PER_DOCUMENT,
    RANK_CONSTANT,
    MergeBy,
    best_of,
    fuse,
    notes_of,
)
from ragstack_common.retrieval.models import (
    DEFAULT_TOP_K,
    MAX_TOP_K,
    RetrievedChunk,
    SearchOutcome,
    SearchRequest,
    check_top_k,
)
from ragstack_common.retrieval.parts import Ended, ask_together, failure_of, raise_if_all_failed, reports_of

T = TypeVar("T")

CANDIDATES: Final = 50
"""Chunks that each backend is asked for. Up to this many results, a longer ranking begins with a shorter one."""


class FederatedBackend(ReportingBackend):
    """Searches several backends in parallel and fuses their rankings (:func:`~ragstack_common.retrieval.merge.fuse`).

    A backend that fails, is late, or cannot express a filter is a failed part of the outcome, under its name; the
    others answer without it, and no filter is loosened. If all fail, the error names every cause.

    Scores are those of the fusion: they depend on ranks, not on similarity, and ``min_score`` applies to them. A chunk
    that is first in every backend scores 1; two backends without a common document reach at most .5.

    Args:
        backends: By name, or a list, numbered if names repeat: ``chroma``, ``chroma-2``. If several backends have the
            same chunk, the first backend's is returned; lookups by id ask the backends in this order.
        weights: Weight of each backend, over 0: by name (default 1), or in the order of the backends.
        rank_constant: Added to a rank, over 0.
        timeout_seconds: Deadline of the backends, over 0 and finite.
        candidates: Chunks that each backend is asked for; more if a search asks for more, or for one chunk per
            document.
        merge_by: What makes chunks of two backends the same: source and text, the text alone, or the id.

    Attributes:
        backends: By name, in their order.
        weights: By name.

    Raises:
        ValueError: An argument is out of range; the message names it.
    """

    name = "federated"

    def __init__(
        self,
        backends: Mapping[str, RetrievalBackend] | Sequence[RetrievalBackend],
        *,
        weights: Mapping[str, float] | Sequence[float] | None = None,
        rank_constant: float = RANK_CONSTANT,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        candidates: int = CANDIDATES,
        merge_by: MergeBy = "source_and_text",
    ) -> None:
        self.backends = MappingProxyType(_named(backends))
        self.weights = MappingProxyType(_weighted(list(self.backends), weights))
        self.rank_constant = _over_zero("rank_constant", rank_constant)
        self.timeout_seconds = _over_zero("timeout_seconds", timeout_seconds)
        if isinstance(candidates, bool) or not isinstance(candidates, int) or not 1 <= candidates <= MAX_TOP_K:
            raise ValueError(f"candidates must be 1 to {MAX_TOP_K}, not {candidates!r}")
        if merge_by not in get_args(MergeBy):
            raise ValueError(f"merge_by must be one of {', '.join(get_args(MergeBy))}, not {merge_by!r}")
        self.candidates = candidates
        self.merge_by: MergeBy = merge_by
        self.max_top_k = min(MAX_TOP_K, sum(backend.max_top_k for backend in self.backends.values()))

    async def retrieve_batch(
        self,
        queries: Sequence[str],
        top_k: int = DEFAULT_TOP_K,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
    ) -> list[list[RetrievedChunk]]:
        """Pass the whole batch to each backend, and fuse the answers query by query.

        A backend that fails at one query is left out of all of them. The deadline holds for each of the
        QUERIES_AT_ONCE queries that are answered at a time.

        Raises:
            InvalidQueryError: A query, *top_k* or *min_score* is out of range.
            RetrievalError: Every backend failed.
        """
        requests = [SearchRequest(query, top_k, min_score, filters) for query in queries]
        if not requests:
            return []
        check_top_k(top_k, self.max_top_k)
        depth = max(self.candidates, top_k)
        ended = await self._ask(
            lambda backend: backend.retrieve_batch(queries, min(depth, backend.max_top_k), None, filters),
            self.timeout_seconds * math.ceil(len(requests) / QUERIES_AT_ONCE),
        )
        answers = {name: end.value for name, end in ended.items() if end.value is not None}
        return [
            self._fused({name: answer[place] for name, answer in answers.items()}, request)
            for place, request in enumerate(requests)
        ]

    def _first_page(self, page_size: int) -> int:
        """Ask for the usual candidates: up to there, a larger fusion begins with the smaller one."""
        return max(page_size, self.candidates)

    async def get_by_id(self, chunk_id: str) -> RetrievedChunk | None:
        """Look the chunk up in the backend that ``name/id`` names, then in all backends in their order.

        Raises:
            InvalidRequestError: No backend can look up chunks.
            RetrievalError: A backend failed, and no other had the chunk.
        """
        name, _, own_id = chunk_id.partition("/")
        asked = [(name, own_id)] if name in self.backends else []
        asked += [(other, chunk_id) for other in self.backends]
        failed: dict[str, Exception] = {}
        unable: dict[str, Exception] = {}
        for name, wanted in asked:
            look_up = self.backends[name].get_by_id(wanted)
            ended = (await ask_together({name: look_up}, self.timeout_seconds))[name]
            if ended.value is not None:
                return ended.value
            if ended.error is not None:
                (unable if isinstance(ended.error, InvalidRequestError) else failed)[name] = ended.error
        if failed or len(unable) == len(self.backends):
            raise failure_of(failed or unable, f"The federation {self.name} could not look the chunk up")
        return None

    async def health(self) -> dict[str, bool]:
        """Return, by backend, whether it would answer before the deadline."""
        checks = {name: backend.health_check() for name, backend in self.backends.items()}
        ended = await ask_together(checks, self.timeout_seconds)
        return {name: end.value is True for name, end in ended.items()}

    async def health_check(self) -> bool:
        """Return whether at least one backend would answer."""
        return any((await self.health()).values())

    async def close(self) -> None:
        """Close every backend, even if closing one fails.

        Raises:
            The error of the first that failed.
        """
        failed = []
        for backend in self.backends.values():
            try:
                await backend.close()
            except Exception as error:  # noqa: BLE001 - raised after the others are closed
                failed.append(error)
        if failed:
            raise failed[0]

    def span_attributes(self) -> dict[str, str | int | float | bool]:
        """Show the backends."""
        return {"backends": ",".join(self.backends), "candidates": self.candidates}

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        check_top_k(request.top_k, self.max_top_k)
        start = time.perf_counter()
        depth = max(self.candidates, request.top_k)
        if request.deduplicate_by == "document":
            depth *= CANDIDATES_PER_DOCUMENT
        ended = await self._ask(
            lambda backend: backend.search(
                replace(
                    request,
                    top_k=min(depth, backend.max_top_k),
                    min_score=None,
                    # By chunk, because two backends may find different chunks of a document to be its best.
                    deduplicate_by="chunk",
                    documents=request.documents_wanted,
                )
            ),
            self.timeout_seconds,
        )
        found = {name: end.value for name, end in ended.items() if end.value is not None}
        chunks = self._fused({name: outcome.chunks for name, outcome in found.items()}, request)
        return SearchOutcome(
            chunks,
            tuple(report for name, end in ended.items() for report in reports_of(name, end)),
            (time.perf_counter() - start) * 1000,
            notes=notes_of(found, chunks, request),
        )

    async def _ask(
        self, call: Callable[[RetrievalBackend], Awaitable[T]], timeout_seconds: float
    ) -> dict[str, Ended[T]]:
        calls = {name: partial(call, backend) for name, backend in self.backends.items()}
        ended = await ask_together(calls, timeout_seconds)
        raise_if_all_failed(ended, f"Every backend of the federation {self.name} failed")
        return ended

    def _fused(self, rankings: Mapping[str, Sequence[RetrievedChunk]], request: SearchRequest) -> list[RetrievedChunk]:
        chunks = fuse(rankings, self.weights, rank_constant=self.rank_constant, merge_by=self.merge_by)
        return best_of(chunks, request)


def _named(backends: Mapping[str, RetrievalBackend] | Sequence[RetrievalBackend]) -> dict[str, RetrievalBackend]:
    named = dict(backends) if isinstance(backends, Mapping) else _with_names(backends)
    if not named:
        raise ValueError("backends must hold one backend at least")
    for name, backend in named.items():
        if not isinstance(name, str) or not name or "/" in name:
            raise ValueError(f"a backend's name must be a text without a slash, not {name!r}")
        if not isinstance(backend, RetrievalBackend):
            raise ValueError(f"{name} is a {type(backend).__name__}, not a backend")  # noqa: TRY004 - of configuration
    return named


def _with_names(backends: Iterable[RetrievalBackend]) -> dict[str, RetrievalBackend]:
    named: dict[str, RetrievalBackend] = {}
    for backend in backends:
        own = str(getattr(backend, "name", type(backend).__name__))
        name = next(name for name in chain([own], (f"{own}-{n}" for n in count(2))) if name not in named)
        named[name] = backend
    return named


def _weighted(names: Sequence[str], weights: Mapping[str, float] | Sequence[float] | None) -> dict[str, float]:
    if weights is None:
        return dict.fromkeys(names, 1.0)
    if not isinstance(weights, Mapping):
        if len(weights) != len(names):
            raise ValueError(f"weights must be one for each of the {len(names)} backends, not {len(weights)}")
        weights = dict(zip(names, weights, strict=True))
    unknown = sorted(set(weights) - set(names))
    if unknown:
        raise ValueError(f"weights names {', '.join(unknown)}; the backends are {', '.join(names)}")
    return {name: _over_zero(f"the weight of {name}", weights.get(name, 1.0)) for name in names}


def _over_zero(what: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{what} must be over 0 and finite, not {value!r}")
    return value
