"""What the OpenAPI document says beyond types: clients offer these values, and the interface accepts each."""

import json
from typing import Any

import pytest

from lambdas.query import handler as query
from ragstack_common.http.description import describe
from ragstack_common.reading import formats
from ragstack_common.services.ask_models import AskRequest
from ragstack_common.services.search_models import RetrieveRequest
from ragstack_common.services.uploads import UploadRequest
from ragstack_common.settings.access import AccessSettings


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    described: dict[str, Any] = json.loads(describe(query.app, "", AccessSettings()))["components"]["schemas"]
    return described


def test_a_question_accepts_each_described_language_under_its_name(schemas: dict[str, Any]) -> None:
    names = schemas["AskRequest"]["properties"]["language"]["x-ragstack-languages"]

    accepted = [AskRequest(question="Why?", language=name).language for name in names]

    assert "German" in names
    assert accepted == names


def test_a_search_accepts_each_described_reranker_and_the_largest_top_k(schemas: dict[str, Any]) -> None:
    properties = schemas["RetrieveRequest"]["properties"]
    [names] = [form["enum"] for form in properties["rerank"]["anyOf"] if "enum" in form]
    [most] = [form["maximum"] for form in properties["top_k"]["anyOf"] if "maximum" in form]

    assert names
    for name in names:
        assert RetrieveRequest(query="Why?", rerank=name, top_k=int(most)).rerank == name


def test_an_upload_accepts_each_described_file_type_with_its_media_type(schemas: dict[str, Any]) -> None:
    types = schemas["UploadRequest"]["properties"]["content_type"]["x-ragstack-media-types"]

    assert {".md", ".pdf"} <= set(types)
    for suffix, media_type in types.items():
        key = f"document{suffix}"
        assert UploadRequest(key=key, content_type=media_type, size=1).key == key
        assert formats.media_type(key) == media_type
