"""A deployment in memory: the real handlers and services on moto, with an exact engine in place of Bedrock."""

import asyncio
import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from lambdas.documents import handler as documents_function
from lambdas.query import handler as query_function
from lambdas.viewer import handler as viewer_function
from ragstack_common.access.callers import Caller
from ragstack_common.access.identity import Callers, Verifier
from ragstack_common.access.people import People
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.answers.quote.extractive import ExtractiveProvider
from ragstack_common.core.clients import dynamodb_client, s3_client, sqs_client
from ragstack_common.core.errors import NotAuthenticatedError
from ragstack_common.filters import Filter, evaluate
from ragstack_common.http.asgi import create_app
from ragstack_common.http.mcp import McpEndpoint
from ragstack_common.http.route_table import DOCUMENTS, QUERY, ROUTES, VIEWER
from ragstack_common.ingestion.sidecars import write_sidecar
from ragstack_common.registry.catalogue import Catalogue, counted_under
from ragstack_common.registry.directory import DirectoryWriter
from ragstack_common.registry.documents import DocumentRegistry, RecordChange
from ragstack_common.registry.records import SEARCHABLE, DocumentRecord, Observation, Status, Transition
from ragstack_common.search import RetrievedChunk
from ragstack_common.search.engine import Engine
from ragstack_common.search.engines.found_store import store_of
from ragstack_common.search.inference import Vocabulary
from ragstack_common.search.tracing import TracingSettings, configure_tracing
from ragstack_common.search.wrappers.multislice import MultiSliceBackend
from ragstack_common.services import search
from ragstack_common.services.ask import AskService, unanswered_from_env
from ragstack_common.services.conversations import Conversations
from ragstack_common.services.documents import Documents
from ragstack_common.services.operations import ServiceOperations
from ragstack_common.services.search import QueryService
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.tools import retriever
from tests.support.events import Context, api_event
from tests.support.kept_account import KeptAccount
from tests.support.knowledge_base import KNOWLEDGE_BASE
from tests.support.registry_table import TABLE, create_table

BUCKET: Final = "documents"
SNAPSHOT: Final = "snapshot"
REGION: Final = "eu-west-1"
SOURCE_KEY: Final = "x-amz-bedrock-kb-source-uri"
AT: Final = 1_770_000_000.0

FUNCTIONS: Final = {DOCUMENTS: documents_function, QUERY: query_function, VIEWER: viewer_function}

ACCOUNT: Final = KeptAccount[list[str]]()
"""Its value is the addresses of the queues."""

VOLATILE: Final = frozenset(
    {
        *("milliseconds", "retrieval_ms", "total_ms", "first_token_ms", "execution_time", "timings", "seconds"),
        *("requestId", "last_modified", "expires_at", "fields"),
    }
)
"""Members that differ between two equal requests: times, ids of requests, and signatures over times."""


@dataclass(frozen=True)
class Document:
    """A document as the registry and the index know it.

    Attributes:
        key: Its key in the bucket.
        label: The label in the registry.
        text: Its chunks, divided by full stops.
        attributes: Without the label.
        status: The status in the registry.
        indexed_label: The label that the index still has; None for the registry's.
        is_indexed: Whether the index has it; by default if the status says so.
    """

    key: str
    label: str | None
    text: str = "Leave is five days."
    attributes: Mapping[str, Any] = field(default_factory=dict)
    status: Status = Status.INDEXED
    indexed_label: str | None = None
    is_indexed: bool | None = None

    @property
    def uri(self) -> str:
        return f"s3://{BUCKET}/{self.key}"

    @property
    def is_stale(self) -> bool:
        """Whether the index has what the registry no longer says."""
        return self.in_index and (self.status not in SEARCHABLE or self.indexed_label not in (None, self.label))

    @property
    def in_index(self) -> bool:
        return self.status in SEARCHABLE if self.is_indexed is None else self.is_indexed

    @property
    def etag(self) -> str:
        return f'"{hashlib.md5(self.text.encode()).hexdigest()}"'

    def labelled(self, attribute: str, label: str | None) -> dict[str, Any]:
        return {**self.attributes, **({} if label is None else {attribute: label})}

    def record(self, attribute: str) -> DocumentRecord:
        """Return the registry's record."""
        attributes = self.labelled(attribute, self.label)
        is_gone = self.status is Status.DELETED
        return DocumentRecord(
            self.uri,
            status=self.status,
            label=self.label,
            observed=Observation() if is_gone else Observation(self.etag, None, 10, AT, attributes=attributes),
            counted=counted_under(attributes, has_label=self.label is not None) if self.status in SEARCHABLE else (),
            history=(Transition(AT, Status.WAITING), Transition(AT + 1, self.status)),
            created_at=AT,
            received_at=AT,
            updated_at=AT + 1,
        )


