"""Wrappers around a backend in memory; a federation of two engines, and corpora of one knowledge base."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from ragstack_common.search import RetrievalBackend
from ragstack_common.search.wrappers.balanced import BalancedBackend
from ragstack_common.search.wrappers.cached import CachedRetrievalBackend
from ragstack_common.search.wrappers.federated import FederatedBackend
from ragstack_common.search.wrappers.metered import MeteredBackend
from ragstack_common.search.wrappers.multislice import MultiSliceBackend
from ragstack_common.search.wrappers.reranked import RerankedBackend
from tests.contract.case import PATIENCE_SECONDS, Case
from tests.contract.cases import bedrock, chroma, milvus
from tests.contract.documents import Document
from tests.contract.in_memory import LookingUpBackend

PATIENT: Any = {"timeout_seconds": PATIENCE_SECONDS}
Opener = Callable[[Sequence[Document], Path], AbstractContextManager[Callable[[], RetrievalBackend]]]


def _in_memory(make: Callable[[Sequence[Document]], RetrievalBackend]) -> Opener:
    @contextmanager
    def opened(documents: Sequence[Document], _folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
        yield lambda: make(documents)

    return opened


def _halves(documents: Sequence[Document]) -> FederatedBackend:
    return FederatedBackend(
        {"even": LookingUpBackend(documents[::2]), "odd": LookingUpBackend(documents[1::2])}, **PATIENT
    )


@contextmanager
def _in_two_engines(documents: Sequence[Document], folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
    for engine in ("chroma", "milvus"):
        (folder / engine).mkdir()
    even = chroma.CASES[0].open(documents[::2], folder / "chroma")
    odd = milvus.CASES[0].open(documents[1::2], folder / "milvus")
    with even as make_even, odd as make_odd:
        yield lambda: FederatedBackend({"chroma": make_even(), "milvus": make_odd()}, **PATIENT)


@contextmanager
def _over_corpora(documents: Sequence[Document], folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
    with bedrock.CASES[0].open(documents, folder) as make:
        # A search that does not say how many brings as many as that of every other backend.
        yield lambda: BalancedBackend(make(), ("handbook", "legal", "manual"), search_k=5, **PATIENT)


CASES = [
    Case("multislice", _in_memory(lambda d: MultiSliceBackend(LookingUpBackend(d), **PATIENT)), metadata_filter=True),
    Case(
        "cached_reranked", _in_memory(lambda d: CachedRetrievalBackend(RerankedBackend(LookingUpBackend(d), **PATIENT)))
    ),
    Case("metered_cached_federated", _in_memory(lambda d: MeteredBackend(CachedRetrievalBackend(_halves(d))))),
    Case("federated_engines", _in_two_engines),
    # The page without a corpus is not found, so no search finds the whole collection.
    Case("balanced", _over_corpora, keeps_ids=False, metadata_filter=True, whole_collection=False),
]
