"""Documents in the caller's form and in the form that bedrock-agent takes.

Documents of the bucket belong to a data source of type S3, or in a managed knowledge base to one of type CUSTOM, whose
identifiers are then their URIs.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.core.uris import is_s3_uri
from ragstack_common.ingestion.sidecars import to_typed
from ragstack_common.settings.names import MANAGED

SourceType = Literal["S3", "CUSTOM"]
"""How documents are identified. Source: bedrock-agent, shape ContentDataSourceType."""

S3: Final[SourceType] = "S3"
CUSTOM: Final[SourceType] = "CUSTOM"


def source_type_of(vector_store: str) -> SourceType:
    """Return how the documents of the bucket are identified.

    Managed knowledge bases take documents directly only with the connector CUSTOM. Source: Amazon Bedrock User Guide,
    managed knowledge bases, Custom.
    """
    return CUSTOM if vector_store == MANAGED else S3


def document_identifier(uri: str, source_type: SourceType = S3) -> dict[str, Any]:
    """Return the service's identifier of a document. Source: bedrock-agent, shape DocumentIdentifier."""
    if source_type == CUSTOM:
        return {"dataSourceType": CUSTOM, "custom": {"id": uri}}
    return {"dataSourceType": S3, "s3": {"uri": uri}}


def s3_document(uri: str, ds_id: str, sidecar_uri: str | None = None) -> dict[str, Any]:
    """Describe a document in S3, and its sidecar, for ingestion."""
    document: dict[str, Any] = {"dataSourceId": ds_id, "s3": {"uri": uri}}
    if sidecar_uri is not None:
        document["metadata"] = in_sidecar(sidecar_uri)
    return document


def in_sidecar(uri: str) -> dict[str, Any]:
    """Describe the attributes of a document that are in a sidecar."""
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
        inline = [{"key": key, "value": to_typed(value)} for key, value in attributes.items()]
        document["metadata"] = {"type": "IN_LINE_ATTRIBUTE", "inlineAttributes": inline}
    return document


def to_request(document: Mapping[str, Any], ds_id: str, source_type: SourceType = S3) -> dict[str, Any]:
    """Convert either form of a document to the service's; one in S3 gets the identifier of this type.

    Raises:
        InvalidDocumentError: The document has neither form, or belongs to another data source.
    """
    other = document.get("dataSourceId", ds_id)
    if other != ds_id:
        raise InvalidDocumentError(f"A document names data source {other!r}, but the call goes to {ds_id!r}")
    if isinstance(document.get("content"), Mapping):
        request = {name: part for name, part in document.items() if name != "dataSourceId"}
        to_identifier(request)
        return request
    uri = (document.get("s3") or {}).get("uri")
    if not isinstance(uri, str) or not is_s3_uri(uri):
        raise InvalidDocumentError(f'A document needs {{"s3": {{"uri": "s3://bucket/key"}}}}, not {document!r:.200}')
    location = {"s3Location": {"uri": uri}}
    content: dict[str, Any] = {"dataSourceType": S3, "s3": location}
    if source_type == CUSTOM:
        custom = {"customDocumentIdentifier": {"id": uri}, "sourceType": "S3_LOCATION", **location}
        content = {"dataSourceType": CUSTOM, "custom": custom}
    request = {"content": content}
    if document.get("metadata"):
        request["metadata"] = document["metadata"]
    return request


def to_identifier(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document's identifier in the service's response; raises InvalidDocumentError if it has none."""
    content = request.get("content") or {}
    try:
        if content.get("dataSourceType") == CUSTOM:
            return document_identifier(content["custom"]["customDocumentIdentifier"]["id"], CUSTOM)
        return document_identifier(content["s3"]["s3Location"]["uri"])
    except (KeyError, TypeError):
        raise InvalidDocumentError(f"A document has no location and no identifier: {content!r:.200}") from None


def location_of(request: Mapping[str, Any]) -> str | None:
    """Return the URI of a document in S3; None if the request has its content."""
    content = request["content"]
    part = content.get("custom" if content["dataSourceType"] == CUSTOM else "s3", {})
    location: str | None = part.get("s3Location", {}).get("uri")
    return location


def identifier_key(identifier: Mapping[str, Any]) -> str:
    """Return the S3 URI of an identifier, or the custom document's id."""
    return str((identifier.get("s3") or {}).get("uri") or (identifier.get("custom") or {}).get("id") or "")
