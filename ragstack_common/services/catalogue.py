"""Which values documents have: as the document registry counts them, or as the engine finds them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeAlias

from cachetools import TTLCache
from pydantic import BaseModel, Field

from ragstack_common.access.rules import Scope
from ragstack_common.core.deadline import in_thread
from ragstack_common.core.errors import RetrievalTimeoutError
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.settings.names import ALL_CORPORA, CORPUS_KEY, VERSION_KEY

if TYPE_CHECKING:
    from ragstack_common.filters import Scalar
    from ragstack_common.registry.catalogue import SharedValues
    from ragstack_common.search import RetrievalBackend
    from ragstack_common.search.inference import Vocabulary

REMEMBERED_SECONDS: Final = 60.0
"""Lifetime of values from the engine, which takes one search for each page of values."""

REMEMBERED_LISTS: Final = 256
"""Maximum number of lists in memory. Callers with different labels have different lists."""

VOCABULARY_SECONDS: Final = 60.0
"""Age at which a newer snapshot is requested; searches use the old one meanwhile."""

VOCABULARY_WAIT_SECONDS: Final = 0.5
"""Maximum time that the first searches wait for the vocabulary."""

MAX_LISTED: Final = 2000
"""Maximum number of corpora or versions in a response, which Lambda limits to 6 MB; `GET /api/facets` has pages."""


class SearchableCorpus(BaseModel, defer_build=True):
    """A corpus: a value of the documents' attribute ``corpus``."""

    name: str
    configured: bool = Field(description="Whether searches over every corpus are balanced over it")
    searchable: bool = Field(description="Whether searches can find a document of it")
    documents: int | None = Field(
        default=None, description="How many searchable documents it has; null if the engine does not count them"
    )


class Corpora(BaseModel, defer_build=True):
    """The configured corpora in their order, then the other corpora."""

    corpora: list[SearchableCorpus]
    complete: bool = Field(description="False if there are more corpora than listed")


class Versions(BaseModel, defer_build=True):
    """The values of the documents' attribute ``version``."""

    versions: list[str | int | float | bool] = Field(description="In their natural order")
    documents: list[int] | None = Field(
        default=None,
        description="How many searchable documents have each version, in the same order; null if the engine does not"
        " count them",
    )
    complete: bool = Field(description="False if there are more versions than listed")


@dataclass(frozen=True)
class Values:
    """The values of an attribute in their natural order, and whether these are all.

    *documents* has the number of documents of each, in the same order; None if they are not counted.
    """

    values: "Sequence[Scalar]"
    documents: list[int] | None
    complete: bool


ValueSource = Callable[[str, Scope], Awaitable[Values]]
"""Returns the values of an attribute, among the documents that a caller sees."""


def values_of_registry(table: str) -> ValueSource:
    """Read values and counts from the document registry: one query, however many documents there are.

    The source raises RegistryError if the registry cannot be read.
    """
    # Searches do without the registry.
    from ragstack_common.core.clients import dynamodb_client  # noqa: PLC0415
    from ragstack_common.core.reporting import reaching_the_registry  # noqa: PLC0415
    from ragstack_common.registry.catalogue import Catalogue  # noqa: PLC0415
    from ragstack_common.search.values import natural_order  # noqa: PLC0415

    client = dynamodb_client()

    def counted(key: str, scope: Scope) -> Values:
        with reaching_the_registry():
            found = Catalogue(client, table, scope.labels).facets(key, MAX_LISTED + 1)
        counts = [(facet.value, facet.documents) for facet in found if facet.value is not None]
        listed = sorted(counts, key=lambda count: natural_order(count[0]))[:MAX_LISTED]
        values, documents = [value for value, _ in listed], [documents for _, documents in listed]
        return Values(values, documents, complete=len(found) <= MAX_LISTED)

    async def read(key: str, scope: Scope) -> Values:
        return await in_thread(lambda: counted(key, scope))

    return read


