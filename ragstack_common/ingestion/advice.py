"""What to do about a document that failed."""

import re
from typing import Final

_TEMPORARY: Final = re.compile(
    r"\(after \d+ attempts\)|no final status|throttl|too many requests|rate exceeded|timed? ?out|try again|unavailable"
    r"|internal|dependency|connection|could not be reached|forgot",
    re.IGNORECASE,
)
"""Words in reasons that are about a service, and not about the document."""

_PERMISSION: Final = re.compile(r"access ?denied|not authorized|forbidden|permission", re.IGNORECASE)
_OTHER_SOURCE: Final = re.compile("dataSourceType")
"""In the service's refusal of an identifier of the other form. Source: issue 9 of strands-agents/agent-builder."""

_RECOGNITION: Final = re.compile(r"recognition \(OCR\)")
_SIDECAR: Final = re.compile(r"sidecar|metadata", re.IGNORECASE)


def advice_for(reason: str | None) -> tuple[str, bool]:
    """Return what to do about a FAILED document, and whether that is to replay it."""
    reason = reason or ""
    if _PERMISSION.search(reason):
        return "Grant the missing permission to the functions' roles or the knowledge base's role, then replay", True
    if _TEMPORARY.search(reason):
        return "The cause may be temporary: replay", True
    if _OTHER_SOURCE.search(reason):
        return "Deploy with the knowledge base's vector_store (MANAGED with the connector CUSTOM), then replay", True
    if _RECOGNITION.search(reason):
        return "Switch text recognition on, or install it, then reconcile: `ragstack reconcile` reads it again", False
    if _SIDECAR.search(reason):
        return "Fix the sidecar and upload it again: it is ingested automatically", False
    return "Fix the file and upload it again, or delete it from the bucket: either is processed automatically", False
