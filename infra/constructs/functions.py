"""The functions: their settings, their permissions and their triggers."""

import json
import math
from typing import Final

from aws_cdk import Annotations, ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.acknowledgements import acknowledge
from infra.alarms import watch_service
from infra.constructs.ingestion_path import IngestionPath
from infra.constructs.python_function import PythonFunction, reading_layer, shared_layer
from infra.constructs.storage import (
    CONVERSATIONS,
    DELETE,
    DELETE_MANY,
    JOBS,
    LIST,
    PUT,
    READ,
    UPDATE,
)
from infra.constructs.user_pool import Issuer
from infra.engine import grant_model
from infra.layers import extra_layer
from infra.options import Options
from infra.target import Target
from ragstack_common.registry.table import ACCESS, BUDGET, CATALOGUE, DOCUMENT, ENTRIES, GAP, JUDGMENT, PERSON
from ragstack_common.settings.access import AccessSettings
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.settings.conversations import ConversationSettings
from ragstack_common.settings.gaps import GapSettings
from ragstack_common.settings.ingestion import (
    DocumentApiSettings,
    DocumentSettings,
    ViewerSettings,
)
from ragstack_common.settings.retriever_tool import RetrieverToolSettings
from ragstack_common.settings.search import QuerySettings
from ragstack_common.settings.tracing import TraceSettings

MAX_LISTED: Final = 100
"""Longest value of a setting in the list for operators: the environment of a function takes 4 KB."""

API_MEMORY_MB: Final = 1024
"""Processor time comes with memory, and a cold start is mostly imports."""

COLD_START_SECONDS: Final = 5
"""Time that a first request may take in addition to its search."""

UNRESERVED: Final = 100
"""Concurrent executions of an account that no function can reserve. Source: Lambda quotas, concurrent executions."""

WEB_ADAPTER: Final = "arn:aws:lambda:{region}:753240598075:layer:LambdaAdapterLayerArm64:30"
"""Version 1.1.0. Source: Lambda Web Adapter, README, Zip packages."""

WEB_ADAPTER_ENVIRONMENT: Final = {
    "AWS_LAMBDA_EXEC_WRAPPER": "/opt/bootstrap",
    "AWS_LWA_INVOKE_MODE": "response_stream",
    "AWS_LWA_PORT": "8080",
    "AWS_LWA_READINESS_CHECK_PATH": "/health",
}
"""Source: Lambda Web Adapter, environment variables."""


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
        starts_from_snapshot=True,
        timeout_seconds=math.ceil(options.query.timeout_seconds) + COLD_START_SECONDS,
    ).function
    _grant_search(function, path, options)
    path.documents.grant(function, ["s3:GetObject"], "Callers may ask why any document is not found")
    path.registry.grant(function, READ, (ACCESS, f"{DOCUMENT}#*", PERSON))
    path.registry.grant(function, [UPDATE], [PERSON])
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
        settings=[
            *(QuerySettings, AnswerSettings, ConversationSettings, GapSettings, RetrieverToolSettings),
            *(TraceSettings, AccessSettings),
        ],
        timeout_seconds=math.ceil(answers.answer_timeout_seconds) + COLD_START_SECONDS,
    ).function
    _grant_search(function, path, options)
    path.documents.grant(function, ["s3:GetObject"], "Callers may ask for the status of any document")
    path.registry.grant(function, READ)
    path.registry.grant_names(function)
    of_questions = [f"{BUDGET}#*"] if options.access_settings.limits_questions else []
    of_gaps = [GAP] if options.gaps.questions else []
    path.registry.grant(function, [UPDATE], [*of_questions, *of_gaps, PERSON])
    if options.has_people and options.conversations.conversations:
        # A new conversation may replace the oldest.
        path.registry.grant(function, LIST, CONVERSATIONS)
        path.registry.grant(function, [PUT, UPDATE, DELETE, DELETE_MANY], CONVERSATIONS)
    if options.target is Target.AWS:
        for model in filter(None, (answers.answer_model, answers.answer_fallback_model, answers.support_model)):
            # Source: service authorization reference, Converse and ConverseStream.
            grant_model(function, model, ("bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"))
    watch_service(own, service="answers", options=options, searches=True, answers=True)
    if options.answers_concurrency:
        Annotations.of(function).add_warning_v2(
            "ragstack:concurrency",
            f"answers_concurrency={options.answers_concurrency} needs a quota of at least"
            f" {options.answers_concurrency + UNRESERVED} concurrent executions, and new accounts have 10. With less,"
            " the deployment fails: request a higher quota of AWS Lambda first, or leave answers_concurrency out",
        )
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


