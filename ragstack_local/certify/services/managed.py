"""Checks of MANAGED knowledge bases: creation, connectors, direct ingestion and jobs."""

import json
from collections.abc import Sequence
from typing import Final

from ragstack_common.ingestion.requests import CUSTOM
from ragstack_local.certify import documents, fixtures
from ragstack_local.certify.check import INVALID, Json, Source, Topic
from ragstack_local.certify.services.managed_fixtures import (
    ADDED_KEY,
    JOB_SECONDS,
    changed,
    configuration,
    find,
    ingested,
    managed,
    names,
    selected,
)
from ragstack_local.certify.site import Site, error_code

USED_BY: Final = "managed knowledge bases (docs/SEARCH.md)"

ON: Final = Topic("managed", USED_BY, "local_bedrock.operations.managed")

SELECTION: Final = "local_bedrock.reading.selection"
JOBS: Final = "local_bedrock.ingestion.synchronisation"
DOCUMENTS: Final = "local_bedrock.operations.ingestion"


@ON.check(
    "creation",
    "A managed knowledge base is created without storageConfiguration, and its data sources one after the other",
    Source.DOCUMENTATION,
    {"type": "MANAGED", "status": "ACTIVE", "storage": False},
    used_by="knowledge_base=managed",
    held_in="local_bedrock.operations.resources",
    seconds=JOB_SECONDS,
)
def _creation(site: Site) -> Json:
    found = fixtures.created(site, managed)
    kind = found["knowledgeBaseConfiguration"]["type"]
    return {"type": kind, "status": found["status"], "storage": "storageConfiguration" in found}


@ON.check(
    "s3_source",
    "A managed knowledge base refuses a data source of type S3, because it takes only connectors",
    Source.DOCUMENTATION,
    INVALID,
)
def _s3_source(site: Site) -> Json:
    client, id_ = site.client("bedrock-agent"), site.shared(managed).id
    given = fixtures.s3_configuration(site, fixtures.bucket_name(site, CUSTOM))
    return error_code(
        lambda: client.create_data_source(knowledgeBaseId=id_, name="plain", dataSourceConfiguration=given)
    )


@ON.check("chunking", "A managed knowledge base refuses semantic chunking", Source.DOCUMENTATION, INVALID)
def _chunking(site: Site) -> Json:
    semantic = {"maxTokens": 300, "bufferSize": 0, "breakpointPercentileThreshold": 95}
    return _source_with(site, {"chunkingStrategy": "SEMANTIC", "semanticChunkingConfiguration": semantic})


def _source_with(site: Site, chunking: Json) -> Json:
    client, id_ = site.client("bedrock-agent"), site.shared(managed).id
    return error_code(
        lambda: client.create_data_source(
            knowledgeBaseId=id_,
            name=site.unused("chunking"),
            dataSourceConfiguration=configuration("CUSTOM"),
            vectorIngestionConfiguration={"chunkingConfiguration": chunking},
        )
    )


@ON.check(
    "chunking_fixed",
    "A managed knowledge base with the managed embedding refuses FIXED_SIZE chunking",
    Source.THIRD_PARTY,
    INVALID,
)
def _chunking_fixed(site: Site) -> Json:
    fixed = {"maxTokens": 300, "overlapPercentage": 20}
    return _source_with(site, {"chunkingStrategy": "FIXED_SIZE", "fixedSizeChunkingConfiguration": fixed})


@ON.check(
    "connector_parameters",
    "GetDataSource returns connectorParameters as JSON text, with defaults filled in",
    Source.THIRD_PARTY,
    {"form": "text", "type": "S3", "aclEnabled": False, "maxFileSizeInMegaBytes": "500"},
    used_by="`ragstack doctor --aws`",
)
def _connector_parameters(site: Site) -> Json:
    source = site.shared(managed).files
    found = site.client("bedrock-agent").get_data_source(**source.ids)["dataSource"]["dataSourceConfiguration"]
    given = found["managedKnowledgeBaseConnectorConfiguration"]["connectorParameters"]
    parameters = json.loads(given) if isinstance(given, str) else given
    return {
        "form": "text" if isinstance(given, str) else "an object",
        "type": parameters.get("type"),
        "aclEnabled": parameters.get("aclEnabled"),
        "maxFileSizeInMegaBytes": parameters.get("filterConfiguration", {}).get("maxFileSizeInMegaBytes"),
    }


@ON.check(
    "invalid_connector",
    "A data source with the S3 connector and no bucket is created, and becomes FAILED with failureReasons",
    Source.THIRD_PARTY,
    {"status": "FAILED", "reasons": True},
)
def _invalid_connector(site: Site) -> Json:
    agent, id_ = site.client("bedrock-agent"), site.shared(managed).id
    source = agent.create_data_source(
        knowledgeBaseId=id_, name=site.unused("invalid"), dataSourceConfiguration=configuration("S3")
    )["dataSource"]

    def look() -> Json:
        found = agent.get_data_source(knowledgeBaseId=id_, dataSourceId=source["dataSourceId"])["dataSource"]
        return found if found["status"] != "CREATING" else None

    found = site.eventually(look, "the data source to be FAILED")
    return {"status": found["status"], "reasons": bool(found.get("failureReasons"))}


