from typing import Any

import pytest

from tests.local_bedrock.support import Bedrock, client, refusal, s3_document


@pytest.fixture
def unchecked(bedrock: Bedrock) -> Any:
    """Clients that send whatever they are given."""
    return Bedrock(
        bedrock.url,
        client("bedrock-agent", bedrock.url, validate=False),
        client("bedrock-agent-runtime", bedrock.url, validate=False),
    )


def retrieve(runtime: Any, **request: Any) -> Any:
    request = {"knowledgeBaseId": "KB12345678", "retrievalQuery": {"text": "x"}, **request}
    return lambda: runtime.retrieve(**request)


def vector_search(runtime: Any, **configuration: Any) -> Any:
    return retrieve(runtime, retrievalConfiguration={"vectorSearchConfiguration": configuration})


def test_an_id_that_breaks_its_pattern_is_refused_in_the_form_of_aws(bedrock: Bedrock) -> None:
    message = refusal(lambda: bedrock.agent.get_knowledge_base(knowledgeBaseId="KB123"))

    assert message == (
        "1 validation error detected: Value 'KB123' at 'knowledgeBaseId' failed to satisfy constraint:"
        " Member must satisfy regular expression pattern: [0-9a-zA-Z]{10}"
    )


def test_every_fault_of_a_request_is_listed(unchecked: Bedrock) -> None:
    message = refusal(lambda: unchecked.agent.create_knowledge_base(name="", roleArn="nobody"))

    assert message.startswith("3 validation errors detected: ")
    assert "Value null at 'knowledgeBaseConfiguration' failed to satisfy constraint: Member must not be null" in message
    assert "at 'name'" in message
    assert "at 'roleArn'" in message


def test_a_boolean_is_not_a_number(unchecked: Bedrock) -> None:
    message = refusal(vector_search(unchecked.runtime, numberOfResults=True))

    assert message.endswith("Member must be of type integer")


def test_a_sensitive_value_is_not_repeated(bedrock: Bedrock) -> None:
    secret = "s" * 201
    metadata = {
        "type": "IN_LINE_ATTRIBUTE",
        "inlineAttributes": [{"key": secret, "value": {"type": "STRING", "stringValue": "x"}}],
    }

    message = refusal(
        lambda: bedrock.agent.ingest_knowledge_base_documents(
            knowledgeBaseId="KB12345678",
            dataSourceId="DS12345678",
            documents=[{**s3_document("bucket", "a.txt"), "metadata": metadata}],
        )
    )

    assert secret not in message
    assert "less than or equal to 200" in message
