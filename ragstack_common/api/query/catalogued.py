"""What can be searched, as the document registry counts it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.api.query.models import Corpora, SearchableCorpus, Versions
from ragstack_common.api.query.searchable import CORPUS_KEY, VERSION_KEY, is_choosable, with_configured
from ragstack_common.clients import dynamodb_client
from ragstack_common.errors import RegistryError
from ragstack_common.registry.catalogue import Catalogue
from ragstack_common.retrieval.values import natural_order

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from ragstack_common.filters import Scalar


class Catalogued:
    """Reads the catalogue, which changes with the documents: one query, however many there are."""

    def __init__(self, table: str, corpora: Sequence[str], client: "DynamoDBClient | None" = None) -> None:
        """Bind the registry.

        Args:
            table: Its name.
            corpora: Those that are configured.
            client: A boto3 client of DynamoDB; by default one is made.
        """
        self._catalogue = Catalogue(client or dynamodb_client(), table)
        self._configured = tuple(corpora)

    def corpora(self) -> Corpora:
        """Name the corpora: those that are configured first, with documents or not.

        Raises:
            RegistryError: The registry cannot be read.
        """
        counts = {str(value): documents for value, documents in self._counts(CORPUS_KEY) if is_choosable(value)}
        return Corpora(
            corpora=[
                SearchableCorpus(
                    name=name,
                    configured=name in self._configured,
                    searchable=name in counts,
                    documents=counts.get(name, 0),
                )
                for name in with_configured(counts, self._configured)
            ],
            complete=True,
        )

    def versions(self) -> Versions:
        """Name the versions.

        Raises:
            RegistryError: The registry cannot be read.
        """
        counts = self._counts(VERSION_KEY)
        return Versions(
            versions=[value for value, _ in counts], documents=[documents for _, documents in counts], complete=True
        )

    def _counts(self, key: str) -> "list[tuple[Scalar, int]]":
        try:
            found = self._catalogue.facets(key)
        except (ClientError, BotoCoreError) as error:
            code = error.response.get("Error", {}).get("Code") if isinstance(error, ClientError) else None
            raise RegistryError(
                f"The document registry could not be read ({code or type(error).__name__}); "
                "the same request may succeed later"
            ) from error
        counts = [(facet.value, facet.documents) for facet in found if facet.value is not None]
        return sorted(counts, key=lambda counted: natural_order(counted[0]))
