from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_bedrock.server import running
from ragstack_local.stack.deployment import LocalKnowledgeBase
from tests.local_bedrock.support import Bedrock, knowledge_base_request


@pytest.fixture
def arn(bedrock: Bedrock, knowledge_base: str) -> str:
    found = bedrock.agent.get_knowledge_base(knowledgeBaseId=knowledge_base)
    return str(found["knowledgeBase"]["knowledgeBaseArn"])


def refusal(call: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        call()
    error = caught.value.response["Error"]
    return str(error["Code"]), str(error["Message"])


def tags_of(bedrock: Bedrock, arn: str) -> dict[str, str]:
    return dict(bedrock.agent.list_tags_for_resource(resourceArn=arn)["tags"])


def test_a_knowledge_base_has_the_tags_it_was_created_with(bedrock: Bedrock) -> None:
    request = {**knowledge_base_request("tagged"), "tags": {"team": "search", "stage": ""}}

    made = bedrock.agent.create_knowledge_base(**request)["knowledgeBase"]

    assert tags_of(bedrock, made["knowledgeBaseArn"]) == {"team": "search", "stage": ""}


def test_tags_are_added_replaced_and_removed(bedrock: Bedrock, arn: str) -> None:
    bedrock.agent.tag_resource(resourceArn=arn, tags={"team": "search", "stage": "test"})
    bedrock.agent.tag_resource(resourceArn=arn, tags={"stage": "production", "cost centre": "a/b+c=d@e"})

    bedrock.agent.untag_resource(resourceArn=arn, tagKeys=["team", "never there"])

    assert tags_of(bedrock, arn) == {"stage": "production", "cost centre": "a/b+c=d@e"}


def test_a_resource_has_at_most_50_tags(bedrock: Bedrock, arn: str) -> None:
    bedrock.agent.tag_resource(resourceArn=arn, tags={f"key-{number}": "" for number in range(50)})
    bedrock.agent.tag_resource(resourceArn=arn, tags={"key-0": "changed"})

    code, message = refusal(lambda: bedrock.agent.tag_resource(resourceArn=arn, tags={"one-more": ""}))

    assert code == "ServiceQuotaExceededException"
    assert "51 tags; the maximum is 50" in message
    assert len(tags_of(bedrock, arn)) == 50


@pytest.mark.parametrize("key", ["aws:created", "AWS:created"])
def test_keys_of_aws_itself_are_refused(bedrock: Bedrock, arn: str, key: str) -> None:
    request = {**knowledge_base_request("reserved"), "tags": {key: "x"}}

    for call in (
        lambda: bedrock.agent.tag_resource(resourceArn=arn, tags={key: "x"}),
        lambda: bedrock.agent.create_knowledge_base(**request),
    ):
        code, message = refusal(call)
        assert code == "ValidationException"
        assert "reserved for AWS" in message


@pytest.mark.parametrize("kind", ["knowledge-base", "agent"])
def test_a_resource_that_is_not_there_is_not_found(bedrock: Bedrock, kind: str) -> None:
    arn = f"arn:aws:bedrock:us-east-1:123456789012:{kind}/UNKNOWN123"

    for call in (
        lambda: tags_of(bedrock, arn),
        lambda: bedrock.agent.tag_resource(resourceArn=arn, tags={"a": "b"}),
        lambda: bedrock.agent.untag_resource(resourceArn=arn, tagKeys=["a"]),
    ):
        assert refusal(call)[0] == "ResourceNotFoundException"


def test_the_stacks_knowledge_base_has_the_tag_that_the_mcp_server_looks_for(tmp_path: Path) -> None:
    with running(tmp_path) as url:
        bedrock = Bedrock.at(url)
        identifier = LocalKnowledgeBase.ensure(url).knowledge_base_id
        arn = bedrock.agent.get_knowledge_base(knowledgeBaseId=identifier)["knowledgeBase"]["knowledgeBaseArn"]
        created = bedrock.agent.list_tags_for_resource(resourceArn=arn)["tags"]
        bedrock.agent.untag_resource(resourceArn=arn, tagKeys=list(created))  # as an earlier version left it
        LocalKnowledgeBase.ensure(url)
        found = bedrock.agent.list_tags_for_resource(resourceArn=arn)["tags"]

    assert created == found == {"mcp-multirag-kb": "true"}
