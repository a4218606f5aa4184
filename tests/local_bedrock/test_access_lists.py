"""Searches of documents with access control lists."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_bedrock.search import ranking
from local_bedrock.search.access import Reader, has_access_lists
from local_bedrock.search.ranking import Search
from local_bedrock.store import documents, submissions
from local_bedrock.store.database import Database
from local_bedrock.store.documents import DocumentKey, IndexedChunk, Prepared
from ragstack_common.ingestion.requests import text_document
from ragstack_common.settings.names import SIGNALS_HEADER
from tests.local_bedrock.support import Bedrock, Source, bytes_document, custom_identifier, refusal
from tests.support.soak import examples

ANN, BEN = "ann@example.com", "ben@example.com"


def listed(name: str, text: str, **lists: list[str]) -> dict[str, Any]:
    document = text_document(name, text, {"name": name})
    document["metadata"]["accessControlList"] = [
        {"name": user, "type": "USER", "access": access.upper()} for access, users in lists.items() for user in users
    ]
    return document


@pytest.fixture(scope="module")
def closed(bedrock: Bedrock) -> Source:
    """A source with access control, and one without in the same knowledge base."""
    base = bedrock.managed_base("acl")
    source = bedrock.connector(base, "CUSTOM", "closed", aclEnabled=True)
    source.ingested(
        listed("for-ann", "The heron of Ann is grey.", allow=[ANN]),
        listed("for-both", "The heron of both is white.", allow=[ANN, BEN]),
        listed("not-for-ben", "The heron that Ben must not see.", allow=[ANN, BEN], deny=[BEN]),
    )
    bedrock.connector(base, "CUSTOM", "open").ingested(text_document("open", "The heron of everybody."))
    return source


def found(source: Source, user: str | None = None, **configuration: Any) -> list[dict[str, Any]]:
    context = {} if user is None else {"userContext": {"userId": user}}
    answer = source.bedrock.runtime.retrieve(
        knowledgeBaseId=source.knowledge_base_id,
        retrievalQuery={"text": "heron"},
        retrievalConfiguration={"managedSearchConfiguration": configuration},
        **context,
    )
    return list(answer["retrievalResults"])


def names(results: list[dict[str, Any]]) -> set[str]:
    return {result["documentId"] for result in results}


def test_a_user_sees_what_is_allowed_and_not_denied(closed: Source) -> None:
    assert names(found(closed, ANN)) == {"for-ann", "for-both", "not-for-ben", "open"}
    assert names(found(closed, BEN)) == {"for-both", "open"}
    assert names(found(closed, "eve@example.com")) == {"open"}


def test_without_a_user_a_source_with_access_control_returns_nothing(closed: Source) -> None:
    assert names(found(closed)) == {"open"}


def test_a_page_is_filled_with_what_the_user_may_see(bedrock: Bedrock) -> None:
    source = bedrock.connector(bedrock.managed_base("filled"), "CUSTOM", aclEnabled=True)
    for start in range(0, 40, 10):
        source.ingested(*(listed(f"ann-{start + n}", "heron " * 9, allow=[ANN]) for n in range(10)))
    source.ingested(*(listed(f"ben-{n}", f"A pond with a heron and {n} ducks.", allow=[BEN]) for n in range(8)))

    assert names(found(source, BEN, numberOfResults=8)) == {f"ben-{n}" for n in range(8)}


def test_a_list_changes_no_signal_of_the_question(closed: Source) -> None:
    """Only feedback differs, which must not come from documents that the user does not see."""

    def signals(user: str) -> dict[str, tuple[float, float]]:
        answer = closed.bedrock.runtime.retrieve(
            knowledgeBaseId=closed.knowledge_base_id,
            retrievalQuery={"text": "heron"},
            retrievalConfiguration={"managedSearchConfiguration": {"rerankingModelType": "NONE"}},
            userContext={"userId": user},
        )
        listed = json.loads(answer["ResponseMetadata"]["HTTPHeaders"][SIGNALS_HEADER.lower()])
        of_results = zip(answer["retrievalResults"], listed, strict=True)
        return {result["documentId"]: (each["vector"], each["lexical"]) for result, each in of_results}

    everything, seen = signals(ANN), signals(BEN)

    assert seen == {name: everything[name] for name in ("for-both", "open")}


def test_a_filter_and_a_list_both_restrict(closed: Source) -> None:
    condition = {"in": {"key": "name", "value": ["for-ann", "for-both"]}}

    assert names(found(closed, BEN, filter=condition)) == {"for-both"}


def test_a_page_of_one_user_is_not_continued_by_another(closed: Source) -> None:
    request = {
        "knowledgeBaseId": closed.knowledge_base_id,
        "retrievalQuery": {"text": "heron"},
        "retrievalConfiguration": {"managedSearchConfiguration": {"numberOfResults": 1}},
    }
    token = closed.bedrock.runtime.retrieve(**request, userContext={"userId": ANN})["nextToken"]

    for other in ({"userContext": {"userId": BEN}}, {}):
        assert "nextToken is not valid" in refusal(closed.bedrock.runtime.retrieve, **request, **other, nextToken=token)


def test_vector_knowledge_bases_take_no_user(bedrock: Bedrock, knowledge_base: str) -> None:
    message = refusal(
        bedrock.runtime.retrieve,
        knowledgeBaseId=knowledge_base,
        retrievalQuery={"text": "heron"},
        userContext={"userId": ANN},
    )

    assert "userContext is for MANAGED knowledge bases" in message


def test_what_was_ingested_of_a_list_is_reported(closed: Source) -> None:
    runtime, ids = closed.bedrock.runtime, {**closed.ids, "documentId": "not-for-ben"}

    acl = runtime.get_ingested_document_acl(**ids)["documentAcl"]
    access = {
        user: runtime.check_ingested_document_acl(**ids, userContext={"userId": user})["hasAccess"]
        for user in (ANN, BEN, "eve@example.com")
    }

    assert access == {ANN: True, BEN: False, "eve@example.com": False}
    assert _users(acl["allowList"]) == [ANN, BEN]
    assert _users(acl["denyList"]) == [BEN]


def test_everybody_has_access_to_a_document_without_a_list(closed: Source) -> None:
    sources = closed.bedrock.agent.list_data_sources(knowledgeBaseId=closed.knowledge_base_id)["dataSourceSummaries"]
    (source,) = (each["dataSourceId"] for each in sources if each["name"] == "open")
    ids = {"knowledgeBaseId": closed.knowledge_base_id, "dataSourceId": source, "documentId": "open"}
    runtime = closed.bedrock.runtime

    assert runtime.check_ingested_document_acl(**ids, userContext={"userId": BEN})["hasAccess"] is True
    assert runtime.get_ingested_document_acl(**ids)["documentAcl"] == {}


def test_a_version_that_fails_does_not_keep_the_access_of_the_one_before(bedrock: Bedrock) -> None:
    source = bedrock.connector(bedrock.managed_base("revoked"), "CUSTOM", aclEnabled=True)
    source.ingested(listed("heron", "The heron.", allow=[ANN, BEN]))
    broken = bytes_document("heron", b"%PDF-broken", "application/pdf")
    broken["metadata"] = listed("heron", "", allow=[ANN], deny=[BEN])["metadata"]

    source.ingest(broken)
    (failed,) = source.settled(custom_identifier("heron"))

    assert failed["status"] == "FAILED"
    assert found(source, BEN) == found(source, ANN) == []
    source.ingested(listed("heron", "The heron.", allow=[ANN]))
    assert (found(source, BEN), names(found(source, ANN))) == ([], {"heron"})


def test_a_further_page_has_nothing_that_was_hidden_meanwhile(bedrock: Bedrock) -> None:
    source = bedrock.connector(bedrock.managed_base("pages"), "CUSTOM", "paged", aclEnabled=True)
    source.ingested(*(listed(f"heron-{n}", f"Heron {n}.", allow=[ANN]) for n in range(3)))
    request = {
        "knowledgeBaseId": source.knowledge_base_id,
        "retrievalQuery": {"text": "heron"},
        "retrievalConfiguration": {"managedSearchConfiguration": {"numberOfResults": 1}},
        "userContext": {"userId": ANN},
    }
    first = bedrock.runtime.retrieve(**request)
    shown = {each["documentId"] for each in first["retrievalResults"]}
    hidden, left = sorted({f"heron-{n}" for n in range(3)} - shown)
    broken = bytes_document(hidden, b"%PDF-broken", "application/pdf")
    broken["metadata"] = listed(hidden, "", allow=[BEN])["metadata"]
    source.ingest(broken)
    source.settled(custom_identifier(hidden))

    second = bedrock.runtime.retrieve(**request, nextToken=first["nextToken"])

    assert names(second["retrievalResults"]) == {left}
    assert "nextToken" not in second


def test_a_list_without_entries_shows_a_document_to_nobody(bedrock: Bedrock) -> None:
    source = bedrock.connector(bedrock.managed_base("nobody"), "CUSTOM", aclEnabled=True)
    source.ingested(text_document("heron", "The heron."))
    ids = {**source.ids, "documentId": "heron"}

    assert found(source, ANN) == []
    assert bedrock.runtime.get_ingested_document_acl(**ids)["documentAcl"].keys() == {"allowList", "denyList"}


def _users(membership: Mapping[str, Any]) -> list[str]:
    return [user["id"] for condition in membership["conditions"] for user in condition["users"]]


USERS = st.sampled_from(["a", "b", "A", "a ", "%", '"', "é", "", "a\x00b"])
LISTS = st.none() | st.fixed_dictionaries({"allow": st.lists(USERS, max_size=3), "deny": st.lists(USERS, max_size=3)})


@given(lists=st.lists(LISTS, min_size=1, max_size=6), user=st.none() | USERS)
@settings(deadline=None, max_examples=examples(320))
def test_the_documents_found_are_those_whose_lists_allow_the_user(
    tmp_path_factory: pytest.TempPathFactory, lists: list[dict[str, list[str]] | None], user: str | None
) -> None:
    database = _filled(tmp_path_factory.mktemp("lists"), lists)
    allowed = {
        number
        for number, acl in enumerate(lists)
        if acl is None or (user is not None and user in acl["allow"] and user not in acl["deny"])
    }

    vector = np.array([1.0, 0.0], dtype=np.float32)
    with database.read("KB12345678") as view:
        ranked = ranking.rank(view, "KB12345678", Search("", vector, hybrid=False, reader=Reader(user)), 0.5)
        names = dict(view.connection.execute("SELECT c.id, d.name FROM chunk c JOIN document d ON d.id = document_id"))
        rows = dict(view.connection.execute("SELECT name, id FROM document"))
        readable = {n for n in range(len(lists)) if Reader(user).may_read(view.connection, rows[str(n)])}
        has_lists = has_access_lists(view.connection, "KB12345678")
    database.close()

    assert {int(names[hit.chunk]) for hit in ranked.hits()} == allowed == readable
    assert has_lists == any(acl is not None for acl in lists)


def _filled(folder: Path, lists: list[dict[str, list[str]] | None]) -> Database:
    database = Database(folder)
    for number, acl in enumerate(lists):
        key = DocumentKey("KB12345678", "DS12345678", "CUSTOM", str(number))
        chunk = IndexedChunk("heron", "", None)
        vectors = np.array([[1.0, 0.0]], dtype=np.float16)
        with database.write() as change:
            submissions.submit(change, key, submissions.INGEST, now=0.0, request={})
            document = documents.find(change.connection, "DS12345678", str(number))
            assert document is not None
            documents.index_document(change, document, Prepared([chunk], "hashed", vectors, {}, acl=acl), 0.0)
    return database
