"""The objects that a conversion makes of a document, next to it in the bucket: its text, words and attachments.

The text's object says what it was made of, so that the bucket alone decides whether it is up to date. A document that
could not be converted has an empty text, whose object says why.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from ragstack_common.core.artefacts import TEXT_SUFFIX, WORDS_SUFFIX, attachments_of, text_of
from ragstack_common.core.errors import DeliveryError
from ragstack_common.core.objects import unless_absent
from ragstack_common.core.uris import SIDECAR_SUFFIX
from ragstack_common.ingestion.bedrock_agent import batched
from ragstack_common.registry.receipts import READERS
from ragstack_common.registry.records import Conversion

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MAX_REFUSAL: Final = 1200
"""Bytes of a reason in JSON. The metadata of an object has at most 2 KB. Source: S3 user guide, object metadata."""

_KEY: Final = "ragstack"
_DELETED_AT_ONCE: Final = 1000
"""Source: S3 API reference, DeleteObjects."""


@dataclass(frozen=True)
class Inputs:
    """What a text was made of, or is to be made of.

    Attributes:
        etag: Entity tag of the document.
        sidecar: That of its sidecar, or an empty text; None if the text does not depend on it. Attachments inherit it.
        recognition: What recognizes text in pictures; None if the text does not depend on it.
        readers: Version of the readers.
    """

    etag: str
    sidecar: str | None = None
    recognition: str | None = None
    readers: int = READERS

    @classmethod
    def wanted(cls, etag: str, sidecar_etag: str | None, recognition: str) -> Self:
        """Return what a text that is up to date was made of."""
        return cls(etag, sidecar_etag or "", recognition)

    def serve(self, wanted: "Inputs") -> bool:
        """Whether what was made of these is up to date."""
        return (
            (self.etag, self.readers) == (wanted.etag, wanted.readers)
            and self.sidecar in (None, wanted.sidecar)
            and self.recognition in (None, wanted.recognition)
        )


@dataclass(frozen=True)
class Made:
    """A converted text in the bucket."""

    inputs: Inputs
    conversion: Conversion


def find(s3: "S3Client", bucket: str, key: str) -> Made | None:
    """Return the converted text of a document; None without one, or if its object does not say what it is."""
    head = unless_absent(lambda: s3.head_object(Bucket=bucket, Key=text_of(key)))
    if head is None:
        return None
    try:
        told = json.loads(head["Metadata"][_KEY])
        conversion = Conversion(head["ETag"], told.pop("refusal"), told.pop("has_words"), told["recognition"])
        return Made(Inputs(**told), conversion)
    except (KeyError, TypeError, ValueError):
        return None


def write(
    s3: "S3Client", bucket: str, key: str, inputs: Inputs, text: str, words: str | None, refusal: str | None
) -> None:
    """Write the converted text of a document, and before it the words that were recognized."""
    if words is not None:
        s3.put_object(
            Bucket=bucket, Key=key + WORDS_SUFFIX, Body=words.encode(), ContentType="application/json; charset=utf-8"
        )
    while refusal and len(json.dumps(refusal)) > MAX_REFUSAL:
        refusal = refusal[: len(refusal) * 9 // 10]
    told = {**asdict(inputs), "refusal": refusal, "has_words": words is not None}
    s3.put_object(
        Bucket=bucket,
        Key=text_of(key),
        Body=text.encode(),
        ContentType="text/markdown; charset=utf-8",
        Metadata={_KEY: json.dumps(told)},
    )


def give_sidecar(s3: "S3Client", bucket: str, key: str, etag: str | None) -> None:
    """Copy a document's sidecar, if it has one, to its converted text.

    Raises:
        ClientError: Among others, the sidecar has another entity tag by now.
    """
    if etag is None:
        s3.delete_object(Bucket=bucket, Key=text_of(key) + SIDECAR_SUFFIX)
        return
    source: Any = {"Bucket": bucket, "Key": key + SIDECAR_SUFFIX}
    s3.copy_object(Bucket=bucket, Key=text_of(key) + SIDECAR_SUFFIX, CopySource=source, CopySourceIfMatch=etag)


def remove(s3: "S3Client", bucket: str, key: str) -> None:
    """Delete everything that was made of a document."""
    delete(s3, bucket, [key + TEXT_SUFFIX, key + TEXT_SUFFIX + SIDECAR_SUFFIX, key + WORDS_SUFFIX])
    delete(s3, bucket, listed(s3, bucket, attachments_of(key)))


def listed(s3: "S3Client", bucket: str, prefix: str) -> list[str]:
    """Return the keys that begin with a prefix."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return [entry["Key"] for page in pages for entry in page.get("Contents", ())]


def delete(s3: "S3Client", bucket: str, keys: Iterable[str]) -> None:
    """Delete objects, whether they exist or not.

    Raises:
        DeliveryError: S3 kept one.
    """
    for batch in batched([*keys], _DELETED_AT_ONCE):
        objects: Any = [{"Key": key} for key in batch]
        answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
        if errors := answer.get("Errors"):
            raise DeliveryError(f"S3 kept {len(errors)} objects: {errors[0].get('Message')}")
