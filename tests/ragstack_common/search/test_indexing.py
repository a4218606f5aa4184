"""Putting documents into indexes: batches and wrappers."""

import asyncio
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.core import errors
from ragstack_common.core.errors import (
    IndexingError,
    InvalidDocumentError,
    InvalidRequestError,
    ServiceUnavailableError,
)
from ragstack_common.embedding import HashedEmbedding
from ragstack_common.knowledge_base import KnowledgeBase
from ragstack_common.search.engines.chroma.backend import ChromaBackend
from ragstack_common.search.indexing import IndexDocument, parse_documents, put_in_batches
from ragstack_common.search.wrappers.cached import CachedRetrievalBackend
from ragstack_common.search.wrappers.federated import FederatedBackend
from tests.support.backends import Shelf, chunk

DOCUMENTS = [{"id": "1", "content": "Herons stand."}, {"id": "2", "content": "Ospreys dive."}]


@given(st.integers(0, 30), st.integers(1, 7), st.sets(st.integers(0, 29)), st.none() | st.integers(0, 8))
def test_every_document_is_indexed_or_failed(
    count: int, size: int, rejected: set[int], failing_call: int | None
) -> None:
    documents = parse_documents([{"id": n, "content": "x"} for n in range(count)])
    stored: list[str] = []
    calls = 0

    def put(some: Sequence[IndexDocument]) -> None:
        nonlocal calls
        calls += 1
        assert len(some) <= size
        if failing_call is not None and calls > failing_call:
            assert calls == failing_call + 1
            raise ServiceUnavailableError("it burns")
        if {int(document.id) for document in some} & rejected:
            raise InvalidDocumentError("no")
        stored.extend(document.id for document in some)

    try:
        indexed, failed = put_in_batches(documents, size, put), {}
    except IndexingError as error:
        indexed, failed = [*error.indexed], error.failed
    except ServiceUnavailableError:
        indexed, failed = [], dict.fromkeys((document.id for document in documents), "it burns")

    assert indexed == stored
    assert {*indexed, *failed} == {document.id for document in documents}
    assert len(indexed) + len(failed) == count
    if failing_call is None:
        assert {*failed} == {str(n) for n in rejected if n < count}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"content": "No id."}, "id: Field required"),
        ({"id": "", "content": "x"}, "id: String should have at least 1 character"),
        ({"id": "\ud800", "content": "x"}, "id"),
        ({"id": "3"}, "content: Field required"),
        ({"id": "3", "content": " \n"}, "content: the text is blank"),
        ({"id": "3", "content": "x", "source": "\udfff"}, "source"),
        ({"id": "3", "content": "x", "metadata": {"a": {"b": 1}}}, "metadata: the attribute 'a' must be a string"),
        ({"id": "3", "content": "x", "metadata": {"a": float("nan")}}, "metadata: the attribute 'a' must be a string"),
        ({"id": "3", "content": "x", "metadata": {"a": 2**63}}, "metadata: the attribute 'a' must be a string"),
        (
            {"id": "3", "content": "x", "metadata": {"a": ["b", "\udfff"]}},
            "metadata: the attribute 'a' has no name",
        ),
        ({"id": "3", "content": "x", "metadata": {"\udfff": "b"}}, "metadata: the attribute"),
        ({"id": "3", "content": "x", "metadata": {"": "b"}}, "metadata: the attribute '' has no name"),
        ({"id": "3", "content": "x", "meta": {}}, "meta: Extra inputs are not permitted"),
        ({"id": 1, "content": "Another with the id."}, "the id '1' occurs twice"),
        ("text", "it: Input should be a valid dictionary"),
    ],
)
def test_a_malformed_document_is_named_by_its_place_and_its_member(wrong: Any, message: str) -> None:
    with pytest.raises(InvalidDocumentError, match=rf"^documents\[1\]: {message}"):
        parse_documents([DOCUMENTS[0], wrong])


def test_an_attribute_that_chroma_reserves_fails_only_its_document(tmp_path: Path) -> None:
    reserved = {"id": "3", "content": "x", "metadata": {"chroma:document": "y"}}

    async def index() -> IndexingError:
        async with ChromaBackend(tmp_path, "library") as backend:
            with pytest.raises(IndexingError, match="3: Chroma rejects a document") as caught:
                await backend.index([*DOCUMENTS, reserved])
            return caught.value

    assert asyncio.run(index()).indexed == ("1", "2")


def test_an_indexing_error_shows_some_failures_and_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(IndexingError(["0"], {str(n): "too long" for n in range(1, 9)})))

    assert str(error).startswith("8 of 9 documents were not indexed: 1: too long; 2: too long;")
    assert str(error).endswith("5: too long; ...")
    assert (error.indexed, len(error.failed)) == (("0",), 8)


class Writable(Shelf):
    """Stores documents as chunks."""

    async def index(self, documents: Sequence[Mapping[str, Any]]) -> list[str]:
        self.chunks += [chunk(str(document["id"])) for document in documents]
        if self.error is not None:
            raise self.error
        return [str(document["id"]) for document in documents]


@pytest.mark.parametrize("error", [None, IndexingError(["1"], {"2": "no"})])
async def test_a_cache_forgets_its_answers_when_documents_are_indexed(error: Exception | None) -> None:
    shelf = Writable(chunk("old"))
    backend = CachedRetrievalBackend(shelf)
    before = await backend.retrieve("x")

    shelf.error = error
    if error is None:
        assert await backend.index(DOCUMENTS) == ["1", "2"]
    else:
        with pytest.raises(IndexingError):
            await backend.index(DOCUMENTS)
    shelf.error = None

    assert [c.source for c in before] == ["old"]
    assert [c.source for c in await backend.retrieve("x")] == ["old", "1", "2"]


async def test_a_federation_names_the_backends_to_choose_from() -> None:
    shelves = {"near": Writable(), "far": Writable()}

    with pytest.raises(InvalidRequestError, match=r"index into one of its backends.* near, far"):
        await FederatedBackend(shelves).index(DOCUMENTS)

    assert [shelf.chunks for shelf in shelves.values()] == [[], []]


async def test_a_backend_that_only_searches_says_so() -> None:
    with pytest.raises(InvalidRequestError, match="shelf cannot index 2 documents"):
        await Shelf().index(DOCUMENTS)


def test_a_collection_of_chroma_refuses_another_embedding(tmp_path: Path) -> None:
    with KnowledgeBase("library", tmp_path, environment={}) as base:
        base.collection.add(ids=["0"], documents=["Storks clatter."], metadatas=[{"corpus": "nz"}])

    async def index(**options: Any) -> list[str]:
        async with ChromaBackend(tmp_path, "library", **options) as backend:
            return await backend.index(DOCUMENTS)

    assert asyncio.run(index()) == ["1", "2"]
    with KnowledgeBase("library", tmp_path, environment={}) as base:
        assert len(base.retrieve("herons", 10)) == 3
    with pytest.raises(errors.EmbeddingError, match="made with the embedding hashed"):
        asyncio.run(index(embedding=Other()))


class Other(HashedEmbedding):
    name = description = "other"
