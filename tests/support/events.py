"""Events as AWS sends them, from the samples in tests/events."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

from aws_lambda_powertools.utilities.typing import LambdaContext

REQUEST_ID = "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"
"""API Gateway's, of every request of :func:`api_event`."""

SAMPLES = Path(__file__).parent.parent / "events"


def sample(name: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((SAMPLES / f"{name}.json").read_text())
    return event


def s3_notification(*changes: tuple[str, str], bucket: str = "documents", name: str = "ObjectCreated:Put") -> str:
    """Write the body of a message about changes, each a key, quoted as S3 quotes it, and a sequencer."""
    body = json.loads(sample("sqs_s3_created")["Records"][0]["body"])
    records = []
    for key, sequencer in changes:
        record = deepcopy(body["Records"][0])
        record["eventName"] = name
        record["s3"]["bucket"]["name"] = bucket
        record["s3"]["object"] |= {"key": quote_plus(key, safe="/"), "sequencer": sequencer}
        records.append(record)
    return json.dumps({"Records": records})


def sqs_event(*bodies: str, receives: int = 1) -> dict[str, Any]:
    [template] = sample("sqs_s3_created")["Records"]
    return {
        "Records": [
            {
                **template,
                "messageId": f"message-{number}",
                "body": body,
                "attributes": {**template["attributes"], "ApproximateReceiveCount": str(receives)},
            }
            for number, body in enumerate(bodies)
        ]
    }


def api_event(method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
    """Write a request; a body that is no string is written as JSON."""
    event = sample("api_gateway_retrieve")
    text = body if body is None or isinstance(body, str) else json.dumps(body)
    return {**event, "httpMethod": method, "path": path, "body": text, **more}


class Context(LambdaContext):
    """The context of an invocation."""

    def __init__(self) -> None:
        self._function_name = "function"
        self._function_version = "1"
        self._invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:function"
        self._memory_limit_in_mb = 512
        self._aws_request_id = "52fdfc07-2182-154f-163f-5f0f9a621d72"
        self._log_group_name = "/aws/lambda/function"
        self._log_stream_name = "stream"
