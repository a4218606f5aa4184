"""The chunks that Retrieve finds for one query, page by page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ragstack_common.core.deadline import in_thread
from ragstack_common.filters import Filter
from ragstack_common.search.models import RetrievedChunk
from ragstack_common.settings.limits import MAX_RESULTS


@dataclass(frozen=True)
class Page:
    """A page of Retrieve, the token of the next one, and the embedding if the service reports it."""

    chunks: list[RetrievedChunk]
    next_token: str | None
    embedding: str | None


class Finder:
    """The search of one query by Retrieve, which continues after the pages that it has read.

    A full page without a token is not the end: a managed search has no pages, and a larger one finds more.

    Attributes:
        embedding: As the service reports it, after the first page.
    """

    def __init__(
        self,
        request: Callable[[int, Filter | None], dict[str, Any]],
        page: Callable[[Mapping[str, Any], Filter | None], Page],
    ) -> None:
        self._request = request
        self._page = page
        self._read: dict[Filter | None, tuple[list[RetrievedChunk], dict[str, Any] | None]] = {}
        self.embedding: str | None = None

    async def __call__(self, count: int, restriction: Filter | None) -> list[RetrievedChunk]:
        """Return the best *count* chunks or more; fewer if there are no others."""
        first = self._request(min(count, MAX_RESULTS), restriction)
        chunks, request = self._read.get(restriction, ([], first))
        while request is not None and len(chunks) < count:
            page = await in_thread(partial(self._page, request, restriction))
            self.embedding = page.embedding
            chunks = chunks + page.chunks
            request = {**request, "nextToken": page.next_token} if page.next_token else None
        if request is not None or len(chunks) < count:
            self._read[restriction] = chunks, request
        return chunks
