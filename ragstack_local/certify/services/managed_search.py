"""Checks of searches in managed knowledge bases: results, pages, filters and agents."""

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
)
from ragstack_local.certify import documents, fixtures
from ragstack_local.certify.check import INVALID, Json, NotTried, Source
from ragstack_local.certify.services.managed import ON
from ragstack_local.certify.services.managed_fixtures import find, ingested, managed, own_embedding
from ragstack_local.certify.site import Site, error_code

CONFIGURATION: Final = "local_bedrock.operations.search_configuration"
RESULTS: Final = "local_bedrock.operations.results"
METADATA: Final = "local_bedrock.reading.metadata"
AGENT: Final = "local_bedrock.operations.agentic"


def _of_product(site: Site) -> Mapping[str, Json]:
    uri = fixtures.document_uri(site, documents.FIRST_KEY, CUSTOM)
    return next(each for each in find(site, documents.ANIMAL_QUERY) if uri in str(each))


def _of_connector(site: Site) -> Mapping[str, Json]:
    return next(
        each for each in find(site, documents.CONNECTOR_WORD) if documents.CONNECTOR_KEY in str(each["location"])
    )


@ON.check(
    "vector_search",
    "Retrieve on a managed knowledge base refuses vectorSearchConfiguration",
    Source.GUESS,
    INVALID,
    held_in=CONFIGURATION,
)
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
    "RetrieveAndGenerate refuses a managed knowledge base",
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


@ON.check(
    "default_results",
    "Retrieve on a managed knowledge base returns at most five results by default",
    Source.MODEL,
    5,
    held_in=CONFIGURATION,
)
def _default_results(site: Site) -> Json:
    site.shared(ingested)
    client, id_ = site.client("bedrock-agent-runtime"), site.shared(managed).id
    return len(client.retrieve(knowledgeBaseId=id_, retrievalQuery={"text": "The harbour"})["retrievalResults"])


@ON.check("results_101", "numberOfResults is at most 100", Source.MODEL, INVALID, held_in=CONFIGURATION)
def _results_101(site: Site) -> Json:
    return error_code(lambda: find(site, "crane", numberOfResults=101))


@ON.check(
    "members",
    "A result of a managed search has content, documentId, location, metadata and score",
    Source.MODEL,
    ["content", "documentId", "location", "metadata", "score"],
    held_in=RESULTS,
)
def _members(site: Site) -> Json:
    return sorted(_of_product(site))


@ON.check(
    "place_of_custom",
    "Results of the CUSTOM connector have the document's id as documentId, location and _source_uri",
    Source.GUESS,
    {"documentId": "the id", "type": "CUSTOM", "location": "the id", "_source_uri": "the id"},
    held_in=RESULTS,
)
def _place_of_custom(site: Site) -> Json:
    found, uri = _of_product(site), fixtures.document_uri(site, documents.FIRST_KEY, CUSTOM)

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
    "Results of the S3 connector have an https URL without Region as location and _source_uri, and another documentId",
    Source.THIRD_PARTY,
    {
        "documentId": "another value",
        "type": "S3",
        "location": "https without the Region",
        "_source_uri": "https without the Region",
    },
    held_in=RESULTS,
)
def _place_of_s3(site: Site) -> Json:
    found = _of_connector(site)
    uri = fixtures.document_uri(site, documents.CONNECTOR_KEY, CUSTOM)
    with_region, without = s3_urls(uri, site.region)
    forms = {with_region: "https with the Region", without: "https without the Region", uri: "the s3 URI"}
    location = found["location"]
    return {
        "documentId": forms.get(found["documentId"], "another value"),
        "type": location["type"],
        "location": forms.get(location.get("s3Location", {}).get("uri"), "another value"),
        "_source_uri": forms.get(found["metadata"].get(MANAGED_SOURCE_URI_KEY), "another value"),
    }


@ON.check(
    "metadata_keys",
    "The metadata of managed results has _source_uri, _data_source_id, _language_code and the document's attributes",
    Source.THIRD_PARTY,
    ["_data_source_id", "_language_code", "_source_uri", "habitats", "legs", "name", "wild"],
    held_in=METADATA,
)
def _metadata_keys(site: Site) -> Json:
    wanted = (MANAGED_SOURCE_URI_KEY, MANAGED_DATA_SOURCE_KEY, MANAGED_LANGUAGE_KEY, *documents.ANIMALS["c"])
    return sorted(key for key in _of_product(site)["metadata"] if key in wanted)