class ExactIndex(Engine):
    """Scores each chunk by its own words alone, so that no score depends on other documents.

    Attributes:
        before_answer: Called after a search and before its answer.
    """

    name = "exact"
    max_top_k = 100

    def __init__(self, documents: Iterable[Document], attribute: str) -> None:
        super().__init__()
        self.before_answer: Callable[[], None] = lambda: None
        self._chunks = [
            RetrievedChunk(
                content=sentence.strip(),
                score=0.0,
                source=each.uri,
                chunk_id=f"{each.uri}#{number}",
                location={"type": "S3", "s3Location": {"uri": each.uri}},
                metadata={**each.labelled(attribute, each.indexed_label or each.label), SOURCE_KEY: each.uri},
            )
            for each in documents
            if each.in_index
            for number, sentence in enumerate(each.text.split("."))
            if sentence.strip()
        ]

    def _source_keys(self) -> Sequence[str]:
        return (SOURCE_KEY,)

    async def _find(self, query: str, count: int, filters: Filter | None) -> list[RetrievedChunk]:
        asked = {*query.lower().split()}
        scored = [
            each.model_copy(update={"score": score, "relevance": score})
            for each in self._chunks
            if filters is None or evaluate(filters, each.metadata)
            for score in [(1 + len(asked & {*each.content.lower().split()})) / (1 + len(asked))]
        ]
        self.before_answer()
        return sorted(scored, key=lambda each: (-each.score, str(each.chunk_id)))[:count]


class ClaimsAsTokens:
    """Takes JSON as a token that was verified."""

    def verify(self, token: str) -> Mapping[str, Any]:
        try:
            claims: Mapping[str, Any] = json.loads(token)
        except ValueError:
            raise NotAuthenticatedError("The token is not valid") from None
        return claims


