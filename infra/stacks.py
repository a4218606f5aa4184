"""Stacks compose constructs, and own no resource."""

from collections.abc import Mapping

from aws_cdk import Annotations, CfnOutput, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.access_options import groups_of_people, tenant_prefixes
from infra.alarms import add_budget, choose_topic
from infra.constructs.console import Console
from infra.constructs.contextual_headers import ContextualHeaders
from infra.constructs.functions import (
    answers_function,
    authorizer_function,
    documents_function,
    query_function,
    viewer_function,
)
from infra.constructs.ingestion_functions import ingestion_functions, reconcile_function
from infra.constructs.ingestion_path import IngestionPath
from infra.constructs.knowledge_base import KnowledgeBaseReference, existing_index
from infra.constructs.managed_knowledge_base import ManagedKnowledgeBase
from infra.constructs.managed_knowledge_base import generation as managed_generation
from infra.constructs.open_access import OpenAccess
from infra.constructs.queues import DocumentQueue, conversion_queue, jobs_queue, receipts_queue, status_queue
from infra.constructs.retrieval_api import RetrievalApi
from infra.constructs.storage import DocumentRegistry, DocumentsBucket, SnapshotBucket
from infra.constructs.user_pool import Issuer, UserPool
from infra.constructs.vector_knowledge_base import VectorKnowledgeBase
from infra.constructs.vector_knowledge_base import generation as vector_generation
from infra.context_values import KnowledgeBaseKind
from infra.dashboard import add_dashboard, api_graphs, ingestion_graphs
from infra.discovery import Discovery, undiscovered
from infra.options import Options
from infra.target import KNOWLEDGE_BASE_REGIONS, Target
from ragstack_common.http.route_table import ANSWERS, DOCUMENTS, QUERY, VIEWER
from ragstack_common.settings.access import NO_ACCESS_FILE, TOKEN_KINDS, AuthKind
from ragstack_common.settings.names import MANAGED


class StorageStack(Stack):
    """The documents bucket, its queue, the registry, and the topic that the alarms of all stacks notify.

    The queue is here and not next to the function that reads it, so that the bucket can name it.
    """

    def __init__(self, scope: Construct, construct_id: str, *, options: Options) -> None:
        super().__init__(scope, construct_id, description="RAGStack: documents, their changes and their registry")
        self.changes = DocumentQueue(self, "Changes", max_receives=options.ingestion.max_receives)
        self.documents = DocumentsBucket(self, "Documents", changes=self.changes, options=options)
        self.registry = DocumentRegistry(self, "Registry", options=options)
        self.snapshot = SnapshotBucket(self, "Snapshot", target=options.target)
        # Created last: a protected table could not be rolled back with a first deployment that fails.
        self.registry.node.add_dependency(self.changes, self.documents, self.snapshot)
        self.alarm_topic = choose_topic(self, options)
        add_budget(self, options)
        CfnOutput(self, "DocumentsBucketName", value=self.documents.bucket.bucket_name)
        CfnOutput(self, "IngestionQueueUrl", value=self.changes.events.queue.queue_url)
        CfnOutput(self, "DeadLetterQueueUrl", value=self.changes.dead_letters.queue.queue_url)
        CfnOutput(self, "RegistryTableName", value=self.registry.table.table_name)


class KnowledgeBaseStack(Stack):
    """A knowledge base for the documents bucket, and those of tenants."""

    def __init__(self, scope: Construct, construct_id: str, *, documents: s3.IBucket, options: Options) -> None:
        is_managed = options.knowledge_base is KnowledgeBaseKind.MANAGED
        kind = "managed knowledge base" if is_managed else "knowledge base on Amazon S3 Vectors"
        super().__init__(scope, construct_id, description=f"RAGStack: {kind}")
        tenants = tenant_prefixes(options, options.policy)
        if is_managed:
            self.knowledge_base = ManagedKnowledgeBase(
                self,
                f"Managed{managed_generation(options)}",
                documents=documents,
                options=options,
                tenants=tenants,
            ).knowledge_base
            return
        headers = ContextualHeaders(self, "Context", options=options) if options.contextual_headers else None
        vectors = VectorKnowledgeBase(
            self,
            f"Vectors{vector_generation(options)}",
            documents=documents,
            headers=headers,
            options=options,
            tenants=tenants,
        )
        self.knowledge_base = vectors.knowledge_base
        CfnOutput(self, "EmbeddingModel", value=vectors.embedding)
        CfnOutput(self, "FirstSync", value=vectors.first_sync)
        if vectors.text_search is not None:
            CfnOutput(self, "TextSearch", value=vectors.text_search)


