"""Contextual headers for the chunks of a knowledge base, as a transformation after chunking.

Bedrock writes the chunks of each file as JSON objects into an intermediate bucket, invokes the function with their
keys, and embeds and stores what the function wrote instead.

Source: Amazon Bedrock User Guide, "Use a custom transformation Lambda function to define how your data is ingested"
(kb-custom-transformation), for the event, the answer and the objects; bedrock-agent, CustomTransformationConfiguration,
for where it is set.
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

_MISSING: Final = ("NoSuchKey", "404")


class TransformationEvent(BaseModel):
    """What Bedrock invokes the function with."""

    model_config = ConfigDict(frozen=True)

    version: Literal["1.0"]
    bucket: str = Field(alias="bucketName", min_length=1)
    files: tuple[dict[str, Any], ...] = Field(alias="inputFiles")

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

    A batch of chunks in an unknown format is left unchanged: the answer names the batch that Bedrock wrote, so that
    Bedrock indexes it without headers. Other batches and files still get their headers.

    The same event gives the same objects under the same keys, so that it may be delivered again.

    Args:
        client: For the intermediate bucket.
        metrics: Takes the counts of chunks with headers and of batches without.
    """

    def __init__(self, client: "S3Client | None" = None, *, metrics: MetricSink = NO_METRICS) -> None:
        self._client = client or clients.s3_client()
        self._metrics = metrics

    def transform(self, event: TransformationEvent) -> dict[str, Any]:
        """Write the chunks of every file with their headers, one batch in memory at a time; returns Bedrock's answer.

        Raises:
            ClientError: S3 refuses, for another reason than a missing object.
        """
        return {"outputFiles": [self._file(event.bucket, file) for file in event.files]}

    def _file(self, bucket: str, file: Mapping[str, Any]) -> dict[str, Any]:
        name, sections, chunks, unchanged = _name_of(file), Sections(), 0, 0
        given = file.get("contentBatches")
        batches: list[Any] = []
        for batch in given if isinstance(given, list) else []:
            try:
                document = self._read(bucket, _key_of(batch))
                contents = _text_contents(document)
            except InvalidDocumentError as error:
                LOGGER.error(
                    "a batch is passed through unchanged: %s", error, extra={"file": name, "batch": str(batch)[:500]}
                )
                batches.append(batch)
                unchanged += 1
                continue
            for content in contents:
                body = content["contentBody"]
                path = sections.path_over(body)
                header = contextual_headers.compose(name, sections.title, path)
                if header:
                    content["contentBody"] = contextual_headers.prepend(header, body)
                    chunks += 1
            batches.append({**batch, "key": self._write(bucket, batch["key"], document)})
        if not isinstance(given, list):
            LOGGER.error("a file is passed through unchanged: it has no list contentBatches", extra={"file": name})
            unchanged += 1
        self._metrics.add_metric("ChunksGivenHeaders", "Count", chunks)
        self._metrics.add_metric(BATCHES_PASSED_THROUGH, "Count", unchanged)
        LOGGER.info("gave chunks their headers", extra={"file": name, "batches": len(batches), "chunks": chunks})
        return {
            "originalFileLocation": file.get("originalFileLocation"),
            "fileMetadata": file.get("fileMetadata") or {},
            "contentBatches": batches if isinstance(given, list) else given,
        }

    def _read(self, bucket: str, key: str) -> Any:
        try:
            data = self._client.get_object(Bucket=bucket, Key=key)["Body"].read()
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") not in _MISSING:
                raise
            raise InvalidDocumentError(f"s3://{bucket}/{key} does not exist: start the sync again") from error
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise InvalidDocumentError(f"{key} is not JSON: {error}") from None

    def _write(self, bucket: str, key: str, document: Any) -> str:
        written = f"{TRANSFORMED_CHUNKS_PREFIX}{key}"
        self._client.put_object(
            Bucket=bucket, Key=written, Body=json.dumps(document).encode(), ContentType="application/json"
        )
        return written


def _name_of(file: Mapping[str, Any]) -> str:
    """Return the file's S3 URI, URL or identifier; empty for an unknown kind of place."""
    location = file.get("originalFileLocation")
    if not isinstance(location, dict):
        return ""
    places = [location, *(place for place in location.values() if isinstance(place, dict))]
    found = (place.get(member) for place in places for member in ("uri", "url", "id"))
    return next((name for name in found if isinstance(name, str)), "")


def _key_of(batch: Any) -> str:
    key = batch.get("key") if isinstance(batch, dict) else None
    if not isinstance(key, str) or not key:
        raise InvalidDocumentError("it has no key")
    return key


def _text_contents(document: Any) -> list[dict[str, Any]]:
    """Return the contents of a batch that are text, in order, to be changed in place.

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
