"""The functions: their settings, their permissions and their triggers."""

import math
from dataclasses import dataclass
from typing import Final

from aws_cdk import ArnFormat, Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.acknowledgements import acknowledge
from infra.alarms import own_metric, raise_alarm, watch_service
from infra.constructs.knowledge_base import FOLLOW, INGEST, RECONCILE, REMOVE, SEARCH, KnowledgeBaseReference
from infra.constructs.python_function import PythonFunction, shared_layer
from infra.constructs.queues import (
    INGESTION_TIMEOUT_SECONDS,
    RECEIPTS_TIMEOUT_SECONDS,
    RECONCILE_TIMEOUT_SECONDS,
    DeadLetters,
    WorkQueue,
)
from infra.constructs.storage import (
    DELETE,
    JOBS,
    LIST,
    PUT,
    READ,
    SCAN,
    UPDATE,
    DocumentRegistry,
    DocumentsBucket,
    SnapshotBucket,
)
from infra.constructs.user_pool import Issuer
from infra.context_types import OFF
from infra.engine import grant_model
from infra.layers import VIEWER, extra_layer
from infra.options import Options
from infra.target import Target
from ragstack_common.core.uris import SIDECAR_SUFFIX
from ragstack_common.registry.table import ACCESS, BUDGET, CATALOGUE, DOCUMENT, GATE, JUDGMENT, RATE, SNAPSHOT
from ragstack_common.settings.access import AccessSettings
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.settings.base import Settings
from ragstack_common.settings.ingestion import (
    JOBS_NOT_COMPLETE,
    DocumentApiSettings,
    DocumentSettings,
    IngestionSettings,
    ReconcileSettings,
    ViewerSettings,
)
from ragstack_common.settings.retriever_tool import RetrieverToolSettings
from ragstack_common.settings.search import QuerySettings
from ragstack_common.settings.tracing import TraceSettings

API_MEMORY_MB: Final = 1024
"""Processor time comes with memory, and a cold start is mostly imports."""

COLD_START_SECONDS: Final = 5
"""Time that a first request may take in addition to its search."""

WEB_ADAPTER: Final = "arn:aws:lambda:{region}:753240598075:layer:LambdaAdapterLayerArm64:30"
"""Version 1.1.0. Source: Lambda Web Adapter, README, Zip packages."""

WEB_ADAPTER_ENVIRONMENT: Final = {
    "AWS_LAMBDA_EXEC_WRAPPER": "/opt/bootstrap",
    "AWS_LWA_INVOKE_MODE": "response_stream",
    "AWS_LWA_PORT": "8080",
    "AWS_LWA_READINESS_CHECK_PATH": "/health",
}
"""Source: Lambda Web Adapter, environment variables."""


@dataclass(frozen=True)
class IngestionPath:
    """The resources that the functions share.

    Attributes:
        changes: Events of the bucket, and requests to look at documents.
        status: Documents that are being indexed.
        receipts: Indexed documents whose files are compared with the index.
        jobs: Reconciliations and synchronisations.
        bus: Where outcomes are published.
    """

    documents: DocumentsBucket
    registry: DocumentRegistry
    snapshot: SnapshotBucket
    knowledge_base: KnowledgeBaseReference
    changes: WorkQueue
    status: WorkQueue
    receipts: WorkQueue
    jobs: WorkQueue
    dead_letters: DeadLetters
    bus: events.IEventBus

    def environment(self, settings: type[Settings]) -> dict[str, str]:
        """Return the variables of these settings that only the stacks know."""
        known = {
            "KNOWLEDGE_BASE_ID": self.knowledge_base.knowledge_base_id,
            "DATA_SOURCE_ID": self.knowledge_base.data_source_id,
            "VECTOR_STORE": self.knowledge_base.vector_store,
            "DOCUMENTS_BUCKET": self.documents.bucket.bucket_name,
            "REGISTRY_TABLE": self.registry.table.table_name,
            "SNAPSHOT_BUCKET": self.snapshot.bucket.bucket_name,
            "INGESTION_QUEUE_URL": self.changes.queue.queue_url,
            "STATUS_QUEUE_URL": self.status.queue.queue_url,
            "RECEIPTS_QUEUE_URL": self.receipts.queue.queue_url,
            "JOBS_QUEUE_URL": self.jobs.queue.queue_url,
            "DEAD_LETTER_QUEUE_URL": self.dead_letters.queue.queue_url,
            "EVENT_BUS_NAME": self.bus.event_bus_name,
        }
        if self.knowledge_base.tenants:
            known["TENANT_KNOWLEDGE_BASES"] = self.knowledge_base.tenant_ids
        return {name: known[name] for name in settings.variables() if name in known}


