"""Balanced over the corpora of one knowledge base."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragstack_common.retrieval import RetrievalBackend
from ragstack_common.retrieval.balanced import BalancedBackend
from tests.contract.case import PATIENCE_SECONDS, Case
from tests.contract.cases import bedrock
from tests.contract.documents import Document

CORPORA = ("handbook", "legal", "manual")
OPTIONS: Any = {"search_k": 5, "timeout_seconds": PATIENCE_SECONDS}
"""A search that does not say how many brings as many as that of every backend of the contract."""


@contextmanager
def _one_knowledge_base(documents: Sequence[Document], folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
    with bedrock.CASES[0].open(documents, folder) as make:
        yield lambda: BalancedBackend(make(), CORPORA, **OPTIONS)


# The page without a corpus is not found, so no search finds the whole collection.
CASES = [
    Case("balanced", _one_knowledge_base, keeps_ids=False, metadata_filter=True, whole_collection=False),
]
