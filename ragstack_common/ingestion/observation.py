"""Reading documents and their sidecars in the bucket."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.access.policy import AccessPolicy
from ragstack_common.core.artefacts import text_of
from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.core.objects import put_if, unchanged, unless_absent
from ragstack_common.core.uris import SIDECAR_SUFFIX, fault_of_uri, split_uri
from ragstack_common.ingestion import conversions
from ragstack_common.ingestion.bedrock_agent import batched
from ragstack_common.ingestion.sidecars import canonical_sidecar, read_sidecar, with_attribute
from ragstack_common.reading import formats
from ragstack_common.registry.records import Observation
from ragstack_common.settings.ingestion import OFF
from ragstack_common.settings.limits import MAX_DOCUMENT_BYTES, MAX_SIDECAR_BYTES

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

THREADS: Final = 8

BATCH: Final = 3 * THREADS
"""Documents between two checks of the time: an invocation can get a hundred messages of fifty documents each."""


class Observer:
    """Reads documents and their sidecars.

    With an access policy, it also gives documents their label: it writes or corrects the label's attribute in the
    sidecar, so that bucket, registry and knowledge base agree on it. It also writes attributes in the form in which
    names compare.
    """

    def __init__(
        self, s3: "S3Client", vector_store: str, policy: AccessPolicy | None = None, recognition: str = OFF
    ) -> None:
        self._s3 = s3
        self._recognition = recognition
        self._vector_store = vector_store
        self._policy = policy

    def observe_while(
        self, has_time: Callable[[], bool], converted: Mapping[str, str | None]
    ) -> dict[str, Observation | Exception]:
        """Observe documents in parallel until time runs out, the first 24 in any case.

        Args:
            has_time: Whether there is time for more.
            converted: The documents, by URI, each with the entity tag of the version that is converted although the
                knowledge base reads its format.

        Returns:
            For each document that there was time for, by URI, its observation or the error.
        """
        observed: dict[str, Observation | Exception] = {}
        for batch in batched([*converted.items()], BATCH):
            if observed and not has_time():
                break
            with ThreadPoolExecutor(min(THREADS, len(batch))) as threads:
                found = threads.map(lambda each: self._try(*each), batch)
                observed |= zip((uri for uri, _ in batch), found, strict=True)
        return observed

    def observe(self, uri: str, converted: str | None = None) -> Observation:
        """Observe one document; raises InvalidDocumentError."""
        bucket, key = split_uri(uri)
        if not (bucket and key):
            raise InvalidDocumentError(f"{uri!r:.200} does not name an object: write s3://BUCKET/KEY")
        document = unless_absent(lambda: self._s3.head_object(Bucket=bucket, Key=key))
        if document is None:
            return Observation()
        size = document["ContentLength"]
        sidecar, sidecar_fault = self._labelled_sidecar(bucket, key)
        too_large = (
            f"The document has {size / 1024**2:.1f} MB; Bedrock takes {MAX_DOCUMENT_BYTES // 1024**2} MB: divide it"
        )
        reads = formats.is_read_by_bedrock(key)
        converts = not reads or document["ETag"] == converted
        refusal = fault_of_uri(text_of(uri) if converts else uri)
        refusal = refusal or (too_large if size > MAX_DOCUMENT_BYTES else sidecar_fault)
        if not converts or refusal:
            return Observation.from_head(document, refusal=refusal, **sidecar)
        made = conversions.find(self._s3, bucket, key)
        wanted = conversions.Inputs.wanted(document["ETag"], sidecar.get("sidecar_etag"), self._recognition)
        conversion = made.conversion if made is not None and made.inputs.serve(wanted) else None
        return Observation.from_head(
            document,
            # The knowledge base reads its format: what it read before is better than nothing.
            refusal=conversion.refusal if conversion is not None and not reads else None,
            conversion=conversion,
            needs_conversion=conversion is None,
            **sidecar,
        )

    def _try(self, uri: str, converted: str | None) -> Observation | Exception:
        try:
            return self.observe(uri, converted)
        except (ClientError, BotoCoreError, InvalidDocumentError) as error:
            return error

    def _labelled_sidecar(self, bucket: str, key: str) -> tuple[dict[str, Any], str | None]:
        """Return what an observation says about the sidecar and the label, and why the sidecar cannot be used."""
        name = key + SIDECAR_SUFFIX
        sidecar, fault, body = self._sidecar(bucket, name)
        if self._policy is None:
            return sidecar, fault
        for _ in range(5):
            attribute = sidecar.get("attributes", {}).get(self._policy.attribute)
            sidecar["label"] = label = self._policy.label_of(key, attribute)
            if fault is not None:
                return sidecar, fault
            written = body if label == attribute else with_attribute(body, self._policy.attribute, label)
            written = None if written is None else canonical_sidecar(written)
            if written is None or written == body:
                return sidecar, None
            try:
                read_sidecar(written, self._vector_store)
            except InvalidDocumentError as error:
                return sidecar, f"The sidecar has no room for the access label: {error}"
            # If another writer was faster, its sidecar is read next.
            condition = unchanged(sidecar.get("sidecar_etag"))
            put_if(condition, self._s3, Bucket=bucket, Key=name, Body=written, ContentType="application/json")
            sidecar, fault, body = self._sidecar(bucket, name)
        return sidecar, "The sidecar changes too often to write the access label"

    def _sidecar(self, bucket: str, key: str) -> tuple[dict[str, Any], str | None, bytes | None]:
        """Return what an observation says about the sidecar, why it cannot be used, and its content."""
        found = unless_absent(lambda: self._s3.get_object(Bucket=bucket, Key=key))
        if found is None:
            return {}, None, None
        observed = {
            "sidecar_etag": found["ETag"],
            "sidecar_version_id": found.get("VersionId"),
            "sidecar_last_modified": found["LastModified"].timestamp(),
        }
        with found["Body"] as stream:
            body = stream.read(MAX_SIDECAR_BYTES + 1)
        try:
            return {**observed, "attributes": read_sidecar(body, self._vector_store)}, None, body
        except InvalidDocumentError as error:
            return observed, f"The sidecar cannot be used: {error}", body
