"""What the contract suite needs to know of a backend."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from ragstack_common.retrieval import RetrievalBackend
from tests.contract.documents import Document

PATIENCE_SECONDS = 60.0
"""Deadline of every search of the contract: that of a user is over sooner than a busy machine may stand still."""

Opened = AbstractContextManager[Callable[[], RetrievalBackend]]


@dataclass(frozen=True)
class Case:
    """One engine or wrapper, with a real store.

    Attributes:
        name: Its name in the test's id.
        open: Given the documents and an empty folder, puts them into a new store and yields what makes backends on
            it; the store ends with the context. A backend that is made twice searches the same store.
        keeps_ids: The chunk ids of the documents are those of the store.
        looks_up: ``get_by_id`` finds chunks.
        refuses: Operators of filters, as Bedrock names them, that the engine cannot express on these documents.
        keeps_lists: Metadata may hold lists.
        whole_numbers: Numbers come back as they were put in; otherwise 3 may come back as 3.0.
        whole_collection: A search for more chunks than there are returns all of them.
        metadata_filter: Searches take a ``metadata_filter``.
    """

    name: str
    open: Callable[[Sequence[Document], Path], Opened]
    keeps_ids: bool = True
    looks_up: bool = True
    refuses: frozenset[str] = frozenset()
    keeps_lists: bool = True
    whole_numbers: bool = True
    whole_collection: bool = True
    metadata_filter: bool = False
