"""GetDocumentContent, CheckIngestedDocumentAcl and GetIngestedDocumentAcl."""

import json
from dataclasses import dataclass
from typing import Any, Final

import apsw

from local_bedrock.http.downloads import ContentGone, Download
from local_bedrock.http.errors import AccessDenied, InvalidRequest, NotFound
from local_bedrock.operations.context import (
    Answer,
    Context,
    Request,
    active_knowledge_base,
    refuse_unsupported,
    requested_data_source,
)
from local_bedrock.reading.sources import Content
from local_bedrock.search.access import Reader
from local_bedrock.store import documents, originals
from local_bedrock.store.documents import Document
from local_bedrock.store.originals import Original
from ragstack_common.core.uris import file_name, resource_id
from ragstack_common.reading.encodings import charset_of
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.settings.limits import MAX_DOCUMENT_BYTES


def get_document_content(context: Context, request: Request) -> Answer:
    """Return a URL of the file of a document, or of its text."""
    refuse_unsupported(request, "mediaId")
    user = request.get("userContext")
    reader = Reader(None if user is None else user["userId"])
    with context.database.read() as view:
        document = _document(view.connection, request)
        if not reader.may_read(view.connection, document.id):
            raise AccessDenied("The user may not read the document: its access control list does not allow it")
        original = originals.find(view.connection, document.id)
    if original is None:
        raise NotFound(f"The document has no content yet: its status is {document.status}")
    stored, name = _Stored(context, document), file_name(original.uri or document.name)
    if request.get("outputFormat") == "EXTRACTED":
        download = Download(f"{name}.json", "application/json", stored.extracted)
    else:
        download = Download(name, original.media_type, stored.raw)
    try:
        size = len(download.read())
    except ContentGone as error:
        raise NotFound(str(error)) from error
    return {
        "presignedUrl": context.origin + context.downloads.add(download),
        "mimeType": download.media_type,
        "documentContentLength": size,
    }


@dataclass(frozen=True)
class _Stored:
    """The present version of a document, which every download reads again."""

    context: Context
    document: Document

    def raw(self) -> bytes:
        return self._read()[1].data

    def extracted(self) -> bytes:
        original, content = self._read()
        try:
            parsed = self.context.answering.parser.parse(content.data, original.format, content.charset)
        except UnreadableDocument as error:
            raise ContentGone(str(error)) from error
        return json.dumps({"text": parsed.text}, ensure_ascii=False).encode(errors="replace")

    def _read(self) -> tuple[Original, Content]:
        with self.context.database.read() as view:
            present = documents.with_row_id(view.connection, self.document.id)
            original = originals.find(view.connection, self.document.id)
        if present is None or original is None or present.generation != self.document.generation:
            raise ContentGone("The document was deleted or replaced: call GetDocumentContent again")
        if original.content is not None:
            return original, Content(original.content, "", charset_of(original.mime_type))
        assert original.uri is not None
        try:
            content = self.context.objects.read(original.uri, MAX_DOCUMENT_BYTES)
        except UnreadableDocument as error:
            raise ContentGone(str(error)) from error
        if content.tag != present.content_tag:  # the access control list is that of the ingested version
            raise ContentGone("The object has changed since it was ingested: synchronise it")
        return original, content


def check_ingested_document_acl(context: Context, request: Request) -> Answer:
    """Return whether a user may see a document."""
    reader = Reader(request["userContext"]["userId"])
    with context.database.read() as view:
        return {"hasAccess": reader.may_read(view.connection, _document(view.connection, request).id)}


def get_ingested_document_acl(context: Context, request: Request) -> Answer:
    """Return the access control list of a document; without members if its data source has none."""
    with context.database.read() as view:
        document = _document(view.connection, request)
        text = view.connection.execute("SELECT acl FROM document WHERE id = ?", (document.id,)).get
    acl = json.loads(text or "{}")
    members = {f"{kind}List": _membership(acl[kind]) for kind in acl}
    return {"documentAcl": members}


MAX_USERS: Final = 3000
"""Source: bedrock-agent-runtime, shape DocumentAclUsers."""


def _membership(users: list[str]) -> dict[str, Any]:
    conditions = [
        {"users": [{"id": user, "type": "DATA_SOURCE"} for user in users[start : start + MAX_USERS]]}
        for start in range(0, len(users), MAX_USERS)
    ]
    return {"memberRelation": "OR", "conditions": conditions}


def _document(connection: apsw.Connection, request: Request) -> Document:
    """Return the document of a request.

    Raises:
        NotFound: The knowledge base, the data source or the document doesn't exist.
        InvalidRequest: The knowledge base isn't MANAGED.
    """
    knowledge_base_id = resource_id(request["knowledgeBaseId"])
    if not active_knowledge_base(connection, knowledge_base_id).is_managed:
        raise InvalidRequest("This operation is for MANAGED knowledge bases")
    source = requested_data_source(connection, {**request, "knowledgeBaseId": knowledge_base_id})
    return documents.with_id(connection, source, request["documentId"])
