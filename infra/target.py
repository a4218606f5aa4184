"""Where the stacks go, and what the local target leaves out."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Target(StrEnum):
    """Where the stacks are deployed."""

    AWS = "aws"
    LOCAL = "local"


KNOWLEDGE_BASE_REGIONS: Final = frozenset(
    {
        *("ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1", "ap-south-2", "ap-southeast-1"),
        *("ap-southeast-2", "ca-central-1", "eu-central-1", "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2"),
        *("eu-west-1", "eu-west-2", "eu-west-3", "me-south-1", "sa-east-1", "us-east-1", "us-east-2", "us-west-2"),
        *("us-gov-east-1", "us-gov-west-1", "eusc-de-east-1"),
        *("eu-isoe-west-1", "us-iso-east-1", "us-iso-west-1", "us-isob-east-1", "us-isob-west-1"),
        *("us-isof-east-1", "us-isof-south-1"),
    }
)
"""Where CloudFormation has knowledge bases; all of these have S3 Vectors too.

Source: CloudFormation's resource schemas of each Region, as in cfn-lint 1.58.0 (October 2026).
"""

LEFT_OUT_LOCALLY: Final = (
    "AWS::Bedrock::KnowledgeBase",
    "AWS::Bedrock::DataSource",
    "AWS::S3Vectors::VectorBucket",
    "AWS::S3Vectors::Index",
    "Custom::FirstSync",
    "Custom::SettledRole",
    "Custom::TextSearch",
)
"""What the local CloudFormation lacks: the local Bedrock creates its knowledge base itself, through its API.

Their stack is left out as a whole, and with it the function for contextual headers: the local Bedrock composes them.

The local API Gateway buffers responses, and its functions cannot run the Lambda Web Adapter. The function ``answers``
has no layers there, and its routes are HTTP proxies to the server of answers that the local stack runs.
"""

LOCAL_SECONDS_PER_CALL: Final = 0.4
"""Seconds between two calls of one invocation, with its requests to the bucket and the registry
(benchmarks/ingestion.py): it limits the local processes to as many as the rate of calls needs."""

LOCAL_VARIABLES: Final[Mapping[str, str]] = {"SNAPSHOT_DELAY_SECONDS": "1", "STATUS_FIRST_DELAY_SECONDS": "1"}
"""Settings with another default on the local target."""

MANAGED_REQUESTS_PER_SECOND: Final = 10
"""Calls of Retrieve a second that a managed knowledge base sustains; others take twice as many.

Source: Bedrock user guide, kb-managed-quotas: 600 Retrieve requests a minute for each, in bursts of 25 a second.
"""

MANAGED_VARIABLES: Final[Mapping[str, str]] = {"RECEIPT_LOOKUPS_PER_SECOND": "4"}
"""Settings with another default for managed knowledge bases: the same share of the quota as for others."""
