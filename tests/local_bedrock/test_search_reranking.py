"""Retrieve with a rerankingConfiguration."""

from typing import Any

import pytest

from tests.local_bedrock.support import Bedrock, Source, refusal, text_document

MODEL = "arn:aws:bedrock:us-east-1::foundation-model/cohere.rerank-v3-5:0"
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
