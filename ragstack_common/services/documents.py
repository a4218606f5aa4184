"""Documents: listing them, looking at one, deleting one, and counting their attributes.

The registry learns of a change from its event, a moment later. A request about a single document therefore looks into
the bucket too: it reports an upload that the registry does not have yet, and never reports an earlier version's status
as that of the newest.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ragstack_common.access.callers import Caller, Right
from ragstack_common.access.guard import Guard
from ragstack_common.core.artefacts import mails_of, maker_of
from ragstack_common.core.clients import dynamodb_client, s3_client
from ragstack_common.core.errors import AccessNeededError, DocumentNotFoundError, InvalidRequestError
from ragstack_common.core.names import canonical
from ragstack_common.core.reporting import reaching_the_registry, redacted
from ragstack_common.core.times import iso
from ragstack_common.core.uris import SIDECAR_SUFFIX, file_name, is_program_file, saved_name
from ragstack_common.registry.catalogue import Catalogue
from ragstack_common.registry.directory import Directory
from ragstack_common.registry.documents import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    DocumentRegistry,
    Listing,
    ambiguous_name,
)
from ragstack_common.registry.records import (
    DocumentRecord,
    Status,
)
from ragstack_common.registry.table import document_id
from ragstack_common.search.values import natural_order
from ragstack_common.services.bucket import DocumentsBucket, replaced_error
from ragstack_common.services.document_models import (
    DocumentDetail,
    DocumentList,
    Download,
    Facet,
    Facets,
    FacetValue,
    FoundDocuments,
)
from ragstack_common.services.document_views import DocumentNow, to_detail, to_found, to_summary
from ragstack_common.settings.ingestion import DocumentSettings
from ragstack_common.text.names import NameWord, folded, words_to_find, words_to_index

MAX_VALUES: Final = 1000
"""Maximum number of values on a page: each takes up to 2.4 KB of JSON, and Lambda's responses have 6 MB at most."""

DEFAULT_FOUND: Final = 10
MAX_FOUND: Final = 50

MAX_ALIKE: Final = 20
"""Documents of similar names in an explanation."""

DOWNLOAD_SECONDS: Final = 60
"""How long an address for a download is valid: until it is opened. The download itself may take longer."""

EVENT_OF_CHANGE: Final = (
    "The ingestion function reads the event of the change; until then searches use the old attributes"
)
_NOT_YET: Final = (
    "There is no document {id!r:.80}: nothing was uploaded yet, or its event is still on its way. Try again; "
    "GET /api/documents?key=... looks into the bucket too"
)


class SeenDocument(NamedTuple):
    """A document that a caller sees, in the version whose label the registry knows.

    The failure is why it could not be indexed; None if it could, or if that is not known yet. *is_converted* says that
    its content decided its format, and *has_words* that text was recognized in its pictures.
    """

    key: str
    etag: str
    size: int
    failure: str | None
    is_converted: bool = False
    has_words: bool = False


