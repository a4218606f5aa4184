from typing import Any

import pytest
from botocore.exceptions import ClientError

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
