"""The services behind the interface, made from the environment."""

from collections.abc import Mapping
from dataclasses import dataclass

from ragstack_common.api.documents.bucket import DocumentsBucket
from ragstack_common.api.documents.documents import Documents
from ragstack_common.api.documents.facets import facets_of
from ragstack_common.api.documents.jobs import Jobs
from ragstack_common.api.documents.models import Facets
from ragstack_common.api.documents.settings import DocumentApiSettings
from ragstack_common.api.documents.uploads import Uploads
from ragstack_common.clients import dynamodb_client, s3_client, sqs_client
from ragstack_common.registry.catalogue import Catalogue
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.jobs import JobStore
from ragstack_common.registry.listing import Listing


@dataclass(frozen=True)
class DocumentService:
    """What requests about documents and jobs are answered with."""

    uploads: Uploads
    documents: Documents
    jobs: Jobs
    catalogue: Catalogue

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "DocumentService":
        """Build the services that the environment describes.

        Raises:
            ConfigurationError: A variable is missing or unusable.
        """
        settings = DocumentApiSettings.from_env(env)
        table, client = settings.registry_table, dynamodb_client()
        bucket = DocumentsBucket(settings.documents_bucket, s3_client())
        return cls(
            uploads=Uploads(settings, bucket),
            documents=Documents(DocumentRegistry(table, client), Listing(client, table), bucket),
            jobs=Jobs(JobStore(table, client), settings.jobs_queue_url, sqs_client()),
            catalogue=Catalogue(client, table),
        )

    def facets(self, key: str | None) -> Facets:
        """List attributes with their values. Raises RegistryError where the registry cannot be read."""
        return facets_of(self.catalogue, key)