class Documents:
    """Answers requests about documents from the registry, and about a single one from the bucket as well.

    Each method raises RegistryError if the registry fails, and ServiceUnavailableError if the bucket does.
    """

    def __init__(
        self,
        registry: DocumentRegistry,
        bucket: DocumentsBucket,
        guard: Guard | None = None,
        directory: Directory | None = None,
    ) -> None:
        """Bind services; without a directory, names are looked for in the listing."""
        self._registry = registry
        self._bucket = bucket
        self._guard = guard or Guard()
        self._directory = directory

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "Documents":
        """Find the registry and the bucket that the environment names; raises ConfigurationError."""
        settings = DocumentSettings.from_env(env)
        registry = DocumentRegistry(settings.registry_table, dynamodb_client())
        bucket = DocumentsBucket(settings.documents_bucket, s3_client())
        return cls(registry, bucket, Guard.from_env(env), directory_of(settings))

    def page(
        self,
        caller: Caller,
        status: Status | None = None,
        corpus: str | None = None,
        limit: int = DEFAULT_LIMIT,
        token: str | None = None,
        *,
        prefix: str | None = None,
        name: str | None = None,
    ) -> DocumentList:
        """List the documents that the caller sees by URI; deleted ones only with their status.

        Raises:
            InvalidRequestError: The limit is out of range, or the token is from another listing.
        """
        labels = self._guard.rules().labels(caller)
        corpus, prefix, name = (None if text is None else canonical(text) for text in (corpus, prefix, name))
        listing = Listing(status, corpus, None if prefix is None else self._bucket.uri(prefix), name)
        with reaching_the_registry():
            page = self._registry.page(listing, limit, token, labels)
        documents = [to_summary(each) for each in page.documents]
        return DocumentList(documents=documents, next_token=page.next_token)

    def named(self, caller: Caller, *, key: str | None = None, uri: str | None = None) -> DocumentList:
        """List the documents of a name, whether the registry knows them or not.

        The list is empty if there is none, or if the caller does not see it. It has several if their keys differ only
        in form, first the one whose key is exactly the name. What the registry does not know yet has no label, so that
        only callers who see everything see it.

        Raises:
            InvalidRequestError: The URI names no object in the documents bucket.
        """
        name = self._bucket.key(uri) if uri is not None else key
        if not name:
            raise InvalidRequestError(f"uri: write {self._bucket.uri('')} and the document's key")
        found = [to_summary(seen.as_it_is()) for seen in self._look(caller, name)]
        return DocumentList(documents=found, next_token=None)

    def look(self, caller: Caller, key: str) -> DocumentNow | None:
        """Return a document from registry and bucket; None if it does not exist, or the caller does not see it.

        Raises:
            InvalidRequestError: Several documents have this name in other forms, and none in this one.
        """
        found = self._look(caller, key)
        if len(found) > 1 and found[0].record.uri != self._bucket.uri(key):
            raise ambiguous_name(key, [seen.record.uri for seen in found])
        return found[0] if found else None

    def _look(self, caller: Caller, key: str) -> list[DocumentNow]:
        """Return the documents of a name that the caller sees, first the one whose key is exactly the name."""
        uri = self._bucket.uri(key)
        rules = self._guard.rules()
        with reaching_the_registry():
            records = self._registry.read([uri, *self._registry.same_name(uri)])
        visible = [record for record in records.values() if rules.sees(caller, record.label)]
        if not visible:
            # The one that exists, if one does.
            record = max(records.values(), key=lambda record: record.revision > 0)
            self._guard.hide(caller, Right.READ, record.uri, rules.explain(caller, record.label))
        found = []
        for record in visible:
            own_key = record.uri.removeprefix(self._bucket.uri(""))
            seen = DocumentNow(record, self._bucket.observe(own_key))
            is_new = seen.is_newer and not is_program_file(own_key)
            is_document = not own_key.endswith(SIDECAR_SUFFIX) and maker_of(own_key) is None
            if is_document and (record.revision > 0 or is_new):
                found.append(seen)
        return [seen for seen in found if seen.is_live] or found

    def address(self, name: str) -> tuple[str, str | None]:
        """Return the URI and the key of a document by either; the key is None outside this bucket."""
        if "://" in name:
            return name, self._bucket.key(name)
        return self._bucket.uri(name), name

    def find(self, caller: Caller, query: str, limit: int = DEFAULT_FOUND) -> FoundDocuments:
        """Return the documents that have each word in name, folder or attributes, of those that the caller sees.

        The last status counts, also of documents that failed or are not indexed yet. A document whose key or URI is
        exactly the query comes first.
        """
        _, key = self.address(query.strip())
        words = words_to_find(query if key is None else key)
        exact = [] if key is None else [self._bucket.uri(key)]
        named, more = self._named(caller, words, limit) if words else ([], False)
        uris = [*dict.fromkeys([*exact, *named])][: limit + 1]
        rules = self._guard.rules()
        with reaching_the_registry():
            records = self._registry.read(uris)
            hidden = self._guard.check(caller, uris).hidden
        found = [
            to_found(records[uri], words)
            for uri in uris
            if records[uri].revision
            and records[uri].status is not Status.DELETED
            and uri not in hidden
            and rules.sees(caller, records[uri].label)
        ]
        return FoundDocuments(documents=found[:limit], more=more or len(found) > limit)

    def _named(self, caller: Caller, words: Sequence[NameWord], limit: int) -> tuple[list[str], bool]:
        """Return the URIs of documents that have the words, and whether there may be more."""
        with reaching_the_registry():
            entries = None if self._directory is None else self._directory.read()
        if entries is not None:
            found = [entry.uri for entry in entries.named(words, self._guard.rules().labels(caller), limit + 1)]
            return found, len(found) > limit
        page = self.page(caller, limit=min(limit, MAX_LIMIT), name=" ".join(word.text for word in words))
        return [each.uri for each in page.documents], page.next_token is not None

    def alike(self, caller: Caller, name: str) -> tuple[list[str], bool]:
        """Return the keys of documents that have the words of a name, and whether these are all.

        It is one key if the words are its file name, or if only one name has all of them as they are; otherwise at most
        :data:`MAX_ALIKE`.
        """
        found = self.find(caller, name, MAX_ALIKE)
        wanted = file_name(folded(name.strip()))
        same = [each for each in found.documents if folded(each.name) == wanted]
        words = {word.text for word in words_to_find(name)}
        whole = [each for each in found.documents if words <= {*words_to_index([each.key])}]
        keys = [each.key for each in same or whole or found.documents]
        return keys, not found.more or 0 < len(whole) < len(found.documents)

    def sees_everything(self, caller: Caller) -> bool:
        """Whether a caller sees every document."""
        return self._guard.rules().sees_everything(caller)

    def detail(self, caller: Caller, identifier: str) -> DocumentDetail:
        """Return everything about one document; raises DocumentNotFoundError."""
        record = self._find(caller, Right.READ, identifier)
        return to_detail(DocumentNow(record, self._bucket.observe(self._key(record))))

    def seen(self, caller: Caller, uri: str) -> SeenDocument:
        """Return which version of a document the caller may read, and record that they do.

        Raises:
            DocumentNotFoundError: The registry does not know it, the caller does not see it, or it is deleted.
            InvalidRequestError: Several documents have this name in other forms, and none in this one.
        """
        key = None if uri.isascii() else self._bucket.key(uri)
        if key is None:
            record = self._find(caller, Right.READ, document_id(uri))
        else:
            looked = self.look(caller, key)
            if looked is None or looked.record.revision == 0:
                raise DocumentNotFoundError(_NOT_YET.format(id=document_id(uri)))
            record = looked.record
        observed = record.observed
        if observed.etag is None:
            raise DocumentNotFoundError(f"The document {record.id} was deleted")
        self._guard.saw("opened", caller, [record.uri])
        failure = redacted(record.reason or "") if record.status is Status.FAILED else None
        has_words = record.is_converted and observed.conversion is not None and observed.conversion.has_words
        return SeenDocument(self._key(record), observed.etag, observed.size, failure, record.is_converted, has_words)

    def download(self, caller: Caller, identifier: str) -> Download:
        """Sign a download of the version whose label the registry knows, and record that the caller gets it.

        Raises:
            DocumentNotFoundError: The registry does not know it, the caller does not see it, or it is deleted.
            ServiceUnavailableError: The bucket has a newer version, whose label is not known yet.
        """
        record = self._find(caller, Right.READ, identifier)
        key = self._key(record)
        document = DocumentNow(record, self._bucket.observe(key))
        if record.observed.etag is None or not document.now.is_present:
            raise DocumentNotFoundError(f"The document {record.id} was deleted")
        if document.is_newer:
            raise replaced_error(key)
        until = iso(time.time() + DOWNLOAD_SECONDS)
        url = self._bucket.sign_download(key, record.observed.version_id, DOWNLOAD_SECONDS)
        self._guard.saw("downloaded", caller, [record.uri])
        return Download(url=url, name=saved_name(key), size=document.now.size, expires_at=until)

    def delete(self, caller: Caller, identifier: str) -> DocumentDetail:
        """Delete a document and its sidecar from the bucket; their events remove it from the knowledge base.

        The document is deleted first. An interruption then leaves a sidecar without a document, which has no effect;
        the other order would leave a document that is ingested again without its attributes.

        Raises:
            DocumentNotFoundError: The registry does not know it, the caller does not see it, or it was deleted before
                and nothing is left.
            NotAllowedError: The caller may not write under its prefix.
            ServiceUnavailableError: The bucket did not delete it; try again.
        """
        record = self._find(caller, Right.WRITE, identifier)
        key = self._key(record)
        self._guard.require_writer(caller, key)
        existed = self._bucket.delete_if_present(key)
        self._bucket.delete_if_present(key + SIDECAR_SUFFIX)
        if record.status is Status.DELETED and not existed:
            raise DocumentNotFoundError(f"The document {identifier} was deleted before")
        return to_detail(DocumentNow(record, self._bucket.observe(key)))

    def key_to_change(self, caller: Caller, identifier: str) -> str:
        """Return the key of a document that is in the bucket, for a caller who changes it.

        Raises:
            DocumentNotFoundError: The registry does not know it, the caller does not see it, or it was deleted.
            AccessNeededError: The caller does not see it, and the access file names whom to ask.
        """
        key = self._key(self._find(caller, Right.WRITE, identifier))
        if not self._bucket.observe(key).is_present:
            raise DocumentNotFoundError(f"The document {identifier} was deleted: upload it with its attributes")
        return key

    def _find(self, caller: Caller, right: Right, identifier: str) -> DocumentRecord:
        rules = self._guard.rules()
        with reaching_the_registry():
            record = self._registry.find(identifier)
            # An attachment follows the label of its mail only when the mail is converted again.
            mails = self._registry.read(mails_of(record.uri)) if record is not None else {}
        labels = [each.label for each in (record, *mails.values()) if each is not None]
        hidden = [label for label in labels if not rules.sees(caller, label)]
        if record is not None and not hidden:
            return record
        if not rules.sees_everything(caller):
            # Also for what does not exist: to write the event takes time, which would tell the two apart.
            uri = identifier if record is None else record.uri
            self._guard.hide(caller, right, uri, rules.explain(caller, next(iter(hidden), None)))
            if contacts := rules.contacts(hidden) if hidden else ():
                raise AccessNeededError(
                    f"{caller.name} may not see this document: ask {' and '.join(contacts)} for access"
                )
        raise DocumentNotFoundError(_NOT_YET.format(id=identifier))

    def _key(self, record: DocumentRecord) -> str:
        key = self._bucket.key(record.uri)
        if key is None:
            raise DocumentNotFoundError(f"{record.uri} is not in the bucket to which documents are uploaded now")
        return key


