"""A custom transformation that puts contextual headers and those of tables before chunks, and adds their section.

Bedrock writes the chunks of each file as JSON objects into an intermediate bucket, invokes the function with their
keys, and embeds and stores the objects that the function returns.

Source: Amazon Bedrock User Guide, kb-custom-transformation (event, response, objects); bedrock-agent, shape
CustomTransformationConfiguration.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from botocore.exceptions import ClientError
from pydantic import BaseModel, Field, ValidationError, model_validator

from ragstack_common.core import clients
from ragstack_common.core.artefacts import document_of
from ragstack_common.core.errors import InvalidDocumentError, InvalidRequestError
from ragstack_common.core.telemetry import LOGGER, NO_METRICS, MetricSink
from ragstack_common.core.uris import s3_uri
from ragstack_common.filters.store_rules import S3_VECTORS_BYTES
from ragstack_common.settings.ingestion import BATCHES_PASSED_THROUGH, TRANSFORMED_CHUNKS_PREFIX
from ragstack_common.text import contextual_headers
from ragstack_common.text.positions import Position, section_of
from ragstack_common.text.sections import Sections
from ragstack_common.text.tables import TablesInChunks

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

NOT_TEXT: Final = ("IMAGE", "AUDIO", "VIDEO")
"""Kinds of content whose body is data. Source: bedrock-agent-runtime, shape RetrievalResultContentType."""


class TransformationEvent(BaseModel, frozen=True):
    """The event that Bedrock invokes the function with."""

    version: Literal["1.0"]
    bucket: str = Field(alias="bucketName", min_length=1)
    files: tuple[dict[str, Any], ...] = Field(alias="inputFiles")

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> "TransformationEvent":
        """Validate an event.

        Raises:
            InvalidRequestError: The event has another version or form; the message names each member.
        """
        try:
            return cls.model_validate(event)
        except ValidationError as error:
            message = f"This is not a custom transformation event, version 1.0: {_problems(error)}"
            raise InvalidRequestError(message) from None


class _Reference(BaseModel):
    """The entry of a batch in the event."""

    key: str = Field(min_length=1)


class _Content(BaseModel, extra="allow"):
    content_type: str = Field(default="", alias="contentType")
    body: str | None = Field(default=None, alias="contentBody")
    metadata: dict[str, Any] | None = Field(default=None, alias="contentMetadata")

    @property
    def is_text(self) -> bool:
        return not self.content_type.upper().startswith(NOT_TEXT)

    def add(self, metadata: dict[str, str | int], room: int) -> None:
        """Add metadata if all of the chunk's own then take at most *room* bytes."""
        extended = {**(self.metadata or {}), **metadata}
        if metadata and len(json.dumps(extended)) <= room:
            self.metadata = extended

    @model_validator(mode="after")
    def _has_text(self) -> Self:
        if self.is_text and self.body is None:
            raise ValueError("the text has no contentBody")
        return self


class _Batch(BaseModel, extra="allow"):
    """The chunks of one object in the intermediate bucket; unknown members are kept."""

    contents: list[_Content] = Field(alias="fileContents")


class ChunkTransformation:
    """Puts a contextual header and that of its table before every chunk, and its section into its metadata.

    The response names a batch in an unknown format as Bedrock wrote it, so that Bedrock indexes it without headers. The
    same event produces the same objects under the same keys, so that Bedrock can send it again.
    """

    def __init__(self, client: "S3Client | None" = None, *, metrics: MetricSink = NO_METRICS) -> None:
        self._client = client or clients.s3_client()
        self._metrics = metrics

    def transform(self, event: TransformationEvent) -> dict[str, Any]:
        """Write the chunks of every file with their headers; returns the response for Bedrock.

        Raises:
            ClientError: S3 failed for another reason than a missing object.
        """
        return {"outputFiles": [self._file(event.bucket, file) for file in event.files]}

    def _file(self, bucket: str, file: Mapping[str, Any]) -> dict[str, Any]:
        name, chunks, unchanged = document_of(_file_name(file)), 0, 0
        sections, tables = Sections(), TablesInChunks(is_csv=name.lower().endswith(".csv"))
        given = file.get("contentBatches")
        room = S3_VECTORS_BYTES - len(json.dumps(file.get("fileMetadata") or {}))
        batches: list[Any] = []
        for batch in given if isinstance(given, list) else ():
            try:
                key = _Reference.model_validate(batch).key
                chunks += self._write(bucket, key, name, sections, tables, room)
                batches.append({**batch, "key": f"{TRANSFORMED_CHUNKS_PREFIX}{key}"})
            except (InvalidDocumentError, ValidationError) as error:
                reason = _problems(error) if isinstance(error, ValidationError) else error
                LOGGER.error("a batch is passed through unchanged: %s", reason, extra={"file": name, "batch": batch})
                batches.append(batch)
                unchanged += 1
        if not isinstance(given, list):
            LOGGER.error("a file is passed through unchanged: it has no list contentBatches", extra={"file": name})
            unchanged = 1
        self._metrics.add_metric("ChunksGivenHeaders", "Count", chunks)
        self._metrics.add_metric(BATCHES_PASSED_THROUGH, "Count", unchanged)
        LOGGER.info("added headers to chunks", extra={"file": name, "batches": len(batches), "chunks": chunks})
        return {
            "originalFileLocation": file.get("originalFileLocation"),
            "fileMetadata": file.get("fileMetadata") or {},
            "contentBatches": batches if isinstance(given, list) else given,
        }

    def _write(self, bucket: str, key: str, name: str, sections: Sections, tables: TablesInChunks, room: int) -> int:
        """Write a batch with headers, and return their number; a chunk has *room* bytes for metadata of its own."""
        batch = self._read(bucket, key)
        chunks = 0
        for content in batch.contents:
            if content.is_text and content.body is not None:
                path, repeated = sections.path_over(content.body), tables.repeated_over(content.body)
                content.add(Position(section=section_of(sections.main_path)).own_metadata(), room)
                content.body = repeated + content.body
                if header := contextual_headers.compose(name, sections.title, path):
                    content.body = contextual_headers.prepend(header, content.body)
                    chunks += 1
        self._client.put_object(
            Bucket=bucket,
            Key=f"{TRANSFORMED_CHUNKS_PREFIX}{key}",
            Body=batch.model_dump_json(by_alias=True, exclude_unset=True).encode(),
            ContentType="application/json",
        )
        return chunks

    def _read(self, bucket: str, key: str) -> _Batch:
        try:
            return _Batch.model_validate_json(self._client.get_object(Bucket=bucket, Key=key)["Body"].read())
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") not in ("NoSuchKey", "404"):
                raise
            raise InvalidDocumentError(
                f"{s3_uri(bucket, key)} does not exist: start the ingestion job again"
            ) from error


def _problems(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
        for problem in error.errors(include_input=False, include_url=False)
    )


def _file_name(file: Mapping[str, Any]) -> str:
    """Return the file's S3 URI, URL or identifier; empty for an unknown kind of location."""
    location = file.get("originalFileLocation")
    if not isinstance(location, dict):
        return ""
    places = [location, *(place for place in location.values() if isinstance(place, dict))]
    found = (place.get(member) for place in places for member in ("uri", "url", "id"))
    return next((name for name in found if isinstance(name, str)), "")
