"""Checks of Retrieve on S3 Vectors, and of what Bedrock writes into the index."""

import json
from collections.abc import Mapping
from typing import Any, Final

from ragstack_common.filters.tree import DATA_SOURCE_KEY
from ragstack_common.search.engines.hits import CHUNK_ID_KEY
from ragstack_common.settings.names import METADATA_KEY, OWN_PREFIX, SOURCE_URI_KEY, TEXT_KEY
from ragstack_common.text.positions import PAGE_KEY
from ragstack_local.certify import documents
from ragstack_local.certify.check import INVALID, Json, Source, Topic
from ragstack_local.certify.fixtures import (
    DIMENSION,
    EMBEDDING,
    document_uri,
    ingested,
    knowledge_base,
    wait_for_words,
)
from ragstack_local.certify.site import Site, error_code

ON: Final = Topic("retrieval", "searches (docs/SEARCH.md)", "local_bedrock.operations.retrieval")
WORDS: Final = "words (docs/SEARCH.md#words)"
INDEX: Final = "local_bedrock.store.vector_indexes"

OPTIONAL_KEYS: Final = ("x-amz-bedrock-kb-source-file-modality", PAGE_KEY)

MANY: Final = 150


def retrieve(site: Site, text: str, *, validates: bool = True, token: str | None = None, **search: Json) -> Any:
    """Search the knowledge base on S3 Vectors, once its documents are there."""
    site.shared(ingested)
    return site.client("bedrock-agent-runtime", validates=validates).retrieve(
        knowledgeBaseId=site.shared(knowledge_base).id,
        retrievalQuery={"text": text},
        retrievalConfiguration={"vectorSearchConfiguration": {"numberOfResults": 100, **search}},
        **({"nextToken": token} if token else {}),
    )


def find(site: Site, text: str, **search: Json) -> list[Mapping[str, Json]]:
    """Return the results of a search."""
    return list(retrieve(site, text, **search)["retrievalResults"])


def texts_found(site: Site, text: str) -> Json:
    """Return how many of the best results for a text have it."""
    return sum(text in each["content"].get("text", "") for each in find(site, text))


def _keys(found: Mapping[str, Json], *optional: str) -> Json:
    """Return the keys of metadata, without some and without those that only the local Bedrock writes."""
    return sorted(key for key in found["metadata"] if key not in optional and not key.startswith(OWN_PREFIX))


def _animal(site: Site, **search: Json) -> Mapping[str, Json]:
    uri = document_uri(site, f"{documents.ANIMAL_PREFIX}c.md")
    return next(
        each
        for each in find(site, documents.ANIMAL_QUERY, **search)
        if each["location"].get("s3Location") == {"uri": uri}
    )


@ON.check(
    "members",
    "A result of Retrieve has content, location, metadata and score",
    Source.MODEL,
    ["content", "location", "metadata", "score"],
)
def _members(site: Site) -> Json:
    return sorted(_animal(site))


@ON.check(
    "location",
    "The location of a document in a bucket has the type S3 and the S3 URI",
    Source.MODEL,
    {"type": "S3", "is_its_uri": True},
)
def _location(site: Site) -> Json:
    location = _animal(site)["location"]
    return {
        "type": location["type"],
        "is_its_uri": location["s3Location"]["uri"] == document_uri(site, f"{documents.ANIMAL_PREFIX}c.md"),
    }


@ON.check(
    "metadata_keys",
    "The metadata of a result has Bedrock's own keys and, at the same level, the document's attributes",
    Source.THIRD_PARTY,
    sorted(["habitats", "legs", "name", "wild", CHUNK_ID_KEY, DATA_SOURCE_KEY, SOURCE_URI_KEY]),
)
def _metadata_keys(site: Site) -> Json:
    return _keys(_animal(site), *OPTIONAL_KEYS)