def read_facets(
    catalogue: Catalogue, key: str | None, prefix: str | None = None, limit: int = MAX_VALUES, token: str | None = None
) -> Facets:
    """List one attribute of searchable documents, or all, with their values, in pages.

    Raises:
        InvalidRequestError: There is a prefix without a key, or the token is from another listing.
    """
    if prefix and key is None:
        raise InvalidRequestError("prefix needs key, the attribute whose values begin with it")
    with reaching_the_registry():
        key = None if key is None else canonical(key)
        page = catalogue.page(key, canonical(prefix or ""), limit, token)
        documents = catalogue.documents()
    values: dict[str, list[FacetValue]] = {}
    for facet in page.facets:
        if facet.value is not None:
            values.setdefault(facet.key, []).append(FacetValue(value=facet.value, documents=facet.documents))
    facets = [
        Facet(key=name, values=sorted(found, key=lambda each: natural_order(each.value)))
        for name, found in values.items()
    ]
    return Facets(facets=facets, documents=documents, next_token=page.next_token)


def directory_of(settings: DocumentSettings) -> Directory | None:
    """Return the directory of the documents, if the deployment has one."""
    bucket = settings.snapshot_bucket
    return None if bucket is None else Directory(dynamodb_client(), settings.registry_table, s3_client(), bucket)
