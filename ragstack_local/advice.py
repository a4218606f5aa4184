"""What to do about a document that failed."""

import re
from typing import Final

from ragstack_common.registry.records import DocumentRecord

_PASSING: Final = re.compile(
    r"\(after \d+ attempts\)|no final status|throttl|too many requests|rate exceeded|timed? ?out|try again|unavailable"
    r"|internal|dependency|connection|could not be reached|forgot",
    re.IGNORECASE,
)
"""Words of reasons that lie with the services, and not with the document."""

_OF_SIDECAR: Final = re.compile(r"sidecar|metadata", re.IGNORECASE)
_OF_RIGHTS: Final = re.compile(r"access ?denied|not authorized|forbidden|permission", re.IGNORECASE)


def advice(record: DocumentRecord) -> str:
    """Say in one sentence what to do next."""
    reason = record.reason or ""
    again = f"ragstack replay '{record.uri}'"
    if _OF_RIGHTS.search(reason):
        return f"Give the functions' roles, or the knowledge base's, what is missing, then: {again}"
    if _PASSING.search(reason):
        return f"It may pass: {again}"
    if _OF_SIDECAR.search(reason):
        return "Mend the sidecar and upload it again: that is taken up by itself"
    return "Mend the file and upload it again, or delete it from the bucket: either is taken up by itself"
