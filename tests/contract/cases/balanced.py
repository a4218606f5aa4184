"""Balanced over the corpora of one knowledge base, and over one collection of Chroma for each corpus."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ragstack_common.retrieval import RetrievalBackend
from ragstack_common.retrieval.balanced import BalancedBackend
from tests.contract.case import PATIENCE_SECONDS, Case
from tests.contract.cases import bedrock, chroma
from tests.contract.documents import Document

CORPORA = ("handbook", "legal", "manual")
OPTIONS: Any = {"search_k": 5, "timeout_seconds": PATIENCE_SECONDS}
"""A search that does not say how many brings as many as that of every backend of the contract."""


@contextmanager
def _one_knowledge_base(documents: Sequence[Document], folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
    with bedrock.CASES[0].open(documents, folder) as make:
        yield lambda: BalancedBackend(make(), CORPORA, **OPTIONS)


@contextmanager
def _one_collection_each(documents: Sequence[Document], folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
    with ExitStack() as stores:
        makes = {}
        for corpus in CORPORA:
            own = [document for document in documents if document.metadata.get("corpus") == corpus]
            (folder / corpus).mkdir()
            makes[corpus] = stores.enter_context(chroma.CASES[0].open(own, folder / corpus))
        yield lambda: BalancedBackend(backends={name: make() for name, make in makes.items()}, **OPTIONS)


# The page without a corpus is found by neither, so no search finds the whole collection.
CASES = [
    Case("balanced", _one_knowledge_base, keeps_ids=False, metadata_filter=True, whole_collection=False),
    Case("balanced_backends", _one_collection_each, whole_collection=False),
]
