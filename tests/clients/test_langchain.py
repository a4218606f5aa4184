"""LangChain: the knowledge-base retriever, embeddings, chat model and reranker of langchain-aws."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.conftest import ANIMALS, Zoo
from tests.clients.support import Client, ClientError, client
from tests.local_bedrock.support import client as boto3_client

pytestmark = pytest.mark.xdist_group("clients")

FASTEST = "the fastest animal on land"
TEXT_MODEL = "anthropic.claude-3-haiku-20240307-v1:0"
EMBEDDING_MODEL = "amazon.titan-embed-text-v2:0"
RERANKING_MODEL = "arn:aws:bedrock:us-east-1::foundation-model/cohere.rerank-v3-5:0"


@pytest.fixture(scope="module")
def langchain(zoo: Zoo) -> Iterator[Client]:
    with client("langchain_client", zoo.url) as process:
        yield process


def search(
    langchain: Client, zoo: Zoo, question: str, *, minimum: float | None = None, **more: Any
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = langchain.ask(
        "retrieve",
        question=question,
        knowledge_base_id=zoo.knowledge_base_id,
        retrieval_config={"vectorSearchConfiguration": more},
        min_score_confidence=minimum,
    )
    return found


def names(found: list[dict[str, Any]]) -> list[str]:
    return [document["location"]["customDocumentLocation"]["id"] for document in found]


def test_the_best_document_comes_first_and_scores_fall(langchain: Client, zoo: Zoo) -> None:
    found = search(langchain, zoo, FASTEST, numberOfResults=5)

    scores = [document["score"] for document in found]
    assert found[0]["text"] == ANIMALS["cheetah"][0]
    assert names(found)[0] == "cheetah"
    assert len(found) == 5
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert found[0]["source_metadata"]["class"] == "mammal"
    assert found[0]["source_metadata"]["x-amz-bedrock-kb-data-source-id"] == zoo.animals.id


@pytest.mark.parametrize("kind", ["HYBRID", "SEMANTIC"])
def test_either_kind_of_search_finds_the_words(langchain: Client, zoo: Zoo, kind: str) -> None:
    found = search(langchain, zoo, "three hearts and a cloud of ink", numberOfResults=1, overrideSearchType=kind)

    assert names(found) == ["octopus"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"equals": {"key": "class", "value": "mollusc"}}, {"octopus", "snail"}),
        ({"notEquals": {"key": "class", "value": "mammal"}}, {"ostrich", "octopus", "snail", "bamboo", "baobab"}),
        ({"greaterThan": {"key": "legs", "value": 2}}, {"cheetah", "octopus"}),
        ({"lessThanOrEquals": {"key": "legs", "value": 2}}, {"ostrich", "whale", "snail", "bamboo", "baobab"}),
        ({"in": {"key": "class", "value": ["bird", "tree"]}}, {"ostrich", "baobab"}),
        ({"notIn": {"key": "class", "value": ["mammal", "mollusc", "grass"]}}, {"ostrich", "baobab"}),
        ({"startsWith": {"key": "class", "value": "m"}}, {"cheetah", "whale", "octopus", "snail"}),
        ({"listContains": {"key": "habitats", "value": "savanna"}}, {"cheetah", "ostrich", "baobab"}),
        ({"stringContains": {"key": "class", "value": "ras"}}, {"bamboo"}),
        (
            {
                "andAll": [
                    {"listContains": {"key": "habitats", "value": "savanna"}},
                    {"orAll": [{"equals": {"key": "class", "value": "tree"}}, {"equals": {"key": "legs", "value": 2}}]},
                ]
            },
            {"ostrich", "baobab"},
        ),
    ],
)
def test_a_filter_lets_through_what_it_says(
    langchain: Client, zoo: Zoo, condition: dict[str, Any], expected: set[str]
) -> None:
    found = search(langchain, zoo, FASTEST, numberOfResults=10, filter=condition)

    assert set(names(found)) == expected


def test_a_filtered_search_keeps_the_order_of_the_rest(langchain: Client, zoo: Zoo) -> None:
    everything = names(search(langchain, zoo, FASTEST, numberOfResults=10))

    wild = names(search(langchain, zoo, FASTEST, numberOfResults=10, filter={"equals": {"key": "wild", "value": True}}))

    assert wild == [name for name in everything if name in ANIMALS]


def test_a_threshold_drops_lower_scores(langchain: Client, zoo: Zoo) -> None:
    everything = search(langchain, zoo, FASTEST, numberOfResults=10)
    threshold = everything[1]["score"]

    above = search(langchain, zoo, FASTEST, numberOfResults=10, minimum=threshold)

    assert above == [document for document in everything if document["score"] >= threshold]
    assert 0 < len(above) < len(everything)


def test_a_filter_that_aws_refuses_is_refused(langchain: Client, zoo: Zoo) -> None:
    with pytest.raises(ClientError, match=r"ValidationException|ParamValidationError"):
        search(langchain, zoo, FASTEST, filter={"andAll": [{"equals": {"key": "class", "value": "bird"}}]})


def test_embeddings_are_unit_vectors_that_put_the_right_text_nearest(langchain: Client) -> None:
    texts = [text for text, _attributes in ANIMALS.values()]

    vectors = langchain.ask("embed", model=EMBEDDING_MODEL, question=FASTEST, texts=texts)

    question = vectors["question"]
    products = [_product(question, vector) for vector in vectors["texts"]]
    assert len(question) == 1024
    assert math.isclose(_product(question, question), 1.0, abs_tol=1e-3)
    assert texts[products.index(max(products))] == ANIMALS["cheetah"][0]


def test_reranking_puts_the_answer_first(langchain: Client) -> None:
    texts = [text for text, _attributes in ANIMALS.values()][::-1]

    ranked = langchain.ask("rerank", model=RERANKING_MODEL, question=FASTEST, texts=texts, top=2)

    assert len(ranked) == 2
    assert texts[ranked[0]["index"]] == ANIMALS["cheetah"][0]
    assert 1 >= ranked[0]["relevance_score"] >= ranked[1]["relevance_score"] >= 0


def test_the_chat_model_answers_from_what_it_was_given(langchain: Client) -> None:
    passages = "".join(f"<document>{text}</document>" for text, _attributes in ANIMALS.values())

    answer = langchain.ask("chat", model=TEXT_MODEL, system=passages, question="Which animal has three hearts?")

    assert "octopus has three hearts" in answer["text"]
    assert answer["usage"]["output_tokens"] > 0
    assert answer["stop_reason"] == "end_turn"


def test_the_streamed_pieces_are_the_answer(langchain: Client) -> None:
    passages = "".join(f"<document>{ANIMALS[name][0]}</document>" for name in ("octopus", "snail"))
    question = f"{passages}\n\nWhich animal has three hearts?"

    pieces = langchain.ask("stream", model=TEXT_MODEL, question=question)

    assert "octopus has three hearts" in "".join(pieces)


def _product(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def test_it_searches_a_managed_knowledge_base(langchain: Client, zoo: Zoo) -> None:
    search = {"numberOfResults": 2, "filter": {"equals": {"key": "_data_source_id", "value": zoo.managed.id}}}

    found = langchain.ask(
        "retrieve",
        question=FASTEST,
        knowledge_base_id=zoo.managed.knowledge_base_id,
        retrieval_config={"managedSearchConfiguration": search},
    )

    assert names(found)[0] == "cheetah"
    assert len(found) == 2
    assert found[0]["source_metadata"]["_source_uri"] == "cheetah"


def test_it_retrieves_agentically(langchain: Client, zoo: Zoo) -> None:
    answer = langchain.ask(
        "agentic",
        knowledge_base_id=zoo.managed.knowledge_base_id,
        query="How many hearts does the octopus have?",
        generate_response=True,
    )

    (citation,) = answer["generatedResponse"]["citations"]
    assert "The octopus has three hearts" in answer["generatedResponse"]["answer"]
    cited = [answer["results"][each["resultIndex"]] for each in citation["references"]]
    assert [each["metadata"]["_source_uri"] for each in cited] == ["octopus"]


def test_its_store_of_vectors_adds_searches_and_deletes(langchain: Client, zoo: Zoo) -> None:
    boto3_client("s3vectors", zoo.url).create_vector_bucket(vectorBucketName="langchain")
    settings = {
        "model": EMBEDDING_MODEL,
        "vector_bucket_name": "langchain",
        "index_name": "animals",
        "non_filterable_metadata_keys": ["_page_content"],
    }
    texts = {name: text for name, (text, _) in ANIMALS.items()}
    metadata = {name: attributes for name, (_, attributes) in ANIMALS.items()}

    def ask(do: str, **arguments: Any) -> Any:
        return langchain.ask("vectors", do=do, settings=settings, **arguments)

    assert ask("add", texts=texts, metadata=metadata) == list(texts)
    found = ask("search", question=FASTEST, k=2)
    assert found[0]["id"] == "cheetah"
    assert found[0]["text"] == texts["cheetah"]
    assert 0 < found[0]["distance"] < found[1]["distance"] < 1
    in_the_sea = {"$and": [{"habitats": "ocean"}, {"legs": {"$lt": 8}}]}
    assert [each["id"] for each in ask("search", question=FASTEST, k=5, filter=in_the_sea)] == ["whale"]
    assert ask("retrieve", question=FASTEST, k=1) == ["cheetah"]
    assert ask("get", ids=["snail", "whale"]) == [texts["snail"], texts["whale"]]
    assert ask("delete", ids=["cheetah"])
    assert ask("retrieve", question=FASTEST, k=1) == ["ostrich"]
    with pytest.raises(ClientError, match="Invalid use of non-filterable metadata in filter"):
        ask("search", question=FASTEST, k=1, filter={"_page_content": "x"})
    assert ask("delete", ids=None)
