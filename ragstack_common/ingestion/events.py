"""What happened to objects in the documents bucket, read from S3's event notifications."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

from ragstack_common.documents import SIDECAR_SUFFIX, s3_uri
from ragstack_common.errors import InvalidDocumentError


@dataclass(frozen=True)
class DocumentEvent:
    """One change of one document.

    Attributes:
        bucket: The bucket's name.
        key: The document's key, decoded; for a change of a sidecar, the key of the document it describes.
        sequencer: Hexadecimal; orders the events of one object. Source: S3 event message structure.
        of_sidecar: Whether it was the sidecar that changed.
    """

    bucket: str
    key: str
    sequencer: str
    of_sidecar: bool

    @property
    def uri(self) -> str:
        """The document's S3 URI."""
        return s3_uri(self.bucket, self.key)


def parse_notification(message: Mapping[str, Any], body: str) -> list[DocumentEvent]:
    """Read a queue message that carries an S3 event notification.

    S3's test event, sent when notifications are set up, carries no change.

    Args:
        message: The message.
        body: Its text, for the error.

    Raises:
        InvalidDocumentError: The message is no such notification.
    """
    try:
        if message.get("Event") == "s3:TestEvent":
            return []
        return [event for record in message["Records"] if (event := _event(record)) is not None]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidDocumentError(f"The message is no S3 event notification: {body!r:.200}") from error


def _event(record: Mapping[str, Any]) -> DocumentEvent | None:
    s3 = record["s3"]
    # S3 quotes keys as in a form: a space arrives as a plus sign, a plus sign as %2B.
    key = unquote_plus(s3["object"]["key"])
    document = key.removesuffix(SIDECAR_SUFFIX)
    if not document or document.endswith("/"):
        return None  # a folder that the console made, or a sidecar of no document
    return DocumentEvent(
        bucket=s3["bucket"]["name"],
        key=document,
        sequencer=s3["object"].get("sequencer", ""),
        of_sidecar=document != key,
    )
