"""Names that differ only in form, such as those of a Mac, are the same name to every route, on the real functions."""

import json
from collections.abc import Iterator
from typing import Literal, TypeAlias
from unicodedata import normalize

import pytest

from ragstack_common.access.callers import Caller
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.ingestion.sidecars import parse_sidecar
from ragstack_common.registry.table import document_id
from tests.access.world import BUCKET, Document, World, deployed, user

POLICY = AccessPolicy(
    rights={"read": ["everyone"], "write": ["everyone"], "operate": ["group:operators"]},
    labels={"secret": {"allow": ["group:Führung"]}, "Allgemein-Ä": {"allow": ["everyone"]}},
    prefixes={"": {"default": "Allgemein-Ä"}, "Verträge/": {"default": "secret", "writers": ["group:Führung"]}},
)
BOB, CHIEF, OLGA = user("bob"), user("chief", normalize("NFD", "Führung")), user("olga", "operators")
TYPED = "Verträge/Übernahme.md"
STORED = normalize("NFD", TYPED)
MIXED = f"Verträge/{normalize('NFD', 'Übersicht.md')}"
TWINS = tuple(normalize(form, "Zwillinge/Größe.md") for form in ("NFC", "NFD"))
OPEN = normalize("NFD", "Bücher/Liste.md")
DOCUMENTS = (
    Document(STORED, "secret", "The takeover price is nine million euros."),
    Document(MIXED, "secret", "The takeover price is a secret."),
    *(Document(key, "Allgemein-Ä", "The takeover of a twin.") for key in TWINS),
    Document(OPEN, "Allgemein-Ä", "The takeover of a book.", {"corpus": "Bücher"}),
)
PATH = "/api/documents"
Form: TypeAlias = Literal["NFC", "NFD"]
FORMS: tuple[Form, ...] = ("NFC", "NFD")
UPLOAD = {"content_type": "text/markdown", "size": 5}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with deployed(tmp_path_factory.mktemp("names"), POLICY, DOCUMENTS) as made:
        yield made


def keys(answer: tuple[int, object]) -> list[str]:
    status, found = answer
    assert status == 200, found
    assert isinstance(found, dict)
    return [each["key"] for each in found["documents"]]


def test_a_search_hides_the_documents_of_a_decomposed_folder(world: World) -> None:
    answer = world.call(BOB, "POST", "/api/retrieve", {"query": "takeover price", "top_k": 20})[1]

    assert {each["source"] for each in answer["results"]} == {f"s3://{BUCKET}/{key}" for key in (*TWINS, OPEN)}


@pytest.mark.parametrize(("caller", "key", "status"), [(BOB, OPEN, 409), (CHIEF, STORED, 409), (BOB, "Neu/Ä.md", 201)])
def test_a_new_document_does_not_get_the_name_of_another(world: World, caller: Caller, key: str, status: int) -> None:
    for form in FORMS:
        request = {**UPLOAD, "key": normalize(form, key), "overwrite": False}
        assert world.call(caller, "POST", PATH, request)[0] == status


@pytest.mark.parametrize("key", [*dict.fromkeys((TYPED, STORED)), normalize("NFD", "Verträge/neu.md"), MIXED])
def test_other_callers_cannot_write_into_a_decomposed_folder(world: World, key: str) -> None:
    status, answer = world.call(BOB, "POST", PATH, {**UPLOAD, "key": key})

    assert (status, answer["error"]["code"]) == (403, "NotAllowed")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("key", "caller"), [(STORED, CHIEF), (MIXED, OLGA), (OPEN, BOB)])
def test_every_look_up_finds_a_document_in_each_form(world: World, form: Form, key: str, caller: Caller) -> None:
    name = normalize(form, key)
    folder = name.partition("/")[0]
    uri, identifier = f"s3://{BUCKET}/{key}", document_id(f"s3://{BUCKET}/{key}")

    assert keys(world.call(caller, "GET", PATH, key=name)) == [key]
    assert keys(world.call(caller, "GET", PATH, uri=f"s3://{BUCKET}/{name}")) == [key]
    assert key in keys(world.call(caller, "GET", PATH, name=folder.upper()))
    assert key in keys(world.call(caller, "GET", PATH, prefix=f"{folder}/"))
    assert key in keys(world.call(OLGA, "GET", PATH, prefix=name[:5]))
    for query in ("takeover", "nothing of the kind"):
        found = world.call(caller, "POST", "/api/explain", {"query": query, "document": name})[1]
        assert (found["document"], found["reason"] in ("found", "not among candidates")) == (uri, True)
    shown = world.call(caller, "POST", "/api/view", {"uri": f"s3://{BUCKET}/{name}"})
    assert shown[0] == 200
    explained = world.call(OLGA, "GET", "/api/access/explain", document=name, **{"as": "user:bob,group:x"})[1]
    assert (explained["uri"], explained["label"]) == (uri, POLICY.label_of(key, None))
    assert world.call(OLGA, "POST", "/api/failures/replay", {"documents": [f"s3://{BUCKET}/{name}"]})[1]["documents"][
        0
    ] == {"id": identifier, "uri": uri, "updated_at": "2026-02-02T02:40:01.000Z"}


