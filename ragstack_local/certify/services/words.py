"""Checks of the text search of S3 Vectors."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ragstack_local.certify.check import INVALID, Json, NotTried, Source, Topic
from ragstack_local.certify.fixtures import create_index, wait_for_words
from ragstack_local.certify.services.vectors import many, pages, vector
from ragstack_local.certify.site import Site, error_code

ON: Final = Topic("words", "words (docs/SEARCH.md#words)", "local_bedrock.operations.vectors")
SEARCH: Final = "local_bedrock.search.vector_query"
BUCKETS: Final = "local_bedrock.operations.vector_buckets"


def texts(site: Site) -> Mapping[str, str]:
    """The index with texts, titles, and labels."""
    index = create_index(
        site,
        "texts",
        2,
        metadataConfiguration={
            "nonFilterableMetadataKeys": ["text"],
            "textSearchConfigurations": [{"metadataKey": "text", "language": "en"}, {"metadataKey": "title"}],
        },
    )
    wait_for_words(site, index)
    site.client("s3vectors").put_vectors(
        **index,
        vectors=[
            vector("pump", 1, 0, text="Grease the bearings of the pump.", title="Pumps", label="a"),
            vector("cafe", 0.9, 0.1, text="The Café opens at noon.", title="Lunch", label="a"),
            vector("valve", 0.8, 0.3, text="A valve, a valve and a pump.", title="Valves", label="b"),
            vector("harbour", 0.1, 1, text="The harbour is closed.", title="Harbour", label="b"),
        ],
    )
    return index


def _query(site: Site, word: str, key: str = "text", **more: Json) -> list[Mapping[str, Json]]:
    answer = site.client("s3vectors").query_vectors(
        **site.shared(texts), topK=10, queryTexts=[{"metadataKey": key, "text": word}], returnScores=True, **more
    )
    return list(answer["vectors"])


def _keys(site: Site, word: str, key: str = "text") -> list[Json]:
    return sorted(found["key"] for found in _query(site, word, key))


@ON.check(
    "found",
    "A text search without a query vector finds the vectors that contain the word",
    Source.DOCUMENTATION,
    ["pump", "valve"],
    held_in=SEARCH,
)
def _found(site: Site) -> Json:
    return _keys(site, "pump")


@ON.check("stems", "A text search with a language stems words", Source.GUESS, ["pump"], held_in=SEARCH)
def _stems(site: Site) -> Json:
    return _keys(site, "bearing")


@ON.check("no_stems", "A text search without a language does not stem words", Source.GUESS, [], held_in=SEARCH)
def _no_stems(site: Site) -> Json:
    return _keys(site, "pump", "title")


@ON.check("case", "Text searches ignore case", Source.GUESS, ["harbour"], held_in=SEARCH)
def _case(site: Site) -> Json:
    return _keys(site, "HARBOUR", "title")


@ON.check("accents", "Text searches ignore accents", Source.GUESS, ["cafe"], held_in=SEARCH)
def _accents(site: Site) -> Json:
    return _keys(site, "cafe")


@ON.check(
    "any_word",
    "A text search finds vectors that contain any one of its words",
    Source.GUESS,
    ["harbour", "pump", "valve"],
    held_in=SEARCH,
)
def _any_word(site: Site) -> Json:
    return _keys(site, "pump harbour")


@ON.check(
    "scores_of_words",
    "A search by text alone returns BM25 scores and no others",
    Source.MODEL,
    ["bm25Scores"],
)
def _scores_of_words(site: Site) -> Json:
    return sorted(name for name, value in _query(site, "pump")[0]["scores"].items() if value)


@ON.check(
    "scores_of_both",
    "A search by vector and text returns the BM25 score, the distance and the fused score",
    Source.MODEL,
    ["bm25Scores", "fused", "vectorDistance"],
)
def _scores_of_both(site: Site) -> Json:
    found = _query(site, "pump", queryVector={"float32": [0.5, 0.5]})
    return sorted({name for each in found for name in each["scores"]})


@ON.check(
    "rank_constant",
    "Searches by vector and text are fused by RRF with the rank constant 60",
    Source.GUESS,
    60,
    held_in=SEARCH,
)
def _rank_constant(site: Site) -> Json:
    """The best of both rankings has the score 2 / (constant + 1)."""
    best = _query(site, "grease", queryVector={"float32": [1.0, 0.0]})[0]
    return round(2 / best["scores"]["fused"] - 1) if best["key"] == "pump" else None


@ON.check(
    "whole_index",
    "BM25 uses the word statistics of the whole index, so a filter changes no score",
    Source.GUESS,
    "the same score",
    used_by="words, access (docs/ACCESS.md#guarantees-and-limits)",
    held_in=SEARCH,
)
def _whole_index(site: Site) -> Json:
    def score(**more: Json) -> float:
        (found,) = (each for each in _query(site, "valve pump", **more) if each["key"] == "valve")
        return round(float(found["scores"]["bm25Scores"][0]["score"]), 4)

    return "the same score" if score() == score(filter={"label": "b"}) else "another score"


@ON.check("filter", "Text searches apply a filter before they rank", Source.DOCUMENTATION, ["valve"], held_in=SEARCH)
def _filter(site: Site) -> Json:
    return [found["key"] for found in _query(site, "pump", filter={"label": "b"})]


@ON.check(
    "consistent", "The words of a vector are found as soon as PutVectors has returned", Source.DOCUMENTATION, ["new"]
)
def _consistent(site: Site) -> Json:
    site.client("s3vectors").put_vectors(
        **site.shared(texts), vectors=[vector("new", 1, 1, text="A capstan.", label="c")]
    )
    return _keys(site, "capstan")


@ON.check("pages", "A text search returns more than 100 vectors in pages of 100", Source.DOCUMENTATION, [100, 100, 50])
def _pages(site: Site) -> Json:
    wait_for_words(site, site.shared(many))
    return pages(site, queryTexts=[{"metadataKey": "text", "text": "buoy"}])


@ON.check(
    "no_language",
    "GetIndex returns the language of a text search, and none for the standard analyzer",
    Source.GUESS,
    ["absent", "en"],
    held_in=BUCKETS,
)
def _no_language(site: Site) -> Json:
    found = site.client("s3vectors").get_index(**site.shared(texts))["index"]["metadataConfiguration"]
    return sorted(each.get("language", "absent") for each in found["textSearchConfigurations"])


@ON.check(
    "missing",
    "A text search of a metadata key without a text search configuration is a ValidationException",
    Source.GUESS,
    INVALID,
)
def _missing(site: Site) -> Json:
    return error_code(lambda: _query(site, "pump", "label"))


@ON.check("key_twice", "A metadata key may occur only once in queryTexts", Source.MODEL, INVALID)
def _key_twice(site: Site) -> Json:
    twice = [{"metadataKey": "text", "text": "pump"}] * 2
    client = site.client("s3vectors")
    return error_code(lambda: client.query_vectors(**site.shared(texts), topK=5, queryTexts=twice))


@ON.check("characters_1024", "A text in queryTexts has at most 1,024 characters", Source.MODEL, ["accepted", INVALID])
def _characters(site: Site) -> Json:
    client = site.client("s3vectors", validates=False)

    def query(characters: int) -> Json:
        words = [{"metadataKey": "text", "text": "x" * characters}]
        return error_code(lambda: client.query_vectors(**site.shared(texts), topK=5, queryTexts=words))

    return [query(1024), query(1025)]


@ON.check(
    "update",
    "UpdateMetadataConfiguration adds a text search to an index that has vectors, and it becomes ACTIVE",
    Source.DOCUMENTATION,
    {"last": "ACTIVE", "found": ["a"]},
    used_by="output TextSearch",
    held_in=BUCKETS,
)
def _update(site: Site) -> Json:
    index, client = create_index(site, site.unused("updated"), 2), site.client("s3vectors")
    client.put_vectors(**index, vectors=[vector("a", 1, 0, text="anchor")])
    client.update_metadata_configuration(**index, add={"textSearchConfigurations": [{"metadataKey": "text"}]})
    seen = wait_for_words(site, index)
    words = [{"metadataKey": "text", "text": "anchor"}]
    found = client.query_vectors(**index, topK=5, queryTexts=words)["vectors"]
    return {"last": seen[-1], "found": [each["key"] for each in found]}


BUILT_AT_ONCE: Final = "the local Bedrock builds a text search at once, unless it is started with --indexing-seconds"


@ON.check(
    "building",
    "Searching a text search configuration that is still BUILDING is a ValidationException",
    Source.GUESS,
    INVALID,
    aws_only=BUILT_AT_ONCE,
    held_in="local_bedrock.operations.vectors",
)
def _building(site: Site) -> Json:
    words = [{"metadataKey": "text", "text": "anchor"}]
    return _while_building(site, lambda client, index: client.query_vectors(**index, topK=5, queryTexts=words))


@ON.check(
    "update_building",
    "An update of the text searches of an index is a ConflictException while one is BUILDING",
    Source.GUESS,
    {"error": "ConflictException"},
    used_by="output TextSearch",
    aws_only=BUILT_AT_ONCE,
    held_in=BUCKETS,
)
def _update_building(site: Site) -> Json:
    more = {"textSearchConfigurations": [{"metadataKey": "label"}]}
    return _while_building(site, lambda client, index: client.update_metadata_configuration(**index, add=more))


def _while_building(site: Site, call: Callable[[Any, Mapping[str, str]], object]) -> Json:
    """Call S3 Vectors at once after a text search was added to an index with two thousand vectors."""
    index, client = create_index(site, site.unused("building"), 2), site.client("s3vectors")
    some = [vector(str(number), 1, number, text=f"anchor {number}") for number in range(500)]
    for start in range(4):
        client.put_vectors(**index, vectors=[{**each, "key": f"{start}-{each['key']}"} for each in some])
    client.update_metadata_configuration(**index, add={"textSearchConfigurations": [{"metadataKey": "text"}]})
    answer = error_code(lambda: call(client, index))
    if answer == "accepted":
        raise NotTried("the text search was ACTIVE before the call")
    return answer


CHECKS: Final = tuple(ON.checks)
