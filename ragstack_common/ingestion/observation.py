"""Reading documents and their sidecars in the bucket."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.documents import MAX_SIDECAR_BYTES, SIDECAR_SUFFIX, fault_of_uri
from ragstack_common.ingestion.bedrock_agent import batched
from ragstack_common.ingestion.objects import unless_absent
from ragstack_common.ingestion.sidecars import read_sidecar
from ragstack_common.ingestion_config import MAX_DOCUMENT_BYTES
from ragstack_common.registry.records import Observation

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

THREADS: Final = 8

BATCH: Final = 3 * THREADS
"""Documents between two looks at the clock: an invocation can get a hundred messages of fifty documents each."""


class Observer:
    """Reads documents and their sidecars."""

    def __init__(self, s3: "S3Client", vector_store: str) -> None:
        self._s3 = s3
        self._vector_store = vector_store

    def observe_while(self, has_time: Callable[[], bool], uris: Sequence[str]) -> dict[str, Observation | Exception]:
        """Observe documents in parallel until time runs out, the first 24 in any case.

        Returns:
            For each document that there was time for, by URI, its observation or the error.
        """
        observed: dict[str, Observation | Exception] = {}
        for batch in batched(uris, BATCH):
            if observed and not has_time():
                break
            with ThreadPoolExecutor(min(THREADS, len(batch))) as threads:
                observed |= zip(batch, threads.map(self._try, batch), strict=True)
        return observed

    def observe(self, uri: str) -> Observation:
        """Observe one document.

        Raises:
            InvalidDocumentError: The URI does not name an object.
        """
        bucket, slash, key = uri.removeprefix("s3://").partition("/")
        if not (uri.startswith("s3://") and bucket and slash and key):
            raise InvalidDocumentError(f"{uri!r:.200} does not name an object: write s3://BUCKET/KEY")
        document = unless_absent(lambda: self._s3.head_object(Bucket=bucket, Key=key))
        if document is None:
            return Observation()
        size = document["ContentLength"]
        sidecar, sidecar_fault = self._sidecar(bucket, key + SIDECAR_SUFFIX)
        too_large = f"The document has {size / 1024**2:.1f} MB; Bedrock takes 50 MB: divide it"
        return Observation(
            etag=document["ETag"],
            version_id=document.get("VersionId"),
            size=size,
            last_modified=document["LastModified"].timestamp(),
            refusal=fault_of_uri(uri) or (too_large if size > MAX_DOCUMENT_BYTES else sidecar_fault),
            **sidecar,
        )

    def _try(self, uri: str) -> Observation | Exception:
        try:
            return self.observe(uri)
        except (ClientError, BotoCoreError, InvalidDocumentError) as error:
            return error

    def _sidecar(self, bucket: str, key: str) -> tuple[dict[str, Any], str | None]:
        """Return what an observation says about the sidecar, and why it cannot be used."""
        found = unless_absent(lambda: self._s3.get_object(Bucket=bucket, Key=key))
        if found is None:
            return {}, None
        observed = {
            "sidecar_etag": found["ETag"],
            "sidecar_version_id": found.get("VersionId"),
            "sidecar_last_modified": found["LastModified"].timestamp(),
        }
        with found["Body"] as stream:
            body = stream.read(MAX_SIDECAR_BYTES + 1)
        try:
            return {**observed, "attributes": read_sidecar(body, self._vector_store)}, None
        except InvalidDocumentError as error:
            return observed, f"The sidecar cannot be used: {error}"
