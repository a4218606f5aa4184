"""From the documents bucket to the knowledge base: every document, to a final state that is true.

::

    direct.py        documents to the API and back, with retries (the helpers of the specification)
    calls.py         which errors are worth another attempt, and how batches are split
    messages.py      what stands in the queues
    events.py        S3's event notifications
    observation.py   what lies in the bucket for a document, at one moment
    sidecars.py      attributes, checked against the limits of the vector store
    service.py       the function `ingestion`: from messages to accepted documents
    work.py          what one invocation of it does about its documents
    submission.py    its calls of the knowledge base
    problems.py      why something could not be carried out, and what helps
    following.py     the function `ingestion_status`: from accepted documents to final states
    outcomes.py      who is told of them
    queues.py        sending so that what was not taken is known
    paced_agent.py   the client of bedrock-agent, kept to a rate
    services.py      clients, bound to the settings of settings.py
"""

from ragstack_common.ingestion.direct import (
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