def values_of_engine(engine: "RetrievalBackend", timeout_seconds: float, clock: Callable[[], float]) -> ValueSource:
    """Find values by searching the engine, and remember them for a minute.

    The source raises RetrievalError, or RetrievalTimeoutError if all searches for one list take too long.
    """
    from ragstack_common.search.values import distinct_values  # noqa: PLC0415 - searches do without

    remembered: TTLCache[tuple[str, Scope], Values] = TTLCache(REMEMBERED_LISTS, REMEMBERED_SECONDS, clock)

    async def read(key: str, scope: Scope) -> Values:
        with suppress(KeyError):
            return remembered[key, scope]
        try:
            async with asyncio.timeout(timeout_seconds):
                found = await distinct_values(engine, key, filters=scope.filter)
        except TimeoutError as error:
            raise RetrievalTimeoutError(
                f"The values of {key} were not found within {timeout_seconds:g} seconds; try again"
            ) from error
        remembered[key, scope] = values = Values(found.values, None, complete=found.complete)
        return values

    return read


async def list_corpora(source: ValueSource, configured: Sequence[str], scope: Scope) -> Corpora:
    """List the configured corpora first, with documents or not, then the others. Raises the errors of the source."""
    found = await source(CORPUS_KEY, scope)
    numbers: Sequence[int | None] = found.documents or [None] * len(found.values)
    counts = dict(zip(found.values, numbers, strict=True))
    # A search can choose a corpus only by a text, and ALL_CORPORA stands for all of them.
    names = [value for value in found.values if isinstance(value, str) and value not in ("", ALL_CORPORA)]
    corpora = [
        SearchableCorpus(
            name=name,
            configured=name in configured,
            searchable=name in names,
            documents=counts[name] if name in names else None if found.documents is None else 0,
        )
        for name in dict.fromkeys([*configured, *names])
    ]
    return Corpora(corpora=corpora, complete=found.complete)


async def list_versions(source: ValueSource, scope: Scope) -> Versions:
    """List the versions. Raises the errors of the source."""
    found = await source(VERSION_KEY, scope)
    return Versions(versions=list(found.values), documents=found.documents, complete=found.complete)


class SnapshotVocabulary:
    """The values that questions can name, read from the snapshot of the catalogue in the background.

    Searches wait only for the first reading, and not long. A reading that fails is logged, and repeated when the next
    one is due.

    *read* blocks, and reads the snapshot of a bucket if it no longer has an entity tag.
    """

    def __init__(
        self, bucket: str, *, read: "SnapshotReader | None" = None, clock: Callable[[], float] = monotonic
    ) -> None:
        self._bucket = bucket
        self._read = read or _read_snapshot
        self._clock = clock
        self._lock = Lock()
        self._due = clock()
        self._reading: Future[None] = Future()
        self._vocabulary: Vocabulary | None = None
        self._etag: str | None = None

    async def __call__(self) -> "Vocabulary | None":
        """Return the latest vocabulary; None if none was read in time, or if there are no documents."""
        with self._lock:
            now = self._clock()
            if now >= self._due and not self._reading.running():
                self._due = now + VOCABULARY_SECONDS
                self._reading = Future()
                self._reading.set_running_or_notify_cancel()  # a search that stops waiting does not cancel it
                Thread(target=self._refresh, args=[self._reading], name="ragstack-vocabulary", daemon=True).start()
            waited = now - (self._due - VOCABULARY_SECONDS)
        if self._vocabulary is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, VOCABULARY_WAIT_SECONDS - waited)):
                    await asyncio.wrap_future(self._reading)
        return self._vocabulary

    def _refresh(self, reading: Future[None]) -> None:
        from ragstack_common.search.inference import Vocabulary  # noqa: PLC0415 - as above

        try:
            if (found := self._read(self._bucket, self._etag)) is not None:
                shared, self._etag = found
                # Without documents in the registry, those of the knowledge base came another way.
                usable = shared is not None and shared.documents > 0
                self._vocabulary = Vocabulary(shared.values, shared.documents) if shared and usable else None
        except Exception as error:  # noqa: BLE001 - searches do without it
            LOGGER.warning("The snapshot of the catalogue could not be read: %s", type(error).__name__, exc_info=error)
        reading.set_result(None)


SnapshotReader: TypeAlias = "Callable[[str, str | None], tuple[SharedValues | None, str | None] | None]"


def _read_snapshot(bucket: str, etag: str | None) -> "tuple[SharedValues | None, str | None] | None":
    from ragstack_common.core.clients import s3_client  # noqa: PLC0415 - as above
    from ragstack_common.registry.snapshot import read_if_changed  # noqa: PLC0415

    return read_if_changed(s3_client(), bucket, etag)