class World:
    """One deployment.

    Attributes:
        index: What searches find.
        logs: Lines of the log at INFO and above, without audit events.
        audits: The audit events.
        answering: Answers questions; made with the first one.
    """

    def __init__(self, policy: AccessPolicy, documents: Sequence[Document], verifier: Verifier) -> None:
        self.policy = policy
        self.logs: list[str] = []
        self.audits: list[dict[str, Any]] = []
        self.dynamodb: Any = dynamodb_client()
        self.s3: Any = s3_client()
        self.registry = DocumentRegistry(TABLE, self.dynamodb)
        self.index = ExactIndex(documents, policy.attribute)
        self.engine = MultiSliceBackend(self.index, vocabulary=self._vocabulary)
        self._verifier = verifier
        self.answering: AskService | None = None

    def add(self, *documents: Document) -> None:
        """Write documents to bucket and registry; the index does not change."""
        attribute = self.policy.attribute
        assert not self.registry.write(
            [RecordChange(DocumentRecord(each.uri), each.record(attribute)) for each in documents]
        )
        for each in documents:
            if each.status is not Status.DELETED:
                self.s3.put_object(Bucket=BUCKET, Key=each.key, Body=each.text.encode())
                sidecar = write_sidecar(each.labelled(attribute, each.label))
                self.s3.put_object(Bucket=BUCKET, Key=f"{each.key}.metadata.json", Body=sidecar)

    def relabel(self, key: str, label: str | None, status: Status = Status.INDEXED) -> None:
        """Change the label or the status in the registry alone."""
        before = self.registry.read([f"s3://{BUCKET}/{key}"])[f"s3://{BUCKET}/{key}"]
        document = Document(key, label, attributes=before.observed.attributes, status=status)
        assert not self.registry.write([RecordChange(before, document.record(self.policy.attribute))])

    def upload_again(self, key: str) -> None:
        """Change the document's version in the registry alone."""
        before = self.registry.read([f"s3://{BUCKET}/{key}"])[f"s3://{BUCKET}/{key}"]
        observed = replace(before.observed, etag='"new"', last_modified=time.time() + 1)
        assert not self.registry.write([RecordChange(before, replace(before, observed=observed))])

    def searches(self) -> QueryService:
        return query_function.service()

    def answers(self) -> AskService:
        if self.answering is None:
            self.answering = AskService(
                AnswerSettings(),
                self.searches(),
                ExtractiveProvider(),
                gaps=unanswered_from_env(os.environ, TABLE),
                conversations=self.conversations(),
            )
        return self.answering

    def conversations(self) -> Conversations:
        return Conversations.from_env(os.environ, self.searches().guard, TABLE, self.dynamodb)

    def restart(self) -> None:
        """Have the functions read their environment again."""
        _forget()
        self.answering = None

    def call(self, caller: Caller, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
        """Send a request of a caller through the function that API Gateway chooses."""
        event = api_event(
            method,
            path,
            body,
            queryStringParameters=query or None,
            multiValueQueryStringParameters={name: [value] for name, value in query.items()} or None,
        )
        event["requestContext"] = {"requestId": "r", "authorizer": {"claims": json.dumps(claims_of(caller))}}
        name = next(each.function for each in ROUTES.values() if re.fullmatch(re.sub("{.+}", "[^/]+", each.path), path))
        answer = FUNCTIONS[name].handler(event, Context())
        return answer["statusCode"], json.loads(answer["body"])

    def post(self, caller: Caller, path: str, body: Any) -> tuple[int, Any]:
        """Send a request of a caller to the server of answers, with a bearer token."""

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.application())
            async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
                return await client.post(path, json=body, headers=headers_of(caller))

        answer = asyncio.run(send())
        is_stream = answer.headers["content-type"].startswith("text/event-stream")
        return answer.status_code, events_of(answer.text) if is_stream else answer.json()

    def tool(self, caller: Caller, name: str, **arguments: Any) -> tuple[int, Any]:
        """Call a tool of the Model Context Protocol."""
        params = {"name": name, "arguments": arguments}
        return self.post(caller, "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})

    def application(self, *, is_behind_gateway: bool = False) -> Any:
        """Return the server of answers."""
        callers = Callers.from_env(os.environ, self._verifier, note=People.note)
        documents = Documents.from_env(os.environ)

        def operations(caller: Caller) -> ServiceOperations:
            return ServiceOperations(
                caller, query_function.service, self.answers, lambda: documents, query_function.tools
            )

        return create_app(
            self.answers,
            lambda: callers,
            mcp=lambda: McpEndpoint(operations, is_local=False),
            is_behind_gateway=is_behind_gateway,
        )

    async def _vocabulary(self) -> Vocabulary | None:
        """Return the values of all documents, as the snapshot has them."""
        shared = Catalogue(self.dynamodb, TABLE).shared_values((), 1000)
        return Vocabulary(shared.values, shared.documents) if shared.documents else None


def claims_of(caller: Caller) -> dict[str, Any]:
    """Return the claims of a token from which the caller is made."""
    groups = [name.removeprefix("group:") for name in caller.principals if name.startswith("group:")]
    return {"sub": caller.name.removeprefix("user:"), "groups": sorted(groups)}


def headers_of(caller: Caller) -> dict[str, str]:
    accept = "application/json, text/event-stream"
    return {"Authorization": f"Bearer {json.dumps(claims_of(caller))}", "Accept": accept}


def user(name: str, *groups: str) -> Caller:
    """Return a caller of some groups."""
    return Caller(f"user:{name}", frozenset({"everyone", f"user:{name}", *(f"group:{each}" for each in groups)}))


def events_of(stream: str) -> list[Any]:
    """Read the events of a stream."""
    blocks = [block for block in stream.split("\n\n") if block and not block.startswith(":")]
    found = []
    for block in blocks:
        name, data = block.split("\n", 1)
        found.append([name.removeprefix("event: "), json.loads(data.removeprefix("data: "))])
    return found


def stable(value: Any) -> Any:
    """Return an answer without what differs between two equal requests."""
    if isinstance(value, dict):
        return {name: stable(each) for name, each in value.items() if name not in VOLATILE}
    return [*map(stable, value)] if isinstance(value, list | tuple) else value


class _Log(logging.Handler):
    def __init__(self, world: World) -> None:
        super().__init__(logging.INFO)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, "audit"):
            self._world.audits.append(record.audit)
            return
        extra = {name: getattr(record, name) for name in ("corpora",) if hasattr(record, name)}
        self._world.logs.append(f"{record.levelname} {record.getMessage()} {extra}")