@ON.check(
    "old_metadata_keys",
    "The metadata of managed results has no keys that begin with x-amz-bedrock-kb",
    Source.THIRD_PARTY,
    [],
    held_in=METADATA,
)
def _old_metadata_keys(site: Site) -> Json:
    return sorted(key for key in _of_product(site)["metadata"] if key.startswith(RESERVED_PREFIX))


@ON.check(
    "chunk_id",
    "Managed results have no chunk id",
    Source.GUESS,
    [],
    used_by="chunks of managed knowledge bases are told apart by their texts",
    held_in=METADATA,
)
def _chunk_id(site: Site) -> Json:
    return sorted(key for key in _of_product(site)["metadata"] if "chunk" in key)


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


@ON.check(
    "scores",
    "Scores of managed searches are between 0 and 1",
    Source.THIRD_PARTY,
    "0 to 1",
    held_in="local_bedrock.search.reranking",
)
def _scores(site: Site) -> Json:
    scores = [each["score"] for each in find(site, documents.ANIMAL_QUERY)]
    return "0 to 1" if scores and all(0 <= score <= 1 for score in scores) else "others"


@ON.check(
    "no_reranking",
    "Managed searches accept the rerankingModelType NONE and MANAGED",
    Source.MODEL,
    ["accepted", "accepted"],
    held_in=CONFIGURATION,
)
def _no_reranking(site: Site) -> Json:
    return [error_code(partial(find, site, "crane", rerankingModelType=each)) for each in ("NONE", "MANAGED")]


MAX_RESULTS: Final = 100
"""Of a page. Source: bedrock-agent-runtime, shape ManagedSearchConfiguration."""

PAGE: Final = 40


@ON.check(
    "next_token",
    "A reranked managed search for 100 results returns 100, and no nextToken",
    Source.GUESS,
    {"results": MAX_RESULTS, "nextToken": False},
    used_by="long result sets",
    held_in=CONFIGURATION,
)
def _next_token(site: Site) -> Json:
    answer = _many(site)
    return {"results": len(answer["retrievalResults"]), "nextToken": bool(answer.get("nextToken"))}


@ON.check(
    "pages",
    "Pages of a reranked managed search end after 100 results, and continue beyond without the reranker",
    Source.GUESS,
    {"MANAGED": MAX_RESULTS, "NONE": "more"},
    used_by="long result sets",
    held_in=CONFIGURATION,
)
def _pages(site: Site) -> Json:
    found: dict[str, Json] = {}
    for kind in ("MANAGED", "NONE"):
        number = 0
        token: dict[str, str] = {}
        while number <= MAX_RESULTS:
            answer = _many(site, token, numberOfResults=PAGE, rerankingModelType=kind)
            number += len(answer["retrievalResults"])
            if not answer.get("nextToken"):
                break
            token = {"nextToken": answer["nextToken"]}
        found[kind] = "more" if number > MAX_RESULTS else number
    return found


def _many(site: Site, token: Mapping[str, str] | None = None, **search: Json) -> Mapping[str, Json]:
    """Return a page of the results for a query that more than a hundred chunks answer."""
    site.shared(ingested)
    answer: Mapping[str, Json] = site.client("bedrock-agent-runtime").retrieve(
        knowledgeBaseId=site.shared(managed).id,
        retrievalQuery={"text": documents.LONG_QUERY},
        retrievalConfiguration={"managedSearchConfiguration": {"numberOfResults": MAX_RESULTS, **search}},
        **(token or {}),
    )
    return answer


@ON.check(
    "reranker_drops",
    "The managed reranker drops no results, even if none answers the query",
    Source.GUESS,
    "as many results as without it",
    used_by="long result sets",
    held_in=CONFIGURATION,
)
def _reranker_drops(site: Site) -> Json:
    reranked = len(find(site, documents.IRRELEVANT_QUERY))
    all_ = len(find(site, documents.IRRELEVANT_QUERY, rerankingModelType="NONE"))
    return "as many results as without it" if reranked == all_ else "fewer" if reranked < all_ else "more"


@ON.check(
    "same_text",
    "In managed searches, a chunk has the same text in the results of every query",
    Source.GUESS,
    "the same",
    used_by="chunks of managed knowledge bases are told apart by their texts",
    held_in=RESULTS,
)
def _same_text(site: Site) -> Json:
    uri = fixtures.document_uri(site, documents.FIRST_KEY, CUSTOM)
    texts = [
        sorted(each["content"]["text"] for each in find(site, query) if documents.uri_of(each) == uri)
        for query in (documents.ANIMAL_QUERY, "cheetah")
    ]
    return "the same" if texts[0] and texts[0] == texts[1] else "another one"


