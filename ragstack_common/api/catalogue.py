"""Which corpora and versions can be searched: as the document registry counts them, or as the engine finds them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from pydantic import BaseModel, ConfigDict, Field

from ragstack_common.config import ALL_CORPORA
from ragstack_common.errors import RetrievalTimeoutError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from ragstack_common.filters import Scalar
    from ragstack_common.retrieval import RetrievalBackend

CORPUS_KEY: Final = "corpus"
VERSION_KEY: Final = "version"

REMEMBERED_SECONDS: Final = 60.0
"""The engine is searched once for each page of values, and documents change rarely."""

_BUILT_WHEN_USED: Final = ConfigDict(defer_build=True)
"""For answers that most containers never give: each model takes half a millisecond of a cold start."""


class SearchableCorpus(BaseModel):
    """A corpus: a value of the documents' attribute ``corpus``."""

    model_config = _BUILT_WHEN_USED

    name: str
    configured: bool = Field(description="Whether searches over every corpus are balanced over it")
    searchable: bool = Field(description="Whether searches can find a document of it")
    documents: int | None = Field(
        default=None, description="How many searchable documents it has; null if the engine does not count them"
    )


class Corpora(BaseModel):
    """The configured corpora in their order, then the other corpora."""

    model_config = _BUILT_WHEN_USED

    corpora: list[SearchableCorpus]
    complete: bool = Field(description="False if there are more corpora than listed")


class Versions(BaseModel):
    """The values of the documents' attribute ``version``."""

    model_config = _BUILT_WHEN_USED

    versions: list[str | int | float | bool] = Field(description="In their natural order")
    documents: list[int] | None = Field(
        default=None,
        description="How many searchable documents have each version, in the same order; null if the engine does not"
        " count them",
    )
    complete: bool = Field(description="False if there are more versions than listed")


@dataclass(frozen=True)
class Values:
    """The values of an attribute in their natural order.

    Attributes:
        values: Each once.
        documents: How many documents have each, in the same order; None if they are not counted.
        complete: Whether these are all.
    """

    values: "Sequence[Scalar]"
    documents: Sequence[int] | None
    complete: bool


class ValueSource(Protocol):
    """Reads the values of an attribute."""

    async def read(self, key: str) -> Values:
        """Return the values of *key*."""


class RegistryValues:
    """Reads values and counts from the document registry: one query, however many documents there are."""

    def __init__(self, table: str, client: "DynamoDBClient | None" = None) -> None:
        """Bind the registry's table.

        Args:
            table: Its name.
            client: A boto3 client of DynamoDB; by default one is made.
        """
        from ragstack_common.clients import dynamodb_client  # noqa: PLC0415 - searches do without the registry
        from ragstack_common.registry.catalogue import Catalogue  # noqa: PLC0415

        self._catalogue = Catalogue(client or dynamodb_client(), table)

    async def read(self, key: str) -> Values:
        """Return the values of *key*.

        Raises:
            RegistryError: The registry cannot be read.
        """
        from ragstack_common.error_responses import reaching_the_registry  # noqa: PLC0415
        from ragstack_common.retrieval.values import natural_order  # noqa: PLC0415

        with reaching_the_registry():
            found = self._catalogue.facets(key)
        counts = [(facet.value, facet.documents) for facet in found if facet.value is not None]
        counts.sort(key=lambda counted: natural_order(counted[0]))
        return Values([value for value, _ in counts], [documents for _, documents in counts], complete=True)


class EngineValues:
    """Finds values by searching the engine, and remembers them for a minute."""

    def __init__(self, engine: "RetrievalBackend", timeout_seconds: float, clock: Callable[[], float]) -> None:
        """Bind the engine.

        Args:
            engine: Where documents are searched.
            timeout_seconds: For all searches that one answer takes.
            clock: Seconds, never decreasing.
        """
        self._engine = engine
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._remembered: dict[str, tuple[float, Values]] = {}

    async def read(self, key: str) -> Values:
        """Return the values of *key*.

        Raises:
            RetrievalTimeoutError: The searches did not end in time.
            RetrievalError: The engine failed.
        """
        from ragstack_common.retrieval.values import distinct_values  # noqa: PLC0415 - searches do without

        end, values = self._remembered.get(key, (0.0, None))
        if values is None or self._clock() >= end:
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    found = await distinct_values(self._engine, key)
            except TimeoutError as error:
                raise RetrievalTimeoutError(
                    f"The values of {key} were not found within {self._timeout_seconds:g} seconds; try again"
                ) from error
            values = Values(found.values, None, complete=found.complete)
            self._remembered[key] = (self._clock() + REMEMBERED_SECONDS, values)
        return values


async def list_corpora(source: ValueSource, configured: Sequence[str]) -> Corpora:
    """List the configured corpora first, with documents or not, then the others. Errors are those of the source."""
    found = await source.read(CORPUS_KEY)
    # A search can choose a corpus only by a text, and ALL_CORPORA stands for all of them.
    counts = {
        value: None if found.documents is None else found.documents[number]
        for number, value in enumerate(found.values)
        if isinstance(value, str) and value not in ("", ALL_CORPORA)
    }
    without_documents = None if found.documents is None else 0
    corpora = [
        SearchableCorpus(
            name=name,
            configured=name in configured,
            searchable=name in counts,
            documents=counts.get(name, without_documents),
        )
        for name in dict.fromkeys([*configured, *counts])
    ]
    return Corpora(corpora=corpora, complete=found.complete)


async def list_versions(source: ValueSource) -> Versions:
    """List the versions. Errors are those of the source."""
    found = await source.read(VERSION_KEY)
    documents = None if found.documents is None else list(found.documents)
    return Versions(versions=list(found.values), documents=documents, complete=found.complete)
