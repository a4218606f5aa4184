"""An agent that accepts documents, for tests that program its answers."""

from datetime import UTC, datetime
from typing import Any

from ragstack_common.ingestion.requests import S3, SourceType, document_identifier, identifier_key, to_identifier
from tests.support.knowledge_base import DATA_SOURCE, KNOWLEDGE_BASE

PROGRAM_FILES = (
    *("~$Report.docx", "~$sheet.XLSX", "._leave.md", ".DS_Store", ".~lock.report.docx#", "Thumbs.db", "thumbs.DB"),
    *("ehthumbs.db", "desktop.ini", "Desktop.ini", "~WRL0001.tmp"),
)
"""Files that programs leave among documents."""

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def detail(
    uri: str, status: str = "STARTING", reason: str | None = None, source_type: SourceType = S3
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "knowledgeBaseId": KNOWLEDGE_BASE,
        "dataSourceId": DATA_SOURCE,
        "identifier": document_identifier(uri, source_type),
        "status": status,
        "updatedAt": NOON,
    }
    if reason is not None:
        found["statusReason"] = reason
    return found


def asked_uris(parameters: dict[str, Any]) -> list[str]:
    """Read the documents of an Ingest, Get or Delete request."""
    identifiers = parameters.get("documentIdentifiers") or map(to_identifier, parameters["documents"])
    return [identifier_key(identifier) for identifier in identifiers]


def accept(parameters: dict[str, Any]) -> dict[str, Any]:
    return {"documentDetails": [detail(uri) for uri in asked_uris(parameters)]}


def answer_with(**statuses: str) -> Any:
    """Answer for each document with the status of its file's name, or INDEXED."""

    def answer(parameters: dict[str, Any]) -> dict[str, Any]:
        return {
            "documentDetails": [
                detail(uri, status := statuses.get(uri.rsplit("/", 1)[-1], "INDEXED"), f"because {status}")
                for uri in asked_uris(parameters)
            ]
        }

    return answer


def job(status: str = "STARTING") -> dict[str, Any]:
    return {
        "ingestionJob": {
            "knowledgeBaseId": KNOWLEDGE_BASE,
            "dataSourceId": DATA_SOURCE,
            "ingestionJobId": "JOBJOBJOB1",
            "status": status,
            "startedAt": NOON,
            "updatedAt": NOON,
        }
    }
