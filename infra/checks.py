"""Checks, before the first deployment, of what would fail in a later stack."""

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

import botocore.session
from botocore.exceptions import UnknownRegionError

from infra.context_values import KnowledgeBaseKind
from infra.options import OptionError, Options
from infra.target import Target
from ragstack_common.settings.names import MANAGED_REGIONS

MAX_VARIABLES_BYTES: Final = 4096
"""Source: Lambda quotas, all environment variables of a function together."""

MIN_UNKNOWN_BYTES: Final = 10
"""The shortest value that only a deployment knows is an id of Bedrock."""

UNKNOWN_BYTES: Final[Mapping[str, int]] = {"_QUEUE_URL": 105, "_BUCKET": 52, "_TABLE": 50, "_ARN": 180}
"""Values that only a deployment knows, with the default prefix, by the ends of the names of their variables."""

BYTES_PER_KEY: Final = 18
"""The id of an API key, with what is around id and name in JSON."""

LARGE_BYTES: Final = 200
"""Variables that an error names; the settings that most deployments have take less."""

WITHOUT_WEB_ADAPTER: Final = frozenset({"me-south-1"})
"""Regions of the partition ``aws`` that lack version 30 for arm64. The partition ``aws-cn`` has it for x86_64 alone,
and the others lack it. Source: Lambda Web Adapter, Zip packages and its release pipeline."""


WITHOUT_SNAPSHOTS: Final = frozenset({"ap-east-2", "ap-southeast-6"})
"""Commercial Regions that lack SnapStart. Source: Lambda developer guide, snapstart, supported Regions."""


def check_region(options: Options, region: str | None) -> None:
    """Check what must be in the Region of the stacks; None, a Region that is not known, passes.

    Raises:
        OptionError: A resource that the deployer names is in another one, or the Region lacks managed knowledge bases,
            snapshots of functions, or the layer that streams answers, and the deployer names no copy.
    """
    if region is None or options.target is Target.LOCAL:
        return
    named = {
        "alarm_topic": options.alarm_topic,
        "api_certificate": options.api_certificate,
        "documents_bucket_key_arn": options.documents_bucket_key_arn,
        "kms_key_arn": options.kms_key_arn,
        "vector_index_arn": options.vector_index_arn,
        "web_acls": options.api_web_acl,
    }
    regions = {name: arn.split(":")[3] for name, arn in named.items() if arn}
    if options.user_pool:
        regions["user_pool"] = options.user_pool.partition("_")[0]
    for name, other in regions.items():
        if other != region:
            raise OptionError(f"{name} is in {other}, and the stacks are in {region}: name one in the same Region")
    if options.knowledge_base is KnowledgeBaseKind.MANAGED and region not in MANAGED_REGIONS:
        raise OptionError(
            f"Amazon Bedrock has no managed knowledge bases with direct ingestion in {region}: set AWS_REGION to one of"
            f" {', '.join(sorted(MANAGED_REGIONS))}, or use knowledge_base=s3_vectors"
        )
    if options.snap_start and (partition(region) not in ("aws", "aws-cn") or region in WITHOUT_SNAPSHOTS):
        raise OptionError(
            f"AWS Lambda has no SnapStart in {region}: leave snap_start out, or set AWS_REGION to another"
        )
    if options.web_adapter_layer:
        return
    if partition(region) != "aws" or region in WITHOUT_WEB_ADAPTER:
        raise OptionError(
            f"AWS publishes no Lambda Web Adapter for arm64 in {region}, which the function answers needs: publish its"
            " layer there yourself and give its ARN as web_adapter_layer, or set AWS_REGION to another Region"
        )


def check_variables(function: str, variables: Mapping[str, Any], api_keys: Collection[str] = ()) -> None:
    """Check the size of a function's environment. What only the deployment knows is estimated.

    The *api_keys* are the names of those that the function gets when their ids are known.

    Raises:
        OptionError: The environment is too large; the message names its largest variables.
    """
    sizes = {name: len(name) + _bytes(name, value) for name, value in variables.items()}
    if api_keys:
        sizes["API_KEYS"] = len("API_KEYS") + sum(len(name) + BYTES_PER_KEY for name in api_keys)
    if sum(sizes.values()) > MAX_VARIABLES_BYTES:
        named = ", ".join(f"{name} ({size:,} bytes)" for name, size in sizes.items() if size >= LARGE_BYTES)
        raise OptionError(
            f"the environment of the function {function} has about {sum(sizes.values()):,} bytes, and Lambda takes"
            f" {MAX_VARIABLES_BYTES:,}: shorten its largest variables, {named}"
        )


def _bytes(name: str, value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())
    return max(_min_bytes(value), *(size for end, size in UNKNOWN_BYTES.items() if name.endswith(end)), 0)


def _min_bytes(value: Any) -> int:
    """Return the minimum size of a value: its literal parts, and a little for each that CloudFormation fills in."""
    if isinstance(value, str):
        return len(value.encode())
    match value:
        case {"Fn::Join": [str(separator), list(parts)]}:
            joints = len(separator.encode()) * max(0, len(parts) - 1)
            return joints + sum(map(_min_bytes_of_part, parts))
        case dict():
            return MIN_UNKNOWN_BYTES
    return len(json.dumps(value))


def _min_bytes_of_part(part: Any) -> int:
    """Return the minimum size of a part: attributes of resources are ids or longer, but a Region can be short."""
    if isinstance(part, str):
        return len(part.encode())
    return 1 if "Ref" in part else MIN_UNKNOWN_BYTES


def partition(region: str) -> str:
    """Return the partition of a Region; ``aws`` for one that botocore does not know."""
    try:
        return str(botocore.session.get_session().get_partition_for_region(region))
    except UnknownRegionError:
        return "aws"