def _settings_environment(options: Options) -> dict[str, str]:
    """Return what the deployer chose, for the list of settings; the longest values are cut."""
    chosen = {
        origin: {name: text if len(text) <= MAX_LISTED else f"{text[:MAX_LISTED]}…" for name, text in values.items()}
        for origin, values in options.in_force.items()
    }
    return {"SETTINGS_IN_FORCE": json.dumps(chosen, ensure_ascii=False, separators=(",", ":"))}


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
        starts_from_snapshot=True,
        # Three attempts to find the issuer's keys, and one to fetch them.
        timeout_seconds=25,
    ).function
    watch_service(own, service="authorizer", options=options)
    return function


def _grant_search(function: lambda_.Function, path: IngestionPath, options: Options) -> None:
    path.knowledge_base.grant_search(function)
    of_labels = [f"{CATALOGUE}#*"] if options.access_file else []
    path.registry.grant(function, LIST, [CATALOGUE, *(of_labels or [ENTRIES]), ACCESS])
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
        environment=path.environment(DocumentApiSettings)
        | _access_environment(options, issuer)
        | _settings_environment(options),
        folder="documents",
        memory_mb=API_MEMORY_MB,
        options=options,
        reads_access=True,
        settings=[DocumentApiSettings, ConversationSettings, GapSettings, AccessSettings],
        starts_from_snapshot=True,
        # The timeout of API Gateway.
        timeout_seconds=29,
    ).function
    # A signed upload or download has the permissions of the function that signed it.
    object_actions = ("s3:DeleteObject", "s3:GetObject", "s3:GetObjectVersion", "s3:PutObject")
    path.documents.grant(function, object_actions, "Callers upload, download and delete any document")
    path.registry.grant(function, READ)
    path.registry.grant(function, LIST)
    path.registry.grant(function, [PUT, UPDATE, DELETE], (*JOBS, JUDGMENT, f"{JUDGMENT}#*"))
    path.registry.grant(function, [UPDATE], (GAP, f"{BUDGET}#*", PERSON))
    path.registry.grant(function, [DELETE_MANY], [GAP])
    path.registry.grant(function, [DELETE], [PERSON])
    if options.has_people:
        # Also if none are kept any more: people may delete theirs.
        path.registry.grant(function, [PUT, UPDATE, DELETE, DELETE_MANY], CONVERSATIONS)
    if options.access_file:
        path.registry.grant(function, [PUT, UPDATE, DELETE], [ACCESS])
    _grant_access_control(function, path, options)
    path.snapshot.grant(function, "s3:GetObject")
    path.jobs.queue.grant_send_messages(function)
    path.changes.queue.grant_send_messages(function)
    path.dead_letters.queue.grant_consume_messages(function)
    path.status.queue.grant(function, "sqs:GetQueueAttributes")
    path.knowledge_base.grant_words(function)  # the status says whether words are searched
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
        layers=[reading_layer(own, options)],
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


def _grant_alarms(function: lambda_.Function) -> None:
    """Allow a function to list alarms and to read metrics, which have no resources.

    Source: service authorization reference, DescribeAlarms and GetMetricData.
    """
    alarms = Stack.of(function).format_arn(
        service="cloudwatch", resource="alarm", resource_name="*", arn_format=ArnFormat.COLON_RESOURCE_NAME
    )
    iam.Grant.add_to_principal(actions=["cloudwatch:DescribeAlarms"], grantee=function, resource_arns=[alarms])
    iam.Grant.add_to_principal(actions=["cloudwatch:GetMetricData"], grantee=function, resource_arns=["*"])
    finding = "Resource::arn:<AWS::Partition>:cloudwatch:<AWS::Region>:<AWS::AccountId>:alarm:*"
    assert function.role is not None
    acknowledge(function.role, "IAM5", "CloudFormation names the alarms, and a list names none", finding=finding)
    acknowledge(function.role, "IAM5", "Metrics have no resources", finding="Resource::*")
