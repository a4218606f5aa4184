"""The corpora over which a search of all of them is balanced, if none are configured: those that documents have."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from cachetools import TTLCache

from ragstack_common.access.rules import Scope
from ragstack_common.core.deadline import seconds_left
from ragstack_common.core.errors import RagStackError
from ragstack_common.search.parts import one_line
from ragstack_common.services.catalogue import REMEMBERED_LISTS, REMEMBERED_SECONDS, ValueSource, list_corpora
from ragstack_common.settings.limits import MAX_CORPORA, MAX_RETRIEVAL_SECONDS


@dataclass(frozen=True)
class KnownCorpora:
    """Corpora to search, and a note about them for the caller of the search.

    If they *are_found* in the documents and not configured, some documents may have other corpora, or none.
    """

    names: tuple[str, ...]
    are_found: bool = False
    note: str | None = None


class FoundCorpora:
    """Finds the corpora of documents, and remembers them for a minute."""

    def __init__(self, source: ValueSource, clock: Callable[[], float]) -> None:
        self._source = source
        self._known: TTLCache[Scope, KnownCorpora] = TTLCache(REMEMBERED_LISTS, REMEMBERED_SECONDS, clock)

    async def __call__(self, scope: Scope) -> KnownCorpora:
        """Return up to 20 corpora, those with the most documents where these are counted.

        If they cannot be found in time, there are none, and a note with the reason.
        """
        with suppress(KeyError):
            return self._known[scope]
        try:
            async with asyncio.timeout(seconds_left(MAX_RETRIEVAL_SECONDS) / 2):
                found = await self._found(scope)
        except (RagStackError, TimeoutError) as error:
            reason = one_line(error) if isinstance(error, RagStackError) else "they were not found in time"
            found = KnownCorpora((), are_found=True, note=f"The search was not balanced over corpora: {reason}")
        self._known[scope] = found
        return found

    async def _found(self, scope: Scope) -> KnownCorpora:
        listed = await list_corpora(self._source, (), scope)
        largest = sorted(listed.corpora, key=lambda each: -(each.documents or 0))[:MAX_CORPORA]
        names = tuple(each.name for each in listed.corpora if each in largest)
        if listed.complete and len(names) == len(listed.corpora):
            return KnownCorpora(names, are_found=True)
        note = (
            f"The search was balanced over {len(names)} of the corpora, and searched the others together: set"
            " MULTI_CORPUS_METADATA to choose the corpora, or search one of them with corpus_filter"
        )
        return KnownCorpora(names, are_found=True, note=note)
