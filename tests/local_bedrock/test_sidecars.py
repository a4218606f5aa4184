"""What the functions refuse as a sidecar is what the local Bedrock refuses, asked over its API."""

import uuid
from typing import Any

import pytest

from ragstack_common.config import OPENSEARCH_SERVERLESS
from ragstack_common.config import S3_VECTORS as S3_VECTORS_STORE
from ragstack_common.errors import InvalidDocumentError
from ragstack_common.ingestion.sidecars import read_sidecar
from tests.local_bedrock.support import OPENSEARCH, S3_VECTORS, Bedrock, s3_document
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


@pytest.mark.parametrize("vector_store", STORAGE)
def test_a_document_is_indexed_exactly_if_the_functions_take_its_sidecar(
    bedrock: Bedrock, filled: str, vector_store: str
) -> None:
    source = bedrock.s3_source(bedrock.knowledge_base(f"sidecars-{vector_store}", STORAGE[vector_store]), filled)

    statuses: dict[str, str] = {}
    for start in range(0, len(SIDECARS), 10):
        numbers = range(start, min(start + 10, len(SIDECARS)))
        settled = source.ingested(*(s3_document(filled, f"{number}.md", sidecar=True) for number in numbers))
        statuses |= {detail["identifier"]["s3"]["uri"].rpartition("/")[2]: detail["status"] for detail in settled}

    assert statuses == {f"{number}.md": expected(body, vector_store) for number, body in enumerate(SIDECARS)}
    assert set(statuses.values()) == {"INDEXED", "FAILED"}


def expected(body: bytes, vector_store: str) -> str:
    try:
        read_sidecar(body, vector_store)
    except InvalidDocumentError:
        return "FAILED"
    return "INDEXED"