def query_function(scope: Construct, path: IngestionPath, options: Options, issuer: Issuer | None) -> lambda_.Function:
    """Create the function that searches the knowledge base, or the engine that the deployer chose."""
    own = Construct(scope, "Query")
    function = PythonFunction(
        own,
        "Query",
        consequence="Until it works again, searches fail with 5xx.",
        description="Searches the knowledge base",
        environment=_search_environment(path, options, issuer),
        folder="query",
        memory_mb=API_MEMORY_MB,
        options=options,
        reads_access=True,
        searches=True,
        settings=[QuerySettings, RetrieverToolSettings, TraceSettings, AccessSettings],
        timeout_seconds=math.ceil(options.query.timeout_seconds) + COLD_START_SECONDS,
    ).function
    _grant_search(function, path, options)
    path.documents.grant(function, ["s3:GetObject"], "Callers may ask why any document is not found")
    path.registry.grant(function, READ, (ACCESS, f"{DOCUMENT}#*"))
    path.registry.grant(function, LIST, (JUDGMENT, f"{JUDGMENT}#*"))
    path.registry.grant_names(function)
    watch_service(own, service="query", options=options, searches=True)
    return function


def answers_function(
    scope: Construct, path: IngestionPath, options: Options, issuer: Issuer | None
) -> lambda_.Function:
    """Create the function that answers questions: a web server behind the Lambda Web Adapter, which streams.

    The local stack runs the same server next to its API Gateway, which cannot stream, with the variables of this
    function.
    """
    own = Construct(scope, "Answers")
    answers = options.answers
    function = PythonFunction(
        own,
        "Answers",
        consequence="Until it works again, questions are not answered.",
        description="Answers questions from the knowledge base",
        environment=_search_environment(path, options, issuer)
        | path.environment(DocumentSettings)
        | WEB_ADAPTER_ENVIRONMENT,
        folder="answers",
        handler="run.sh",
        layers=_answer_layers(own, options),
        memory_mb=API_MEMORY_MB,
        options=options,
        reads_access=True,
        reserved_concurrency=options.answers_concurrency,
        searches=True,
        settings=[QuerySettings, AnswerSettings, RetrieverToolSettings, TraceSettings, AccessSettings],
        timeout_seconds=math.ceil(answers.answer_timeout_seconds) + COLD_START_SECONDS,
    ).function
    _grant_search(function, path, options)
    path.documents.grant(function, ["s3:GetObject"], "Callers may ask for the status of any document")
    path.registry.grant(function, READ)
    path.registry.grant_names(function)
    if options.access_settings.questions_per_day:
        path.registry.grant(function, [UPDATE], [f"{BUDGET}#*"])
    if options.target is Target.AWS:
        for model in filter(None, (answers.answer_model, answers.answer_fallback_model, answers.support_model)):
            # Source: service authorization reference, Converse and ConverseStream.
            grant_model(function, model, ("bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"))
    watch_service(own, service="answers", options=options, searches=True, answers=True)
    if answers.answer_guardrail:
        guardrail = answers.answer_guardrail.rpartition(":")[0]
        named = Stack.of(scope).format_arn(service="bedrock", resource="guardrail", resource_name=guardrail)
        arn = guardrail if guardrail.startswith("arn:") else named
        iam.Grant.add_to_principal(actions=["bedrock:ApplyGuardrail"], grantee=function, resource_arns=[arn])
    return function


def _answer_layers(scope: Construct, options: Options) -> list[lambda_.ILayerVersion]:
    if options.target is Target.LOCAL:
        return []
    arn = options.web_adapter_layer or WEB_ADAPTER.format(region=Stack.of(scope).region)
    return [
        _packages_layer(Stack.of(scope), options),
        lambda_.LayerVersion.from_layer_version_arn(scope, "WebAdapterLayer", arn),
    ]


def _packages_layer(stack: Stack, options: Options) -> lambda_.LayerVersion:
    """Return the layer of the packages that answer over HTTP, and verify tokens."""
    return shared_layer(stack, "PackagesLayer", options.answers_layer or extra_layer("answers", options.target))


