"""Documents in the caller's form and in the form that bedrock-agent takes."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Self

from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.settings.ingestion import MAX_URI_CHARACTERS

SIDECAR_SUFFIX: Final = ".metadata.json"
"""``report.pdf.metadata.json`` holds the attributes of ``report.pdf``."""

MAX_SIDECAR_BYTES: Final = 10 * 1024
"""Source: user guide of Knowledge Bases, metadata files."""

SUFFIXES: Final = frozenset({".txt", ".md", ".html", ".htm", ".doc", ".docx", ".csv", ".xls", ".xlsx", ".pdf"})
"""Supported file types. Source: user guide of Knowledge Bases, formats of the default parser."""

_PROGRAM_FILE: Final = re.compile(
    # Owner files of Microsoft Office, lock files of LibreOffice, resource forks and folder views of macOS, thumbnails
    # and folder views of Windows, and temporary files of Word.
    r"~\$.*|\.~lock\..*#|\._.*|\.ds_store|icon\r|(?:eh)?thumbs(?:_vista)?\.db|desktop\.ini|~.*\.tmp",
    re.IGNORECASE | re.DOTALL,
)

_LINE_BREAK: Final = re.compile("[\n\r\x85\u2028\u2029]")
"""Characters that a dot in the service's pattern of URIs does not match.

Sources: bedrock-agent, shape S3BucketUri; ECMA-262, LineTerminator; java.util.regex.
"""


class DocumentStatus(str):
    """A document's status, a string such as INDEXED, with its reason and time.

    Source: bedrock-agent, shape DocumentStatus. UNKNOWN is RAGStack's own, for a call that got no response.
    """

    __slots__ = ("reason", "updated_at")

    reason: str | None
    updated_at: datetime | None

    def __new__(cls, status: str, reason: str | None = None, updated_at: datetime | None = None) -> Self:
        """Create a status with the service's reason and time."""
        made = super().__new__(cls, status)
        made.reason = reason
        made.updated_at = updated_at
        return made

    @classmethod
    def of(cls, detail: Mapping[str, Any]) -> Self:
        """Read an entry of ``documentDetails``."""
        return cls(detail["status"], detail.get("statusReason"), detail.get("updatedAt"))


def s3_uri(bucket: str, key: str) -> str:
    """Return an object's URI; the key is not quoted."""
    return f"s3://{bucket}/{key}"


def fault_of_uri(uri: str) -> str | None:
    """Return why direct ingestion refuses this URI, and what to do; None if it accepts it."""
    if len(uri) > MAX_URI_CHARACTERS:
        return (
            f"The URI has {len(uri)} characters; Bedrock accepts at most {MAX_URI_CHARACTERS}: give the document a"
            " shorter key"
        )
    if _LINE_BREAK.search(uri):
        return "The URI contains a line break, which Bedrock does not accept: give the document another key"
    return None


def is_program_file(key: str) -> bool:
    """Whether a file, by its path or key, is one that office programs and operating systems leave among documents.

    Such files have the extension of a document, and are not documents: Word's ``~$report.docx`` locks ``report.docx``
    while it is open.
    """
    return _PROGRAM_FILE.fullmatch(key.rpartition("/")[2]) is not None


def leaves_its_bucket(key: str) -> bool:
    """Check whether a key has more ``..`` than folders before them; S3 refuses such a key.

    Source: Amazon S3 user guide, object key naming guidelines.
    """
    depth = 0
    for part in key.split("/"):
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False


def s3_identifier(uri: str) -> dict[str, Any]:
    """Return the service's identifier of a document. Source: bedrock-agent, shape DocumentIdentifier."""
    return {"dataSourceType": "S3", "s3": {"uri": uri}}


def s3_document(uri: str, ds_id: str, sidecar_uri: str | None = None) -> dict[str, Any]:
    """Return the description of a document in S3, and of its sidecar, for ingestion."""
    document: dict[str, Any] = {"dataSourceId": ds_id, "s3": {"uri": uri}}
    if sidecar_uri is not None:
        document["metadata"] = in_sidecar(sidecar_uri)
    return document


def in_sidecar(uri: str) -> dict[str, Any]:
    """Return the description of a document's attributes that are in a sidecar."""
    return {"type": "S3_LOCATION", "s3Location": {"uri": uri}}


def text_document(
    identifier: str, text: str, attributes: Mapping[str, str | float | bool | list[str]] | None = None
) -> dict[str, Any]:
    """Return a document with its text, for direct ingestion into a CUSTOM data source.

    Source: bedrock-agent, shape KnowledgeBaseDocument.
    """
    document: dict[str, Any] = {
        "content": {
            "dataSourceType": "CUSTOM",
            "custom": {
                "customDocumentIdentifier": {"id": identifier},
                "sourceType": "IN_LINE",
                "inlineContent": {"type": "TEXT", "textContent": {"data": text}},
            },
        }
    }
    if attributes:
        inline = [{"key": key, "value": _typed(value)} for key, value in attributes.items()]
        document["metadata"] = {"type": "IN_LINE_ATTRIBUTE", "inlineAttributes": inline}
    return document


def _typed(value: str | float | bool | list[str]) -> dict[str, Any]:
    match value:
        case bool():
            return {"type": "BOOLEAN", "booleanValue": value}
        case str():
            return {"type": "STRING", "stringValue": value}
        case list():
            return {"type": "STRING_LIST", "stringListValue": value}
    return {"type": "NUMBER", "numberValue": value}


def to_request(document: Mapping[str, Any], ds_id: str) -> dict[str, Any]:
    """Convert either form of a document to the service's.

    Raises:
        InvalidDocumentError: The document has neither form, or belongs to another data source.
    """
    other = document.get("dataSourceId", ds_id)
    if other != ds_id:
        raise InvalidDocumentError(f"A document names data source {other!r}, but the call goes to {ds_id!r}")
    if isinstance(document.get("content"), Mapping):
        request = {name: part for name, part in document.items() if name != "dataSourceId"}
        identifier_of(request)
        return request
    uri = (document.get("s3") or {}).get("uri")
    if not isinstance(uri, str) or not uri.startswith("s3://"):
        raise InvalidDocumentError(f'A document needs {{"s3": {{"uri": "s3://bucket/key"}}}}, not {document!r:.200}')
    request = {"content": {"dataSourceType": "S3", "s3": {"s3Location": {"uri": uri}}}}
    if document.get("metadata"):
        request["metadata"] = document["metadata"]
    return request


def identifier_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identifier that the service's response has for a document.

    Raises:
        InvalidDocumentError: The document has no S3 location and no custom identifier.
    """
    content = request.get("content") or {}
    try:
        if content.get("dataSourceType") == "CUSTOM":
            return {"dataSourceType": "CUSTOM", "custom": {"id": content["custom"]["customDocumentIdentifier"]["id"]}}
        return s3_identifier(content["s3"]["s3Location"]["uri"])
    except (KeyError, TypeError):
        raise InvalidDocumentError(f"A document has no location and no identifier: {content!r:.200}") from None


def key_of(identifier: Mapping[str, Any]) -> str:
    """Return the S3 URI of an identifier, or the custom document's id."""
    return str((identifier.get("s3") or {}).get("uri") or (identifier.get("custom") or {}).get("id") or "")
