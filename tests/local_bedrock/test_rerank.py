"""Rerank, and Retrieve with a rerankingConfiguration."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_bedrock.search.reranking import score
from ragstack_common.embedding.hashed import HashedEmbedding
from ragstack_common.ingestion.requests import text_document
from tests.local_bedrock.support import Bedrock, Source, client, refusal

MODEL = "arn:aws:bedrock:us-west-2::foundation-model/cohere.rerank-v3-5:0"
QUERY = "How many days of annual leave do I have?"
TEXTS = (
    "The canteen opens at noon.",
    "Every employee has 27 days of annual leave.",
    "Leave the building by the front door in the days of the fair.",
)


@pytest.fixture(scope="module")
def runtime(bedrock: Bedrock) -> Any:
    return client("bedrock-agent-runtime", bedrock.url)


def request(*texts: str, query: str = QUERY, model: str = MODEL, **configuration: Any) -> dict[str, Any]:
    return {
        "queries": [{"type": "TEXT", "textQuery": {"text": query}}],
        "sources": [
            {"type": "INLINE", "inlineDocumentSource": {"type": "TEXT", "textDocument": {"text": text}}}
            for text in texts
        ],
        "rerankingConfiguration": {
            "type": "BEDROCK_RERANKING_MODEL",
            "bedrockRerankingConfiguration": {"modelConfiguration": {"modelArn": model}, **configuration},
        },
    }


def test_the_document_that_answers_comes_first(runtime: Any) -> None:
    results = runtime.rerank(**request(*TEXTS))["results"]

    assert [result["index"] for result in results] == [1, 2, 0]
    assert results[0]["document"] == {"type": "TEXT", "textDocument": {"text": TEXTS[1]}}
    scores = [result["relevanceScore"] for result in results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= value <= 1 for value in scores)
    assert runtime.rerank(**request(*TEXTS, numberOfResults=1))["results"] == results[:1]


def test_json_documents_are_read_by_their_values(runtime: Any) -> None:
    asked = request(TEXTS[0])
    document = {"title": "Leave", "facts": [{"days": 27, "of": "annual leave"}]}
    asked["sources"].append({"type": "INLINE", "inlineDocumentSource": {"type": "JSON", "jsonDocument": document}})

    first, _second = runtime.rerank(**asked)["results"]

    assert first["index"] == 1
    assert first["document"] == {"type": "JSON", "jsonDocument": document}


def test_pages_give_every_document_once(runtime: Any) -> None:
    asked = request(*(f"{TEXTS[number % 3]} Number {number}." for number in range(250)))

    seen, token = [], None
    while True:
        page = runtime.rerank(**asked, **({"nextToken": token} if token else {}))
        seen += [result["index"] for result in page["results"]]
        token = page.get("nextToken")
        if token is None:
            break

    assert sorted(seen) == list(range(250))


@pytest.mark.parametrize(
    "model",
    [
        "arn:aws:bedrock:us-east-1::foundation-model/amazon.titan-embed-text-v2:0",
        "arn:aws:bedrock:us-east-1:123456789012:provisioned-model/abcdefghijkl",
        "cohere.rerank-v3-5:0",
    ],
)
def test_a_model_that_cannot_rerank_is_refused(runtime: Any, model: str) -> None:
    with pytest.raises(runtime.exceptions.ValidationException, match="cannot rerank: use the ARN of"):
        runtime.rerank(**request(*TEXTS, model=model))


@pytest.mark.parametrize("model", ["amazon.rerank-v1:0", "cohere.rerank-v3-5:0"])
def test_both_reranking_models_are_taken(runtime: Any, model: str) -> None:
    arn = f"arn:aws:bedrock:eu-central-1::foundation-model/{model}"

    assert runtime.rerank(**request(*TEXTS, model=arn))["results"][0]["index"] == 1


def test_an_unsupported_reranking_is_refused(runtime: Any) -> None:
    blank, fields, empty = request(*TEXTS, query=" "), request(*TEXTS), request(TEXTS[0])
    configuration = fields["rerankingConfiguration"]["bedrockRerankingConfiguration"]["modelConfiguration"]
    configuration["additionalModelRequestFields"] = {"max_tokens_per_doc": 5}
    empty["sources"][0]["inlineDocumentSource"]["type"] = "JSON"

    assert "The text of the query is empty" in refusal(runtime.rerank, **blank)
    assert "does not support additionalModelRequestFields" in refusal(runtime.rerank, **fields)
    assert "The source 0 of type JSON needs jsonDocument" in refusal(runtime.rerank, **empty)


@settings(deadline=None)
@given(st.text(max_size=80), st.lists(st.text(max_size=200), max_size=6), st.booleans())
def test_scores_stay_within_0_and_1_and_do_not_change(query: str, texts: list[str], ranked: bool) -> None:
    first = score(query, texts, HashedEmbedding(), ranked=ranked)

    assert len(first) == len(texts)
    assert all(0 <= value <= 1 for value in first)
    assert first == score(query, texts, HashedEmbedding(), ranked=ranked)


@settings(deadline=None)
@given(st.lists(st.text(alphabet="abc ", max_size=40), min_size=1, max_size=6), st.randoms())
def test_the_order_of_the_texts_counts_only_when_it_is_said_to(texts: list[str], random: Any) -> None:
    order = list(range(len(texts)))
    random.shuffle(order)

    scores = score("a b c", texts, HashedEmbedding())
    shuffled = score("a b c", [texts[index] for index in order], HashedEmbedding())

    assert shuffled == pytest.approx([scores[index] for index in order], abs=1e-6)


def test_among_equal_texts_a_ranking_is_kept() -> None:
    first, second, third = score("herons", ["Herons stand."] * 3, HashedEmbedding(), ranked=True)

    assert first > second > third


QUESTION = "how long may books be borrowed"


def reranking(**more: Any) -> dict[str, Any]:
    model = {"modelConfiguration": {"modelArn": more.pop("model", MODEL)}}
    return {"type": "BEDROCK_RERANKING_MODEL", "bedrockRerankingConfiguration": {**model, **more}}


def search(source: Source, question: str = QUESTION, **configuration: Any) -> list[dict[str, Any]]:
    return source.bedrock.search(source.knowledge_base_id, question, numberOfResults=10, **configuration)


def names(results: list[dict[str, Any]]) -> list[str]:
    return [result["location"]["customDocumentLocation"]["id"] for result in results]


@pytest.fixture(scope="module")
def library(bedrock: Bedrock) -> Source:
    source = bedrock.custom_source(bedrock.knowledge_base("library"))
    source.ingested(
        text_document("near", "Books may be borrowed for four weeks. Films only for one."),
        text_document(
            "far",
            "Books are bought every month. The shelves were painted long ago, and visitors may sit there. Chairs were"
            " borrowed from the school. How they got here is told in the hall.",
        ),
        text_document("hours", "The library opens at nine.", {"topic": "borrowed books", "audience": "visitors"}),
        text_document("prices", "A card costs ten crowns a year."),
    )
    return source


def test_the_reranker_puts_first_what_answers(library: Source) -> None:
    results = search(library, rerankingConfiguration=reranking())

    scores = [result["score"] for result in results]
    assert names(results)[0] == "near"
    assert sorted(names(results)) == ["far", "hours", "near", "prices"]
    assert scores == sorted(scores, reverse=True)
    assert 0 <= scores[-1] < scores[0] <= 1
    assert scores != [result["score"] for result in search(library)]


def test_reranked_results_have_one_page_of_the_requested_size(library: Source) -> None:
    everything = search(library, rerankingConfiguration=reranking())

    limited = search(library, rerankingConfiguration=reranking(numberOfRerankedResults=2))
    page = library.bedrock.runtime.retrieve(
        knowledgeBaseId=library.knowledge_base_id,
        retrievalQuery={"text": QUESTION},
        retrievalConfiguration={
            "vectorSearchConfiguration": {"numberOfResults": 2, "rerankingConfiguration": reranking()}
        },
    )

    assert limited == everything[:2]
    assert len(page["retrievalResults"]) == 2
    assert "nextToken" not in page


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        ({"type": "BEDROCK_RERANKING_MODEL"}, "needs bedrockRerankingConfiguration"),
        (reranking(model="arn:aws:bedrock:us-east-1::foundation-model/amazon.titan-text-v1"), "cannot rerank"),
        (reranking(metadataConfiguration={"selectionMode": "ALL"}), "does not support metadataConfiguration"),
    ],
)
def test_an_invalid_reranking_is_refused(library: Source, configuration: dict[str, Any], words: str) -> None:
    assert words in refusal(search, source=library, rerankingConfiguration=configuration)
