"""The function `converter`: reads the text of documents whose format the knowledge base does not read, or reads badly.

It writes the text next to the document, and requests a check of the document, which then submits the text. The text's
object is written last and says what it was made of, so that the function may be killed at any point.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from ragstack_common.core.artefacts import MARK, TEXT_SUFFIX, attachments_of, mails_of
from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.core.objects import http_status, unless_absent
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.core.uris import MAX_URI_CHARACTERS, SIDECAR_SUFFIX, s3_uri, split_uri
from ragstack_common.ingestion import conversions
from ragstack_common.ingestion.conversions import Inputs
from ragstack_common.ingestion.messages import DeadLetter, QueueMessage, check, read_convert
from ragstack_common.ingestion.services import CALL_ERRORS, Services
from ragstack_common.reading import formats
from ragstack_common.reading.conversion import Attachment
from ragstack_common.reading.converting import Converted
from ragstack_common.reading.encodings import charset_of
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.ocr.words import written
from ragstack_common.settings.ingestion import OFF
from ragstack_common.settings.limits import MAX_DOCUMENT_BYTES

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

SECONDS_FOR_ONE: Final = 400.0
"""Time for one document at most: reading it takes up to 300 seconds."""

MAX_DEPTH: Final = 4
"""Mails within mails. A mail of ten levels with ten attachments each would make ten billion documents."""

MAX_ATTACHMENTS: Final = 500
"""Of one mail."""

Convert = Callable[[bytes, str, str | None], Converted]
"""Converts a file, given its name and the charset of its object; raises UnreadableDocument."""


class ConversionService:
    """Converts documents.

    Args:
        services: The clients and queues.
        convert: Reads a file.
    """

    def __init__(self, services: Services, convert: Convert) -> None:
        self._services, self._convert = services, convert
        self._s3: S3Client = services.s3

    def process(self, messages: Sequence[QueueMessage], seconds_left: Callable[[], float]) -> list[str]:
        """Convert the documents in messages of a conversion queue, while there is time for one more.

        Returns:
            The ids of the messages to redeliver.
        """
        again = []
        for message in messages:
            try:
                uri, is_large = read_convert(message.body)
            except InvalidDocumentError as error:
                LOGGER.error("message %s goes to the dead-letter queue: %s", message.message_id, error)
                self._services.dead_letters.send([DeadLetter(message.body, str(error))])
                continue
            queue = self._services.large_conversion_queue if is_large else self._services.conversion_queue
            try:
                if seconds_left() < SECONDS_FOR_ONE:
                    queue.give_back(message, 0)
                    again.append(message.message_id)
                    continue
                self._make(uri)
                self._services.ingestion_queue.send([check([uri], forced=False)])
            except CALL_ERRORS as error:
                LOGGER.warning("message %s will be redelivered: %s", message.message_id, error)
                queue.give_back(message)
                again.append(message.message_id)
        return again

    def _make(self, uri: str) -> None:
        """Make the text of a document, unless it is up to date or the document changes meanwhile."""
        bucket, key = split_uri(uri)
        sidecar = unless_absent(lambda: self._s3.get_object(Bucket=bucket, Key=key + SIDECAR_SUFFIX))
        attributes = None if sidecar is None else sidecar["Body"].read()
        found = unless_absent(lambda: self._s3.head_object(Bucket=bucket, Key=key))
        if found is None:
            return  # the check that follows deletes what was made of it
        sidecar_etag = None if sidecar is None else sidecar["ETag"]
        wanted = Inputs.wanted(found["ETag"], sidecar_etag, self._services.settings.recognition)
        made = conversions.find(self._s3, bucket, key)
        if made is not None and made.inputs.serve(wanted):
            return
        try:
            answer = self._s3.get_object(Bucket=bucket, Key=key, IfMatch=wanted.etag)
        except ClientError as error:
            if http_status(error) in (404, 412):
                return
            raise
        with answer["Body"] as body:
            data = body.read()
        try:
            converted = self._convert(data, key, charset_of(answer.get("ContentType")))
            self._check(key, converted)
        except UnreadableDocument as error:
            # What is off today may be on tomorrow.
            inputs = Inputs(wanted.etag, None, wanted.recognition)
            conversions.write(self._s3, bucket, key, inputs, "", None, str(error))
            return
        files = [each for each in converted.attachments if self._is_read(each)]
        if converted.attachments:
            self._attach(bucket, key, attributes, files)
        inputs = Inputs(
            wanted.etag,
            wanted.sidecar if files else None,
            wanted.recognition if converted.depends_on_recognition or converted.attachments else None,
        )
        words = written(converted.recognized) if converted.recognized else None
        conversions.write(self._s3, bucket, key, inputs, converted.text, words, None)
        self._services.metrics.add_metric("DocumentsConverted", "Count", 1)

    def _check(self, key: str, converted: Converted) -> None:
        size = len(converted.text.encode())
        if size > MAX_DOCUMENT_BYTES:
            raise UnreadableDocument(
                f"Its text has {size / 1024**2:.1f} MB; Bedrock takes {MAX_DOCUMENT_BYTES // 1024**2} MB: divide it"
            )
        if len(converted.attachments) > MAX_ATTACHMENTS:
            raise UnreadableDocument(
                f"The mail has {len(converted.attachments):,} attachments; {MAX_ATTACHMENTS} are read: divide it"
            )
        depth = len(mails_of(key))
        if converted.attachments and depth >= MAX_DEPTH:
            raise UnreadableDocument(f"It is a mail within {depth} mails: upload it by itself")

    def _is_read(self, attachment: Attachment) -> bool:
        """Whether an attachment becomes a document: calendars, keys and recordings would all be FAILED."""
        try:
            file_format = formats.of_content(attachment.data, attachment.name)
        except UnreadableDocument:
            return False
        return file_format not in formats.IMAGES or self._services.settings.recognition != OFF

    def _attach(self, bucket: str, key: str, attributes: bytes | None, files: Sequence[Attachment]) -> None:
        """Write the attachments of a mail with its attributes, and delete those that it no longer has."""
        folder = attachments_of(key)
        present = {*conversions.listed(self._s3, bucket, folder)}
        room = MAX_URI_CHARACTERS - len(s3_uri(bucket, folder))
        children = [folder + name for name in _names([each.name for each in files], room)]
        for child, attachment in zip(children, files, strict=True):
            sidecar = child + SIDECAR_SUFFIX
            # Before the attachment, which must not be indexed without its access label.
            if attributes is not None:
                self._put(bucket, sidecar, attributes, present)
            elif sidecar in present:
                conversions.delete(self._s3, bucket, [sidecar])
            self._put(bucket, child, attachment.data, present)
            present -= {child, sidecar}
        # What was made of an attachment goes with it.
        kept = tuple(child + MARK for child in children)
        conversions.delete(self._s3, bucket, [each for each in present if not each.startswith(kept)])
        LOGGER.info("%d attachments of a mail are documents", len(files), extra={"key": key})

    def _put(self, bucket: str, key: str, data: bytes, present: set[str]) -> None:
        """Write an object, unless it has these bytes: each write is a new version, which is indexed again."""
        digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
        if key in present:
            head = unless_absent(lambda: self._s3.head_object(Bucket=bucket, Key=key))
            if head is not None and head.get("Metadata", {}).get("md5") == digest:
                return
        self._s3.put_object(Bucket=bucket, Key=key, Body=data, Metadata={"md5": digest})


def _names(names: Sequence[str], room: int) -> list[str]:
    """Return the names of attachments, those that are too long for a URI shortened, with their number.

    Args:
        names: Each is unique.
        room: Characters that a URI has for them.
    """
    fitting = []
    for number, name in enumerate(names, 1):
        most = room if formats.is_read_by_bedrock(name) else room - len(TEXT_SUFFIX)
        stem, dot, suffix = name.rpartition(".")
        ending = f"~{number}{dot}{suffix}" if stem else f"~{number}"
        fitting.append(name if len(name) <= most else f"{(stem or name)[: max(0, most - len(ending))]}{ending}")
    return fitting
