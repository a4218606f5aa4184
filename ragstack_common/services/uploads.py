"""Uploads: checks the document that a caller wants to upload, and signs its upload."""

import re
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from ragstack_common.access.callers import Caller, Right
from ragstack_common.access.guard import Guard
from ragstack_common.core.artefacts import is_reserved
from ragstack_common.core.errors import DocumentExistsError, InvalidDocumentError
from ragstack_common.core.reporting import reaching_the_registry
from ragstack_common.core.times import Time, iso
from ragstack_common.core.uris import (
    MAX_URI_CHARACTERS,
    SIDECAR_SUFFIX,
    fault_of_uri,
    is_program_file,
    leaves_its_bucket,
)
from ragstack_common.ingestion.sidecars import (
    canonical_attributes,
    check_attributes,
    check_structure,
    parse_sidecar,
    replaced_sidecar,
)
from ragstack_common.reading import formats
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.records import Attributes
from ragstack_common.registry.table import document_id
from ragstack_common.services.bucket import DocumentsBucket, FoundSidecar

if TYPE_CHECKING:
    from ragstack_common.settings.ingestion import DocumentApiSettings

MAX_KEY_CHARACTERS: Final = 1024
"""Source: Amazon S3 user guide, object keys. The name of the bucket can make the limit of documents much lower."""