@ON.check(
    "reranking_without_type",
    "A rerankingConfiguration without rerankingModelType is accepted",
    Source.THIRD_PARTY,
    "accepted",
    held_in=CONFIGURATION,
)
def _reranking_without_type(site: Site) -> Json:
    model = f"arn:{site.partition}:bedrock:{site.region}::foundation-model/cohere.rerank-v3-5:0"
    reranking = {
        "type": "BEDROCK_RERANKING_MODEL",
        "bedrockRerankingConfiguration": {"modelConfiguration": {"modelArn": model}},
    }
    search = partial(find, site, "crane", numberOfResults=5, rerankingConfiguration=reranking)
    with_type = error_code(partial(search, rerankingModelType="CUSTOM"))
    if with_type != "accepted":
        raise NotTried(f"the model cannot be used here: {with_type['error']}")
    return error_code(search)


@ON.check(
    "own_embedding",
    "A managed knowledge base with its own embedding model has no managed reranker, and takes FIXED_SIZE chunking",
    Source.DOCUMENTATION,
    {"chunks": "accepted", "MANAGED": INVALID, "default": "as with NONE"},
    held_in=CONFIGURATION,
)
def _own_embedding(site: Site) -> Json:
    source = fixtures.made(site, own_embedding, managed)
    client = site.client("bedrock-agent-runtime")

    def search(**reranking: str) -> Json:
        return client.retrieve(
            knowledgeBaseId=source.knowledge_base_id,
            retrievalQuery={"text": documents.PEOPLE_WORD},
            retrievalConfiguration={"managedSearchConfiguration": reranking},
        )["retrievalResults"]

    without = [each["score"] for each in search(rerankingModelType="NONE")]
    by_default = [each["score"] for each in search()]
    return {
        "chunks": "accepted",
        "MANAGED": error_code(lambda: search(rerankingModelType="MANAGED")),
        "default": "as with NONE" if by_default == without else "otherwise",
    }


@ON.check(
    "agentic",
    "AgenticRetrieveStream streams trace events with times in milliseconds, and ends with the result",
    Source.MODEL,
    {
        "last": "result",
        "other": ["traceEvent"],
        "members": ["content", "metadata", "sourceRetriever"],
        "times": "milliseconds",
    },
    held_in=AGENT,
)
def _agentic(site: Site) -> Json:
    events = _agentic_events(site)
    kinds = [next(iter(event)) for event in events]
    results = events[-1].get("result", {}).get("results", [])
    times = [event["traceEvent"]["timestamp"] for event in events if "traceEvent" in event]
    are_milliseconds = all(YEAR_2020 < each / 1000 < YEAR_2100 for each in times)
    return {
        "last": kinds[-1],
        "other": sorted(set(kinds[:-1])),
        "members": sorted({name for each in results for name in each}),
        "times": "milliseconds" if are_milliseconds else "others",
    }


YEAR_2020: Final = 1_577_836_800
YEAR_2100: Final = 4_102_444_800


@ON.check(
    "agentic_min_iterations",
    "maxAgentIteration of AgenticRetrieveStream must be at least 2",
    Source.DOCUMENTATION,
    INVALID,
    held_in=AGENT,
)
def _agentic_min_iterations(site: Site) -> Json:
    return error_code(lambda: _agentic_events(site, maxAgentIteration=1))


@ON.check(
    "agentic_results_101",
    "maxNumberOfResults of a retriever of AgenticRetrieveStream is at most 100",
    Source.GUESS,
    INVALID,
    held_in=AGENT,
)
def _agentic_results_101(site: Site) -> Json:
    return error_code(lambda: _agentic_events(site, {"retrievalOverrides": {"maxNumberOfResults": 101}}))


def _agentic_events(
    site: Site, overrides: Mapping[str, Json] | None = None, **configuration: Json
) -> Sequence[Mapping[str, Json]]:
    site.shared(ingested)
    retriever = {"knowledgeBaseId": site.shared(managed).id, **(overrides or {})}
    answer = site.client("bedrock-agent-runtime").agentic_retrieve_stream(
        messages=[{"role": "user", "content": {"text": documents.ANIMAL_QUERY}}],
        retrievers=[{"configuration": {"knowledgeBase": retriever}}],
        agenticRetrieveConfiguration={
            "foundationModelType": "MANAGED",
            "rerankingModelType": "MANAGED",
            **configuration,
        },
        generateResponse=False,
    )
    return list(answer["stream"])


CHECKS: Final = ON.checks
