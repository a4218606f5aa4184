"""Where the stacks go, and what the local target leaves out."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Target(StrEnum):
    """Where the stacks are deployed."""

    AWS = "aws"
    LOCAL = "local"


LEFT_OUT_LOCALLY: Final = (
    "AWS::Bedrock::KnowledgeBase",
    "AWS::Bedrock::DataSource",
    "AWS::S3Vectors::VectorBucket",
    "AWS::S3Vectors::Index",
)
"""What the local CloudFormation lacks: the local Bedrock creates its knowledge base itself, through its API.

Their stack is left out as a whole, and with it the function for contextual headers: the local Bedrock composes them.
"""

LOCAL_VARIABLES: Final[Mapping[str, str]] = {"STATUS_FIRST_DELAY_SECONDS": "1"}
"""Settings that have another default there."""
