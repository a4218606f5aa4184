"""The rest-json protocol, driven by botocore's service models: which operation, its input, its answer.

Source: https://smithy.io/2.0/aws/protocols/aws-restjson1-protocol.html
"""

from local_bedrock.wire.messages import (
    ERROR_TYPE_HEADER,
    REQUEST_ID_HEADER,
    HeadedAnswer,
    Request,
    Response,
)
from local_bedrock.wire.reading import read_input
from local_bedrock.wire.routing import SERVICES, Router
from local_bedrock.wire.writing import write_error, write_output

__all__ = [
    "ERROR_TYPE_HEADER",
    "REQUEST_ID_HEADER",
    "SERVICES",
    "HeadedAnswer",
    "Request",
    "Response",
    "Router",
    "read_input",
    "write_error",
    "write_output",
]
