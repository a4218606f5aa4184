"""Attributes of documents: sidecar files, and attributes that come with the request.

What they may be is the same for the functions that submit documents, whose module decides it for both.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from local_bedrock.reading.formats import UnreadableDocument
from ragstack_common.config import S3_VECTORS
from ragstack_common.errors import InvalidDocumentError
from ragstack_common.ingestion import sidecars
from ragstack_common.ingestion.sidecars import RESERVED_PREFIX, Sidecar
from ragstack_common.registry.records import AttributeValue

SOURCE_URI: Final = RESERVED_PREFIX + "source-uri"
DATA_SOURCE_ID: Final = RESERVED_PREFIX + "data-source-id"


class InvalidAttributes(Exception):  # noqa: N818 - named as it is reported
    """Attributes cannot be used; the message says which and why."""


class UnusableMetadata(UnreadableDocument):
    """A document's metadata cannot be used; the document itself may be fine."""


def of_sidecar(data: bytes, name: str) -> Sidecar:
    """Read a sidecar file.

    Args:
        data: Its content.
        name: Its S3 URI, for the message.

    Raises:
        UnusableMetadata: It is too large, no JSON, or has an attribute of a wrong type.
    """
    try:
        return sidecars.parse_sidecar(data)
    except InvalidDocumentError as error:
        raise UnusableMetadata(f"The metadata file {name} cannot be used: {error}.") from None


def of_inline(attributes: Sequence[Mapping[str, Any]]) -> Sidecar:
    """Read the attributes of a request, which the service model has checked.

    Raises:
        InvalidAttributes: A value does not fit its type, or a name is reserved or stands twice.
    """
    read: dict[str, AttributeValue] = {}
    for attribute in attributes:
        key = attribute["key"]
        if key in read:
            raise InvalidAttributes(f"the attribute {key!r} stands there twice")
        try:
            sidecars.check_key(key)
            read[key] = sidecars.typed_value(key, attribute["value"])
        except InvalidDocumentError as error:
            raise InvalidAttributes(str(error)) from None
    return Sidecar(read)


def check_for_s3_vectors(attributes: Mapping[str, AttributeValue]) -> None:
    """Check what a knowledge base on S3 Vectors can keep of a document.

    Raises:
        UnusableMetadata: It is too much.
    """
    try:
        sidecars.check_size(attributes, S3_VECTORS)
    except InvalidDocumentError as error:
        raise UnusableMetadata(f"The metadata cannot be kept: {error}.") from None