@ON.check(
    "metadata_values",
    "Attributes keep their types in results: numbers, booleans, strings and lists",
    Source.GUESS,
    dict(documents.ANIMALS["c"]),
)
def _metadata_values(site: Site) -> Json:
    metadata = _animal(site)["metadata"]
    return {key: metadata.get(key) for key in documents.ANIMALS["c"]}


@ON.check("hybrid", "Retrieve on S3 Vectors refuses the search type HYBRID", Source.MODEL, INVALID)
def _hybrid(site: Site) -> Json:
    return error_code(lambda: find(site, "crane", overrideSearchType="HYBRID"))


@ON.check("managed_search", "A knowledge base on S3 Vectors refuses managedSearchConfiguration", Source.MODEL, INVALID)
def _managed_search(site: Site) -> Json:
    client = site.client("bedrock-agent-runtime")
    return error_code(
        lambda: client.retrieve(
            knowledgeBaseId=site.shared(knowledge_base).id,
            retrievalQuery={"text": "crane"},
            retrievalConfiguration={"managedSearchConfiguration": {"numberOfResults": 5}},
        )
    )


@ON.check("default_results", "Retrieve returns five results by default", Source.MODEL, 5)
def _default_results(site: Site) -> Json:
    site.shared(ingested)
    client, id_ = site.client("bedrock-agent-runtime"), site.shared(knowledge_base).id
    return len(client.retrieve(knowledgeBaseId=id_, retrievalQuery={"text": documents.LONG_QUERY})["retrievalResults"])


@ON.check("results_101", "numberOfResults is at most 100", Source.MODEL, INVALID)
def _results_101(site: Site) -> Json:
    return error_code(lambda: retrieve(site, "crane", validates=False, numberOfResults=101))


@ON.check(
    "pages",
    "nextToken leads beyond 100 results of Retrieve, without repetitions",
    Source.GUESS,
    {"at_least": MANY, "repeated": 0},
)
def _pages(site: Site) -> Json:
    ids: list[Json] = []
    token: str | None = None
    while len(ids) < MANY:
        answer = retrieve(site, documents.LONG_QUERY, numberOfResults=50, token=token)
        ids += [each["metadata"][CHUNK_ID_KEY] for each in answer["retrievalResults"]]
        token = answer.get("nextToken")
        if token is None:
            break
    return {"at_least": min(len(ids), MANY), "repeated": len(ids) - len(set(ids))}


@ON.check(
    "comparable_scores",
    "A chunk has the same score with and without a filter",
    Source.GUESS,
    "the same score",
    used_by="searches in parts, tenants",
)
def _comparable_scores(site: Site) -> Json:
    filtered = _animal(site, filter={"equals": {"key": "legs", "value": 4}})
    return "the same score" if round(filtered["score"], 3) == round(_animal(site)["score"], 3) else "another score"


@ON.check(
    "unknown_base",
    "A knowledge base that does not exist is a ResourceNotFoundException",
    Source.MODEL,
    {"error": "ResourceNotFoundException"},
)
def _unknown_base(site: Site) -> Json:
    client = site.client("bedrock-agent-runtime")
    return error_code(lambda: client.retrieve(knowledgeBaseId="ZZZZZZZZZZ", retrievalQuery={"text": "crane"}))


@ON.check("long_query", "Retrieve refuses a query of more than 20,000 characters", Source.MODEL, INVALID)
def _long_query(site: Site) -> Json:
    return error_code(lambda: retrieve(site, "x" * 20_001, validates=False))


def _in_index(site: Site, **query: Json) -> list[Mapping[str, Json]]:
    site.shared(ingested)
    wait_for_words(site, site.shared(knowledge_base).index)
    answer = site.client("s3vectors").query_vectors(
        **site.shared(knowledge_base).index, returnMetadata=True, **{"topK": 20, **query}
    )
    return list(answer["vectors"])


def _of_animal(site: Site) -> Json:
    uri = document_uri(site, f"{documents.ANIMAL_PREFIX}c.md")
    words = [{"metadataKey": TEXT_KEY, "text": "cheetah"}]
    (found,) = _in_index(site, queryTexts=words, filter={SOURCE_URI_KEY: uri})
    return found


