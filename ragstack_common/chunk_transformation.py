"""A custom transformation that puts contextual headers before the chunks of a knowledge base.

Bedrock writes the chunks of each file as JSON objects into an intermediate bucket, invokes the function with their
keys, and embeds and stores the objects that the function returns.

Source: Amazon Bedrock User Guide, kb-custom-transformation (event, response, objects); bedrock-agent, shape
CustomTransformationConfiguration.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from botocore.exceptions import ClientError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragstack_common import clients, contextual_headers
from ragstack_common.config import BATCHES_PASSED_THROUGH, TRANSFORMED_CHUNKS_PREFIX
from ragstack_common.errors import InvalidDocumentError, InvalidRequestError
from ragstack_common.sections import Sections
from ragstack_common.telemetry import LOGGER, NO_METRICS, MetricSink

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

NOT_TEXT: Final = ("IMAGE", "AUDIO", "VIDEO")
"""Kinds of content whose body is data. Source: bedrock-agent-runtime, shape RetrievalResultContentType."""


class TransformationEvent(BaseModel):
    """The event that Bedrock invokes the function with."""

    model_config = ConfigDict(frozen=True)

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
            problems = "; ".join(
                f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
                for problem in error.errors(include_input=False, include_url=False)
            )
            raise InvalidRequestError(f"This is not a custom transformation event, version 1.0: {problems}") from None


class ChunkTransformation:
    """Puts a contextual header before the text of every chunk.

    The response names a batch in an unknown format as Bedrock wrote it, so that Bedrock indexes it without headers. The
    same event produces the same objects under the same keys, so that Bedrock can send it again.

    Args:
        client: For the intermediate bucket.
        metrics: Counts the chunks with headers, and the batches without.
    """

    def __init__(self, client: "S3Client | None" = None, *, metrics: MetricSink = NO_METRICS) -> None:
        self._client = client or clients.s3_client()
        self._metrics = metrics

    def transform(self, event: TransformationEvent) -> dict[str, Any]:
        """Write the chunks of every file with their headers; returns the response for Bedrock.

        Raises:
            ClientError: S3 refused, for another reason than a missing object.
        """
        return {"outputFiles": [self._file(event.bucket, file) for file in event.files]}

    def _file(self, bucket: str, file: Mapping[str, Any]) -> dict[str, Any]:
        name, sections, chunks, unchanged = _name_of(file), Sections(), 0, 0
        given = file.get("contentBatches")
        batches: Any = given
        if isinstance(given, list):
            batches = []
            for batch in given:
                try:
                    count, transformed = self._batch(bucket, batch, name, sections)
                except InvalidDocumentError as error:
                    extra = {"file": name, "batch": str(batch)[:500]}
                    LOGGER.error("a batch is passed through unchanged: %s", error, extra=extra)
                    count, transformed, unchanged = 0, batch, unchanged + 1
                batches.append(transformed)
                chunks += count
        else:
            LOGGER.error("a file is passed through unchanged: it has no list contentBatches", extra={"file": name})
            unchanged = 1
        self._metrics.add_metric("ChunksGivenHeaders", "Count", chunks)
        self._metrics.add_metric(BATCHES_PASSED_THROUGH, "Count", unchanged)
        counts = {"file": name, "batches": len(batches or ()), "chunks": chunks}
        LOGGER.info("added headers to chunks", extra=counts)
        return {
            "originalFileLocation": file.get("originalFileLocation"),
            "fileMetadata": file.get("fileMetadata") or {},
            "contentBatches": batches,
        }

    def _batch(self, bucket: str, batch: Any, name: str, sections: Sections) -> tuple[int, dict[str, Any]]:
        """Write a batch with headers; returns the number of headers and the batch for the response."""
        key = batch.get("key") if isinstance(batch, dict) else None
        if not isinstance(key, str) or not key:
            raise InvalidDocumentError("it has no key")
        document = self._read(bucket, key)
        chunks = 0
        for content in _text_contents(document):
            body = content["contentBody"]
            path = sections.path_over(body)
            header = contextual_headers.compose(name, sections.title, path)
            if header:
                content["contentBody"] = contextual_headers.prepend(header, body)
                chunks += 1
        written = f"{TRANSFORMED_CHUNKS_PREFIX}{key}"
        body = json.dumps(document).encode()
        self._client.put_object(Bucket=bucket, Key=written, Body=body, ContentType="application/json")
        return chunks, {**batch, "key": written}

    def _read(self, bucket: str, key: str) -> Any:
        try:
            data = self._client.get_object(Bucket=bucket, Key=key)["Body"].read()
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") not in ("NoSuchKey", "404"):
                raise
            raise InvalidDocumentError(f"s3://{bucket}/{key} does not exist: start the ingestion job again") from error
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise InvalidDocumentError(f"{key} is not JSON: {error}") from None


def _name_of(file: Mapping[str, Any]) -> str:
    """Return the file's S3 URI, URL or identifier; empty for an unknown kind of location."""
    location = file.get("originalFileLocation")
    if not isinstance(location, dict):
        return ""
    places = [location, *(place for place in location.values() if isinstance(place, dict))]
    found = (place.get(member) for place in places for member in ("uri", "url", "id"))
    return next((name for name in found if isinstance(name, str)), "")


def _text_contents(document: Any) -> list[dict[str, Any]]:
    """Return the contents of a batch that are text, in order; changing them changes the batch.

    Raises:
        InvalidDocumentError: The batch has another form.
    """
    contents = document.get("fileContents") if isinstance(document, dict) else None
    if not isinstance(contents, list):
        raise InvalidDocumentError("it has no list fileContents")
    texts = []
    for number, content in enumerate(contents):
        if not isinstance(content, dict):
            raise InvalidDocumentError(f"its fileContents[{number}] is not an object")
        if str(content.get("contentType", "")).upper().startswith(NOT_TEXT):
            continue
        if not isinstance(content.get("contentBody"), str):
            raise InvalidDocumentError(f"its fileContents[{number}] has no text contentBody")
        texts.append(content)
    return texts
