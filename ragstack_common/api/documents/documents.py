"""Listing documents, looking at one, and deleting one."""

from typing import Final

from ragstack_common.api.documents.answers import DocumentNow, detail_of, summary_of
from ragstack_common.api.documents.bucket import DocumentsBucket
from ragstack_common.api.documents.failures import reaching_the_registry
from ragstack_common.api.documents.models import DocumentDetail, DocumentList
from ragstack_common.documents import SIDECAR_SUFFIX
from ragstack_common.errors import DocumentNotFoundError, InvalidRequestError
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.listing import DEFAULT_LIMIT, Listing
from ragstack_common.registry.records import DocumentRecord, Status

_NOT_YET: Final = (
    "There is no document {id!r:.80}: nothing was uploaded yet, or its event is still on its way. Try again; "
    "GET /api/documents?key=... looks into the bucket too"
)


class Documents:
    """Answers about documents from the registry, and about a single one from the bucket as well.

    The registry hears of a change by its event, a moment later. Whoever asks about one document is told of what is in
    the bucket but not in the registry yet, and is never told that an earlier version's status is that of the newest.
    """

    def __init__(self, registry: DocumentRegistry, listing: Listing, bucket: DocumentsBucket) -> None:
        """Bind the registry and the bucket."""
        self._registry = registry
        self._listing = listing
        self._bucket = bucket

    def page(
        self,
        status: Status | None = None,
        corpus: str | None = None,
        limit: int = DEFAULT_LIMIT,
        token: str | None = None,
    ) -> DocumentList:
        """List documents by URI; those that were deleted only if their status is asked for.

        Raises:
            InvalidRequestError: The limit is out of range, or the token is of another listing.
            RegistryError: The registry cannot be read.
        """
        with reaching_the_registry():
            page = self._listing.page(status, corpus, limit, token)
        documents = [summary_of(each) for each in page.documents]
        return DocumentList(documents=documents, next_token=page.next_token, unreadable=list(page.unreadable))

    def named(self, *, key: str | None = None, uri: str | None = None) -> DocumentList:
        """List the one document of a name, known to the registry or not; nothing where there is none.

        Raises:
            InvalidRequestError: The URI names no object of the documents bucket.
            RegistryError: The registry cannot be read.
            ServiceUnavailableError: The bucket cannot be looked into.
        """
        name = self._bucket.key(uri) if uri is not None else key
        if not name:
            raise InvalidRequestError(f"uri: write {self._bucket.uri('')} and the document's key")
        uri = self._bucket.uri(name)
        with reaching_the_registry():
            record = self._registry.read([uri])[uri]
        seen = self._seen(record, name)
        if name.endswith(SIDECAR_SUFFIX) or (record.revision == 0 and not seen.is_newer):
            return DocumentList(documents=[], next_token=None)
        return DocumentList(documents=[summary_of(seen.as_it_is())], next_token=None)

    def detail(self, identifier: str) -> DocumentDetail:
        """Tell everything about one document.

        Raises:
            DocumentNotFoundError: The registry does not know it.
            RegistryError: The registry cannot be read.
            ServiceUnavailableError: The bucket cannot be looked into.
        """
        record = self._find(identifier)
        return detail_of(self._seen(record, self._key(record)))

    def delete(self, identifier: str) -> DocumentDetail:
        """Delete a document and its sidecar from the bucket; the knowledge base follows by the events.

        The document goes first. What remains if nothing more happens is a sidecar without a document, which nothing is
        done about; the other way around it would be a document that is read again without its attributes.

        Returns:
            The document as it is now, with what it waits for.

        Raises:
            DocumentNotFoundError: The registry does not know it, or it was deleted before and nothing is left.
            RegistryError: The registry cannot be read.
            ServiceUnavailableError: The bucket did not delete it; try again.
        """
        record = self._find(identifier)
        key = self._key(record)
        was_there = self._bucket.delete_if_present(key)
        self._bucket.delete_if_present(key + SIDECAR_SUFFIX)
        if record.status is Status.DELETED and not was_there:
            raise DocumentNotFoundError(f"The document {identifier} was deleted before")
        return detail_of(self._seen(record, key))

    def _find(self, identifier: str) -> DocumentRecord:
        with reaching_the_registry():
            record = self._listing.find(identifier)
        if record is None:
            raise DocumentNotFoundError(_NOT_YET.format(id=identifier))
        return record

    def _key(self, record: DocumentRecord) -> str:
        key = self._bucket.key(record.uri)
        if key is None:
            raise DocumentNotFoundError(f"{record.uri} lies in another bucket than documents are uploaded to now")
        return key

    def _seen(self, record: DocumentRecord, key: str) -> DocumentNow:
        return DocumentNow(record, self._bucket.look(key))
