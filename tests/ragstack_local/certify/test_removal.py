"""Removal on AWS, where it takes several attempts: against botocore's models alone, with programmed answers."""

from typing import Any

import pytest
from botocore.stub import Stubber

from ragstack_local.certify import run
from ragstack_local.certify.journal import PLANNED, Journal, Resource
from ragstack_local.certify.removal import KINDS, KNOWLEDGE_BASE, ROLE, remove_all
from ragstack_local.certify.site import Place

NAME = "ragstack-certify-0123456789-vectors"
BASE, SOURCE = "ABCDEFGHIJ", "KLMNOPQRST"
IDS = {"knowledgeBaseId": BASE, "dataSourceId": SOURCE}
TIME = "2026-11-28T00:00:00Z"
CONFIGURATION = {"type": "S3", "s3Configuration": {"bucketArn": "arn:aws:s3:::ragstack-certify-0123456789"}}
CHUNKING = {"chunkingConfiguration": {"chunkingStrategy": "NONE"}}


@pytest.fixture
def journal(tmp_path: Any) -> Journal:
    return Journal.begin(tmp_path, "token", Place("us-east-1", "123456789012").fields)


def removed(journal: Journal, client: Any, **more: Any) -> list[tuple[Resource, str]]:
    return remove_all(journal, KINDS, lambda _: client, sleep=lambda _: None, **more)


def bases(*names: str) -> dict[str, Any]:
    summaries = [{"knowledgeBaseId": BASE, "name": name, "status": "ACTIVE", "updatedAt": TIME} for name in names]
    return {"knowledgeBaseSummaries": summaries}


def sources(*statuses: str) -> dict[str, Any]:
    return {
        "dataSourceSummaries": [{**IDS, "name": "texts", "status": status, "updatedAt": TIME} for status in statuses]
    }


def source() -> dict[str, Any]:
    return {
        "dataSource": {
            **IDS,
            "name": "texts",
            "status": "DELETE_UNSUCCESSFUL",
            "dataSourceConfiguration": CONFIGURATION,
            "vectorIngestionConfiguration": CHUNKING,
            "createdAt": TIME,
            "updatedAt": TIME,
        }
    }


def base(status: str) -> dict[str, Any]:
    return {
        "knowledgeBase": {
            "knowledgeBaseId": BASE,
            "name": NAME,
            "knowledgeBaseArn": f"arn:aws:bedrock:us-east-1:123456789012:knowledge-base/{BASE}",
            "roleArn": "arn:aws:iam::123456789012:role/r",
            "knowledgeBaseConfiguration": {"type": "VECTOR"},
            "status": status,
            "createdAt": TIME,
            "updatedAt": TIME,
        }
    }


def test_a_data_source_that_cannot_be_deleted_leaves_its_vectors(session: Any, journal: Journal) -> None:
    journal.note(Resource(KNOWLEDGE_BASE, NAME), PLANNED)
    agent = session.client("bedrock-agent")
    with Stubber(agent) as stubber:
        stubber.add_response("list_knowledge_bases", bases("foreign", NAME))
        stubber.add_response("list_data_sources", sources("DELETE_UNSUCCESSFUL"), {"knowledgeBaseId": BASE})
        stubber.add_response("get_data_source", source(), IDS)
        stubber.add_response(
            "update_data_source",
            source(),
            {
                **IDS,
                "name": "texts",
                "dataSourceConfiguration": CONFIGURATION,
                "vectorIngestionConfiguration": CHUNKING,
                "dataDeletionPolicy": "RETAIN",
            },
        )
        stubber.add_response("delete_data_source", {**IDS, "status": "DELETING"}, IDS)
        stubber.add_response("list_knowledge_bases", bases(NAME))
        stubber.add_response("list_data_sources", sources(), {"knowledgeBaseId": BASE})
        stubber.add_response("get_knowledge_base", base("ACTIVE"), {"knowledgeBaseId": BASE})
        stubber.add_response(
            "delete_knowledge_base", {"knowledgeBaseId": BASE, "status": "DELETING"}, {"knowledgeBaseId": BASE}
        )
        stubber.add_response("list_knowledge_bases", bases("foreign"))

        left = removed(journal, agent)

        stubber.assert_no_pending_responses()
    assert left == []
    assert journal.remaining() == []


def test_what_cannot_be_removed_stays_in_the_journal_with_the_reason(
    session: Any, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragstack_local.certify.removal.ATTEMPTS", 2)
    role = Resource(ROLE, "ragstack-certify-0123456789")
    journal.note(role, PLANNED)
    iam = session.client("iam")
    with Stubber(iam) as stubber:
        for _ in range(2):
            stubber.add_client_error("list_role_policies", "AccessDenied", "not authorized")

        ((resource, reason),) = removed(journal, iam)

    assert resource == role
    assert "not authorized" in reason
    assert journal.remaining() == [role]


def test_an_interrupt_during_the_removal_says_how_to_go_on(
    session: Any, place: Place, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "remove_all", interrupted)

    with pytest.raises(KeyboardInterrupt, match="certify --clean-up"):
        run.certify(session, place, [], tmp_path)
