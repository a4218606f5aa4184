"""Checks of MANAGED knowledge bases: creation, connectors, direct ingestion and jobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ragstack_common.ingestion.requests import CUSTOM
from ragstack_common.settings.names import CONNECTOR_SOURCE, CUSTOM_CONNECTOR, MANAGED_REGIONS
from ragstack_local.certify import documents, fixtures
from ragstack_local.certify.check import INVALID, Json, NotTried, Source, Topic
from ragstack_local.certify.site import Site, error_code

ON: Final = Topic("managed", "managed knowledge bases (docs/SEARCH.md)", "local_bedrock.operations.managed")

JOB_SECONDS: Final = 2000.0
"""How long a job of a connector may take."""


@dataclass(frozen=True)
class Managed:
    """A managed knowledge base of the run.

    Attributes:
        product: The connector CUSTOM, into which the product ingests.
        files: A connector S3.
        protected: A connector S3 with the default of the deletion protection.
        listed: A connector S3 with access control lists.
    """

    id: str
    product: fixtures.DataSource
    files: fixtures.DataSource
    protected: fixtures.DataSource
    listed: fixtures.DataSource


def configuration(kind: str, **parameters: Json) -> dict[str, Any]:
    """Return the configuration of a data source with a connector."""
    return {
        "type": CONNECTOR_SOURCE,
        "managedKnowledgeBaseConnectorConfiguration": {
            "connectorParameters": {**CUSTOM_CONNECTOR, "type": kind, **parameters}
        },
    }


def managed(site: Site) -> Managed:
    """The managed knowledge base."""
    if site.is_aws and site.region not in MANAGED_REGIONS:
        raise NotTried("the Region has no managed knowledge bases")
    name = fixtures.bucket_name(site, CUSTOM)
    fixtures.create_bucket(site, name)
    fixtures.upload(site, name)
    request = {
        "type": "MANAGED",
        "managedKnowledgeBaseConfiguration": {"embeddingModelType": "MANAGED"},
    }
    id_, _ = fixtures.create_knowledge_base(site, "managed", knowledgeBaseConfiguration=request)
    connection = {"connectionConfiguration": {"bucketName": name}}
    if site.is_aws:
        connection["connectionConfiguration"]["bucketOwnerAccountId"] = site.place.account

    def source(part: str, kind: str, **parameters: Json) -> fixtures.DataSource:
        return fixtures.create_source(site, id_, part, configuration(kind, **parameters))

    def of_prefix(prefix: str) -> dict[str, Json]:
        return {**connection, "filterConfiguration": {"inclusionPrefixes": [prefix]}}

    # One after the other: the service refuses several at once.
    return Managed(
        id_,
        source("product", "CUSTOM"),
        source("files", "S3", **of_prefix(documents.CONNECTOR_PREFIX)),
        source("protected", "S3", **of_prefix(documents.PROTECTED_PREFIX)),
        source("listed", "S3", **of_prefix(documents.LISTED_PREFIX), aclEnabled=True),
    )


def ingested(site: Site) -> Mapping[str, str]:
    """The documents in the managed knowledge base, as their statuses by key."""
    base = site.shared(managed)
    base.product.ingest([fixtures.request_for(site, key, CUSTOM) for key in documents.KEYS])
    jobs = {source: source.start_job() for source in (base.files, base.protected, base.listed)}
    statuses = base.product.settled(fixtures.identifiers(site, documents.KEYS, CUSTOM))
    for source, job in jobs.items():
        source.ended_job(job)
    site.eventually(
        lambda: (
            _search(site, documents.CONNECTOR_WORD)
            and documents.letters(_search(site, documents.ANIMAL_QUERY)) == documents.EVERY_ANIMAL
        ),
        "the documents to be found",
        fixtures.SEARCHABLE_SECONDS,
    )
    return dict(zip(documents.KEYS, statuses, strict=True))


def _search(site: Site, text: str, *, user: str | None = None, **search: Json) -> list[Mapping[str, Json]]:
    context = {"userContext": {"userId": user}} if user else {}
    answer = site.client("bedrock-agent-runtime", validates=False).retrieve(
        knowledgeBaseId=site.shared(managed).id,
        retrievalQuery={"text": text},
        retrievalConfiguration={"managedSearchConfiguration": {"numberOfResults": 100, **search}},
        **context,
    )
    return list(answer["retrievalResults"])


def find(site: Site, text: str, **search: Any) -> list[Mapping[str, Json]]:
    """Return the results of a search, once the documents are there."""
    site.shared(ingested)
    return _search(site, text, **search)


@ON.check(
    "creation",
    "A managed knowledge base is created without a storage, and its connectors one after the other",
    Source.DOCUMENTATION,
    {"type": "MANAGED", "status": "ACTIVE", "storage": False},
    used_by="knowledge_base=managed",
    held_in="local_bedrock.operations.resources",
)
def _creation(site: Site) -> Json:
    found = fixtures.created(site, managed)
    kind = found["knowledgeBaseConfiguration"]["type"]
    return {"type": kind, "status": found["status"], "storage": "storageConfiguration" in found}


@ON.check("s3_source", "A data source of type S3 is refused: it takes connectors", Source.DOCUMENTATION, INVALID)
def _s3_source(site: Site) -> Json:
    client, id_ = site.client("bedrock-agent"), site.shared(managed).id
    given = fixtures.s3_configuration(site, fixtures.bucket_name(site, CUSTOM))
    return error_code(
        lambda: client.create_data_source(knowledgeBaseId=id_, name="plain", dataSourceConfiguration=given)
    )


@ON.check("chunking", "Semantic chunking is refused", Source.DOCUMENTATION, INVALID)
def _chunking(site: Site) -> Json:
    client, id_ = site.client("bedrock-agent"), site.shared(managed).id
    semantic = {"maxTokens": 300, "bufferSize": 0, "breakpointPercentileThreshold": 95}
    chunking = {"chunkingStrategy": "SEMANTIC", "semanticChunkingConfiguration": semantic}
    return error_code(
        lambda: client.create_data_source(
            knowledgeBaseId=id_,
            name="semantic",
            dataSourceConfiguration=configuration("CUSTOM"),
            vectorIngestionConfiguration={"chunkingConfiguration": chunking},
        )
    )


@ON.check(
    "direct_ingestion",
    "The connector CUSTOM takes the product's documents: in S3, with their URIs as ids and with sidecars",
    Source.DOCUMENTATION,
    ["INDEXED"],
    used_by="knowledge_base=managed",
    held_in="local_bedrock.operations.ingestion",
)
def _direct_ingestion(site: Site) -> Json:
    statuses = site.shared(ingested)
    return sorted({statuses[f"{documents.ANIMAL_PREFIX}{letter}.md"] for letter in documents.ANIMALS})


@ON.check(
    "statuses",
    "Documents have the statuses of the service model, and no other",
    Source.MODEL,
    [],
    used_by="states of documents, reconciliation",
    held_in="local_bedrock.operations.ingestion",
)
def _statuses(site: Site) -> Json:
    """Those that it does not know."""
    site.shared(ingested)
    return fixtures.unknown_statuses(site, site.shared(managed).id)


@ON.check(
    "job_of_custom",
    "The connector CUSTOM has no ingestion jobs",
    Source.GUESS,
    INVALID,
    used_by="reconciliation",
    held_in="local_bedrock.operations.ingestion",
)
def _job_of_custom(site: Site) -> Json:
    return error_code(site.shared(managed).product.start_job)


@ON.check(
    "direct_ingestion_of_s3",
    "The connector S3 takes no documents directly",
    Source.GUESS,
    INVALID,
    held_in="local_bedrock.operations.ingestion",
)
def _direct_ingestion_of_s3(site: Site) -> Json:
    source, some = site.shared(managed).files, [fixtures.request_for(site, documents.CONNECTOR_KEY)]
    return error_code(lambda: source.ingest(some))


@ON.check(
    "deletion_protection",
    "A job that would delete more than 15 % of the documents deletes nothing",
    Source.DOCUMENTATION,
    {"deleted": 0, "found": len(documents.PROTECTED_KEYS)},
    used_by="knowledge_base=existing, managed",
    held_in="local_bedrock.ingestion.synchronisation",
    seconds=JOB_SECONDS,
)
def _deletion_protection(site: Site) -> Json:
    base = site.shared(managed)
    site.shared(ingested)
    s3 = site.client("s3")
    for key in documents.PROTECTED_KEYS[:3]:
        s3.delete_object(Bucket=fixtures.bucket_name(site, CUSTOM), Key=key)
    job = base.protected.ended_job(base.protected.start_job())
    found = str([each["location"] for each in find(site, documents.PROTECTED_WORD)])
    return {
        "deleted": job["statistics"]["numberOfDocumentsDeleted"],
        "found": sum(key in found for key in documents.PROTECTED_KEYS),
    }
