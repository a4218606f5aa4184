"""The ingestion path: from the documents bucket to final states in the registry.

::

    bedrock_agent.py  calls of the knowledge base with batches and retries (the helpers of specification 001)
    requests.py       documents as bedrock-agent takes them
    messages.py       the queues and the messages in them, S3 event notifications included
    observation.py    reading a document and its sidecar in the bucket
    sidecars.py       attributes, checked against the limits of the vector store
    submit.py         the function `ingestion`: from messages to accepted documents
    follow.py         the function `ingestion_status`: from accepted documents to final states
    outcomes.py       announcing final states: events, metrics, dead letters
    services.py       the clients that both functions share
"""

from ragstack_common.ingestion.bedrock_agent import (
    batch_check_document_statuses,
    check_document_status,
    delete_documents_with_retry,
    ingest_documents_with_retry,
    start_ingestion_with_retry,
)

__all__ = [
    "batch_check_document_statuses",
    "check_document_status",
    "delete_documents_with_retry",
    "ingest_documents_with_retry",
    "start_ingestion_with_retry",
]
