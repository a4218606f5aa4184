"""What can be searched: the corpora and the versions of the documents, as the engine has them now."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from ragstack_common.api.query.models import Corpora, SearchableCorpus, Versions
from ragstack_common.config import ALL_CORPORA
from ragstack_common.errors import RetrievalTimeoutError
from ragstack_common.retrieval import RetrievalBackend

if TYPE_CHECKING:
    from ragstack_common.retrieval.values import DistinctValues

T = TypeVar("T", Corpora, Versions)

CORPUS_KEY: Final = "corpus"
VERSION_KEY: Final = "version"

REMEMBERED_SECONDS: Final = 60.0
"""The engine is asked once for each page of values, and documents change more slowly than people look."""


def with_configured(names: Iterable[str], configured: Sequence[str]) -> tuple[str, ...]:
    """Put the corpora that are configured, found or not, before the others that were found."""
    return (*configured, *(name for name in names if name not in configured))


def is_choosable(corpus: object) -> bool:
    """Tell whether a search can choose a corpus by this value: only a text can, but for the word for all of them."""
    return isinstance(corpus, str) and corpus not in ("", ALL_CORPORA)


class Searchable:
    """Finds out what there is, and remembers it for a minute."""

    def __init__(
        self, engine: RetrievalBackend, corpora: Sequence[str], timeout_seconds: float, clock: Callable[[], float]
    ) -> None:
        """Bind the engine.

        Args:
            engine: Where documents are searched.
            corpora: Those that are configured.
            timeout_seconds: For all searches that one answer takes.
            clock: Seconds, ever growing.
        """
        self._engine = engine
        self._configured = tuple(corpora)
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._remembered: dict[type, tuple[float, Corpora | Versions]] = {}

    async def corpora(self) -> Corpora:
        """Name the corpora: those that are configured first, found or not."""
        return await self._remember(Corpora, self._find_corpora)

    async def versions(self) -> Versions:
        """Name the versions."""
        return await self._remember(Versions, self._find_versions)

    async def _find_corpora(self) -> Corpora:
        found = await self._values(CORPUS_KEY)
        names = [str(value) for value in found.values if is_choosable(value)]
        return Corpora(
            corpora=[
                SearchableCorpus(name=name, configured=name in self._configured, searchable=name in names)
                for name in with_configured(names, self._configured)
            ],
            complete=found.complete,
        )

    async def _find_versions(self) -> Versions:
        found = await self._values(VERSION_KEY)
        return Versions(versions=list(found.values), complete=found.complete)

    async def _values(self, key: str) -> "DistinctValues":
        from ragstack_common.retrieval.values import distinct_values  # noqa: PLC0415 - searches do without

        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await distinct_values(self._engine, key)
        except TimeoutError as error:
            raise RetrievalTimeoutError(
                f"The values of {key} were not found out within {self._timeout_seconds:g} seconds; try again"
            ) from error

    async def _remember(self, kind: type[T], find: Callable[[], Awaitable[T]]) -> T:
        end, answer = self._remembered.get(kind, (0.0, None))
        if not isinstance(answer, kind) or self._clock() >= end:
            answer = await find()
            self._remembered[kind] = (self._clock() + REMEMBERED_SECONDS, answer)
        return answer