def _search_environment(path: IngestionPath, options: Options, issuer: Issuer | None) -> dict[str, str]:
    known = path.environment(QuerySettings)
    del known["DATA_SOURCE_ID"]  # a search of all data sources needs no filter
    return known | _access_environment(options, issuer)


def _access_environment(options: Options, issuer: Issuer | None) -> dict[str, str]:
    tokens = {} if issuer is None else {"OIDC_ISSUER": issuer.url, "OIDC_AUDIENCE": issuer.audience}
    return {"API_AUTH": ",".join(options.auth)} | tokens


def authorizer_function(scope: Construct, options: Options, issuer: Issuer) -> lambda_.Function:
    """Create the function that verifies the tokens of people for API Gateway."""
    own = Construct(scope, "Authorizer")
    function = PythonFunction(
        own,
        "Authorizer",
        consequence="Until it works again, nobody who signed in gets an answer.",
        description="Verifies the tokens of people",
        environment=_access_environment(options, issuer),
        # API Gateway answers with 401 only if the function fails.
        fails_on_purpose=True,
        folder="authorizer",
        layers=[_packages_layer(Stack.of(scope), options)],
        memory_mb=512,
        options=options,
        reads_access=True,
        # Three attempts to find the issuer's keys, and one to fetch them.
        timeout_seconds=25,
    ).function
    watch_service(own, service="authorizer", options=options)
    return function


def _grant_search(function: lambda_.Function, path: IngestionPath, options: Options) -> None:
    path.knowledge_base.grant(function, SEARCH)
    of_labels = [f"{CATALOGUE}#*"] if options.access_file else []
    path.registry.grant(function, LIST, [CATALOGUE, *of_labels, ACCESS])
    _grant_access_control(function, path, options)
    path.snapshot.grant(function, "s3:GetObject")
    for engine in options.engines:
        engine.grant(function, Stack.of(function))
    if secret := options.retriever_tool.milvus_secret:
        iam.Grant.add_to_principal(actions=["secretsmanager:GetSecretValue"], grantee=function, resource_arns=[secret])


def _grant_access_control(function: lambda_.Function, path: IngestionPath, options: Options) -> None:
    """Allow a function to put audit events on the deployer's bus, and to check for labels without an access file."""
    if options.access_file is None:
        path.registry.grant_labels(function)
    if name := options.access_settings.audit_bus:
        bus = Stack.of(function).format_arn(service="events", resource="event-bus", resource_name=name)
        iam.Grant.add_to_principal(actions=["events:PutEvents"], grantee=function, resource_arns=[bus])


def documents_function(
    scope: Construct, path: IngestionPath, options: Options, issuer: Issuer | None
) -> lambda_.Function:
    """Create the function that signs uploads, lists and deletes documents, starts jobs and replays failures."""
    own = Construct(scope, "Documents")
    function = PythonFunction(
        own,
        "Documents",
        consequence="Until it works again, uploads, deletions and lists of documents fail.",
        description="Answers requests about documents, ingestion jobs and failures",
        environment=path.environment(DocumentApiSettings) | _access_environment(options, issuer),
        folder="documents",
        memory_mb=API_MEMORY_MB,
        options=options,
        reads_access=True,
        settings=[DocumentApiSettings, AccessSettings],
        # The timeout of API Gateway.
        timeout_seconds=29,
    ).function
    # A signed upload has the permissions of the function that signed it.
    object_actions = ("s3:DeleteObject", "s3:GetObject", "s3:PutObject")
    path.documents.grant(function, object_actions, "Callers upload and delete any document")
    path.registry.grant(function, READ)
    path.registry.grant(function, LIST)
    path.registry.grant(function, [PUT, UPDATE, DELETE], (*JOBS, JUDGMENT, f"{JUDGMENT}#*"))
    if options.access_file:
        path.registry.grant(function, [PUT, UPDATE, DELETE], [ACCESS])
    _grant_access_control(function, path, options)
    path.jobs.queue.grant_send_messages(function)
    path.changes.queue.grant_send_messages(function)
    path.dead_letters.queue.grant_consume_messages(function)
    path.status.queue.grant(function, "sqs:GetQueueAttributes")
    _grant_alarms(function)
    watch_service(own, service="documents", options=options)
    return function


