"""How the status says that words are searched, with an S3 Vectors that refuses as AWS does."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from ragstack_common.core import clients
from ragstack_common.search.engines import index_words
from ragstack_common.services.word_search import REMEMBERED_SECONDS, WordSearch, word_search_of
from ragstack_common.settings.ingestion import DocumentApiSettings
from tests.support.aws_service import AwsService, Fault, aws_service
from tests.support.knowledge_base import KNOWLEDGE_BASE

INDEX = "arn:aws:s3vectors:eu-west-1:123456789012:bucket/vectors/index/chunks"
FOUND = {"vectors": [], "distanceMetric": "cosine"}


@pytest.fixture
def vectors(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsService]:
    with aws_service("s3vectors") as service:
        monkeypatch.setattr(clients, "vectors_client", cache(lambda _timeout: service.client()))
        index_words.words_of.cache_clear()
        yield service
        index_words.words_of.cache_clear()


def settings(**more: Any) -> DocumentApiSettings:
    needed = ("registry_table", "documents_bucket", "jobs_queue_url", "ingestion_queue_url", "dead_letter_queue_url")
    known = {"knowledge_base_id": KNOWLEDGE_BASE, "vector_index_arn": INDEX, "vector_store": "S3_VECTORS"}
    return DocumentApiSettings(**{**dict.fromkeys(needed, "x"), **known, **more})


def test_words_are_searched_if_the_index_finds_one(vectors: AwsService) -> None:
    vectors.program("QueryVectors", FOUND)

    assert word_search_of(settings())() == WordSearch(search_type="HYBRID")


def test_a_role_without_the_right_says_so(vectors: AwsService) -> None:
    vectors.program("QueryVectors", Fault("AccessDeniedException", f"User arn:aws:iam::1:x on {INDEX}", 403))

    found = word_search_of(settings())()

    assert found is not None
    assert found.search_type == "SEMANTIC"
    assert "allow s3vectors:QueryVectors" in str(found.reason)
    assert "arn:" not in str(found.reason)


def test_an_index_that_does_not_answer_is_not_known(vectors: AwsService) -> None:
    vectors.program("QueryVectors", Fault("ServiceUnavailableException", "Later.", 503))

    found = word_search_of(settings())()

    assert found is not None
    assert found.search_type is None
    assert found.reason


def test_an_answer_is_remembered_for_some_minutes(vectors: AwsService) -> None:
    vectors.program("QueryVectors", FOUND)
    now = [0.0]
    read = word_search_of(settings(), clock=lambda: now[0])

    for moment in (0.0, REMEMBERED_SECONDS - 1, REMEMBERED_SECONDS + 1):
        now[0] = moment
        read()

    assert len(vectors.asked("QueryVectors")) == 2


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"search_type": "SEMANTIC"}, WordSearch(search_type="SEMANTIC", reason="SEARCH_TYPE is SEMANTIC")),
        ({"vector_store": "OPENSEARCH_SERVERLESS", "search_type": "HYBRID"}, WordSearch(search_type="HYBRID")),
        ({"knowledge_base_id": None}, None),
    ],
)
def test_settings_can_decide_it(vectors: AwsService, given: dict[str, Any], found: WordSearch | None) -> None:
    assert word_search_of(settings(**given))() == found
    assert vectors.requests == []


def test_a_store_that_decides_itself_is_not_known() -> None:
    found = word_search_of(settings(vector_store="OPENSEARCH_SERVERLESS"))()

    assert found is not None
    assert found.search_type is None
