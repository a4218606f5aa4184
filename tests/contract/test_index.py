"""What every backend does that indexes documents, tested on each of them with a real store."""

from collections.abc import Iterator
from typing import Any

import pytest

from ragstack_common.core.errors import IndexingError, InvalidDocumentError
from ragstack_common.embedding import HashedEmbedding
from ragstack_common.search import RetrievalBackend, SearchRequest
from tests.contract.case import Make, run
from tests.contract.writable import ALL, Writable

pytestmark = pytest.mark.integration

PARIS = {"id": "1", "content": "Paris is the capital of France."}
BERLIN: dict[str, Any] = {
    "id": "2",
    "content": "Berlin is the capital of Germany.",
    "source": "cities.md",
    "metadata": {"country": "Germany", "population": 3_700_000, "eu": True, "rivers": ["Spree", "Havel"]},
}


@pytest.fixture(scope="module", params=ALL, ids=lambda writable: writable.name)
def writable(request: pytest.FixtureRequest) -> Writable:
    assert isinstance(request.param, Writable)
    return request.param


@pytest.fixture(scope="module")
def make(writable: Writable, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    with writable.open(tmp_path_factory.mktemp(writable.name)) as make:
        yield make


def test_indexed_documents_are_found_at_once(make: Make) -> None:
    ids, found, filtered = run(
        make,
        lambda b: b.index([PARIS, BERLIN]),
        lambda b: b.retrieve("capital of France", top_k=2),
        lambda b: b.retrieve("capital of France", filters={"country": "Germany"}),
    )

    assert ids == ["1", "2"]
    assert [chunk.content for chunk in found] == [PARIS["content"], BERLIN["content"]]
    (berlin,) = filtered
    assert BERLIN["metadata"].items() <= berlin.metadata.items()
    assert [(chunk.chunk_id, chunk.source) for chunk in found] == [("1", "1"), ("2", "cities.md")]


def test_an_existing_id_is_replaced_with_all_its_attributes(make: Make) -> None:
    _, before, again, after, by_old = run(
        make,
        lambda b: b.index([BERLIN]),
        lambda b: b.retrieve("capital of Germany", top_k=10),
        lambda b: b.index([{**BERLIN, "content": "Berlin is on the Spree.", "metadata": {"country": "DE"}}]),
        lambda b: b.retrieve("Berlin on the Spree", top_k=10),
        lambda b: b.retrieve("Berlin on the Spree", filters={"population": {"$gt": 0}}),
    )

    assert again == ["2"]
    assert len(after) == len(before)
    assert after[0].content == "Berlin is on the Spree."
    assert after[0].metadata["country"] == "DE"
    assert "population" not in after[0].metadata
    assert by_old == []


def test_a_malformed_document_is_named_and_nothing_is_indexed(make: Make) -> None:
    async def refused(backend: RetrievalBackend) -> None:
        with pytest.raises(InvalidDocumentError, match=r"documents\[1\]: content"):
            await backend.index([{"id": "fresh", "content": "Zanzibar is an island."}, {"id": "3", "content": " \n"}])

    found = run(make, lambda b: b.index([PARIS]), refused, lambda b: b.retrieve("Zanzibar is an island", top_k=10))[2]

    assert "Zanzibar is an island." not in [chunk.content for chunk in found]


def test_any_text_can_be_an_id(make: Make) -> None:
    """An empty list is left out of the attributes."""
    identifier = 'it\'s "a" / b#c %20 ü 漢'
    document = {"id": identifier, "content": "Herons stand.", "metadata": {"tags": [], "none": 2**63 - 1}}

    ids, (chunk,) = run(make, lambda b: b.index([document]), lambda b: b.retrieve("Herons stand.", top_k=1))

    assert ids == [identifier]
    assert identifier in (chunk.chunk_id, chunk.source)
    assert "tags" not in chunk.metadata


def test_rejected_documents_are_named_and_the_others_indexed(writable: Writable, make: Make) -> None:
    if writable.rejected is None:
        pytest.skip("this store takes every document that has the right form")
    documents = [
        {"id": "rome", "content": "Rome is the capital of Italy."},
        {"id": writable.rejected, "content": "Nowhere has no capital."},
        {"id": "oslo", "content": "Oslo is the capital of Norway."},
    ]

    async def partly(backend: RetrievalBackend) -> IndexingError:
        with pytest.raises(IndexingError, match=r"^1 of 3 documents were not indexed") as caught:
            await backend.index(documents)
        return caught.value

    error, found = run(make, partly, lambda b: b.retrieve("Oslo is the capital of Norway.", top_k=1))

    assert (error.indexed, [*error.failed]) == (("rome", "oslo"), [writable.rejected])
    assert found[0].content == documents[2]["content"]


def test_chunks_come_with_their_embeddings_on_request(make: Make) -> None:
    request = SearchRequest("capital of France", top_k=2, deduplicate_by="document", passages=2, with_embeddings=True)
    _, outcome, plain = run(
        make,
        lambda b: b.index([PARIS, BERLIN]),
        lambda b: b.search(request),
        lambda b: b.retrieve("capital of France"),
    )

    for chunk in outcome.chunks:
        assert chunk.embedding == pytest.approx(HashedEmbedding().embed([chunk.content])[0].tolist(), abs=1e-6)
        assert chunk.passages[0].embedding == chunk.embedding
    assert {chunk.embedding is None for chunk in plain} == {True}


def test_an_empty_list_of_documents_is_accepted(make: Make) -> None:
    assert run(make, lambda b: b.index([])) == [[]]
