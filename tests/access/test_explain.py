"""Why a search finds a document or not, on the real functions."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ragstack_common.access.guard import Guard
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.registry.records import Status
from ragstack_common.services.bucket import DocumentsBucket
from ragstack_common.services.documents import Documents
from tests.access.world import BUCKET, Document, World, deployed, user

POLICY = AccessPolicy(
    rights={"read": ["everyone"], "write": [], "operate": ["group:operators"]},
    labels={"public": {"allow": ["everyone"]}, "board": {"allow": ["group:board"]}},
    prefixes={"": {"default": "public", "labels": ["public", "board"]}},
)
OPERATOR, READER = user("olga", "operators"), user("rita")
MANY = [Document(f"days-{number:02}.md", "public", "five days of leave each year") for number in range(20)]
OTHERS = [Document(f"berlin-{number:03}.md", "public", "Budget for Berlin") for number in range(120)]
KNOWN = [
    Document("leave.md", "public", "Five days of leave.", {"corpus": "people", "version": "2026", "level": 2}),
    Document("law.md", "public", "Leave of a tenant.", {"corpus": "law"}),
    Document("zz-far.md", "public", "Parking days"),
    Document("waiting.md", "public", status=Status.WAITING),
    Document("failed.md", "public", status=Status.FAILED),
    Document("deleted.md", "public", status=Status.DELETED),
    Document("empty.md", "public", is_indexed=False),
    Document("secret.md", "board", "Five days of leave."),
    Document("legal/contract-northwind-2024.pdf", "public", status=Status.FAILED),
    Document("legal/contract-northwind-2025.pdf", "public", "Northwind pays within 30 days."),
    Document("legal/rates.md", "public", "Rates"),
    Document("sales/rates.md", "public", "Rates"),
    Document("board/rates.md", "board", "Rates"),
    Document("Verträge/Zoë + Söhne.md", "public", status=Status.FAILED),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with deployed(tmp_path_factory.mktemp("explain"), POLICY, [*MANY, *OTHERS, *KNOWN]) as made:
        made.s3.put_object(Bucket=BUCKET, Key="new.md", Body=b"New.")
        made.s3.delete_object(Bucket=BUCKET, Key="days-19.md")
        yield made


def explained(world: World, document: str, caller: Any = OPERATOR, **options: Any) -> Any:
    body = {"query": "days of leave", "document": document, **options}
    status, answer = world.call(caller, "POST", "/api/explain", body)
    assert status == 200, answer
    return answer


@pytest.mark.parametrize(
    "name",
    [
        "contract-northwind-2024.pdf",
        "CONTRACT-northwind-2024.PDF",
        " contract-northwind-2024.pdf ",
        "northwind-2024",
        "northwind 2024",
        "2024  northwind",
        "legal 2024",
        f"s3://{BUCKET}/legal/contract-northwind-2024.pdf",
    ],
)
def test_a_document_is_known_by_its_name_or_words_of_it(world: World, name: str) -> None:
    found = explained(world, name, READER)

    assert (found["document"], found["reason"]) == (f"s3://{BUCKET}/legal/contract-northwind-2024.pdf", "failed")


def test_an_address_is_that_of_one_document_and_never_words(world: World) -> None:
    address = f"s3://{BUCKET}/legal/northwind-2024"

    found = explained(world, address, READER)

    assert (found["document"], found["reason"]) == (address, "not visible")


@pytest.mark.parametrize("name", ["Zoë + Söhne.md", "zoe\u0308 so\u0308hne", "vertra\u0308ge"])
def test_names_are_the_same_with_composed_and_separate_accents(world: World, name: str) -> None:
    assert explained(world, name, READER)["document"] == f"s3://{BUCKET}/Verträge/Zoë + Söhne.md"


def test_a_name_of_several_documents_lists_those_that_the_caller_sees(world: World) -> None:
    found = explained(world, "rates.md", READER)

    assert (found["reason"], found["found"]) == ("several documents", False)
    assert found["details"]["matches"] == ["legal/rates.md", "sales/rates.md"]
    assert found["text"] == "Several documents have such a name: legal/rates.md, sales/rates.md."
    assert explained(world, "board rates", READER)["reason"] == "not visible"
    assert explained(world, "board rates", OPERATOR)["document"] == f"s3://{BUCKET}/board/rates.md"


def find(world: World, query: str, caller: Any = READER, **options: str) -> Any:
    status, answer = world.call(caller, "GET", "/api/documents/find", query=query, **options)
    assert status == 200, answer
    return answer


def test_documents_are_found_whatever_their_status_with_the_reason_and_the_words(world: World) -> None:
    found = find(world, "northwind 2024")

    (document,) = found["documents"]
    assert {name: document[name] for name in ("key", "name", "folder", "status", "matched")} == {
        "key": "legal/contract-northwind-2024.pdf",
        "name": "contract-northwind-2024.pdf",
        "folder": "legal/",
        "status": "FAILED",
        "matched": [[9, 18], [19, 23]],
    }
    assert found["more"] is False
    assert [each["key"] for each in find(world, "waiting")["documents"]] == ["waiting.md"]
    assert find(world, "deleted.md")["documents"] == []


def test_attributes_that_match_are_returned(world: World) -> None:
    (document,) = find(world, "peop 2026")["documents"]

    assert (document["key"], document["attributes"]) == ("leave.md", {"corpus": "people", "version": "2026"})
    assert document["matched"] == []


def test_a_document_whose_key_is_exactly_the_query_comes_first(world: World) -> None:
    assert find(world, "sales/rates.md", limit="1")["documents"][0]["key"] == "sales/rates.md"
    assert find(world, f"s3://{BUCKET}/sales/rates.md")["documents"][0]["key"] == "sales/rates.md"


def test_only_documents_that_the_caller_sees_are_found_and_counted(world: World) -> None:
    own, all_ = find(world, "rates", limit="2"), find(world, "rates", OPERATOR, limit="2")

    assert [each["key"] for each in own["documents"]] == ["legal/rates.md", "sales/rates.md"]
    assert (own["more"], all_["more"]) == (False, True)
    assert find(world, "board/rates.md")["documents"] == []
    assert find(world, "+ *")["documents"] == []


def test_without_a_directory_names_are_looked_for_in_the_listing(world: World) -> None:
    documents = Documents(world.registry, DocumentsBucket(BUCKET, world.s3), Guard(POLICY))

    assert [each.key for each in documents.find(OPERATOR, "northwind 2024").documents] == [
        "legal/contract-northwind-2024.pdf"
    ]


def test_a_found_document_has_the_rank_of_the_search(world: World) -> None:
    options = {"query": "days of leave", "top_k": 3}
    results = world.call(OPERATOR, "POST", "/api/retrieve", options)[1]["results"]

    for rank, result in enumerate(results, 1):
        found = explained(world, result["source"], top_k=3)

        assert (found["found"], found["rank"], found["reason"]) == (True, rank, "found")
        assert found["text"] == f"It has rank {rank} of 3 results."
        assert found["details"]["score"] == result["score"]


@pytest.mark.parametrize(
    ("document", "reason", "text"),
    [
        ("nothing.md", "not in the bucket", "There is no such document in the bucket"),
        ("leave.md.metadata.json", "not in the bucket", "There is no such document in the bucket"),
        ("new.md", "not processed yet", "It is UPLOADED, so try again in a while. The ingestion function reads"),
        ("waiting.md", "not processed yet", "It is WAITING, so try again in a while. The ingestion function submits"),
        ("failed.md", "failed", "It could not be indexed: the knowledge base gave no reason."),
        ("deleted.md", "deleted", "The document was deleted."),
        ("days-19.md", "deleted", "The document was deleted. The object is gone from the bucket; the ingestion"),
        ("empty.md", "not among candidates", "The index has no passage of it: upload the document again"),
    ],
)
def test_the_registry_and_the_bucket_give_the_reason(world: World, document: str, reason: str, text: str) -> None:
    answer = explained(world, document, query="nowhere", top_k=1)

    assert (answer["found"], answer["rank"], answer["reason"]) == (False, None, reason)
    assert answer["text"].startswith(text)
    assert answer["document"] == f"s3://{BUCKET}/{document}"


@pytest.mark.parametrize(
    ("options", "excluding"),
    [
        ({"corpus_filter": "law"}, [("corpus_filter", {"corpus": "law"}, "people")]),
        ({"version_filter": "2025"}, [("version_filter", {"version": "2025"}, "2026")]),
        (
            {"metadata_filter": {"level": {"$gt": 2}, "corpus": "people"}, "filter_mode": "strict"},
            [("metadata_filter", {"level": {"$gt": 2}}, 2)],
        ),
        (
            {"metadata_filter": {"$or": [{"level": 1}, {"city": "Berlin"}]}, "filter_mode": "strict"},
            [("metadata_filter", {"level": 1}, 2), ("metadata_filter", {"city": "Berlin"}, None)],
        ),
        (
            {"metadata_filter": {"$not": {"level": 2}}, "filter_mode": "strict"},
            [("metadata_filter", {"$not": {"level": 2}}, 2)],
        ),
    ],
)
def test_each_clause_that_excludes_a_document_is_named(world: World, options: Any, excluding: Any) -> None:
    answer = explained(world, "leave.md", **options)

    assert answer["reason"] == "filtered out"
    shown = [(each["of"], each["clause"], each["value"]) for each in answer["details"]["filters"]]
    assert shown == excluding
    assert answer["text"].startswith("It is filtered out: ")
    assert not {"{", "$"} & {*answer["text"]}
    for of, clause, value in excluding:
        (attribute,) = clause.get("$not", clause)
        assert f"{of} requires that {attribute} is " in answer["text"]
        assert (f"has no {attribute}" if value is None else f"has {attribute} {json.dumps(value)}") in answer["text"]


def test_a_filter_is_explained_in_words(world: World) -> None:
    filter_ = {"$and": [{"level": {"$not": {"$lte": 2}}}, {"city": {"$in": ["Berlin", "Bern"]}}]}

    answer = explained(world, "leave.md", metadata_filter=filter_, filter_mode="strict")

    assert answer["text"] == (
        "It is filtered out: metadata_filter requires that level is not at most 2, and the document has level 2;"
        ' metadata_filter requires that city is one of "Berlin", "Bern", and the document has no city.'
    )


def test_a_preference_filters_nothing_out(world: World) -> None:
    answer = explained(world, "leave.md", metadata_filter={"corpus": "law"}, top_k=100)

    assert answer["reason"] == "found"


def test_a_document_below_the_limit_shows_both_figures(world: World) -> None:
    answer = explained(world, "zz-far.md", min_relevance=0.6)

    assert answer["reason"] == "below relevance"
    assert answer["text"] == "Its relevance is 0.50, and min_relevance is 0.6: lower min_relevance."
    assert (answer["details"]["relevance"], answer["details"]["min_relevance"]) == (0.5, 0.6)


def test_a_score_below_the_limit_is_named(world: World) -> None:
    answer = explained(world, "zz-far.md", min_score=0.6, top_k=100)

    assert answer["reason"] == "below relevance"
    assert answer["text"] == "Its score is below min_score, which is 0.6: lower min_score."


def test_a_document_of_lower_rank_is_found_with_that_top_k(world: World) -> None:
    answer = explained(world, "zz-far.md", top_k=5)
    rank = answer["rank"]

    assert answer["reason"] == "ranked below"
    assert answer["candidates"] >= rank > 20
    assert answer["text"].startswith(f"It has rank {rank} of {answer['candidates']} candidates, and top_k is 5")
    assert answer["details"]["passage"]["content"] == "Parking days"
    assert explained(world, "zz-far.md", top_k=rank)["rank"] == rank


def test_the_usual_number_of_results_is_named(world: World) -> None:
    assert explained(world, "zz-far.md")["details"]["top_k"] == 5
    assert explained(world, "zz-far.md", corpus_filter="all")["details"]["top_k"] == 10


def test_a_document_behind_all_candidates_shows_its_passage(world: World) -> None:
    answer = explained(world, "zz-far.md", query="budget for Berlin")

    assert (answer["reason"], answer["rank"], answer["candidates"]) == ("not among candidates", None, 100)
    assert answer["text"].startswith("The index has passages of it, but it is not among the 100 candidates")
    assert answer["details"]["passage"]["content"] == "Parking days"


def test_a_hidden_document_is_like_a_missing_one(world: World) -> None:
    hidden, missing = (explained(world, name, READER) for name in ("secret.md", "secret-2.md"))

    assert hidden["reason"] == missing["reason"] == "not visible"
    assert {**hidden, "document": ""} == {**missing, "document": ""}
    assert explained(world, "secret.md", user("bob", "board"), top_k=100)["found"]
    assert world.audits[-1]["resource"].endswith("secret-2.md")


def test_a_rank_counts_only_what_the_caller_sees(world: World) -> None:
    seen, all_documents = (explained(world, "zz-far.md", who, top_k=1) for who in (READER, OPERATOR))

    assert seen["rank"] == all_documents["rank"] - 1


def test_a_uri_outside_the_bucket_is_looked_up_in_the_index(world: World) -> None:
    answer = explained(world, "https://example.com/page")

    assert answer["reason"] == "not among candidates"
    assert answer["document"] == "https://example.com/page"


def test_a_list_of_documents_is_explained_for_another_caller(world: World) -> None:
    names = ["secret.md", f"s3://{BUCKET}/leave.md", "nothing.md"]

    status, answer = world.call(
        OPERATOR, "POST", "/api/access/explain", {"principal": "user:bob,group:people", "uris": names}
    )

    assert status == 200, answer
    assert [each["uri"].rpartition("/")[2] for each in answer] == ["secret.md", "leave.md", "nothing.md"]
    assert [each["visible"] for each in answer] == [False, True, False]
    for name, each in zip(names, answer, strict=True):
        query = {"as": "user:bob,group:people", "document": name}
        assert world.call(OPERATOR, "GET", "/api/access/explain", None, **query)[1] == each
    assert "3 documents from s3://documents/secret.md" in [each["resource"] for each in world.audits]


@pytest.mark.parametrize(
    "change", [{"uris": []}, {"uris": ["a"] * 201}, {"uris": ["s3://other/a"]}, {"principal": ","}]
)
def test_a_list_that_cannot_be_explained_is_rejected(world: World, change: Any) -> None:
    body = {"principal": "user:bob", "uris": ["leave.md"], **change}

    assert world.call(OPERATOR, "POST", "/api/access/explain", body)[0] == 400
