"""What checks of MANAGED knowledge bases share: one of them, with connectors, documents and jobs."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from ragstack_common.ingestion.requests import CUSTOM, document_identifier, text_document
from ragstack_common.settings.names import CONNECTOR_SOURCE, CUSTOM_CONNECTOR, MANAGED_REGIONS
from ragstack_local.certify import documents, fixtures
from ragstack_local.certify.check import Json, NotTried
from ragstack_local.certify.site import FixtureError, Site, error_code

JOB_SECONDS: Final = 2000.0
"""How long a job of a connector may take."""

FOUND_SECONDS: Final = 60.0
"""How long a search is repeated on AWS until it finds what is expected."""


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

    def source(part: str, kind: str, **parameters: Json) -> fixtures.DataSource:
        return fixtures.create_source(site, id_, part, configuration(kind, **parameters))

    # One after the other: the service refuses several at once.
    return Managed(
        id_,
        source("product", "CUSTOM"),
        source("files", "S3", **of_prefix(site, documents.CONNECTOR_PREFIX)),
        source("protected", "S3", **of_prefix(site, documents.PROTECTED_PREFIX)),
        source("listed", "S3", **of_prefix(site, documents.LISTED_PREFIX), aclEnabled=True),
    )


def of_prefix(site: Site, prefix: str, **filters: Json) -> dict[str, Json]:
    """Return the parameters of a connector S3 for the objects below a prefix."""
    connection = {"bucketName": fixtures.bucket_name(site, CUSTOM)}
    if site.is_aws:
        connection["bucketOwnerAccountId"] = site.place.account
    return {
        "connectionConfiguration": connection,
        "filterConfiguration": {"inclusionPrefixes": [prefix], **filters},
    }


@dataclass(frozen=True)
class Started:
    """A connector S3 with a job that was started."""

    source: fixtures.DataSource
    job: str


def _started(site: Site, part: str, **parameters: Json) -> Started:
    source = fixtures.create_source(site, site.shared(managed).id, part, configuration("S3", **parameters))
    return Started(source, source.start_job())


def selected(site: Site) -> Started:
    """The connector S3 with patterns, a maximum size, and a prefix of metadata files."""
    filters = {"inclusionPatterns": list(documents.SELECTED_PATTERNS), "maxFileSizeInMegaBytes": "1"}
    parameters = of_prefix(site, documents.SELECTED_PREFIX, **filters)
    return _started(site, "selected", **parameters, metadataFilesPrefix=documents.METADATA_PREFIX)


def prefixed(site: Site) -> Started:
    """The connector S3 with a file of access control lists."""
    key = "lists/prefixes.json"
    entries = [
        {
            "keyPrefix": fixtures.document_uri(site, prefix, CUSTOM),
            "aclEntries": [{"Name": user, "Type": "USER", "Access": access}],
        }
        for prefix, (user, access) in documents.ENTRIES.items()
    ]
    site.client("s3").put_object(Bucket=fixtures.bucket_name(site, CUSTOM), Key=key, Body=json.dumps(entries).encode())
    return _started(site, "prefixed", **_with_lists(site, key))


def unreadable(site: Site) -> Started:
    """The connector S3 whose file of access control lists is not JSON."""
    return _started(site, "unreadable", **_with_lists(site, documents.UNREADABLE_KEY))


def _with_lists(site: Site, key: str) -> dict[str, Json]:
    lists = {"globalAccessControlListS3Uri": fixtures.document_uri(site, key, CUSTOM)}
    return {**of_prefix(site, documents.SHARED_PREFIX), "aclEnabled": True, "aclConfiguration": lists}


EARLY: Final[Sequence[Callable[[Site], Started]]] = (selected, prefixed, unreadable)
"""Their jobs run while the documents are ingested. If one cannot be made, only its checks are not tried."""


def ingested(site: Site) -> Mapping[str, str]:
    """The documents in the managed knowledge base, as their statuses by key."""
    base = site.shared(managed)
    keys = (*documents.KEYS, documents.MANY_KEY)
    base.product.ingest([fixtures.request_for(site, key, CUSTOM) for key in keys])
    jobs = {source: source.start_job() for source in (base.files, base.protected, base.listed)}
    for make in EARLY:
        with suppress(FixtureError):
            site.shared(make)
    statuses = base.product.settled(fixtures.identifiers(site, keys, CUSTOM))
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
    return dict(zip(keys, statuses, strict=True))


@dataclass(frozen=True)
class Changed:
    """Second jobs, after objects were changed.

    Attributes:
        job: The ended job of the protected connector: three of ten documents are gone, and one is new.
        job_meanwhile: What a further job during that one is answered with.
        was_listed: Whether a reader found the document before its access control list became unreadable.
    """

    job: Mapping[str, Any]
    job_meanwhile: Json
    was_listed: bool


def own_embedding(site: Site) -> fixtures.DataSource:
    """The managed knowledge base with an embedding model of its own, and chunks of a fixed size."""
    site.shared(managed)  # one after the other
    model = f"arn:{site.partition}:bedrock:{site.region}::foundation-model/{fixtures.EMBEDDING}"
    embedding = {
        "embeddingModelType": "CUSTOM",
        "embeddingModelArn": model,
        "embeddingModelConfiguration": {"bedrockEmbeddingModelConfiguration": {"dimensions": fixtures.DIMENSION}},
    }
    request = {"type": "MANAGED", "managedKnowledgeBaseConfiguration": embedding}
    id_, _ = fixtures.create_knowledge_base(site, "own", knowledgeBaseConfiguration=request)
    fixed = {
        "chunkingStrategy": "FIXED_SIZE",
        "fixedSizeChunkingConfiguration": {"maxTokens": 100, "overlapPercentage": 10},
    }
    source = fixtures.create_source(
        site,
        id_,
        "texts",
        configuration("CUSTOM"),
        vectorIngestionConfiguration={"chunkingConfiguration": fixed},
    )
    keys = [f"{documents.PEOPLE_PREFIX}{number}" for number in range(3)]
    source.ingest([text_document(key, f"The {documents.PEOPLE_WORD} {key} keeps the accounts.") for key in keys])
    source.settled([document_identifier(key, CUSTOM) for key in keys])
    runtime = site.client("bedrock-agent-runtime")
    site.eventually(
        lambda: (
            len(
                runtime.retrieve(knowledgeBaseId=id_, retrievalQuery={"text": documents.PEOPLE_WORD})[
                    "retrievalResults"
                ]
            )
            == len(keys)
        ),
        "the documents to be found",
        fixtures.SEARCHABLE_SECONDS,
    )
    return source


ADDED_KEY: Final = f"{documents.PROTECTED_PREFIX}added.md"


def changed(site: Site) -> Changed:
    """The second jobs of the managed knowledge base."""
    base, s3, bucket = site.shared(managed), site.client("s3"), fixtures.bucket_name(site, CUSTOM)
    lost = documents.LOST_KEY.removeprefix(documents.LISTED_PREFIX)
    was_listed = lost in names(site, documents.LISTED_WORD, documents.LISTED_PREFIX, user=documents.READER)
    for key in documents.PROTECTED_KEYS[:3]:
        s3.delete_object(Bucket=bucket, Key=key)
    s3.put_object(Bucket=bucket, Key=ADDED_KEY, Body=f"The {documents.PROTECTED_WORD} {ADDED_KEY} is new.\n".encode())
    s3.put_object(Bucket=bucket, Key=f"{documents.LOST_KEY}.metadata.json", Body=documents.UNREADABLE_LIST)
    job = base.protected.start_job()
    job_meanwhile = error_code(base.protected.start_job)
    other = base.listed.start_job()
    base.listed.ended_job(other)
    return Changed(base.protected.ended_job(job), job_meanwhile, was_listed)


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


def names(site: Site, text: str, prefix: str, *, expected: Sequence[str] | None = None, **search: Any) -> Sequence[str]:
    """Return the names of the documents below a prefix that a search finds, sorted.

    On AWS, a search is repeated for some time until it finds the *expected* ones, if they are given.
    """

    def look() -> Sequence[str]:
        uris = map(documents.uri_of, find(site, text, **search))
        return sorted({uri.rpartition(prefix)[2] for uri in uris if prefix in uri})

    found = look()
    if site.is_aws and expected is not None and found != expected:
        with suppress(TimeoutError):
            site.eventually(lambda: look() == expected, "the documents to be found", FOUND_SECONDS)
        found = look()
    return found
