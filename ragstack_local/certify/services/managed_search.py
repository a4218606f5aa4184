"""Checks of searches in managed knowledge bases: results, filters, access control lists, contents and agents."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from ragstack_common.core.uris import s3_urls
from ragstack_common.ingestion.requests import CUSTOM
from ragstack_common.settings.names import (
    MANAGED_DATA_SOURCE_KEY,
    MANAGED_LANGUAGE_KEY,
    MANAGED_PAGE_KEY,
    MANAGED_SOURCE_URI_KEY,
    RESERVED_PREFIX,
    SOURCE_URI_KEY,
)
from ragstack_local.certify import documents, fixtures
from ragstack_local.certify.check import INVALID, Json, Source, Topic
from ragstack_local.certify.services.filters import RETRIEVE, add_checks, clause
from ragstack_local.certify.services.managed import ON, find, ingested, managed
from ragstack_local.certify.site import Site, error_code

ON_FILTERS: Final = Topic(
    "managed-filters", "filters of searches (docs/SEARCH.md#filters)", "local_bedrock.operations.search_configuration"
)

CONFIGURATION: Final = "local_bedrock.operations.search_configuration"
RESULTS: Final = "local_bedrock.operations.results"
METADATA: Final = "local_bedrock.reading.metadata"
CONTENT: Final = "local_bedrock.operations.document_content"
ACCESS: Final = "local_bedrock.search.access"
AGENT: Final = "local_bedrock.operations.agentic"

FIRST: Final = f"{documents.ANIMAL_PREFIX}c.md"


def _of_product(site: Site) -> Mapping[str, Json]:
    uri = fixtures.document_uri(site, FIRST, CUSTOM)
    return next(each for each in find(site, documents.ANIMAL_QUERY) if uri in str(each))


def _of_connector(site: Site) -> Mapping[str, Json]:
    return next(
        each for each in find(site, documents.CONNECTOR_WORD) if documents.CONNECTOR_KEY in str(each["location"])
    )


@ON.check("vector_search", "vectorSearchConfiguration is refused", Source.GUESS, INVALID, held_in=CONFIGURATION)
def _vector_search(site: Site) -> Json:
    client, id_ = site.client("bedrock-agent-runtime"), site.shared(managed).id
    return error_code(
        lambda: client.retrieve(
            knowledgeBaseId=id_,
            retrievalQuery={"text": "crane"},
            retrievalConfiguration={"vectorSearchConfiguration": {"numberOfResults": 5}},
        )
    )


@ON.check(
    "retrieve_and_generate",
    "RetrieveAndGenerate is refused",
    Source.DOCUMENTATION,
    INVALID,
    held_in="local_bedrock.operations.generate",
)
def _retrieve_and_generate(site: Site) -> Json:
    client = site.client("bedrock-agent-runtime")
    model = f"arn:{site.partition}:bedrock:{site.region}::foundation-model/amazon.nova-micro-v1:0"
    knowledge_base = {"knowledgeBaseId": site.shared(managed).id, "modelArn": model}
    given = {"type": "KNOWLEDGE_BASE", "knowledgeBaseConfiguration": knowledge_base}
    return error_code(
        lambda: client.retrieve_and_generate(input={"text": "crane"}, retrieveAndGenerateConfiguration=given)
    )


@ON.check("default_results", "Without numberOfResults there are at most five", Source.MODEL, 5, held_in=CONFIGURATION)
def _default_results(site: Site) -> Json:
    site.shared(ingested)
    client, id_ = site.client("bedrock-agent-runtime"), site.shared(managed).id
    return len(client.retrieve(knowledgeBaseId=id_, retrievalQuery={"text": "The harbour"})["retrievalResults"])


@ON.check("results_101", "numberOfResults is at most 100", Source.MODEL, INVALID, held_in=CONFIGURATION)
def _results_101(site: Site) -> Json:
    return error_code(lambda: find(site, "crane", numberOfResults=101))


@ON.check(
    "members",
    "A result has content, documentId, location, metadata and score",
    Source.MODEL,
    ["content", "documentId", "location", "metadata", "score"],
    held_in=RESULTS,
)
def _members(site: Site) -> Json:
    return sorted(_of_product(site))


@ON.check(
    "place_of_custom",
    "A document of CUSTOM has its id as documentId, as location, and as _source_uri",
    Source.GUESS,
    {"documentId": "the id", "type": "CUSTOM", "location": "the id", "_source_uri": "the id"},
    held_in=RESULTS,
)
def _place_of_custom(site: Site) -> Json:
    found, uri = _of_product(site), fixtures.document_uri(site, FIRST, CUSTOM)

    def form(value: Json) -> str:
        return "the id" if value == uri else "another value"

    location = found["location"]
    return {
        "documentId": form(found["documentId"]),
        "type": location["type"],
        "location": form(location.get("customDocumentLocation", {}).get("id")),
        "_source_uri": form(found["metadata"].get(MANAGED_SOURCE_URI_KEY)),
    }


@ON.check(
    "place_of_s3",
    "A document of the connector S3 has an https URL without the Region as location and as _source_uri",
    Source.THIRD_PARTY,
    {"type": "S3", "location": "https without the Region", "_source_uri": "https without the Region"},
    held_in=RESULTS,
)
def _place_of_s3(site: Site) -> Json:
    found = _of_connector(site)
    uri = fixtures.document_uri(site, documents.CONNECTOR_KEY, CUSTOM)
    with_region, without = s3_urls(uri, site.region)
    forms = {with_region: "https with the Region", without: "https without the Region", uri: "the s3 URI"}
    location = found["location"]
    return {
        "type": location["type"],
        "location": forms.get(location.get("s3Location", {}).get("uri"), "another value"),
        "_source_uri": forms.get(found["metadata"].get(MANAGED_SOURCE_URI_KEY), "another value"),
    }


@ON.check(
    "metadata_keys",
    "Metadata have _source_uri, _data_source_id and _language_code, and the attributes at the top level",
    Source.THIRD_PARTY,
    ["_data_source_id", "_language_code", "_source_uri", "habitats", "legs", "name", "wild"],
    held_in=METADATA,
)
def _metadata_keys(site: Site) -> Json:
    wanted = (MANAGED_SOURCE_URI_KEY, MANAGED_DATA_SOURCE_KEY, MANAGED_LANGUAGE_KEY, *documents.ANIMALS["c"])
    return sorted(key for key in _of_product(site)["metadata"] if key in wanted)


@ON.check(
    "old_metadata_keys",
    "Metadata have no key that begins with x-amz-bedrock-kb",
    Source.THIRD_PARTY,
    [],
    held_in=METADATA,
)
def _old_metadata_keys(site: Site) -> Json:
    return sorted(key for key in _of_product(site)["metadata"] if key.startswith(RESERVED_PREFIX))


@ON.check(
    "page",
    "Chunks of PDF files have the number of their page",
    Source.GUESS,
    MANAGED_PAGE_KEY,
    used_by="pages of citations (docs/SEARCH.md)",
    held_in=METADATA,
)
def _page(site: Site) -> Json:
    found = [each for each in find(site, documents.PAGE_WORDS[1]) if documents.PDF_KEY in str(each)]
    keys = sorted({key for each in found for key in each["metadata"] if key.startswith("_") and "page" in key})
    return ", ".join(keys) or "no key"


@ON.check(
    "utf8_text",
    "Text files (.txt) in UTF-8 are read",
    Source.GUESS,
    "read",
    used_by="conversion (docs/DOCUMENTS.md#conversion)",
    held_in="local_bedrock.reading",
)
def _utf8_text(site: Site) -> Json:
    found = find(site, documents.UTF8_WORD)
    return "read" if any(documents.UTF8_WORD in each["content"].get("text", "") for each in found) else "not read"


@ON.check("scores", "Scores are from 0 to 1", Source.THIRD_PARTY, "0 to 1", held_in="local_bedrock.search.reranking")
def _scores(site: Site) -> Json:
    scores = [each["score"] for each in find(site, documents.ANIMAL_QUERY)]
    return "0 to 1" if scores and all(0 <= score <= 1 for score in scores) else "others"


@ON.check(
    "no_reranking",
    "rerankingModelType NONE is accepted, and MANAGED is the default",
    Source.MODEL,
    ["accepted", "accepted"],
    held_in=CONFIGURATION,
)
def _no_reranking(site: Site) -> Json:
    return [error_code(partial(find, site, "crane", rerankingModelType=each)) for each in ("NONE", "MANAGED")]


@ON.check(
    "access_without_user",
    "Without userContext, a source with access control lists shows nothing",
    Source.DOCUMENTATION,
    [],
    held_in=ACCESS,
)
def _access_without_user(site: Site) -> Json:
    return _listed(site)


@ON.check(
    "access_of_user",
    "With userContext, a source with access control lists shows what the user may see; DENY wins",
    Source.DOCUMENTATION,
    ["readable"],
    held_in=ACCESS,
)
def _access_of_user(site: Site) -> Json:
    return _listed(site, documents.READER)


@ON.check(
    "access_of_others",
    "Another user sees nothing of a source with access control lists",
    Source.DOCUMENTATION,
    [],
    held_in=ACCESS,
)
def _access_of_others(site: Site) -> Json:
    return _listed(site, "other@example.com")


def _listed(site: Site, user: str | None = None) -> Sequence[str]:
    found = str([each["location"] for each in find(site, documents.LISTED_WORD, user=user)])
    keys = (documents.READABLE_KEY, documents.DENIED_KEY, documents.UNLISTED_KEY)
    return [key.rpartition("/")[2].removesuffix(".md") for key in keys if key in found]


@ON.check(
    "access_check",
    "CheckIngestedDocumentAcl says who may read a document",
    Source.MODEL,
    {"reader": True, "other": False},
    held_in=CONTENT,
)
def _access_check(site: Site) -> Json:
    client, base = site.client("bedrock-agent-runtime"), site.shared(managed)
    (found,) = (
        each
        for each in find(site, documents.LISTED_WORD, user=documents.READER)
        if documents.READABLE_KEY in str(each["location"])
    )

    def may(user: str) -> Json:
        return client.check_ingested_document_acl(
            knowledgeBaseId=base.id,
            dataSourceId=base.listed.id,
            documentId=found["documentId"],
            userContext={"userId": user},
        )["hasAccess"]

    return {"reader": may(documents.READER), "other": may("other@example.com")}


@ON.check(
    "content",
    "GetDocumentContent gives a URL of the file",
    Source.MODEL,
    {"members": ["documentContentLength", "mimeType", "presignedUrl"], "length": "that of the file"},
    held_in=CONTENT,
)
def _content(site: Site) -> Json:
    base, key = site.shared(managed), FIRST
    site.shared(ingested)
    answer = site.client("bedrock-agent-runtime").get_document_content(
        knowledgeBaseId=base.id,
        dataSourceId=base.product.id,
        documentId=fixtures.document_uri(site, key, CUSTOM),
        outputFormat="RAW",
    )
    is_that = answer.get("documentContentLength") == len(documents.OBJECTS[key])
    return {
        "members": sorted(name for name in answer if name != "ResponseMetadata"),
        "length": "that of the file" if is_that else "another one",
    }


@ON.check(
    "agentic",
    "AgenticRetrieveStream streams traces, and ends with the results",
    Source.MODEL,
    {"last": "result", "other": ["traceEvent"], "found": True},
    held_in=AGENT,
)
def _agentic(site: Site) -> Json:
    site.shared(ingested)
    answer = site.client("bedrock-agent-runtime").agentic_retrieve_stream(
        messages=[{"role": "user", "content": {"text": documents.ANIMAL_QUERY}}],
        retrievers=[{"configuration": {"knowledgeBase": {"knowledgeBaseId": site.shared(managed).id}}}],
        agenticRetrieveConfiguration={"foundationModelType": "MANAGED", "rerankingModelType": "MANAGED"},
        generateResponse=False,
    )
    events = list(answer["stream"])
    names = [next(iter(event)) for event in events]
    results = events[-1].get("result", {}).get("results", [])
    return {"last": names[-1], "other": sorted(set(names[:-1])), "found": bool(results)}


def _filtered(filter_: Json, site: Site) -> Json:
    return documents.letters(find(site, documents.ANIMAL_QUERY, filter=filter_))


add_checks(
    ON_FILTERS,
    {
        **RETRIEVE,
        "starts_with": ("startsWith is refused", clause("startsWith", "name", "ch"), INVALID, Source.DOCUMENTATION),
        "string_contains": (
            "stringContains is refused",
            clause("stringContains", "name", "whal"),
            INVALID,
            Source.DOCUMENTATION,
        ),
    },
    _filtered,
)


@ON_FILTERS.check(
    "old_key",
    "A filter on x-amz-bedrock-kb-source-uri matches nothing",
    Source.THIRD_PARTY,
    "",
)
def _old_key(site: Site) -> Json:
    return _filtered(clause("equals", SOURCE_URI_KEY, fixtures.document_uri(site, FIRST, CUSTOM)), site)


@ON_FILTERS.check("source_uri", "A filter on _source_uri finds the document", Source.GUESS, "c")
def _source_uri(site: Site) -> Json:
    return _filtered(clause("equals", MANAGED_SOURCE_URI_KEY, fixtures.document_uri(site, FIRST, CUSTOM)), site)


@ON_FILTERS.check(
    "data_source_id",
    "A filter on _data_source_id finds the documents of the source",
    Source.GUESS,
    "acnsw",
)
def _data_source_id(site: Site) -> Json:
    return _filtered(clause("equals", MANAGED_DATA_SOURCE_KEY, site.shared(managed).product.id), site)


CHECKS: Final = (*ON.checks, *ON_FILTERS.checks)