def choose_knowledge_base(
    scope: Construct, options: Options, documents: s3.IBucket, region: str | None
) -> KnowledgeBaseReference:
    """The existing knowledge base that the deployer named, or a stack that creates one."""
    if options.knowledge_base_id and options.data_source_id:
        if options.target is Target.AWS and not options.documents_bucket:
            is_managed = options.store == MANAGED
            reader = "role of the knowledge base" if is_managed else f"data source {options.data_source_id}"
            Annotations.of(scope).add_warning_v2(
                "ragstack:data-source",
                f"The {reader} must read the bucket that {options.prefix}Storage creates: deploy that stack first, or"
                " give the bucket that it reads as documents_bucket",
            )
        return KnowledgeBaseReference(
            options.knowledge_base_id,
            options.data_source_id,
            options.vector_store,
            options.query.tenant_knowledge_bases,
            existing_index(options.vector_index_arn, of_tenants=bool(options.query.tenant_knowledge_bases)),
        )
    stack = KnowledgeBaseStack(scope, f"{options.prefix}KnowledgeBase", documents=documents, options=options)
    if region and region not in KNOWLEDGE_BASE_REGIONS:
        Annotations.of(stack).add_warning_v2(
            "ragstack:region",
            f"CloudFormation had no Bedrock knowledge bases in {region} when this was written: if the deployment fails,"
            " set AWS_REGION to another Region, such as us-east-1 or eu-central-1",
        )
    return stack.knowledge_base


class IngestionStack(Stack):
    """The functions that submit, follow and reconcile documents, and the queues between them."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        storage: StorageStack,
        knowledge_base: KnowledgeBaseReference,
        options: Options,
    ) -> None:
        super().__init__(scope, construct_id, description="RAGStack: from the documents bucket to the knowledge base")
        dead_letters = storage.changes.dead_letters
        self.path = IngestionPath(
            documents=storage.documents,
            registry=storage.registry,
            snapshot=storage.snapshot,
            knowledge_base=knowledge_base,
            changes=storage.changes.events,
            status=status_queue(self, dead_letters, options),
            conversions=conversion_queue(self, "ConversionQueue", dead_letters),
            large_conversions=conversion_queue(self, "LargeFilesQueue", dead_letters),
            receipts=receipts_queue(self, dead_letters),
            jobs=jobs_queue(self),
            dead_letters=dead_letters,
            bus=events.EventBus.from_event_bus_name(self, "Bus", options.event_bus_name),
        )
        functions = ingestion_functions(self, self.path, options)
        functions["reconcile"] = reconcile_function(self, self.path, options)
        queues = {
            "changes": self.path.changes.queue,
            "status": self.path.status.queue,
            "conversions": self.path.conversions.queue,
            "large conversions": self.path.large_conversions.queue,
            "receipts": self.path.receipts.queue,
            "jobs": self.path.jobs.queue,
            "dead letters": dead_letters.queue,
            "dead jobs": self.path.jobs.dead_letters.queue,
        }
        graphs = ingestion_graphs(queues, functions, options)
        add_dashboard(self, "IngestionDashboard", name=f"{options.prefix}-ingestion-{self.region}", graphs=graphs)
        # Here, and not in the knowledge base's own stack, which an existing one does without.
        CfnOutput(self, "KnowledgeBaseId", value=knowledge_base.knowledge_base_id)
        CfnOutput(self, "DataSourceId", value=knowledge_base.data_source_id)
        CfnOutput(self, "VectorStore", value=knowledge_base.vector_store)
        CfnOutput(self, "TextRecognition", value=options.ingestion.recognition)
        if knowledge_base.tenants:
            CfnOutput(self, "TenantKnowledgeBases", value=knowledge_base.tenant_ids)
        CfnOutput(self, "StatusQueueUrl", value=self.path.status.queue.queue_url)
        CfnOutput(self, "ConversionQueueUrl", value=self.path.conversions.queue.queue_url)
        CfnOutput(self, "LargeConversionQueueUrl", value=self.path.large_conversions.queue.queue_url)
        CfnOutput(self, "ReceiptsQueueUrl", value=self.path.receipts.queue.queue_url)
        CfnOutput(self, "JobsQueueUrl", value=self.path.jobs.queue.queue_url)


class ApiStack(Stack):
    """The HTTP interface and the functions behind it."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        path: IngestionPath,
        options: Options,
        discovery: Discovery = undiscovered,
    ) -> None:
        super().__init__(scope, construct_id, description="RAGStack: HTTP interface")
        pool = _user_pool(self, options)
        issuer = _issuer(self, options, discovery) if pool is None else pool.issuer
        functions = {
            ANSWERS: answers_function(self, path, options, issuer),
            QUERY: query_function(self, path, options, issuer),
            DOCUMENTS: documents_function(self, path, options, issuer),
            VIEWER: viewer_function(self, path, options, issuer),
        }
        authorizer = None if issuer is None else authorizer_function(self, options, issuer)
        # A method of a REST API has one type of authorization.
        first, *others = [
            RetrievalApi(
                self,
                _api_name(kind, options),
                kind=kind,
                functions=functions,
                options=options,
                authorizer=authorizer if kind in TOKEN_KINDS else None,
            )
            for kind in options.auth
        ]
        if options.console_files is not None:
            by_kind = {api.kind: api for api in (first, *others)}
            console = Console(
                self,
                "Console",
                api=by_kind[options.people or AuthKind.API_KEY],
                documents=path.documents.bucket,
                files=options.console_files,
                issuer=issuer,
                options=options,
            )
            if pool is not None:
                pool.add_callback(console.url)
            _output_address(self, "Console", console.url, console.domain_target)
        watched = functions if authorizer is None else {**functions, "authorizer": authorizer}
        graphs = api_graphs(first.stage, watched, options)
        add_dashboard(self, "ApiDashboard", name=f"{options.prefix}-api-{self.region}", graphs=graphs)
        _output_address(self, "Api", first.url, first.domain_target)
        for api in others:
            CfnOutput(self, f"{api.node.id}ApiUrl", value=api.url)
        if issuer is not None:
            CfnOutput(self, "OidcIssuer", value=issuer.url)
            CfnOutput(self, "OidcAudience", value=issuer.audience)
            if issuer.login_domain:
                CfnOutput(self, "LoginDomain", value=issuer.login_domain)
        if options.access_file is None and options.target is Target.AWS:
            _check_open_access(self, path, functions, options)
        # The local stack runs this function itself.
        CfnOutput(self, "AnswersFunctionName", value=functions[ANSWERS].function_name)
        if keys := {name: key for api in (first, *others) for name, key in api.key_ids.items()}:
            CfnOutput(self, "ApiKeyId", value=next(iter(keys.values())))
            CfnOutput(self, "ApiKeyIds", value=",".join(f"{name}={key}" for name, key in keys.items()))
            # The ids are known to the deployment alone, and CloudFormation takes them as names of no object.
            names = ", ".join(f'"{key}": "{name}"' for name, key in keys.items())
            for function in functions.values():
                function.add_environment("API_KEYS", f"{{{names}}}")