@ON.check(
    "direct_ingestion",
    "The CUSTOM connector takes documents in S3 directly, with their URIs as ids, and with sidecars",
    Source.DOCUMENTATION,
    ["INDEXED"],
    used_by="knowledge_base=managed",
    held_in=DOCUMENTS,
    seconds=JOB_SECONDS,
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
    held_in=DOCUMENTS,
    seconds=JOB_SECONDS,
)
def _statuses(site: Site) -> Json:
    """Those that it does not know."""
    site.shared(ingested)
    return fixtures.unknown_statuses(site, site.shared(managed).id)


@ON.check(
    "job_of_custom",
    "The CUSTOM connector has no ingestion jobs",
    Source.GUESS,
    INVALID,
    used_by="reconciliation",
    held_in=DOCUMENTS,
)
def _job_of_custom(site: Site) -> Json:
    return error_code(site.shared(managed).product.start_job)


@ON.check(
    "direct_ingestion_of_s3",
    "The S3 connector refuses direct ingestion",
    Source.GUESS,
    INVALID,
    held_in=DOCUMENTS,
)
def _direct_ingestion_of_s3(site: Site) -> Json:
    source, some = site.shared(managed).files, [fixtures.request_for(site, documents.CONNECTOR_KEY)]
    return error_code(lambda: source.ingest(some))


@ON.check(
    "list_statuses",
    "ListKnowledgeBaseDocuments lists documents of the CUSTOM connector by id, with statuses of the service model",
    Source.MODEL,
    {"unknown statuses": [], "documents": "all"},
    used_by="reconciliation",
    held_in=DOCUMENTS,
    seconds=JOB_SECONDS,
)
def _list_statuses(site: Site) -> Json:
    product, agent = site.shared(managed).product, site.client("bedrock-agent")
    site.shared(ingested)
    pages = agent.get_paginator("list_knowledge_base_documents").paginate(**product.ids)
    listed = [detail for page in pages for detail in page["documentDetails"]]
    ids = {detail["identifier"].get("custom", {}).get("id") for detail in listed}
    uris = {fixtures.document_uri(site, key, CUSTOM) for key in (*documents.KEYS, documents.MANY_KEY)}
    known = agent.meta.service_model.shape_for("DocumentStatus").enum
    return {
        "unknown statuses": sorted({detail["status"] for detail in listed} - set(known)),
        "documents": "all" if uris <= ids else "others",
    }


@ON.check(
    "patterns",
    "The S3 connector's patterns are regular expressions that must match the whole key",
    Source.GUESS,
    ["whole.md"],
    held_in=SELECTION,
    seconds=JOB_SECONDS,
)
def _patterns(site: Site) -> Json:
    """The other documents match with a part of their keys."""
    return _selected(site)


def _selected(site: Site) -> Sequence[str]:
    connector = fixtures.made(site, selected, managed)
    connector.source.ended_job(connector.job)
    return names(site, documents.SELECTED_WORD, documents.SELECTED_PREFIX, expected=["whole.md"])


@ON.check(
    "metadata_prefix",
    "Below metadataFilesPrefix, a metadata file is named by the whole key of its document",
    Source.GUESS,
    [documents.WHOLE_KEY],
    held_in=SELECTION,
    seconds=JOB_SECONDS,
)
def _metadata_prefix(site: Site) -> Json:
    _selected(site)
    found = find(site, documents.SELECTED_WORD)
    return [each["metadata"].get("place") for each in found if documents.uri_of(each).endswith("whole.md")]


@ON.check(
    "skipped",
    "A job of the S3 connector skips files that are too large or of an unsupported type, and does not fail",
    Source.DOCUMENTATION,
    {"status": "COMPLETE", "failed": 0, "skipped": len(documents.SKIPPED)},
    held_in=JOBS,
    seconds=JOB_SECONDS,
)
def _skipped(site: Site) -> Json:
    connector = fixtures.made(site, selected, managed)
    job = connector.source.ended_job(connector.job)
    counts = job["statistics"]
    return {
        "status": job["status"],
        "failed": counts["numberOfDocumentsFailed"],
        "skipped": counts["numberOfDocumentsSkipped"],
    }


@ON.check(
    "deletion_protection",
    "A job that would delete over 15 % of the documents deletes none, adds new ones, and is COMPLETE with a reason",
    Source.GUESS,
    {"status": "COMPLETE", "deleted": 0, "found": len(documents.PROTECTED_KEYS), "added": True, "reason": True},
    used_by="knowledge_base=existing, managed",
    held_in=JOBS,
    seconds=JOB_SECONDS,
)
def _deletion_protection(site: Site) -> Json:
    job = site.shared(changed).job
    added = ADDED_KEY.removeprefix(documents.PROTECTED_PREFIX)
    kept = [key.removeprefix(documents.PROTECTED_PREFIX) for key in documents.PROTECTED_KEYS]
    expected = sorted([*kept, added])
    found = names(site, documents.PROTECTED_WORD, documents.PROTECTED_PREFIX, expected=expected)
    return {
        "status": job["status"],
        "deleted": job["statistics"]["numberOfDocumentsDeleted"],
        "found": len(set(found) & set(kept)),
        "added": added in found,
        "reason": bool(job.get("failureReasons")),
    }


@ON.check(
    "second_job",
    "Starting a job of the S3 connector while another one runs is a ConflictException",
    Source.MODEL,
    {"error": "ConflictException"},
    held_in=DOCUMENTS,
    seconds=JOB_SECONDS,
)
def _second_job(site: Site) -> Json:
    return site.shared(changed).job_meanwhile
