"""The function for documents, on moto's S3, DynamoDB and SQS."""

from ragstack_common.function import metrics

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Final

import pytest
from botocore.exceptions import EndpointConnectionError
from moto import mock_aws

from lambdas.documents import handler as documents
from lambdas.query import handler as query
from lambdas.viewer import handler as viewer
from ragstack_common.core.clients import cloudwatch_client, dynamodb_client, s3_client, sqs_client
from ragstack_common.http import routes
from ragstack_common.registry.catalogue import counted_under
from ragstack_common.registry.documents import DocumentRegistry, RecordChange
from ragstack_common.registry.records import SEARCHABLE, DocumentRecord, Observation, Status, Transition
from ragstack_common.services import view
from tests.support.aws_service import AwsService
from tests.support.events import Context, api_event
from tests.support.kept_account import KeptAccount
from tests.support.knowledge_base import KNOWLEDGE_BASE
from tests.support.registry_table import TABLE, create_table

BUCKET: Final = "documents"
REGION: Final = "eu-west-1"

AT: Final = 1_770_000_000.0
"""2026-02-02T02:40:00Z"""


@dataclass(frozen=True)
class Aws:
    """What the function sees of AWS, and what a test does to it."""

    s3: Any
    sqs: Any
    dynamodb: Any
    cloudwatch: Any
    jobs_url: str
    ingestion_url: str
    dead_letter_url: str
    status_url: str

    def put(self, key: str, body: str = "Text.") -> Observation:
        """Upload an object, as its event's reader will see it."""
        answer = self.s3.put_object(Bucket=BUCKET, Key=key, Body=body.encode())
        head = self.s3.head_object(Bucket=BUCKET, Key=key)
        return Observation(
            etag=answer["ETag"],
            version_id=answer["VersionId"],
            size=len(body),
            last_modified=head["LastModified"].timestamp(),
        )

    def upload(self, key: str, data: bytes) -> Observation:
        """Upload a file."""
        answer = self.s3.put_object(Bucket=BUCKET, Key=key, Body=data)
        return Observation(etag=answer["ETag"], version_id=answer["VersionId"], size=len(data))

    def keys(self) -> list[str]:
        """Name the objects that are there."""
        return [each["Key"] for each in self.s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]

    def delete_markers(self) -> int:
        return len(self.s3.list_object_versions(Bucket=BUCKET).get("DeleteMarkers", []))

    def record(self, key: str, status: Status, observed: Observation | None = None, **more: Any) -> DocumentRecord:
        """Have the registry know a document."""
        attributes: Mapping[str, Any] = observed.attributes if observed else {}
        record = DocumentRecord(
            f"s3://{BUCKET}/{key}",
            status=status,
            observed=observed or Observation(),
            counted=counted_under(attributes) if status in SEARCHABLE else (),
            history=(Transition(AT, Status.WAITING), Transition(AT + 1.5, status)),
            created_at=AT,
            received_at=AT,
            updated_at=AT + 1.5,
            **more,
        )
        assert DocumentRegistry(TABLE, self.dynamodb).write([RecordChange(DocumentRecord(record.uri), record)]) == set()
        return record

    @contextmanager
    def s3_out_of_reach(self, operation: str, after: int = 0) -> Iterator[None]:
        """Have calls of one operation fail as without a network, but for the first ones."""
        calls = count()

        def refuse(**_: Any) -> None:
            if next(calls) >= after:
                raise EndpointConnectionError(endpoint_url="https://s3")

        self.s3.meta.events.register(f"before-call.s3.{operation}", refuse)
        try:
            yield
        finally:
            self.s3.meta.events.unregister(f"before-call.s3.{operation}", refuse)

    def messages(self) -> list[Any]:
        """Receive the messages of the jobs queue."""
        answer = self.sqs.receive_message(QueueUrl=self.jobs_url, MaxNumberOfMessages=10)
        return [json.loads(message["Body"]) for message in answer.get("Messages", [])]


@pytest.fixture(scope="package")
def clients() -> Iterator[dict[str, Any]]:
    """The function's own clients, made once: their models are large. They talk to moto."""
    with mock_aws(), pytest.MonkeyPatch.context() as env:
        env.setenv("AWS_REGION", REGION)
        for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
            env.delenv(name, raising=False)
        made = (s3_client, sqs_client, dynamodb_client, cloudwatch_client)
        yield {each.__name__: each.__wrapped__() for each in made}


