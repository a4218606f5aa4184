"""Dead letters of a test's stack: put there, and looked at."""

import json
from typing import Any

from ragstack_common.documents import s3_uri
from ragstack_common.ingestion.messages import read_looks
from ragstack_common.registry.jobs import JobStore
from ragstack_local.connection import Connection


def uri(connection: Connection, name: str) -> str:
    return s3_uri(connection.bucket, f"{name}.md")


def put(connection: Connection, *names: str) -> list[str]:
    for name in names:
        connection.client("s3").put_object(Bucket=connection.bucket, Key=f"{name}.md", Body=name.encode())
    return [uri(connection, name) for name in names]


def bury(connection: Connection, *bodies: str, cause: str | None = None) -> list[str]:
    """Put messages into the dead-letter queue; returns their ids."""
    attributes: Any = {"Cause": {"DataType": "String", "StringValue": cause}} if cause else {}
    sqs, url = connection.client("sqs"), connection.dead_letter_queue_url
    send = sqs.send_message
    return [send(QueueUrl=url, MessageBody=body, MessageAttributes=attributes)["MessageId"] for body in bodies]


def drain(connection: Connection, url: str) -> list[str]:
    """Read all bodies that anybody could receive now."""
    sqs, bodies = connection.client("sqs"), []
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=600).get("Messages"):
        bodies += [message["Body"] for message in messages]
    return bodies


def sent(connection: Connection) -> list[str]:
    """Read which documents were sent to the ingestion queue, forced."""
    looks = [read_looks(body) for body in drain(connection, connection.queue_url)]
    assert all(seen.forced for found in looks for seen in found.values())
    return sorted(name for found in looks for name in found)


def sent_jobs(connection: Connection) -> list[dict[str, Any]]:
    """Read what was sent to the jobs queue."""
    return [json.loads(body) for body in drain(connection, connection.jobs_queue_url)]


def jobs_of(connection: Connection, **more: Any) -> JobStore:
    return JobStore(connection.registry_table, connection.client("dynamodb"), **more)