def _output_address(scope: Construct, name: str, url: str, domain_target: str | None) -> None:
    """Output an address, and where the deployer's own domain must refer to."""
    CfnOutput(scope, f"{name}Url", value=url)
    if domain_target is not None:
        CfnOutput(scope, f"{name}DomainTarget", value=domain_target)


def _check_open_access(
    scope: Construct, path: IngestionPath, functions: Mapping[str, lambda_.Function], options: Options
) -> None:
    """Deploy functions without an access file only if nothing in the registry says who sees what."""
    checked = OpenAccess(scope, "OpenAccess", registry=path.registry)
    for function in functions.values():
        function.node.add_dependency(checked)
    if options.access is None:
        Annotations.of(scope).add_warning_v2(
            "ragstack:access",
            "Every caller may see every document and use every route, also those for operators: write a file such"
            f" as samples/access.json, and add --context access=FILE, or access={NO_ACCESS_FILE} if that is right",
        )


def _user_pool(scope: Construct, options: Options) -> UserPool | None:
    if AuthKind.COGNITO not in options.auth:
        return None
    groups = [] if options.policy is None else groups_of_people(options.policy)
    # The API of people has the same id if programs come first. "Default" is no part of the ids of resources.
    return UserPool(Construct(scope, "Default"), "People", options=options, groups=groups)


def _issuer(scope: Construct, options: Options, discovery: Discovery) -> Issuer | None:
    """Return the external issuer of the tokens of people; None if there are only programs."""
    settings = options.access_settings
    if not (settings.oidc_issuer and settings.oidc_audience):
        return None
    # The console's pages call it.
    endpoint = None if options.console_files is None else discovery(scope, settings.oidc_issuer)
    return Issuer(settings.oidc_issuer, ",".join(settings.oidc_audience), token_endpoint=endpoint)


def _api_name(kind: AuthKind, options: Options) -> str:
    """Return the id of the API of a kind. The first one's never changes, so that its address does not."""
    return "Retrieval" if kind is options.auth[0] else "People" if kind in TOKEN_KINDS else "Programs"
