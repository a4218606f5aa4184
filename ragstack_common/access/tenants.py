"""Which knowledge base has which documents, if tenants have knowledge bases of their own."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

from ragstack_common.access.policy import AccessPolicy
from ragstack_common.core.errors import ConfigurationError
from ragstack_common.core.uris import key_of_uri
from ragstack_common.settings.search import SearchSettings
from ragstack_common.settings.tenants import SHARED, TenantKnowledgeBases

if TYPE_CHECKING:
    from ragstack_common.settings.ingestion import PathSettings


class KnowledgeBaseIds(NamedTuple):
    """A knowledge base and its data source that reads the documents bucket, by their ids."""

    id: str
    data_source_id: str


@dataclass(frozen=True)
class KnowledgeBases:
    """Where documents are indexed: in the knowledge base of their tenant, or in the shared one.

    The access file has the prefixes of the tenants.
    """

    shared: KnowledgeBaseIds
    tenants: Mapping[str, KnowledgeBaseIds]
    policy: AccessPolicy

    @classmethod
    def of(cls, settings: "PathSettings", policy: AccessPolicy | None) -> Self:
        """Return those in the settings; raises ConfigurationError if the access file has other tenants."""
        policy = policy or AccessPolicy()
        _check_tenants(settings.tenant_knowledge_bases, policy)
        shared = KnowledgeBaseIds(settings.knowledge_base_id, settings.data_source_id)
        return cls(
            shared, {name: KnowledgeBaseIds(*ids) for name, ids in settings.tenant_knowledge_bases.items()}, policy
        )

    @property
    def by_name(self) -> dict[str, KnowledgeBaseIds]:
        """The shared one, then the knowledge bases of the tenants."""
        return {SHARED: self.shared, **self.tenants}

    def of_uri(self, uri: str) -> KnowledgeBaseIds:
        """Return the knowledge base of a document of the bucket."""
        if not self.tenants:
            return self.shared
        tenant = self.policy.tenant_of(key_of_uri(uri))
        return self.shared if tenant is None else self.tenants[tenant]

    def grouped(self, uris: Iterable[str]) -> Iterator[tuple[KnowledgeBaseIds, list[str]]]:
        """Group documents by their knowledge base: a call is about the documents of one."""
        groups: dict[KnowledgeBaseIds, list[str]] = {}
        for uri in uris:
            groups.setdefault(self.of_uri(uri), []).append(uri)
        return iter(groups.items())


@dataclass(frozen=True)
class TenantIndexes:
    """The knowledge bases of tenants, for searches: their ids by name, and the labels that their documents can have."""

    attribute: str
    shared_labels: frozenset[str]
    tenants: Mapping[str, tuple[str, frozenset[str]]]

    @classmethod
    def of(cls, settings: SearchSettings, policy: AccessPolicy | None) -> Self | None:
        """Return those in the settings, as :meth:`KnowledgeBases.of` does; None if there is only the shared one."""
        if not settings.tenant_knowledge_bases:
            return None
        policy = policy or AccessPolicy()
        _check_tenants(settings.tenant_knowledge_bases, policy)
        tenants = {
            name: (ids[0], policy.labels_of_tenant(name)) for name, ids in settings.tenant_knowledge_bases.items()
        }
        return cls(policy.attribute, policy.labels_of_tenant(None), tenants)


def _check_tenants(configured: TenantKnowledgeBases, policy: AccessPolicy) -> None:
    if configured and (different := sorted(configured.keys() ^ policy.tenants.keys())):
        raise ConfigurationError(
            f"TENANT_KNOWLEDGE_BASES and the access file must have the same tenants, and differ by {different[0]}:"
            " deploy both together"
        )