def test_a_look_up_in_another_form_says_nothing_about_hidden_documents(world: World) -> None:
    for name in (TYPED, normalize("NFC", MIXED), "Verträge/nichts.md"):
        assert keys(world.call(BOB, "GET", PATH, key=name)) == []
        found = world.call(BOB, "POST", "/api/explain", {"query": "takeover", "document": name})[1]
        assert found["reason"] == "not visible"
        status, answer = world.call(BOB, "POST", "/api/view", {"uri": f"s3://{BUCKET}/{name}"})
        assert (status, answer["error"]["code"]) == (404, "DocumentNotFound")


def test_two_documents_of_one_name_are_both_found_by_it(world: World) -> None:
    composed, decomposed = TWINS

    assert keys(world.call(BOB, "GET", PATH, key=composed)) == [composed, decomposed]
    assert keys(world.call(BOB, "GET", PATH, key=decomposed)) == [decomposed, composed]
    assert keys(world.call(BOB, "GET", PATH, prefix=composed)) == [composed, decomposed]
    found = world.call(BOB, "POST", "/api/explain", {"query": "takeover", "document": decomposed})[1]
    assert found["document"] == f"s3://{BUCKET}/{decomposed}"


def test_a_name_that_two_documents_write_otherwise_is_ambiguous(world: World) -> None:
    """Written with both marks in another order than either document does."""
    world.add(Document("q/o\u0323\u0302.md", "Allgemein-Ä"))
    world.add(Document("q/\u1ed9.md", "Allgemein-Ä"))
    body = {"query": "takeover", "document": "q/\u1ecd\u0302.md"}

    status, answer = world.call(BOB, "POST", "/api/explain", body)

    assert status == 400
    for key in ("q/o\u0323\u0302.md", "q/\u1ed9.md"):
        assert document_id(f"s3://{BUCKET}/{key}") in answer["error"]["message"]


def test_pages_of_names_in_several_forms_list_each_document_once(world: World) -> None:
    for caller in (BOB, OLGA):
        found: list[str] = []
        token = None
        while True:
            query = {"limit": "1", **({} if token is None else {"next_token": token})}
            status, page = world.call(caller, "GET", PATH, **query)
            assert status == 200
            found += [each["key"] for each in page["documents"]]
            if (token := page["next_token"]) is None:
                break

        assert len(found) == len({*found})
        assert {*TWINS, OPEN} <= {*found}
        assert (STORED in found) == (caller is OLGA)


def test_attributes_and_labels_are_written_composed(world: World) -> None:
    attributes = {normalize("NFD", "Gebäude"): [normalize("NFD", "Süd")], "access": normalize("NFD", "Allgemein-Ä")}
    body = {**UPLOAD, "key": normalize("NFD", "Grüße.md"), "attributes": attributes}

    status, answer = world.call(BOB, "POST", PATH, body)
    stored = world.s3.get_object(Bucket=BUCKET, Key=f"{body['key']}.metadata.json")["Body"].read()

    assert (status, answer["key"]) == (201, body["key"])
    assert parse_sidecar(stored).attributes == {"Gebäude": ["Süd"], "access": "Allgemein-Ä"}


def test_filters_compare_composed(world: World) -> None:
    for corpus in (normalize("NFC", "Bücher"), normalize("NFD", "Bücher")):
        for restriction in (
            {"corpus_filter": corpus},
            {"metadata_filter": {"corpus": {"$in": [corpus]}}, "filter_mode": "strict"},
        ):
            answer = world.call(BOB, "POST", "/api/retrieve", {"query": "takeover", **restriction})[1]

            assert [each["source"] for each in answer["results"]] == [f"s3://{BUCKET}/{OPEN}"]
        assert keys(world.call(BOB, "GET", PATH, corpus=corpus)) == [OPEN]


def test_a_change_of_rules_counts_for_a_name_in_each_form(world: World) -> None:
    change = {"label": "secret", "principal": normalize("NFD", "user:Jürgen"), "effect": "allow"}
    juergen = user("Jürgen")

    assert world.call(OLGA, "POST", "/api/access", change)[0] in (200, 201)
    assert keys(world.call(juergen, "GET", PATH, key=TYPED)) == [STORED]
    assert "user:Jürgen" in json.dumps(world.call(OLGA, "GET", "/api/access")[1], ensure_ascii=False)
    reset = {**change, "principal": "user:Jürgen", "effect": None}
    assert world.call(OLGA, "POST", "/api/access", reset)[0] in (200, 201)
    assert keys(world.call(juergen, "GET", PATH, key=TYPED)) == []
