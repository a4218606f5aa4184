"""Word search in the vector indexes: configured where S3 Vectors takes it, and never the end of a deployment."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from infra.options import OptionError, Options
from tests.infra.conftest import EXISTING, Assembly
from tests.infra.inline_code import InlineCode, service_of_function
from tests.support.aws_service import AwsService, Dropped, Fault
from tests.support.forked_bedrock import forked_bedrock

pytestmark = pytest.mark.xdist_group("synthesized stacks")

KEY = "AMAZON_BEDROCK_TEXT"
INDEX = "arn:aws:s3vectors:eu-west-1:123456789012:bucket/vectors/index/shared"
TENANT = f"{INDEX}-acme"


class Indexes:
    """Indexes that are configured as S3 Vectors does it."""

    def __init__(self, service: AwsService, mode: str = "ENHANCED") -> None:
        self.texts: dict[str, dict[str, str]] = {}
        self.mode = mode
        service.program("GetIndex", self._get)
        service.program("UpdateMetadataConfiguration", self._update)

    def _get(self, asked: dict[str, Any]) -> Any:
        configured = self.texts.get(asked["indexArn"])
        metadata = {"nonFilterableMetadataKeys": [KEY], "textSearchConfigurations": [configured] if configured else []}
        return {
            "index": {
                "vectorBucketName": "vectors",
                "indexName": "shared",
                "indexArn": asked["indexArn"],
                "creationTime": 1,
                "dataType": "float32",
                "dimension": 1024,
                "distanceMetric": "cosine",
                "metadataConfiguration": metadata,
                "indexMode": self.mode,
            }
        }

    def _update(self, asked: dict[str, Any]) -> Any:
        index = asked["indexArn"]
        if "delete" in asked:
            del self.texts[index]
        else:
            (added,) = asked["add"]["textSearchConfigurations"]
            assert index not in self.texts
            self.texts[index] = {**added, "status": "BUILDING"}
        return {"indexArn": index}


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsService]:
    with service_of_function("s3vectors", monkeypatch) as running:
        yield running


@pytest.fixture
def code(aws: Assembly, monkeypatch: pytest.MonkeyPatch) -> InlineCode:
    return InlineCode(aws.inline_code("TextSearch"), monkeypatch)


def configure(code: InlineCode, language: str | None = None, request: str = "Create") -> str:
    answer = code.run(request, {"Indexes": [INDEX, TENANT], **({"Language": language} if language else {})})
    assert answer is not None
    assert (answer["status"], answer["id"]) == ("SUCCESS", "text-search")
    state: str = answer["data"]["State"]
    return state


def test_every_index_searches_the_words_of_its_chunks(code: InlineCode, service: AwsService) -> None:
    indexes = Indexes(service)

    assert configure(code) == "BUILDING (2)"

    assert indexes.texts == {index: {"metadataKey": KEY, "status": "BUILDING"} for index in (INDEX, TENANT)}


def test_what_is_configured_stays(code: InlineCode, service: AwsService) -> None:
    indexes = Indexes(service)
    configure(code, "de")
    indexes.texts[INDEX]["status"] = "ACTIVE"
    updates = len(service.asked("UpdateMetadataConfiguration"))

    assert configure(code, "de", "Update") == "ACTIVE (1); BUILDING (1)"

    assert len(service.asked("UpdateMetadataConfiguration")) == updates


@pytest.mark.parametrize(("first", "second"), [(None, "de"), ("de", "fr"), ("de", None)])
def test_a_language_can_be_changed(
    code: InlineCode, service: AwsService, first: str | None, second: str | None
) -> None:
    indexes = Indexes(service)
    configure(code, first)

    configure(code, second, "Update")

    assert indexes.texts[INDEX].get("language") == second


def test_a_deletion_removes_the_configuration(code: InlineCode, service: AwsService) -> None:
    indexes = Indexes(service)
    configure(code)

    assert configure(code, request="Delete") == "OFF (2)"
    assert indexes.texts == {}
    service.program("GetIndex", Fault("NotFoundException", "There is no such index."))
    assert "NotFoundException" in configure(code, request="Delete"), "a stack could not be deleted"


def test_a_classic_index_is_left_alone(code: InlineCode, service: AwsService) -> None:
    Indexes(service, "CLASSIC")

    assert "the index mode is CLASSIC" in configure(code)
    assert service.asked("UpdateMetadataConfiguration") == []


def test_an_index_that_is_being_changed_is_tried_again(code: InlineCode, service: AwsService) -> None:
    indexes = Indexes(service)
    service.program(
        "UpdateMetadataConfiguration",
        Fault("AccessDeniedException"),
        Fault("ConflictException"),
        Fault("TooManyRequestsException"),
        Fault("ServiceUnavailableException"),
        indexes._update,
    )

    assert configure(code) == "BUILDING (2)"


@pytest.mark.parametrize("fault", ["ValidationException", "AccessDeniedException", "ConflictException"])
def test_a_refusal_is_told_and_does_not_fail_the_deployment(code: InlineCode, service: AwsService, fault: str) -> None:
    Indexes(service)
    service.program("UpdateMetadataConfiguration", Fault(fault, "Not here."))

    assert configure(code).startswith(f"OFF: UpdateMetadataConfiguration: {fault}: ")
    assert "Not here." in configure(code)


def test_a_service_without_an_answer_does_not_fail_the_deployment(
    code: InlineCode, monkeypatch: pytest.MonkeyPatch, service: AwsService
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3VECTORS", "http://127.0.0.1:9")

    assert configure(code).startswith("OFF: ")


def test_a_lost_connection_is_tried_again(code: InlineCode, service: AwsService) -> None:
    indexes = Indexes(service)
    service.program("GetIndex", Dropped, indexes._get)

    assert configure(code) == "BUILDING (2)"


def test_many_indexes_that_fail_leave_time_for_the_answer(code: InlineCode, service: AwsService) -> None:
    service.program("GetIndex", Fault("InternalServerException"))

    answer = code.run("Create", {"Indexes": [f"{INDEX}{number}" for number in range(91)]})

    assert answer is not None
    assert "there was no time left" in answer["data"]["State"]
    assert code.seconds < 900


def test_the_local_s3_vectors_searches_what_was_configured(
    code: InlineCode, monkeypatch: pytest.MonkeyPatch, service: AwsService, tmp_path: Path
) -> None:
    """An implementation that was written from the model, and not for this test."""
    with forked_bedrock(tmp_path) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3VECTORS", url)
        client = boto3.client("s3vectors", region_name="us-east-1")
        client.create_vector_bucket(vectorBucketName="vectors")
        index = client.create_index(
            vectorBucketName="vectors",
            indexName="shared",
            dataType="float32",
            dimension=2,
            distanceMetric="cosine",
            metadataConfiguration={"nonFilterableMetadataKeys": [KEY]},
        )["indexArn"]
        client.put_vectors(
            indexArn=index, vectors=[{"key": "a", "data": {"float32": [1, 0]}, "metadata": {KEY: "a hotel in Kyoto"}}]
        )

        states = []
        for request, language in (("Create", None), ("Update", "de"), ("Delete", None)):
            answer = code.run(request, {"Indexes": [index], **({"Language": language} if language else {})})
            assert answer is not None
            found = client.get_index(indexArn=index)["index"]["metadataConfiguration"]
            states.append(
                (answer["data"]["State"], [each.get("language") for each in found.get("textSearchConfigurations", [])])
            )
            if request == "Update":
                hits = client.query_vectors(indexArn=index, topK=1, queryTexts=[{"text": "kyoto", "metadataKey": KEY}])
                assert [hit["key"] for hit in hits["vectors"]] == ["a"]

    assert [languages for _, languages in states] == [[None], ["de"], []]
    assert {state for state, _ in states[:2]} <= {"ACTIVE (1)", "BUILDING (1)"}
    assert states[2][0] == "OFF (1)"


def test_the_role_may_configure_the_index_and_no_other(aws: Assembly) -> None:
    (role,) = [name for name in aws.resources("AWS::IAM::Role") if "TextSearch" in name]
    rights = aws.rights_of(role)

    assert rights.keys() == {"s3vectors:GetIndex", "s3vectors:UpdateMetadataConfiguration"}
    assert all("/index/*" not in resources for resources in rights.values())


@pytest.mark.slow
def test_the_language_is_a_choice(
    synthesize: Callable[..., Assembly], aws: Assembly, lint: Callable[..., None]
) -> None:
    german = synthesize(text_search_language="de")

    assert german.only("Custom::TextSearch")["Language"] == "de"
    assert "Language" not in aws.only("Custom::TextSearch")
    assert "State" in json.dumps(aws.templates["RagStackKnowledgeBase"]["Outputs"]["TextSearch"])
    assert german.violations == []
    lint(*german.folder.glob("*.template.json"))
    with pytest.raises(OptionError, match="text_search_language=xx is invalid"):
        Options.from_context({"text_search_language": "xx"})


def test_searches_without_words_configure_none(synthesize: Callable[..., Assembly]) -> None:
    semantic = synthesize(search_type="SEMANTIC")

    assert semantic.resources("Custom::TextSearch") == {}
    assert "TextSearch" not in semantic.templates["RagStackKnowledgeBase"]["Outputs"]


def test_the_functions_that_search_may_query_the_index(aws: Assembly) -> None:
    for service in ("query", "answers"):
        for action in ("s3vectors:QueryVectors", "s3vectors:GetVectors"):
            assert "VectorIndex" in aws.rights(service)[action]
            assert "/index/*" not in aws.rights(service)[action]
    assert not [action for action in aws.rights("ingestion") if action.startswith("s3vectors:")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "words", "discovers"),
    [
        ({}, False, True),
        ({"vector_store": "OPENSEARCH_SERVERLESS"}, False, False),
        ({"vector_store": "S3_VECTORS"}, False, True),
        ({"vector_store": "S3_VECTORS", "vector_index_arn": INDEX}, True, False),
    ],
)
def test_an_existing_knowledge_base_is_searched_for_words_in_the_index_that_is_named(
    synthesize: Callable[..., Assembly],
    lint: Callable[..., None],
    given: dict[str, str],
    words: bool,
    discovers: bool,
) -> None:
    stacks = synthesize(**EXISTING, documents_bucket="handbook-of-acme", **given)

    rights = stacks.rights("query")
    assert stacks.environment("query").get("VECTOR_INDEX_ARN") == given.get("vector_index_arn")
    assert stacks.violations == []
    lint(*stacks.folder.glob("*.template.json"))
    assert ("s3vectors:QueryVectors" in rights) == words
    assert words is False or rights["s3vectors:QueryVectors"] == json.dumps([INDEX, ""])
    assert ("bedrock:GetKnowledgeBase" in rights) == discovers


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"vector_index_arn": INDEX}, "vector_index_arn needs knowledge_base=existing"),
        ({**EXISTING, "vector_index_arn": INDEX}, "vector_store=S3_VECTORS"),
        ({**EXISTING, "vector_store": "S3_VECTORS", "vector_index_arn": "index"}, "vector_index_arn=index is invalid"),
        ({"text_search_language": "de", "search_type": "SEMANTIC"}, "text_search_language needs searches of words"),
        ({**EXISTING, "text_search_language": "de"}, "text_search_language cannot be combined"),
        ({**EXISTING, "embedding": "nova"}, "embedding cannot be combined"),
    ],
)
def test_a_choice_that_cannot_work_is_refused(context: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Options.from_context(context)
