"""Which objects of a bucket a data source reads, from its configuration.

Sources: bedrock-agent, shape S3DataSourceConfiguration; Amazon Bedrock User Guide, kb-managed-ds-s3, for the connector
S3 of managed knowledge bases.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from local_bedrock.reading import patterns
from local_bedrock.reading.sources import Object
from ragstack_common.core.uris import SIDECAR_SUFFIX, s3_uri, split_uri
from ragstack_common.reading import formats

DEFAULT_MAX_MEGABYTES: Final = "500"
"""Source: Amazon Bedrock User Guide, kb-managed-ds-s3, maxFileSizeInMegaBytes."""


class InvalidConnectorError(ValueError):
    """The parameters of a connector cannot be used."""


@dataclass(frozen=True)
class Selection:
    """Objects of one bucket.

    Attributes:
        inclusion_prefixes: Prefixes of keys; at least one.
        inclusion_patterns: One of them must match the whole key, if there are any.
        max_bytes: Larger objects are skipped.
        metadata_prefix: Prefix of the keys of sidecars; empty if they are next to their documents.
        is_managed: Whether the knowledge base is MANAGED, and skips unsupported files; otherwise they fail.
        access_file: S3 URI of the file with the access control lists of prefixes.
    """

    bucket: str
    inclusion_prefixes: Sequence[str] = ("",)
    exclusion_prefixes: Sequence[str] = ()
    inclusion_patterns: Sequence[str] = ()
    exclusion_patterns: Sequence[str] = ()
    max_bytes: float = math.inf
    metadata_prefix: str = ""
    is_managed: bool = False
    access_file: str | None = None

    @property
    def listed_prefixes(self) -> Sequence[str]:
        """The prefixes under which the documents and their sidecars are; none of them begins with another one."""
        prefixes = {*self.inclusion_prefixes, *([self.metadata_prefix] if self.metadata_prefix else [])}
        return [each for each in prefixes if not any(each.startswith(other) for other in prefixes - {each})]

    def included(self, uris: Iterable[str]) -> list[str]:
        """Return the documents that the filters admit.

        Raises:
            ListingFailed: The patterns take too long.
        """
        keys = {uri: split_uri(uri)[1] for uri in uris if uri != self.access_file}
        prefixed = {
            uri: key
            for uri, key in keys.items()
            if key.startswith(tuple(self.inclusion_prefixes)) and not key.startswith(tuple(self.exclusion_prefixes))
        }
        matching = patterns.matching(self.inclusion_patterns, self.exclusion_patterns, prefixed.values())
        return [uri for uri, key in prefixed.items() if key in matching]

    def skips(self, entry: Object) -> bool:
        """Whether a document that the filters admit is skipped without an error."""
        return entry.size > self.max_bytes or (self.is_managed and not formats.is_read_by_managed(entry.uri))

    def sidecar_of(self, uri: str) -> str:
        """Return the URI of a document's sidecar.

        Below a prefix of its own it has the whole key of the document, as in Amazon Kendra and Amazon Q Business.
        """
        return s3_uri(self.bucket, self.metadata_prefix + split_uri(uri)[1] + SIDECAR_SUFFIX)


def of_bucket(configuration: Mapping[str, Any]) -> Selection:
    """Read the ``s3Configuration`` of a self-managed knowledge base."""
    prefixes = (configuration.get("inclusionPrefixes") or [""])[:1]
    return Selection(configuration["bucketArn"].rpartition(":")[2], prefixes)


def of_connector(parameters: Mapping[str, Any]) -> Selection:
    """Read the parameters of a connector S3.

    Raises:
        InvalidConnectorError: A parameter is missing or invalid.
    """
    connection = _member(parameters, "connectionConfiguration", dict)
    if connection is None:
        raise InvalidConnectorError(_MISSING.format("connectionConfiguration"))
    bucket = _member(connection, "bucketName", str)
    if not bucket:
        raise InvalidConnectorError(_MISSING.format("bucketName"))
    filters = _member(parameters, "filterConfiguration", dict) or {}
    access = _member(parameters, "aclConfiguration", dict) or {}
    access_file = _member(access, "globalAccessControlListS3Uri", str)
    megabytes = _member(filters, "maxFileSizeInMegaBytes", str) or DEFAULT_MAX_MEGABYTES
    if not re.fullmatch(r"[0-9]{1,9}", megabytes):
        raise InvalidConnectorError(f"maxFileSizeInMegaBytes must be a number as a string, not {megabytes!r:.50}")
    return Selection(
        bucket,
        _texts(filters, "inclusionPrefixes") or ("",),
        _texts(filters, "exclusionPrefixes"),
        _patterns(filters, "inclusionPatterns"),
        _patterns(filters, "exclusionPatterns"),
        int(megabytes) * 1024**2,
        _member(parameters, "metadataFilesPrefix", str) or "",
        is_managed=True,
        access_file=access_file if parameters.get("aclEnabled") else None,
    )


_MISSING: Final = "Value at '{}' failed to satisfy constraint: Member must not be null"


def _member(given: Mapping[str, Any], name: str, kind: type) -> Any:
    value = given.get(name)
    if value is not None and not isinstance(value, kind):
        raise InvalidConnectorError(f"Value at '{name}' failed to satisfy constraint: Member must be of another type")
    return value


def _texts(filters: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = _member(filters, name, list) or []
    if not all(isinstance(each, str) for each in found):
        raise InvalidConnectorError(f"Value at '{name}' failed to satisfy constraint: Member must be a list of strings")
    return tuple(found)


def _patterns(filters: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = _texts(filters, name)
    try:
        for each in found:
            re.compile(each)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidConnectorError(f"A regular expression in {name} is not valid: {error}") from None
    return found
