"""Contextual headers for the chunks of a knowledge base, as a transformation after chunking.

Bedrock writes the chunks of each file as JSON objects into an intermediate bucket, invokes the function with their
keys, and embeds and stores what the function wrote instead.

Source: Amazon Bedrock User Guide, "Use a custom transformation Lambda function to define how your data is ingested"
(kb-custom-transformation), for the event, the answer and the objects; bedrock-agent, CustomTransformationConfiguration,
for where it is set.
"""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from botocore.exceptions import ClientError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragstack_common import clients, contextual_headers
from ragstack_common.errors import InvalidDocumentError, InvalidRequestError
from ragstack_common.sections import Sections
from ragstack_common.settings import TRANSFORMED_CHUNKS_PREFIX
from ragstack_common.telemetry import LOGGER, NO_METRICS, MetricSink

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

NOT_TEXT: Final = ("IMAGE", "AUDIO", "VIDEO")
"""Kinds of content whose body is data. Source: bedrock-agent-runtime, shape RetrievalResultContentType."""

_MISSING: Final = ("NoSuchKey", "404")


class ContentBatch(BaseModel):
    """Where some chunks of a file are."""

    model_config = ConfigDict(frozen=True)

    key: str = Field(min_length=1)


class InputFile(BaseModel):
    """A file whose chunks are to be transformed."""

    model_config = ConfigDict(frozen=True)

    location: dict[str, Any] = Field(alias="originalFileLocation")
    metadata: dict[str, Any] | None = Field(default=None, alias="fileMetadata")
    batches: tuple[ContentBatch, ...] = Field(alias="contentBatches")

    @property
    def name(self) -> str:
        """The file's S3 URI, URL or identifier; empty for a kind of place that is not known."""
        places = [self.location, *(place for place in self.location.values() if isinstance(place, dict))]
        found = (place.get(member) for place in places for member in ("uri", "url", "id"))
        return next((name for name in found if isinstance(name, str)), "")


class TransformationEvent(BaseModel):
    """What Bedrock invokes the function with."""

    model_config = ConfigDict(frozen=True)

    version: Literal["1.0"]
    bucket: str = Field(alias="bucketName", min_length=1)
    files: tuple[InputFile, ...] = Field(alias="inputFiles")

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> "TransformationEvent":
        """Read an event.

        Raises:
            InvalidRequestError: It has another version or form; the message names each member.
        """
        try:
            return cls.model_validate(event)
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
                for problem in error.errors(include_input=False, include_url=False)
            )
            raise InvalidRequestError(f"This is no event of a custom transformation, version 1.0: {problems}") from None


class ChunkTransformation:
    """Puts a contextual header before the text of every chunk.

    The same event gives the same objects under the same keys, so that it may be delivered again.

    Args:
        client: For the intermediate bucket.
        metrics: Takes the count of chunks.
    """

    def __init__(self, client: "S3Client | None" = None, *, metrics: MetricSink = NO_METRICS) -> None:
        self._client = client or clients.s3_client()
        self._metrics = metrics

    def transform(self, event: TransformationEvent) -> dict[str, Any]:
        """Write the chunks of every file anew, one batch in memory at a time; returns Bedrock's answer.

        Raises:
            InvalidDocumentError: A batch is missing or unreadable. No file of the event counts as transformed.
            ClientError: S3 refuses.
        """
        return {"outputFiles": [self._file(event.bucket, file) for file in event.files]}

    def _file(self, bucket: str, file: InputFile) -> dict[str, Any]:
        sections = Sections()
        batches, chunks = [], 0
        for batch in file.batches:
            document = self._read(bucket, batch.key)
            for content in _text_contents(document, batch.key):
                body = content["contentBody"]
                path = sections.path_over(body)
                header = contextual_headers.compose(file.name, sections.title, path)
                if header:
                    content["contentBody"] = contextual_headers.prepend(header, body)
                    chunks += 1
            batches.append({"key": self._write(bucket, batch.key, document)})
        self._metrics.add_metric("ChunksGivenHeaders", "Count", chunks)
        LOGGER.info("gave chunks their headers", extra={"file": file.name, "batches": len(batches), "chunks": chunks})
        return {
            "originalFileLocation": file.location,
            "fileMetadata": file.metadata or {},
            "contentBatches": batches,
        }

    def _read(self, bucket: str, key: str) -> Any:
        try:
            data = self._client.get_object(Bucket=bucket, Key=key)["Body"].read()
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") not in _MISSING:
                raise
            raise InvalidDocumentError(f"The batch s3://{bucket}/{key} is not there: start the sync again") from error
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise InvalidDocumentError(f"The batch {key} is no JSON: {error}") from None

    def _write(self, bucket: str, key: str, document: Any) -> str:
        written = f"{TRANSFORMED_CHUNKS_PREFIX}{key}"
        self._client.put_object(
            Bucket=bucket, Key=written, Body=json.dumps(document).encode(), ContentType="application/json"
        )
        return written


def _text_contents(document: Any, key: str) -> Iterator[dict[str, Any]]:
    """The contents of a batch that are text, in order, to be changed in place."""
    contents = document.get("fileContents") if isinstance(document, dict) else None
    if not isinstance(contents, list):
        raise InvalidDocumentError(f"The batch {key} has no list fileContents")
    for number, content in enumerate(contents):
        if not isinstance(content, dict):
            raise InvalidDocumentError(f"fileContents[{number}] of the batch {key} is no object")
        if str(content.get("contentType", "")).upper().startswith(NOT_TEXT):
            continue
        if not isinstance(content.get("contentBody"), str):
            raise InvalidDocumentError(f"fileContents[{number}] of the batch {key} has no text contentBody")
        yield content
