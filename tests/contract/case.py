"""A backend of the contract suite."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragstack_common.search import RetrievalBackend
from tests.contract.documents import Document

PATIENCE_SECONDS = 60.0
"""Deadline of every search: a busy machine may pause for longer than the default one."""

Make = Callable[[], RetrievalBackend]
"""Makes backends for one store."""


@dataclass(frozen=True)
class Case:
    """One engine or wrapper, with a real store.

    Attributes:
        name: Name in the test's id.
        open: Puts the documents into a new store in the empty folder, and yields a function that makes backends for
            that store. The store ends with the context.
        keeps_ids: The store keeps the chunk ids of the documents.
        looks_up: ``get_by_id`` finds chunks.
        refuses: Operators of filters, as Bedrock names them, that the engine cannot express on these documents.
        whole_collection: A large top_k returns all chunks.
        metadata_filter: Searches take a ``metadata_filter``.
        opens_twice: A test may open a second store.
    """

    name: str
    open: Callable[[Sequence[Document], Path], AbstractContextManager[Make]]
    keeps_ids: bool = True
    looks_up: bool = True
    refuses: frozenset[str] = frozenset()
    whole_collection: bool = True
    metadata_filter: bool = False
    opens_twice: bool = True


def run(make: Make, *steps: Callable[[RetrievalBackend], Any]) -> list[Any]:
    """Open a backend and await the steps on it."""

    async def all_steps() -> list[Any]:
        async with make() as backend:
            return [await step(backend) for step in steps]

    return asyncio.run(all_steps())
