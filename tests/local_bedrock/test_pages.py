"""All pages of one request are parts of the results of its first page, whatever changes in between."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_bedrock.http.errors import InvalidRequest
from local_bedrock.operations.context import Context
from local_bedrock.operations.paging import Snapshots, read_token, write_token
from local_bedrock.operations.retrieval import retrieve
from local_bedrock.options import Options
from local_bedrock.processes.embedding_processes import Embeddings
from local_bedrock.search import ranking
from local_bedrock.store import documents, full_vectors, resources, submissions
from local_bedrock.store.database import Database
from local_bedrock.store.documents import DocumentKey, IndexedChunk, ParentChunk, Prepared
from local_bedrock.store.resources import DataSource, StoredKnowledgeBase
from ragstack_common.embedding.hashed import HashedEmbedding
from ragstack_common.settings.names import MANAGED
from tests.local_bedrock.support import Clock
from tests.support.soak import examples

BASE, SOURCE = "KB12345678", "DS12345678"
EMBEDDING = HashedEmbedding(64)
RECORD = DocumentKey(BASE, SOURCE, "CUSTOM", "")
Answer = dict[str, Any]


class Library:
    """A knowledge base without a server."""

    def __init__(self, folder: Path, store: str = "OPENSEARCH_SERVERLESS") -> None:
        self.store = store
        self.database = Database(folder)
        self.clock = Clock()
        rest: Any = None
        self.context = Context(
            Options(folder),
            self.database,
            Embeddings(EMBEDDING),
            rest,
            rest,
            rest,
            rest,
            self.clock,
            Snapshots(self.clock),
            rest,
        )
        with self.database.write() as change:
            request: Answer = {"knowledgeBaseConfiguration": {"managedKnowledgeBaseConfiguration": {}}}
            resources.add_knowledge_base(
                change, StoredKnowledgeBase(BASE, "kb", "ACTIVE", store, "hashed", 64, request, 0.0, 0.0)
            )
            resources.add_data_source(change, DataSource(SOURCE, BASE, "source", "AVAILABLE", {}, 0.0, 0.0))

    def put(self, name: str, *texts: str, parents: int = 0, **attributes: float) -> None:
        """Add or replace a document of these chunks."""
        chunks = [IndexedChunk(text, name, None, at % parents if parents else None) for at, text in enumerate(texts)]
        whole = [ParentChunk(f"{name} {at}", None) for at in range(parents)]
        vectors = EMBEDDING.embed(texts).astype(np.float16)
        prepared = Prepared(chunks, EMBEDDING.name, vectors, {**attributes, "_source_uri": name}, parents=whole)
        with self.database.write() as change:
            document = replace(RECORD, name=name)
            submissions.submit(change, document, submissions.INGEST, now=0.0, request={})
            taken = submissions.take_up(change, 0.0)[0]
            documents.index_document(change, taken.document, prepared, 0.0)

    def delete(self, name: str) -> None:
        with self.database.write() as change:
            found = documents.find(change.connection, SOURCE, name)
            assert found is not None
            documents.remove_documents(change, found)

    def retrieve(self, size: int, token: str | None = None, **configuration: Any) -> Answer:
        configuration["numberOfResults"] = size
        member = "managedSearchConfiguration" if self.store == MANAGED else "vectorSearchConfiguration"
        return retrieve(
            self.context,
            {
                "knowledgeBaseId": BASE,
                "retrievalQuery": {"text": "heron bird"},
                "retrievalConfiguration": {member: configuration},
                **({"nextToken": token} if token else {}),
            },
        )


def name_of(result: Answer) -> str:
    return str(result["location"]["customDocumentLocation"]["id"])


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    opened = Library(tmp_path)
    yield opened
    opened.database.close()


TEXTS = st.lists(st.sampled_from(["heron", "bird", "bird heron", "stone", "bird bird water"]), min_size=1, max_size=3)
CHANGES = st.lists(st.tuples(st.sampled_from(["add", "replace", "delete"]), st.integers(0, 99), TEXTS), max_size=4)


@settings(max_examples=examples(60), deadline=None)
@given(
    first=st.lists(TEXTS, min_size=2, max_size=12),
    between=st.lists(CHANGES, min_size=1, max_size=8),
    size=st.integers(1, 6),
    kind_of_search=st.sampled_from(
        [
            ("OPENSEARCH_SERVERLESS", {"overrideSearchType": "HYBRID"}),
            ("OPENSEARCH_SERVERLESS", {"overrideSearchType": "SEMANTIC"}),
            (MANAGED, {}),
            (MANAGED, {"rerankingModelType": "NONE"}),
        ]
    ),
    least=st.integers(0, 4),
)
def test_pages_follow_the_first_ranking_without_changed_documents(
    first: list[list[str]], between: list[Any], size: int, kind_of_search: tuple[str, Answer], least: int
) -> None:
    store, chosen = kind_of_search
    configuration = dict(chosen)
    if least:
        configuration["filter"] = {"greaterThanOrEquals": {"key": "n", "value": least}}
    with TemporaryDirectory() as folder:
        library = Library(Path(folder), store)
        for number, texts in enumerate(first):
            library.put(str(number), *texts, n=number)
        names, changed = list(map(str, range(len(first)))), set()
        left = library.retrieve(100, **configuration)["retrievalResults"]
        page = library.retrieve(size, **configuration)
        pages = [page]
        expected = [left[:size]]
        left = left[size:]
        while page.get("nextToken"):
            for kind, target, texts in between.pop() if between else ():
                name = names[target % len(names)] if kind != "add" and names else f"late-{len(names)}-{target}"
                if kind == "delete" and name in names:
                    library.delete(name)
                    names.remove(name)
                else:
                    library.put(name, *texts, n=target % 9)
                    names = [*dict.fromkeys([*names, name])]
                changed.add(name)
            left = [result for result in left if name_of(result) not in changed]
            page = library.retrieve(size, page["nextToken"], **configuration)
            pages.append(page)
            expected.append(left[:size])
            left = left[size:]
        library.database.close()

    assert [page["retrievalResults"] for page in pages] == expected
    assert left == []


def test_a_parent_is_on_one_page_only(library: Library) -> None:
    library.put("birds", *["heron bird"] * 12, parents=3)
    library.put("stones", *["heron stone"] * 4, parents=2)

    pages = [library.retrieve(2)]
    while pages[-1]["nextToken"]:
        pages.append(library.retrieve(2, pages[-1]["nextToken"]))

    found = [result["content"]["text"] for page in pages for result in page["retrievalResults"]]
    assert sorted(found) == ["birds 0", "birds 1", "birds 2", "stones 0", "stones 1"]


def test_further_pages_do_not_move_when_a_result_of_an_earlier_page_is_deleted(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if its vector is not kept in memory."""
    monkeypatch.setattr(full_vectors, "KEPT_BYTES", 0)
    for number in range(9):
        library.put(str(number), f"heron {'bird ' * number}")
    everything = [name_of(result) for result in library.retrieve(100)["retrievalResults"]]
    first = library.retrieve(3)

    library.delete(everything[0])
    library.delete(everything[4])

    second = library.retrieve(3, first["nextToken"])
    third = library.retrieve(3, second["nextToken"])
    pages = [[name_of(result) for result in page["retrievalResults"]] for page in (first, second, third)]
    assert pages == [everything[:3], [everything[3], *everything[5:7]], everything[7:]]