@ON.check(
    "words_in_index",
    "The index of a knowledge base can be searched by words directly, in the key AMAZON_BEDROCK_TEXT",
    Source.GUESS,
    "found",
    used_by=WORDS,
    held_in=INDEX,
)
def _words_in_index(site: Site) -> Json:
    found = _in_index(site, queryTexts=[{"metadataKey": TEXT_KEY, "text": documents.ASCII_WORD}])
    return "found" if any(documents.ASCII_WORD in each["metadata"][TEXT_KEY] for each in found) else "not found"


@ON.check(
    "index_keys",
    "A vector that Bedrock writes has keys for text, metadata, URI and data source, and the document's attributes",
    Source.THIRD_PARTY,
    sorted([METADATA_KEY, TEXT_KEY, "habitats", "legs", "name", "wild", DATA_SOURCE_KEY, SOURCE_URI_KEY]),
    used_by=WORDS,
    held_in=INDEX,
)
def _index_keys(site: Site) -> Json:
    return _keys(_of_animal(site), CHUNK_ID_KEY, *OPTIONAL_KEYS)


@ON.check(
    "chunk_id",
    "The key of a vector that Bedrock writes is the chunk id that Retrieve returns",
    Source.GUESS,
    "equal",
    used_by=WORDS,
    held_in=INDEX,
)
def _chunk_id(site: Site) -> Json:
    return "equal" if _of_animal(site)["key"] == _animal(site)["metadata"][CHUNK_ID_KEY] else "different"


@ON.check(
    "index_text",
    "AMAZON_BEDROCK_TEXT is the text that Retrieve returns",
    Source.GUESS,
    "equal",
    used_by=WORDS,
    held_in=INDEX,
)
def _index_text(site: Site) -> Json:
    return "equal" if _of_animal(site)["metadata"][TEXT_KEY] == _animal(site)["content"]["text"] else "different"


@ON.check(
    "filter_by_source",
    "x-amz-bedrock-kb-source-uri and x-amz-bedrock-kb-data-source-id are filterable keys of the index",
    Source.THIRD_PARTY,
    ["found", "found"],
    used_by=WORDS,
    held_in=INDEX,
)
def _filter_by_source(site: Site) -> Json:
    uri = document_uri(site, f"{documents.ANIMAL_PREFIX}c.md")
    words = [{"metadataKey": TEXT_KEY, "text": "cheetah"}]
    filters = ({SOURCE_URI_KEY: uri}, {DATA_SOURCE_KEY: site.shared(knowledge_base).files.id})
    return ["found" if _in_index(site, queryTexts=words, filter=each) else "not found" for each in filters]


@ON.check(
    "score",
    "The score of Retrieve on S3 Vectors is the cosine similarity",
    Source.GUESS,
    "the cosine",
    used_by=WORDS,
    held_in="local_bedrock.search.ranking",
)
def _score(site: Site) -> Json:
    body = json.dumps({"inputText": documents.ANIMAL_QUERY, "dimensions": DIMENSION, "normalize": True})
    answer = site.client("bedrock-runtime").invoke_model(modelId=EMBEDDING, body=body)
    query = {"queryVector": {"float32": json.loads(answer["body"].read())["embedding"]}, "returnDistance": True}
    uri = document_uri(site, f"{documents.ANIMAL_PREFIX}c.md")
    (found,) = _in_index(site, **query, filter={SOURCE_URI_KEY: uri})
    cosine, score = 1 - found["distance"], _animal(site)["score"]
    forms = {
        "the cosine": cosine,
        "(1 + cosine) / 2": (1 + cosine) / 2,
        "1 / (1 + distance)": 1 / (1 + found["distance"]),
    }
    return next((form for form, value in forms.items() if abs(value - score) < 0.01), "another figure")  # noqa: PLR2004


CHECKS: Final = tuple(ON.checks)
