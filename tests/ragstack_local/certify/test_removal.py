"""Removal on AWS, where it takes several attempts: against botocore's models alone, with programmed answers."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.stub import Stubber

from ragstack_local.certify import run
from ragstack_local.certify.journal import PLANNED, Journal, Resource
from ragstack_local.certify.removal import BUCKET, KINDS, KNOWLEDGE_BASE, ROLE, VECTOR_BUCKET, remove_all
from ragstack_local.certify.site import Place, Site
from tests.support.aws_service import Fault, aws_service

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


@pytest.mark.parametrize(("code", "attempts"), [("DeleteConflict", 2), ("AccessDenied", 1), ("ExpiredToken", 1)])
def test_what_cannot_be_removed_stays_in_the_journal_with_the_reason(
    session: Any, journal: Journal, monkeypatch: pytest.MonkeyPatch, code: str, attempts: int
) -> None:
    monkeypatch.setattr("ragstack_local.certify.removal.ATTEMPTS", 2)
    role = Resource(ROLE, "ragstack-certify-0123456789")
    journal.note(role, PLANNED)
    iam = session.client("iam")
    with Stubber(iam) as stubber:
        for _ in range(attempts):
            stubber.add_client_error("list_role_policies", code, "not possible")

        ((resource, reason),) = removed(journal, iam)

        stubber.assert_no_pending_responses()
    assert resource == role
    assert "not possible" in reason
    assert journal.remaining() == [role]


def test_no_attempt_begins_when_the_time_of_a_resource_is_over(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragstack_local.certify.removal.MAX_SECONDS", -1.0)
    attempts: list[Resource] = []
    stack = Resource("stack", "RagStackCertify0")
    journal.note(stack, PLANNED)

    def remove(_: Any, resource: Resource) -> bool:
        attempts.append(resource)
        return False

    left = remove_all(journal, {"stack": remove}, lambda _: None)

    assert (attempts, left) == ([stack], [(stack, "it is still being removed")])


def test_a_full_disk_does_not_keep_the_other_resources(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    names = ["a", "b"]
    for name in names:
        journal.note(Resource("bucket", name), PLANNED)
    monkeypatch.setattr(journal, "note", full)
    gone = []

    def remove(_: Any, resource: Resource) -> bool:
        gone.append(resource.name)
        return True

    assert remove_all(journal, {"bucket": remove}, lambda _: None) == []
    assert gone == [*reversed(names)]


def test_a_resource_whose_first_answer_was_lost_is_removed(session: Any, tmp_path: Any) -> None:
    lost = [Fault("InternalServerException", status=500), Fault("ConflictException", status=409)]

    assert after_creation(session, tmp_path, *lost) == ["b"]


@pytest.mark.parametrize("code", ["ConflictException", "AccessDeniedException", "ServiceQuotaExceededException"])
def test_a_resource_whose_creation_was_refused_is_left_alone(session: Any, tmp_path: Any, code: str) -> None:
    assert after_creation(session, tmp_path, Fault(code, status=403)) == []


def after_creation(session: Any, tmp_path: Any, *faults: Fault) -> list[str]:
    """What is to be removed after a vector bucket could not be created."""
    with aws_service("s3vectors") as service:
        service.program("CreateVectorBucket", *faults)
        place = Place("us-east-1", endpoints={"": service.endpoint})
        journal = Journal.begin(tmp_path, "created", place.fields)
        site = Site(session, place, "created", journal)
        with pytest.raises(ClientError), site.creating(VECTOR_BUCKET, "b"):
            site.client("s3vectors").create_vector_bucket(vectorBucketName="ragstack-certify-b")
        return [resource.name for resource in journal.remaining()]


def test_a_service_that_the_region_lacks_has_created_nothing(session: Any, tmp_path: Any) -> None:
    place = Place("us-east-1", endpoints={"": "http://127.0.0.1:9"})
    journal = Journal.begin(tmp_path, "nowhere", place.fields)
    site = Site(session, place, "nowhere", journal)

    with pytest.raises(EndpointConnectionError), site.creating(BUCKET, "b"):
        site.client("s3", attempts=1).create_bucket(Bucket="b")

    assert journal.remaining() == []


def test_an_interrupt_during_the_removal_says_how_to_go_on(
    session: Any, place: Place, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = Place("us-east-1", "123456789012")

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "remove_all", interrupted)

    for where, command in ((place, "certify --clean-up"), (account, "certify --aws --clean-up")):
        with pytest.raises(KeyboardInterrupt, match=command):
            run.certify(session, where, [], tmp_path)