@pytest.fixture(scope="package")
def account(clients: dict[str, Any]) -> KeptAccount[list[str]]:
    """Its value is the addresses of the queues."""
    return KeptAccount()


@pytest.fixture
def aws(clients: dict[str, Any], account: KeptAccount[list[str]], monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    """A new function with an empty bucket and an empty registry."""
    s3, sqs, dynamodb, cloudwatch = clients.values()

    def make() -> list[str]:
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        create_table(dynamodb, TABLE)
        return [sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("jobs", "ingestion", "dead", "status")]

    urls = account.get(make)
    for name, client in clients.items():
        monkeypatch.setattr(routes, name, partial(_same, client))
    for name, value in {
        "REGISTRY_TABLE": TABLE,
        "DOCUMENTS_BUCKET": BUCKET,
        "JOBS_QUEUE_URL": urls[0],
        "INGESTION_QUEUE_URL": urls[1],
        "DEAD_LETTER_QUEUE_URL": urls[2],
        "STATUS_QUEUE_URL": urls[3],
        "POWERTOOLS_METRICS_NAMESPACE": "RAGStack",
        "POWERTOOLS_SERVICE_NAME": "documents",
    }.items():
        monkeypatch.setenv(name, value)
    metrics.namespace, metrics.service = "RAGStack", "documents"
    documents.service.cache_clear()
    documents.callers.cache_clear()
    yield Aws(s3, sqs, dynamodb, cloudwatch, *urls)
    documents.service.cache_clear()
    documents.callers.cache_clear()


def _same(client: Any) -> Any:
    return client


Call = Callable[..., tuple[int, Any]]


@pytest.fixture
def call(aws: Aws) -> Call:
    """Send a request to the function; parameters as API Gateway hands them over."""

    def send(method: str, path: str, body: Any = None, **parameters: str | list[str]) -> tuple[int, Any]:
        lists = {name: value if isinstance(value, list) else [value] for name, value in parameters.items()}
        event = api_event(
            method,
            path,
            body,
            queryStringParameters={name: values[-1] for name, values in lists.items()} or None,
            multiValueQueryStringParameters=lists or None,
        )
        answer = documents.handler(event, Context())
        return answer["statusCode"], json.loads(answer["body"])

    return send


@pytest.fixture
def ask(searches: AwsService, monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    """Send a request to the query function, which was just deployed; `searches` answers what it asks of Bedrock."""
    for name in ("DATA_SOURCE_ID", "MULTI_CORPUS_METADATA", "RETRIEVAL_ENGINE", "RETRIEVAL_ENGINE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME", searches.endpoint)
    monkeypatch.setenv("KNOWLEDGE_BASE_ID", KNOWLEDGE_BASE)
    monkeypatch.setattr(metrics, "namespace", "RAGStack")
    monkeypatch.setattr(metrics, "service", "query")

    def send(method: str, path: str, body: Any = None, /, **more: Any) -> tuple[int, Any]:
        answer = query.handler({**api_event(method, path, body), **more}, Context())
        return answer["statusCode"], json.loads(answer["body"])

    query.service.cache_clear()
    query.tools.cache_clear()
    query.callers.cache_clear()
    yield send
    query.service.cache_clear()
    query.tools.cache_clear()
    query.callers.cache_clear()


Show = Callable[..., tuple[int, Any]]


@pytest.fixture
def show(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Show]:
    """Store a file that is indexed, and ask for its view."""
    for name, client in (("s3_client", aws.s3), ("dynamodb_client", aws.dynamodb)):
        monkeypatch.setattr(view, name, partial(lambda made: made, client))
    monkeypatch.setattr(metrics, "namespace", "RAGStack")
    monkeypatch.setattr(metrics, "service", "viewer")

    def ask(key: str, data: bytes | None = None, **request: Any) -> tuple[int, Any]:
        if data is not None:
            aws.record(key, Status.INDEXED, aws.upload(key, data))
        body = {"uri": f"s3://{BUCKET}/{key}", **request}
        answer = viewer.handler(api_event("POST", "/api/view", body), Context())
        return answer["statusCode"], json.loads(answer["body"])

    viewer.viewer.cache_clear()
    viewer.callers.cache_clear()
    yield ask
    viewer.viewer.cache_clear()
    viewer.callers.cache_clear()


def error_of(answer: tuple[int, Any]) -> tuple[int, str]:
    """Return status and code of an error, which has the form that all of ours have."""
    status, body = answer
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "details", "requestId"}
    assert body["error"]["message"]
    assert "\n" not in body["error"]["message"]
    return status, body["error"]["code"]
