"""A chunk with what stands before and after it in its document."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from ragstack_common.retrieval.engines.chroma.collection import ChromaCollection, Handle
from ragstack_common.retrieval.models import RetrievedChunk

INDEX_KEY: Final = "chunk_index"
START_KEY: Final = "start_index"
"""Attributes of a chunk: its number in its document, and the offset at which it starts there."""

WINDOW_KEY: Final = "chunk_indexes"
"""Attribute of a result that was put together: the numbers of the first and the last chunk in it."""

DOCUMENT_KEYS: Final = ("source", "corpus", "version")

LEAST_OVERLAP: Final = 20
"""Characters that must be the same where nothing says where a chunk starts; fewer may be so by chance."""


def with_neighbours(
    collection: ChromaCollection, handle: Handle, chunks: Sequence[RetrievedChunk], neighbours: int
) -> list[RetrievedChunk]:
    """Put each chunk together with its neighbours.

    A chunk that already stands in a better one's window is left out. Chunks without a number stay as they are.

    Args:
        collection: Where they are from.
        handle: The collection.
        chunks: Best first.
        neighbours: Chunks before and after each, 1 or more.
    """
    shown: dict[tuple[Any, ...], set[int]] = defaultdict(set)
    results = []
    for chunk in chunks:
        number = chunk.metadata.get(INDEX_KEY)
        if isinstance(number, bool) or not isinstance(number, int):
            results.append(chunk)
            continue
        document = tuple(chunk.metadata.get(key) for key in DOCUMENT_KEYS)
        if number in shown[document]:
            continue
        window = _window(collection, handle, chunk, number, neighbours)
        shown[document] |= {int(part.metadata[INDEX_KEY]) for part in window}
        results.append(_merged(chunk, window))
    return results


def _window(
    collection: ChromaCollection, handle: Handle, chunk: RetrievedChunk, number: int, neighbours: int
) -> list[RetrievedChunk]:
    numbers = list(range(max(0, number - neighbours), number + neighbours + 1))
    conditions: list[dict[str, Any]] = [
        {key: value} for key in DOCUMENT_KEYS if (value := chunk.metadata.get(key)) is not None
    ]
    found = collection.matching(handle, {"$and": [*conditions, {INDEX_KEY: {"$in": numbers}}]}) if conditions else []
    by_number = {int(part.metadata[INDEX_KEY]): part for part in found} | {number: chunk}
    first = last = number
    while first - 1 in by_number:
        first -= 1
    while last + 1 in by_number:
        last += 1
    return [by_number[place] for place in range(first, last + 1)]


def _merged(chunk: RetrievedChunk, window: Sequence[RetrievedChunk]) -> RetrievedChunk:
    text = window[0].content
    for earlier, later in pairwise(window):
        text = _joined(text, earlier, later)
    numbers = [int(window[0].metadata[INDEX_KEY]), int(window[-1].metadata[INDEX_KEY])]
    return chunk.model_copy(update={"content": text, "metadata": {**chunk.metadata, WINDOW_KEY: numbers}})


def _joined(text: str, earlier: RetrievedChunk, later: RetrievedChunk) -> str:
    starts = [part.metadata.get(START_KEY) for part in (earlier, later)]
    if all(isinstance(start, int) for start in starts):
        repeated = int(starts[0]) + len(earlier.content) - int(starts[1])  # type: ignore[arg-type]
        if repeated >= 0:
            return text + later.content[repeated:]
        return f"{text}\n\n{later.content}"
    longest = min(len(earlier.content), len(later.content))
    repeated = next((n for n in range(longest, LEAST_OVERLAP - 1, -1) if text.endswith(later.content[:n])), 0)
    return text + later.content[repeated:] if repeated else f"{text}\n\n{later.content}"