def viewer_function(scope: Construct, path: IngestionPath, options: Options, issuer: Issuer | None) -> lambda_.Function:
    """Create the function that shows documents. It alone has the packages that read them."""
    own = Construct(scope, "Viewer")
    function = PythonFunction(
        own,
        "Viewer",
        consequence="Until it works again, documents are not shown; searches and answers work.",
        description="Shows documents with the quoted characters marked",
        environment=path.environment(ViewerSettings) | _access_environment(options, issuer),
        folder="viewer",
        layers=[_reading_layer(own, options)],
        # One whole processor, and room for what the largest files unpack to.
        memory_mb=1769,
        options=options,
        reads_access=True,
        settings=[ViewerSettings, AccessSettings],
        # The timeout of API Gateway.
        timeout_seconds=29,
    ).function
    path.documents.grant(function, ["s3:GetObject"], "Callers read any document that they may see")
    path.registry.grant(function, READ)
    path.registry.grant_names(function)
    path.registry.grant(function, LIST, [ACCESS])
    _grant_access_control(function, path, options)
    watch_service(own, service="viewer", options=options)
    return function


def _reading_layer(scope: Construct, options: Options) -> lambda_.LayerVersion:
    """Return the layer of the packages that read files."""
    return shared_layer(scope, "ViewerLayer", options.viewer_layer or extra_layer(VIEWER, options.target))


def receipts_function(scope: Construct, path: IngestionPath, options: Options) -> lambda_.Function:
    """Create the function that compares indexed documents with their files, and gives them their final status."""
    own = Construct(scope, "Receipts")
    function = PythonFunction(
        own,
        "Receipts",
        consequence="Documents stay INDEXING until it succeeds; searches find them, and none is lost.",
        description="Compares indexed documents with their files",
        environment=path.environment(IngestionSettings),
        folder="receipts",
        layers=[_reading_layer(own, options)],
        # One whole processor, and room for what the largest files unpack to.
        memory_mb=1769,
        options=options,
        reads_access=True,
        settings=[IngestionSettings],
        timeout_seconds=RECEIPTS_TIMEOUT_SECONDS,
    ).function
    path.receipts.feed(function, at_once=options.invocations_at_once, messages=10)
    path.documents.grant(function, ["s3:GetObject"], "The function reads any document that was indexed")
    path.registry.grant(function, READ)
    path.registry.grant(function, [PUT, UPDATE])
    path.knowledge_base.grant(function, SEARCH)
    path.bus.grant_put_events_to(function)
    for receiver in (path.changes, path.jobs, path.dead_letters):
        receiver.queue.grant_send_messages(function)
    return function


def _grant_alarms(function: lambda_.Function) -> None:
    """Allow a function to list alarms. Source: service authorization reference, DescribeAlarms."""
    alarms = Stack.of(function).format_arn(
        service="cloudwatch", resource="alarm", resource_name="*", arn_format=ArnFormat.COLON_RESOURCE_NAME
    )
    iam.Grant.add_to_principal(actions=["cloudwatch:DescribeAlarms"], grantee=function, resource_arns=[alarms])
    finding = "Resource::arn:<AWS::Partition>:cloudwatch:<AWS::Region>:<AWS::AccountId>:alarm:*"
    assert function.role is not None
    acknowledge(function.role, "IAM5", "CloudFormation names the alarms, and a list names none", finding=finding)