def test_further_pages_of_very_many_equal_results_are_ranked_at_once(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "MAX_KEPT", 5)
    for number in range(9):
        library.put(str(number), "heron")

    first = library.retrieve(5)
    second = library.retrieve(5, first["nextToken"])

    names = [name_of(result) for page in (first, second) for result in page["retrievalResults"]]
    assert names == list(map(str, range(9)))


def test_a_token_is_kept_no_longer_when_the_vectors_were_replaced(library: Library) -> None:
    for number in range(5):
        library.put(str(number), "heron")
    token = library.retrieve(2)["nextToken"]
    with library.database.write() as change:
        change.connection.execute("UPDATE knowledge_base SET embedding = 'another'")

    with pytest.raises(InvalidRequest, match="send the request again without a nextToken"):
        library.retrieve(2, token)


def test_a_token_that_is_kept_no_longer_says_to_search_again(library: Library) -> None:
    for number in range(5):
        library.put(str(number), "heron")
    token = library.retrieve(2)["nextToken"]
    library.clock.now = 599

    assert len(library.retrieve(2, token)["retrievalResults"]) == 2

    library.clock.now = 1300
    with pytest.raises(InvalidRequest, match="send the request again without a nextToken"):
        library.retrieve(2, token)


def test_a_token_of_another_search_is_rejected(library: Library) -> None:
    for number in range(5):
        library.put(str(number), "heron")
    token = library.retrieve(2)["nextToken"]
    position = read_token(token, snapshot=str, offset=int)
    assert position is not None

    for wrong in (
        partial(library.retrieve, 2, token, overrideSearchType="SEMANTIC"),
        partial(library.retrieve, 3, token),
        partial(library.retrieve, 2, write_token({**position, "offset": -1})),
    ):
        with pytest.raises(InvalidRequest, match="not valid for this request"):
            wrong()
