"""Tenants with one knowledge base or with one each: the same searches, changes and repairs."""

import json
from collections.abc import Callable

import pytest

from tests.local_bedrock.support import Bedrock
from tests.ragstack_common.access.tenants.conftest import ADA, NEW, OPS, SAM, ZOE, Deployment, with_tenants
from tests.ragstack_common.reconciliation.clients import Death
from tests.ragstack_common.reconciliation.stack import Stack
from tests.ragstack_common.reconciliation.test_synchronisation import run_and_die

QUESTION = "How many days of leave are there?"
ACME, ZENITH, PUBLIC = "tenants/acme/leave.txt", "tenants/zenith/leave.txt", "public/law.txt"
BOARD = "tenants/acme/board/leave.txt"


@pytest.fixture
def filled(deployment: Deployment) -> Deployment:
    stack = deployment.stack
    stack.put(ACME, "At Acme there are 28 days of leave.")
    stack.put(ZENITH, "At Zenith there are 31 days of leave.")
    stack.put(BOARD, "The board has 60 days of leave.")
    stack.put(PUBLIC, "The law grants 20 days of leave.")
    stack.request_check(ACME, ZENITH, BOARD, PUBLIC)
    stack.rest()
    stack.clock.ahead += 3600
    return deployment


def test_each_caller_finds_what_their_labels_permit(filled: Deployment) -> None:
    seen = {who.name: set(filled.found(who, QUESTION)) for who in (ADA, ZOE, SAM, NEW, OPS)}

    assert seen == {
        "user:ada": {ACME, BOARD, PUBLIC},
        "user:zoe": {ZENITH, PUBLIC},
        "user:sam": {ACME, ZENITH, PUBLIC},
        "user:new": {PUBLIC},
        "user:ops": {ACME, ZENITH, BOARD, PUBLIC},
    }


def test_filters_and_corpora_stay_within_what_a_caller_sees(filled: Deployment) -> None:
    strict = {"metadata_filter": {"access": "acme"}, "filter_mode": "strict"}

    assert filled.found(OPS, QUESTION, **strict) == [ACME]
    assert filled.found(ZOE, QUESTION, **strict) == []
    assert set(filled.found(ZOE, QUESTION, metadata_filter={"access": "acme"})) == {ZENITH, PUBLIC}
    assert set(filled.found(ZOE, QUESTION, corpus_filter="all")) == {ZENITH, PUBLIC}
    assert filled.found(ZOE, QUESTION, corpus_filter="tenants") == []


def test_a_document_is_in_one_knowledge_base(filled: Deployment) -> None:
    stack = filled.stack
    sources = {stack.source, *stack.tenants.values()}

    for key in (ACME, ZENITH, BOARD, PUBLIC):
        identifier = stack.identifier(key)
        having = [source for source in sources if source.details(identifier)[0]["status"] != "NOT_FOUND"]
        assert having == [stack.source_of(key)]


def test_a_move_to_another_tenant_is_a_deletion_and_a_creation(filled: Deployment) -> None:
    stack = filled.stack
    stack.remove(ACME)
    stack.remove(f"{ACME}.metadata.json")
    moved = stack.put("tenants/zenith/from-acme.txt", "At Acme there are 28 days of leave.")

    stack.request_check(ACME, moved)
    stack.rest()

    assert stack.in_knowledge_base(ACME) == "NOT_FOUND"
    assert set(filled.found(ADA, QUESTION)) == {BOARD, PUBLIC}
    assert set(filled.found(ZOE, QUESTION)) == {ZENITH, moved, PUBLIC}


def test_a_reconciliation_finds_and_repairs_only_what_a_tenant_lost(filled: Deployment) -> None:
    at_rest = filled.reconciled()
    filled.stack.delete_behind_the_back(ZENITH)
    lost = filled.found(ZOE, QUESTION)

    job = filled.reconciled()

    assert (at_rest.status, at_rest.report["differences"]) == ("COMPLETE", {})
    assert at_rest.report["compared"]["knowledge_base"] == 4
    assert ZENITH not in lost
    assert set(job.report["differences"]) == {"not_searchable"}
    assert ZENITH in filled.found(ZOE, QUESTION)


@pytest.mark.parametrize("deployment", ["label", "index"], indirect=True)
def test_a_full_synchronisation_indexes_every_tenant(filled: Deployment) -> None:
    stack = filled.stack
    stack.put("tenants/acme/new.txt", "Acme: leave is paid.")
    stack.put("tenants/zenith/new.txt", "Zenith: leave is paid.")
    stack.clock.ahead += 3600

    job = stack.reconcile("full")
    stack.rest()

    assert job.status == "COMPLETE", job.reason
    synchronisation = job.report["synchronisation"]
    assert synchronisation["statistics"]["numberOfDocumentsFailed"] == 0
    assert synchronisation["statistics"]["numberOfNewDocumentsIndexed"] == 2
    assert synchronisation.get("tenants", ["acme", "zenith"]) == ["acme", "zenith"]
    json.dumps(dict(job.report))
    assert set(filled.found(ADA, QUESTION)) == {ACME, BOARD, PUBLIC, "tenants/acme/new.txt"}
    assert set(filled.found(ZOE, QUESTION)) == {ZENITH, PUBLIC, "tenants/zenith/new.txt"}


