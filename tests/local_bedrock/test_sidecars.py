"""What the functions refuse as a sidecar is what the local Bedrock refuses, asked over its API."""

import uuid
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.ingestion import ingest_documents_with_retry
from ragstack_common.ingestion.requests import (
    CUSTOM,
    S3,
    SourceType,
    document_identifier,
    identifier_key,
    s3_document,
    source_type_of,
    to_request,
)
from ragstack_common.ingestion.sidecars import read_sidecar
from ragstack_common.settings.names import MANAGED, OPENSEARCH_SERVERLESS, SOURCE_URI_KEY
from ragstack_common.settings.names import S3_VECTORS as S3_VECTORS_STORE
from tests.local_bedrock.support import OPENSEARCH, S3_VECTORS, Bedrock, client
from tests.support.sidecars import REFUSED, TAKEN

SIDECARS = [body for body, _ in (*TAKEN.values(), *REFUSED.values())]
STORAGE = {S3_VECTORS_STORE: S3_VECTORS, OPENSEARCH_SERVERLESS: OPENSEARCH}


@pytest.fixture(scope="module")
def filled(s3: Any) -> str:
    """A bucket with a document for each sidecar."""
    name = f"sidecars-{uuid.uuid4()}"
    s3.create_bucket(Bucket=name)
    for number, body in enumerate(SIDECARS):
        s3.put_object(Bucket=name, Key=f"{number}.md", Body=b"Herons stand in the water.")
        s3.put_object(Bucket=name, Key=f"{number}.md.metadata.json", Body=body)
    return name


@pytest.mark.parametrize("vector_store", [*STORAGE, MANAGED])
def test_a_sidecar_is_accepted_exactly_if_the_functions_do(bedrock: Bedrock, filled: str, vector_store: str) -> None:
    if vector_store == MANAGED:
        source = bedrock.connector(bedrock.managed_base("sidecars"), "CUSTOM")
    else:
        source = bedrock.s3_source(bedrock.knowledge_base("sidecars", STORAGE[vector_store]), filled)

    statuses: dict[str, str] = {}
    for start in range(0, len(SIDECARS), 10):
        uris = [f"s3://{filled}/{number}.md" for number in range(start, min(start + 10, len(SIDECARS)))]
        documents = [s3_document(uri, source.id, f"{uri}.metadata.json") for uri in uris]
        settled = source.ingested(*(to_request(each, source.id, source_type_of(vector_store)) for each in documents))
        statuses |= {identifier_key(each["identifier"]).rpartition("/")[2]: each["status"] for each in settled}

    assert statuses == {f"{number}.md": expected(body, vector_store) for number, body in enumerate(SIDECARS)}
    assert set(statuses.values()) == {"INDEXED", "FAILED"}


def expected(body: bytes, vector_store: str) -> str:
    try:
        read_sidecar(body, vector_store)
    except InvalidDocumentError:
        return "FAILED"
    return "INDEXED"


@pytest.mark.parametrize("source_type", [S3, CUSTOM])
def test_a_submission_keeps_the_attributes_of_documents_with_sidecars(
    bedrock: Bedrock, s3: Any, bucket: str, source_type: SourceType
) -> None:
    knowledge_base = bedrock.knowledge_base("sidecars")
    source = bedrock.s3_source(knowledge_base, bucket) if source_type == S3 else bedrock.custom_source(knowledge_base)
    s3.put_object(Bucket=bucket, Key="leave.md", Body=b"Leave can be carried over.")
    s3.put_object(Bucket=bucket, Key="leave.md.metadata.json", Body=b'{"metadataAttributes": {"topic": "leave"}}')
    s3.put_object(Bucket=bucket, Key="plain.md", Body=b"Leave the building.")
    keys = ["leave.md", "plain.md"]
    uris = [f"s3://{bucket}/{key}" for key in keys]
    place = (knowledge_base, source.id)
    documents = [{"dataSourceId": source.id, "s3": {"uri": uri}} for uri in uris]
    options: Any = {"client": bedrock.agent, "source_type": source_type}

    def topics() -> dict[str, str | None]:
        source.settled(*(document_identifier(uri, source_type) for uri in uris))
        found = bedrock.search(knowledge_base, "leave")
        return {str(hit["metadata"][SOURCE_URI_KEY]): hit["metadata"].get("topic") for hit in found}

    ingest_documents_with_retry(*place, documents, s3_client=s3, **options)
    with_sidecars = topics()
    ingest_documents_with_retry(*place, documents, find_sidecars=False, **options)

    assert with_sidecars == dict(zip(uris, ["leave", None], strict=True))
    assert topics() == dict.fromkeys(uris)


def test_a_sidecar_that_cannot_be_looked_up_submits_nothing(s3: Any) -> None:
    document = {"s3": {"uri": "s3://nobodys-bucket-of-this-test/a.md"}}
    agent = client("bedrock-agent", "http://127.0.0.1:1")
    with Stubber(s3) as stubbed:
        stubbed.add_client_error("head_object", "403", http_status_code=403)

        with pytest.raises(ClientError, match="403") as caught:
            ingest_documents_with_retry("KNOWLEDGEB", "DATASOURCE", [document], client=agent, s3_client=s3)

    assert "could not be looked up: allow s3:GetObject and s3:ListBucket" in caught.value.__notes__[0]