@contextmanager
def deployed(
    folder: Path,
    policy: AccessPolicy,
    documents: Sequence[Document],
    *,
    verifier: Verifier | None = None,
    **environment: str,
) -> Iterator[World]:
    """Deploy on an account that holds these documents and nothing else, within ``mock_aws``."""
    world = World(policy, documents, verifier or ClaimsAsTokens())
    urls = ACCOUNT.get(lambda: _filled(world, documents), (policy.attribute, [*documents]))
    file = folder / "access.json"
    file.write_text(policy.model_dump_json())
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in {
            "ACCESS_FILE": str(file),
            "API_AUTH": "oidc",
            "OIDC_ISSUER": "https://issuer.example",
            "OIDC_AUDIENCE": "ragstack",
            "REGISTRY_TABLE": TABLE,
            "DOCUMENTS_BUCKET": BUCKET,
            "SNAPSHOT_BUCKET": SNAPSHOT,
            "JOBS_QUEUE_URL": urls[0],
            "INGESTION_QUEUE_URL": urls[1],
            "DEAD_LETTER_QUEUE_URL": urls[2],
            "KNOWLEDGE_BASE_ID": KNOWLEDGE_BASE,
            "RAGSTACK_TRACE_CONTENT": "true",
            **environment,
        }.items():
            patch.setenv(name, value)
        for name, function in FUNCTIONS.items():
            patch.setattr(function.metrics, "namespace", "RAGStack")
            patch.setattr(function.metrics, "service", name)
        _forget()
        stack.callback(_forget)
        patch.setattr(search, "make_engine", lambda *_: world.engine)
        patch.setattr(retriever, "create_retrieval_backend", lambda _: world.index)
        logger = logging.getLogger("ragstack")
        handler, level = _Log(world), logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        stack.callback(logger.setLevel, level)
        stack.callback(logger.removeHandler, handler)
        yield world


def _filled(world: World, documents: Sequence[Document]) -> list[str]:
    world.s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    create_table(world.dynamodb, TABLE)
    sqs = sqs_client()
    urls = [sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("jobs", "ingestion", "dead")]
    world.add(*documents)
    world.s3.create_bucket(Bucket=SNAPSHOT, CreateBucketConfiguration={"LocationConstraint": REGION})
    DirectoryWriter(
        world.dynamodb, TABLE, world.s3, SNAPSHOT, world.registry.scan, world.registry.read, (world.policy.attribute,)
    ).write()
    return urls


def _forget() -> None:
    configure_tracing(TracingSettings())
    for each in (
        *(documents_function.service, documents_function.callers),
        *(query_function.service, query_function.callers, query_function.tools, query_function.explanations),
        query_function.judgment_export,
        *(viewer_function.viewer, viewer_function.callers, store_of),
    ):
        each.cache_clear()