@pytest.mark.parametrize("deployment", ["index", "managed"], indirect=True)
def test_a_document_in_the_knowledge_base_of_another_tenant_moves(filled: Deployment) -> None:
    stack = filled.stack
    for source in (stack.source, stack.tenants["zenith"]):
        stack.ingest_into(source, ACME)
    stack.delete_behind_the_back(ACME)
    stack.clock.ahead += 3600

    job = filled.reconciled()

    counts = {kind: found["count"] for kind, found in job.report["differences"].items()}
    assert counts == {"other_knowledge_base": 2, "not_searchable": 1}
    test_a_document_is_in_one_knowledge_base(filled)
    assert filled.reconciled().report["differences"] == {}
    assert set(filled.found(ADA, QUESTION)) == {ACME, BOARD, PUBLIC}


@pytest.mark.parametrize("kinds", [("label", "index"), ("index", "label")])
def test_a_reconciliation_moves_documents_to_another_kind(
    new_stack: Callable[[], Stack], bedrock: Bedrock, monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, str]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME", bedrock.url)
    before = with_tenants(new_stack(), bedrock, kinds[0])
    before.stack.put(ACME, "At Acme there are 28 days of leave.")
    before.stack.put(PUBLIC, "The law grants 20 days of leave.")
    before.stack.request_check(ACME, PUBLIC)
    before.stack.rest()
    before.stack.clock.ahead += 3600

    after = with_tenants(before.stack, bedrock, kinds[1])
    moved = after.reconciled().report["differences"]

    # Nothing looks any more into a knowledge base that the deployment no longer has.
    assert set(moved) - {"other_knowledge_base"} == {"not_searchable"}
    assert ("other_knowledge_base" in moved) is (kinds[1] == "index")
    assert after.reconciled().report["differences"] == {}
    assert set(after.found(ADA, QUESTION)) == {ACME, PUBLIC}
    assert after.found(ZOE, QUESTION) == [PUBLIC]


@pytest.mark.slow
@pytest.mark.parametrize("deployment", ["index"], indirect=True)
def test_a_killed_function_synchronises_each_tenant_once(filled: Deployment) -> None:
    stack = filled.stack
    for jobs, at in enumerate((8, 21, 34, 47), start=1):
        stack.clock.ahead += 3600
        job = stack.jobs.create("full", "test")
        stack.send_job({"job": job.id})
        run_and_die(stack, Death(at, after=at % 2 == 0))

        ended = stack.jobs.get(job.id)
        assert ended.status == "COMPLETE", ended.reason
        assert ended.report["synchronisation"]["tenants"] == ["acme", "zenith"]
        for source in stack.tenants.values():
            started = source.bedrock.agent.list_ingestion_jobs(**source.ids)["ingestionJobSummaries"]
            assert len(started) == jobs
        shared = stack.source.bedrock.agent.list_ingestion_jobs(**stack.source.ids)["ingestionJobSummaries"]
        assert shared == []


@pytest.mark.parametrize("deployment", ["index"], indirect=True)
def test_other_tenants_are_not_even_searched(filled: Deployment) -> None:
    zenith = filled.stack.tenants["zenith"]
    zenith.bedrock.agent.delete_knowledge_base(knowledgeBaseId=zenith.knowledge_base_id)

    assert set(filled.found(ADA, QUESTION)) == {ACME, BOARD, PUBLIC}
    assert set(filled.found(NEW, QUESTION)) == {PUBLIC}


def test_one_index_for_each_tenant_ranks_and_scores_as_one_for_all(
    new_stack: Callable[[], Stack], bedrock: Bedrock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME", bedrock.url)
    found: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for kind in ("label", "index"):
        deployment = with_tenants(new_stack(), bedrock, kind)
        stack = deployment.stack
        keys = [
            stack.put(f"{prefix}{number}.txt", f"{number} {words} in {prefix}")
            for prefix in ("tenants/acme/", "tenants/zenith/", "public/")
            for number, words in enumerate(("days of leave", "days of unpaid leave a year", "kinds of granite"))
        ]
        stack.request_check(*keys)
        stack.rest()
        found[kind] = {
            who.name: [
                (str(result.source).removeprefix(stack.uri("")), round(result.score, 6))
                for result in deployment.results(who, QUESTION, search_type="SEMANTIC", top_k=5)
            ]
            for who in (ADA, ZOE, SAM, OPS)
        }

    assert found["label"] == found["index"]
    assert len(found["label"]["user:ada"]) == 5