def ingestion_functions(scope: Construct, path: IngestionPath, options: Options) -> dict[str, lambda_.Function]:
    """Create the functions that submit documents to the knowledge base, and follow them to their final status."""
    submit, follow = (
        PythonFunction(
            Construct(scope, construct_id),
            construct_id,
            consequence=consequence,
            description=description,
            environment=path.environment(IngestionSettings),
            folder=folder,
            memory_mb=512,
            options=options,
            reads_access=True,
            settings=[IngestionSettings],
            timeout_seconds=INGESTION_TIMEOUT_SECONDS,
        ).function
        for construct_id, folder, description, consequence in (
            (
                "Ingestion",
                "ingestion",
                "Submits new, changed and deleted documents to the knowledge base",
                "Documents wait, but none is lost: the queue redelivers their changes.",
            ),
            (
                "Status",
                "ingestion_status",
                "Follows submitted documents to their final status",
                "Documents stay INDEXING until it succeeds; none is lost: the queue redelivers its messages.",
            ),
        )
    )
    for function, queue, actions in ((submit, path.changes, INGEST), (follow, path.status, FOLLOW)):
        queue.feed(
            function,
            at_once=options.invocations_at_once,
            # Ten calls of ten documents. Source: bedrock-agent, KnowledgeBaseDocuments.
            messages=100,
            window_seconds=options.ingestion_batch_window_seconds,
        )
        path.registry.grant(function, READ)
        path.registry.grant(function, [PUT, UPDATE])
        path.knowledge_base.grant(function, actions)
        path.bus.grant_put_events_to(function)
        for receiver in (path.changes, path.status, path.receipts, path.jobs, path.dead_letters):
            receiver.queue.grant_send_messages(function)
    path.documents.grant(submit, ["s3:GetObject"], "The function looks at any document of the bucket")
    if options.access_file:
        path.documents.grant(
            submit,
            ["s3:PutObject"],
            "The function writes the access labels of documents into their sidecars",
            keys=f"*{SIDECAR_SUFFIX}",
        )
    return {"ingestion": submit, "ingestion_status": follow, "receipts": receipts_function(scope, path, options)}


def reconcile_function(stack: Construct, path: IngestionPath, options: Options) -> lambda_.Function:
    """Create the function that compares bucket, registry and knowledge base, and the rule that starts it."""
    scope = Construct(stack, "Reconcile")
    function = PythonFunction(
        scope,
        "Reconcile",
        consequence="`ragstack reconcile` starts it again.",
        description="Compares bucket, registry and knowledge base, and repairs what differs",
        environment=path.environment(ReconcileSettings),
        folder="reconcile",
        # One whole processor, which reading pages keeps busy. Source: Lambda developer guide, memory and computing
        # power.
        memory_mb=1769,
        options=options,
        reads_access=True,
        settings=[ReconcileSettings],
        timeout_seconds=RECONCILE_TIMEOUT_SECONDS,
    ).function
    path.jobs.feed(function, messages=1)
    path.documents.grant(function)
    path.registry.grant(function, READ)
    path.registry.grant(function, LIST)
    path.registry.grant(function, SCAN)
    # Jobs with their reports, the gate of a full synchronisation, the rate of calls, corrected counts, and requests for
    # a snapshot.
    path.registry.grant(
        function, [PUT, UPDATE, DELETE], (*JOBS, GATE, f"{RATE}#*", CATALOGUE, f"{CATALOGUE}#*", SNAPSHOT)
    )
    path.snapshot.grant(function, "s3:GetObject", "s3:PutObject")
    # A document can be in the knowledge base of another tenant, from which only this function removes it.
    path.knowledge_base.grant(function, (*RECONCILE, *REMOVE) if path.knowledge_base.tenants else RECONCILE)
    for receiver in (path.changes, path.jobs):
        receiver.queue.grant_send_messages(function)
    if options.reconcile_schedule != OFF:
        start = events.RuleTargetInput.from_object({"start": "reconcile", "by": "schedule"})
        events.Rule(
            scope,
            "Schedule",
            description="Starts a reconciliation",
            schedule=events.Schedule.expression(options.reconcile_schedule),
            targets=[targets.SqsQueue(path.jobs.queue, message=start)],
        )
    raise_alarm(
        scope,
        "JobAlarm",
        at_least=1,
        metric=own_metric(JOBS_NOT_COMPLETE, service="reconcile", options=options, period=Duration.minutes(15)),
        what_to_do=(
            "A reconciliation or synchronisation ended FAILED or INCOMPLETE: `ragstack failures` and the job's"
            " reason (GET /api/ingestion-jobs) say why. Remove the cause, then `ragstack reconcile` starts another"
        ),
    )
    raise_alarm(
        scope,
        "DifferenceAlarm",
        at_least=1,
        metric=own_metric(
            "ReconciliationDifferences",
            service="reconcile",
            options=options,
            period=Duration.hours(1),
            statistic=cloudwatch.Stats.MAXIMUM,
        ),
        what_to_do=(
            "Bucket, registry and knowledge base differed, and what differed is being repaired: the job's report"
            " (GET /api/ingestion-jobs) names it. If it happens again, events are lost: look at the bucket's"
            " notifications and the log of the function ingestion"
        ),
    )
    return function