_MEDIA_TYPE: Final = r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*( ?; ?[A-Za-z0-9=_.+\"-]+)*"


def _key_text(value: str) -> str:
    if any(character < " " or character == "\x7f" for character in value):
        raise PydanticCustomError("key", "Leave out control characters, such as line breaks")
    if "${filename}" in value:
        raise PydanticCustomError("key", "Leave out ${filename}: S3 would replace it with another name")
    return value


def _document_name(value: str) -> str:
    if value.endswith("/"):
        raise PydanticCustomError("key", "Write the name of a file, not of a folder")
    if value.endswith(SIDECAR_SUFFIX):
        raise PydanticCustomError("key", "This is the name of a sidecar: give the document's attributes instead")
    if is_reserved(value):
        raise PydanticCustomError("key", "Names with .ragstack are for what is made of documents: use another name")
    if is_program_file(value):
        text = (
            "This is a file of an office program or operating system, such as a lock file: upload the document itself"
        )
        raise PydanticCustomError("key", text)
    if not formats.may_be_read(value):
        known = ", ".join(sorted(formats.MEDIA_TYPES))
        raise PydanticCustomError("key", "The file type is not supported; supported types: {known}", {"known": known})
    return value


def _media_type(value: str) -> str:
    if not re.fullmatch(_MEDIA_TYPE, value):
        raise PydanticCustomError("media_type", "Write a media type, such as text/markdown")
    return value


def _without_folder(value: str) -> str:
    if "/" in value:
        raise PydanticCustomError("key", "Write folders as prefix, or the whole name as key")
    return value


_KeyText = Annotated[str, Field(min_length=1, max_length=MAX_KEY_CHARACTERS), AfterValidator(_key_text)]
_DocumentName = Annotated[_KeyText, AfterValidator(_document_name)]
_Attributes = Annotated[dict[str, Any], AfterValidator(canonical_attributes)]


class UploadRequest(BaseModel, extra="forbid", frozen=True):
    """A document to upload. Unknown names are rejected."""

    key: _DocumentName | None = Field(default=None, description="The document's whole key in the bucket")
    filename: Annotated[_DocumentName, AfterValidator(_without_folder)] | None = Field(
        default=None, description="Instead of key: its last part, with the folders before it as prefix"
    )
    prefix: Annotated[str, Field(max_length=MAX_KEY_CHARACTERS), AfterValidator(_key_text)] | None = Field(
        default=None, description="Folders, with or without slashes at both ends"
    )
    content_type: Annotated[str, AfterValidator(_media_type)] = Field(
        max_length=200,
        description="The upload must have the same content type",
        examples=["application/pdf"],
        json_schema_extra={"x-ragstack-media-types": {**formats.MEDIA_TYPES}},
    )
    size: int = Field(ge=1, strict=True, description="Bytes of the document; the upload must have exactly this size")
    attributes: _Attributes | None = Field(
        default=None,
        description="Name to text, number, boolean or list of texts. They take effect with the answer to this request,"
        " also for a document that is already in the bucket. {} removes the attributes; without this member they stay",
        examples=[{"corpus": "people", "version": "2"}],
    )

    document_structure_configuration: dict[str, Any] | None = Field(
        default=None,
        description="For a CSV file whose rows are records: which columns are their text and their attributes, in the"
        " form that a sidecar has. {} makes the file one document again; without this member it stays as it is",
        examples=[
            {
                "type": "RECORD_BASED_STRUCTURE_METADATA",
                "recordBasedStructureMetadata": {
                    "contentFields": [{"fieldName": "description"}],
                    "metadataFieldsSpecification": {"fieldsToInclude": [{"fieldName": "city"}]},
                },
            }
        ],
    )
    overwrite: bool = Field(
        default=True,
        strict=True,
        description="false: only if there is no document of this name. The answer is 409 if there is one, and the"
        " upload is a PUT request, which S3 answers with 412 if another document was faster",
    )

    @model_validator(mode="after")
    def _has_one_name(self) -> Self:
        if (self.key is None) == (self.filename is None):
            raise PydanticCustomError("name", "Give either key or filename")
        if self.prefix is not None and self.filename is None:
            raise PydanticCustomError("name", "A prefix goes with filename; key is the whole name")
        if leaves_its_bucket(self.name):
            raise PydanticCustomError("name", "Leave out the .. that leads out of the bucket: S3 rejects such a key")
        return self

    @property
    def name(self) -> str:
        """The requested key."""
        folder = (self.prefix or "").strip("/")
        return self.key or (f"{folder}/{self.filename}" if folder else f"{self.filename}")


class AttributesChange(BaseModel, extra="forbid", frozen=True, defer_build=True):
    """New attributes of a document. Unknown names are rejected."""

    attributes: _Attributes | None = Field(
        description="All attributes, as in an upload; null or {} removes them. The access label stays unless it is"
        " named",
        examples=[{"corpus": "people", "version": "2"}],
    )
    merge: bool = Field(
        default=False,
        description="Change only the attributes that are named; null removes one. Those of a change that is not"
        " processed yet stay, too",
    )


class SignedUpload(BaseModel):
    """A signed upload.

    POST: a form with these fields, followed by the file as the field ``file``. PUT: the file, with these headers.
    """

    method: Literal["POST", "PUT"] = Field(description="PUT if the request has overwrite: false, otherwise POST")
    url: str = Field(description="Where to post the form (multipart/form-data), or to put the file")
    fields: dict[str, str] = Field(description="Those of the form; none with PUT")
    headers: dict[str, str] = Field(description="What a PUT request must have; none with POST")
    size: int = Field(description="Bytes of the file; S3 rejects any other size")
    expires_at: Time


class UploadAnswer(BaseModel):
    """Where the document will be, and how to upload it."""

    id: str = Field(description="For GET /api/documents/{id}, which knows the document a moment after the upload")
    uri: str
    key: str
    upload: SignedUpload
    sidecar_uri: str | None = Field(description="The sidecar that was written with the attributes")


class Uploads:
    """Checks requests for uploads, and signs them.

    The sidecar is written here and not by the caller. A signature can bind the length of an upload but not its content,
    so only an object that is written here is one that was checked; the caller makes one upload instead of two; and the
    sidecar exists before its document, so that a new document is ingested once, with its attributes. The price: the
    attributes take effect even if the upload does not follow. Without a document, a sidecar has no effect.
    """

    def __init__(
        self,
        settings: "DocumentApiSettings",
        bucket: DocumentsBucket,
        registry: DocumentRegistry,
        guard: Guard | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._bucket = bucket
        self._registry = registry
        self._guard = guard or Guard()
        self._clock = clock

    def permit(self, request: UploadRequest, caller: Caller) -> UploadAnswer:
        """Write the attributes, and sign one upload of the document.

        Raises:
            InvalidDocumentError: The document is too large, its name too long, or its attributes are invalid.
            NotAllowedError: The caller may not write here, or does not see the document that is there.
            DocumentExistsError: The document is there, and the caller does not want to replace it.
            ServiceUnavailableError: S3 did not store the sidecar.
        """
        settings, key = self._settings, request.name
        uri = self._bucket.uri(key)
        self._check(uri, request)
        sidecar = self._bucket.read_sidecar(key + SIDECAR_SUFFIX)
        attributes = self._labelled(key, request.attributes, sidecar, caller)
        if not request.overwrite and (self._bucket.observe(key).is_present or self._has_name(uri, caller)):
            raise DocumentExistsError(f"{key} is in the bucket, and the request does not allow to replace it")
        structure = request.document_structure_configuration
        is_written = (attributes is not None or structure is not None) and self._change_sidecar(
            key, sidecar, attributes, structure
        )
        until = iso(self._clock() + settings.upload_seconds)
        sign = self._bucket.sign_upload if request.overwrite else self._bucket.sign_new
        url, values = sign(key, request.content_type, request.size, settings.upload_seconds)
        upload = SignedUpload(
            method="POST" if request.overwrite else "PUT",
            url=url,
            fields=values if request.overwrite else {},
            headers={} if request.overwrite else values,
            size=request.size,
            expires_at=until,
        )
        return UploadAnswer(
            id=document_id(uri),
            uri=uri,
            key=key,
            upload=upload,
            sidecar_uri=uri + SIDECAR_SUFFIX if is_written else None,
        )

    def change_attributes(self, key: str, change: AttributesChange, caller: Caller) -> None:
        """Change the attributes of a document that is in the bucket; the event of its sidecar does the rest.

        Raises:
            InvalidDocumentError: The attributes are invalid.
            NotAllowedError: The caller may not write here, or does not see the document that is there.
            ServiceUnavailableError: S3 did not store the sidecar, or another change came in between.
        """
        sidecar = self._bucket.read_sidecar(key + SIDECAR_SUFFIX)
        wanted = change.attributes or {}
        if change.merge:
            wanted = self._merged(sidecar.body, wanted)
        self._check_attributes(wanted)
        self._change_sidecar(key, sidecar, self._labelled(key, wanted, sidecar, caller) or {}, None)

    def _merged(self, body: bytes | None, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes of a sidecar with changes, without a label that they do not name."""
        try:
            attributes = {} if body is None else {**canonical_attributes(parse_sidecar(body).attributes)}
        except InvalidDocumentError as error:
            raise InvalidDocumentError(f"merge: the sidecar cannot be read; replace its attributes: {error}") from error
        if self._guard.policy is not None:
            attributes.pop(self._guard.policy.attribute, None)
        return {name: value for name, value in {**attributes, **changes}.items() if value is not None}

    def _has_name(self, uri: str, caller: Caller) -> bool:
        """Whether the caller sees a document whose name differs only in form, such as one from a Mac."""
        rules = self._guard.rules()
        with reaching_the_registry():
            known = self._registry.read(self._registry.same_name(uri)).values()
        return any(record.observed.is_present and rules.sees(caller, record.label) for record in known)

    def _check(self, uri: str, request: UploadRequest) -> None:
        if len(uri) > MAX_URI_CHARACTERS:
            member = "key" if request.key is not None else "prefix and filename"
            most = MAX_URI_CHARACTERS - len(self._bucket.uri(""))
            raise InvalidDocumentError(
                f"{member}: the name has {len(request.name)} characters; in this bucket it may have {most}"
            )
        if fault := fault_of_uri(uri):
            raise InvalidDocumentError(f"key: {fault}")
        if request.size > self._settings.upload_max_bytes:
            most = self._settings.upload_max_bytes
            raise InvalidDocumentError(f"size: {request.size:,} bytes are too many; a document may have {most:,}")
        if request.attributes is not None:
            self._check_attributes(request.attributes)
        if request.document_structure_configuration:
            self._check_structure(request.name, request.document_structure_configuration)

    def _check_structure(self, key: str, structure: Mapping[str, Any]) -> None:
        if not _may_have_rows(key):
            raise InvalidDocumentError("document_structure_configuration: only a .csv file has rows that are records")
        try:
            check_structure(structure)
        except InvalidDocumentError as error:
            raise InvalidDocumentError(f"document_structure_configuration: {error}") from error

    def _check_attributes(self, attributes: Mapping[str, Any]) -> None:
        try:
            check_attributes(attributes, self._settings.vector_store)
        except InvalidDocumentError as error:
            raise InvalidDocumentError(f"attributes: {error}") from error

    def _labelled(
        self, key: str, attributes: Mapping[str, Any] | None, sidecar: FoundSidecar, caller: Caller
    ) -> Mapping[str, Any] | None:
        """Return the attributes with the document's label, which the caller must see, as that of an earlier version.

        A label that the request does not name stays. A sidecar without a document may belong to an upload that
        follows: only callers who see its label replace it, and a caller gets its label only by naming it. So a new
        document's label is always written.
        """
        policy = self._guard.policy
        if policy is None:
            return attributes
        uri = self._bucket.uri(key)
        self._guard.require_writer(caller, key)
        rules = self._guard.rules()
        with reaching_the_registry():
            known = self._registry.read([uri])[uri]
        in_sidecar = policy.label_of(key, _attributes_in_sidecar(sidecar.body).get(policy.attribute))
        is_present = self._bucket.observe(key).is_present
        earlier = [in_sidecar] if is_present or sidecar.body is not None else []
        if known.observed.is_present:
            earlier.append(known.label)
        if not all(rules.sees(caller, label) for label in earlier):
            self._guard.refuse(caller, Right.WRITE, uri, f"{caller.name} lacks the right write for {key}")
        stays = in_sidecar if is_present else known.label if known.observed.is_present else None
        wanted = (attributes or {}).get(policy.attribute, stays)
        label = policy.label_of(key, wanted)
        usable = sorted(each for each in policy.rule_for(key)[1].permitted if rules.sees(caller, each))
        if (wanted is not None and wanted != label) or not rules.sees(caller, label):
            choice = f"choose one of {', '.join(usable)}" if usable else "you may use none here"
            fault = (
                "documents here need an access label" if wanted is None else f"{wanted!r:.120} is not permitted here"
            )
            raise InvalidDocumentError(f"attributes: {policy.attribute}: {fault}; {choice}")
        if label is None or (attributes is None and is_present):
            return attributes
        return {**(attributes or {}), policy.attribute: label}

    def _change_sidecar(
        self,
        key: str,
        sidecar: FoundSidecar,
        attributes: Mapping[str, Any] | None,
        structure: Mapping[str, Any] | None,
    ) -> bool:
        """Replace attributes and row settings; what is None stays. Return whether there is a sidecar now."""
        try:
            body = replaced_sidecar(sidecar.body, attributes, structure)
        except InvalidDocumentError as error:
            raise InvalidDocumentError(f"The sidecar cannot be written: {error}") from error
        self._bucket.change_sidecar(key + SIDECAR_SUFFIX, body, sidecar.etag)
        return body is not None


def _may_have_rows(key: str) -> bool:
    return key.lower().endswith(".csv")


def _attributes_in_sidecar(body: bytes | None) -> Attributes:
    try:
        return {} if body is None else parse_sidecar(body).attributes
    except InvalidDocumentError:
        return {}
