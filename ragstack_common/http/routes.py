"""The routes of the documents function, and the services behind them.

The routes are here and not in the handler, because the query function serves the OpenAPI description of the whole
interface, and no function has another function's handler.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final, TypeAlias
from uuid import UUID

from aws_lambda_powertools.event_handler import APIGatewayRestResolver
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query

from ragstack_common.access.callers import Caller
from ragstack_common.access.guard import Guard
from ragstack_common.access.people import People
from ragstack_common.core.clients import cloudwatch_client, dynamodb_client, s3_client, sqs_client
from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.core.metrics import STACK
from ragstack_common.core.telemetry import NO_METRICS, MetricSink
from ragstack_common.http.powertools import MAX_PARAMETER_CHARACTERS, NextToken, OfAllCallers, serve
from ragstack_common.ingestion.messages import Queue
from ragstack_common.registry.catalogue import Catalogue
from ragstack_common.registry.documents import MAX_LIMIT, DocumentRegistry
from ragstack_common.registry.jobs import JobStore
from ragstack_common.registry.records import Status
from ragstack_common.services.access import (
    Access,
    Explanation,
    LabelView,
    Me,
    PeopleList,
    PrincipalList,
    RuleChange,
    RulesView,
    ViewAs,
)
from ragstack_common.services.bucket import DocumentsBucket
from ragstack_common.services.conversation_models import (
    Conversation,
    ConversationLink,
    ConversationList,
    ConversationSummary,
    DeletedConversations,
    TitleChange,
)
from ragstack_common.services.conversations import Conversations
from ragstack_common.services.dead_letters import DeadLetterQueue
from ragstack_common.services.document_models import (
    DocumentDetail,
    DocumentList,
    Download,
    Facets,
    FoundDocuments,
    WrittenStatus,
)
from ragstack_common.services.documents import (
    DEFAULT_FOUND,
    EVENT_OF_CHANGE,
    MAX_FOUND,
    MAX_VALUES,
    Documents,
    directory_of,
    read_facets,
)
from ragstack_common.services.erasure import ErasedPerson, Erasure, PersonToErase
from ragstack_common.services.failure_models import (
    DiscardAnswer,
    DiscardRequest,
    FailureList,
    ReplayAnswer,
    ReplayRequest,
)
from ragstack_common.services.failures import Failures
from ragstack_common.services.gap_models import Gap, GapChange, GapList, GapReport, ReportedGap
from ragstack_common.services.gaps import Gaps
from ragstack_common.services.jobs import JobAnswer, JobList, JobRequest, Jobs
from ragstack_common.services.judgments import Judgment, JudgmentChange, JudgmentList, Judgments
from ragstack_common.services.measures import JudgedRanking, Measures, measure
from ragstack_common.services.settings import SettingsInForce, settings_in_force
from ragstack_common.services.status import DEAD_LETTERS, DeploymentStatus, StatusReport
from ragstack_common.services.uploads import AttributesChange, UploadAnswer, UploadRequest, Uploads
from ragstack_common.services.word_search import word_search_of
from ragstack_common.settings.ingestion import DocumentApiSettings

MAX_VALUE_CHARACTERS: Final = 200

_Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="The largest number of entries on a page")]
_Value = Annotated[str | None, Query(min_length=1, max_length=MAX_VALUE_CHARACTERS)]
_Id = Annotated[str, Path(min_length=1, max_length=MAX_VALUE_CHARACTERS)]
_Name = Annotated[str | None, Query(min_length=1, max_length=MAX_PARAMETER_CHARACTERS)]


@dataclass(frozen=True)
class DocumentService:
    """The services behind the routes. The catalogue counts what a caller sees."""

    uploads: Uploads
    documents: Documents
    jobs: Jobs
    catalogue: Callable[[Caller], Catalogue]
    failures: Failures
    access: Access
    judgments: Judgments
    gaps: Gaps
    conversations: Conversations
    erasure: Erasure
    settings: Callable[[], SettingsInForce]
    status: DeploymentStatus

    @classmethod
    def from_env(cls, env: Mapping[str, str], metrics: MetricSink = NO_METRICS) -> "DocumentService":
        """Build the services that the environment describes; raises ConfigurationError."""
        settings = DocumentApiSettings.from_env(env)
        table, client, sqs = settings.registry_table, dynamodb_client(), sqs_client()
        bucket = DocumentsBucket(settings.documents_bucket, s3_client())
        registry = DocumentRegistry(table, client, metrics=metrics)
        guard = Guard.from_env(env)
        people, gaps = People(client, table), Gaps.from_env(env, client, table, guard)
        conversations = Conversations.from_env(env, guard, table, client)
        queue_urls = {
            "events": settings.ingestion_queue_url,
            "status checks": settings.status_queue_url,
            "conversions": settings.conversion_queue_url,
            "large conversions": settings.large_conversion_queue_url,
            "receipts": settings.receipts_queue_url,
            "jobs": settings.jobs_queue_url,
            DEAD_LETTERS: settings.dead_letter_queue_url,
        }
        return cls(
            uploads=Uploads(settings, bucket, registry, guard),
            documents=Documents(registry, bucket, guard, directory_of(settings)),
            jobs=Jobs(JobStore(table, client, metrics=metrics), settings.jobs_queue_url, sqs),
            catalogue=lambda caller: Catalogue(client, table, guard.rules().labels(caller)),
            access=Access(guard, registry, bucket, people),
            judgments=Judgments(client, table, guard, gaps=gaps),
            gaps=gaps,
            conversations=conversations,
            erasure=Erasure(guard, people, gaps, conversations),
            settings=partial(settings_in_force, {**env}),
            status=DeploymentStatus(
                dynamodb=client,
                table=table,
                sqs=sqs,
                queue_urls={name: url for name, url in queue_urls.items() if url is not None},
                cloudwatch=cloudwatch_client(),
                prefix=env.get(STACK),
                word_search=word_search_of(settings),
            ),
            failures=Failures(
                bucket=bucket,
                registry=registry,
                dead_letters=DeadLetterQueue(settings.dead_letter_queue_url, sqs),
                ingestion_queue=Queue(settings.ingestion_queue_url, sqs),
            ),
        )

    def change_attributes(self, caller: Caller, identifier: str, change: AttributesChange) -> DocumentDetail:
        """Write a document's sidecar, and return the document, which will be processed again.

        Raises:
            DocumentNotFoundError: There is no such document that the caller sees.
            InvalidDocumentError: The attributes are invalid.
            NotAllowedError: The caller may not write here.
        """
        key = self.documents.key_to_change(caller, identifier)
        self.uploads.change_attributes(key, change, caller)
        detail = self.documents.detail(caller, identifier)
        return detail.model_copy(update={"again": True, "waiting_for": detail.waiting_for or EVENT_OF_CHANGE})


Service: TypeAlias = Callable[[], DocumentService]
CurrentCaller: TypeAlias = Callable[[], Caller]


def add_routes(app: APIGatewayRestResolver, service: Service, caller: CurrentCaller) -> None:
    """Add the routes of the documents function; the service is called with each request."""
    _add_listings(app, service, caller)
    _add_documents(app, service, caller)
    _add_jobs(app, service)
    _add_failures(app, service)
    _add_access(app, service, caller)
    _add_judgments(app, service, caller)
    _add_gaps(app, service, caller)
    _add_conversations(app, service, caller)


def _add_documents(app: APIGatewayRestResolver, service: Service, caller: CurrentCaller) -> None:
    @serve(app, "create_document")
    def create_document(request: UploadRequest) -> UploadAnswer:
        """Write the document's attributes, and sign one upload of it that is valid for a short time."""
        return service().uploads.permit(request, caller())

    @serve(app, "get_document")
    def get_document(id: _Id) -> DocumentDetail:  # noqa: A002 - the name in the path
        """Return its status, its history and what happens next, including changes in the bucket since."""
        return service().documents.detail(caller(), id)

    @serve(app, "download_document")
    def download_document(id: _Id) -> Download:  # noqa: A002 - the name in the path
        """Sign one download of the version that the registry knows; the address is valid for a minute."""
        return service().documents.download(caller(), id)

    @serve(app, "change_document")
    def change_document(id: _Id, request: AttributesChange) -> DocumentDetail:  # noqa: A002 - the name in the path
        """Replace the document's attributes, or some; searches use the new ones when the change was processed."""
        return service().change_attributes(caller(), id, request)

    @serve(app, "delete_document")
    def delete_document(id: _Id) -> DocumentDetail:  # noqa: A002 - the name in the path
        """Delete the document and its sidecar from the bucket, then from the knowledge base; it ends as DELETED."""
        return service().documents.delete(caller(), id)


def _add_listings(app: APIGatewayRestResolver, service: Service, caller: CurrentCaller) -> None:
    @serve(app, "list_documents")
    def list_documents(
        status: Annotated[WrittenStatus | None, Query(description="Default: all except DELETED")] = None,
        corpus: _Value = None,
        limit: _Limit = 50,
        next_token: NextToken = None,
        key: _Name = None,
        uri: _Name = None,
        prefix: Annotated[
            str | None,
            Query(
                min_length=1, max_length=MAX_VALUE_CHARACTERS, description="Only documents whose key begins with this"
            ),
        ] = None,
        name: Annotated[
            str | None,
            Query(
                min_length=1,
                max_length=MAX_VALUE_CHARACTERS,
                description="Only documents whose key contains this, in upper or lower case",
            ),
        ] = None,
    ) -> DocumentList:
        """List documents, filtered or not, or find one document by key or uri, which looks into the bucket too."""
        if key is None and uri is None:
            return service().documents.page(
                caller(), Status(status) if status else None, corpus, limit, next_token, prefix=prefix, name=name
            )
        # A limit is harmless, and generated clients send it by default.
        if sum(each is not None for each in (key, uri, status, corpus, next_token, prefix, name)) > 1:
            raise InvalidRequestError("key and uri each name one document: give one of them, and no other filter")
        return service().documents.named(caller(), key=key, uri=uri)

    @serve(app, "find_documents")
    def find_documents(
        query: Annotated[
            str,
            Query(
                min_length=1,
                max_length=MAX_PARAMETER_CHARACTERS,
                description="Words of names, folders and attribute values, in any order; a key; or an s3:// URI",
            ),
        ],
        limit: Annotated[int, Query(ge=1, le=MAX_FOUND, description="Maximum number of documents")] = DEFAULT_FOUND,
    ) -> FoundDocuments:
        """List documents that have each word, whatever their status; beginnings of words count."""
        return service().documents.find(caller(), query, limit)

    @serve(app, "list_facets")
    def list_facets(
        key: _Value = None,
        prefix: Annotated[
            str | None,
            Query(min_length=1, max_length=MAX_VALUE_CHARACTERS, description="Only values of key that begin with this"),
        ] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_VALUES, description="Maximum number of values")] = MAX_VALUES,
        next_token: NextToken = None,
    ) -> Facets:
        """Count the values of all attributes, or of one, or those of one that begin with a prefix, in pages."""
        return read_facets(service().catalogue(caller()), key, prefix, limit, next_token)


def _add_jobs(app: APIGatewayRestResolver, service: Service) -> None:
    @serve(app, "start_job")
    def start_job(request: Annotated[JobRequest | None, Body()] = None) -> JobAnswer:
        """Start a job, unless one of its kind is queued or running."""
        return service().jobs.start((request or JobRequest()).kind)

    @serve(app, "list_jobs")
    def list_jobs(limit: _Limit = 20, next_token: NextToken = None) -> JobList:
        """List jobs, newest first."""
        return service().jobs.page(limit, next_token)

    @serve(app, "get_job")
    def get_job(id: _Id) -> JobAnswer:  # noqa: A002 - the name in the path
        """Return its status and its report."""
        return service().jobs.get(id)


def _add_failures(app: APIGatewayRestResolver, service: Service) -> None:
    """Add the operator routes."""

    @serve(app, "status")
    def status() -> StatusReport:
        """Count documents and messages, and list alarms, the last reconciliation and the throughput of a day."""
        return service().status.report()

    @serve(app, "list_settings")
    def list_settings() -> SettingsInForce:
        """List the settings of the deployment with their values, and where each comes from. Secrets are hidden."""
        return service().settings()

    @serve(app, "list_failures")
    def list_failures(limit: _Limit = 100, next_token: NextToken = None) -> FailureList:
        """List what failed and why, with what to do next. The dead letters stay in their queue."""
        return service().failures.page(limit, next_token)

    @serve(app, "replay_failures")
    def replay_failures(request: Annotated[ReplayRequest | None, Body()] = None) -> ReplayAnswer:
        """Send again what failed. A dead letter is deleted after its content was sent."""
        return service().failures.replay(request or ReplayRequest())

    @serve(app, "discard_failures")
    def discard_failures(request: DiscardRequest) -> DiscardAnswer:
        """Delete dead letters without replaying them."""
        return service().failures.discard(request)


def _add_access(app: APIGatewayRestResolver, service: Service, caller: CurrentCaller) -> None:
    @serve(app, "me")
    def me() -> Me:
        """Return the caller's name, principals, rights and labels."""
        return service().access.me(caller())

    @serve(app, "get_access")
    def get_access(label: _Value = None) -> RulesView:
        """Return the rules in effect, of one label or of all."""
        return service().access.view(label)

    @serve(app, "change_access")
    def change_access(request: RuleChange) -> LabelView:
        """Change what a label does to a principal. It takes effect with the next request."""
        return service().access.change(caller(), request)

    @serve(app, "list_people")
    def list_people(limit: _Limit = MAX_LIMIT, next_token: NextToken = None) -> PeopleList:
        """List callers by name, with the groups in their last token, what they see and where they may write."""
        return service().access.people(limit, next_token)

    @serve(app, "erase_person")
    def erase_person(request: PersonToErase) -> ErasedPerson:
        """Delete a person's conversations, questions in gaps and entry in the list of people, unread."""
        return service().erasure.erase(caller(), request)

    @serve(app, "explain_access")
    def explain_access(
        viewer: Annotated[
            PrincipalList, Query(alias="as", description="Who: principals with commas, such as user:alice,group:people")
        ],
        document: Annotated[
            str, Query(min_length=1, max_length=MAX_PARAMETER_CHARACTERS, description="The document's s3:// URI or key")
        ],
    ) -> Explanation:
        """Explain whether a user sees a document, and which rule decides it."""
        return service().access.explain(caller(), viewer, document)

    @serve(app, "view_as")
    def view_as(request: ViewAs) -> list[Explanation]:
        """Explain which of these documents the principals see, in their order, and which rule decides each."""
        return service().access.explain_all(caller(), request)


def _add_judgments(app: APIGatewayRestResolver, service: Service, caller: CurrentCaller) -> None:
    @serve(app, "list_judgments")
    def list_judgments(
        all: OfAllCallers = False,  # noqa: A002 - the name in the query
        limit: _Limit = MAX_LIMIT,
        next_token: NextToken = None,
    ) -> JudgmentList:
        """List the caller's own judgments, or those of all callers."""
        return service().judgments.page(caller(), of_all=all, limit=limit, token=next_token)

    @serve(app, "write_judgment")
    def write_judgment(request: JudgmentChange) -> Judgment:
        """Replace the caller's judgment of a document for a query, or of an answer; without a grade, delete it."""
        return service().judgments.write(caller(), request)

    @serve(app, "measure_ranking")
    def measure_ranking(request: JudgedRanking) -> Measures:
        """Compute nDCG, recall and reciprocal rank of the first ten documents, as `ragstack eval` does."""
        return measure(request)


def _add_gaps(app: APIGatewayRestResolver, service: Service, caller: CurrentCaller) -> None:
    @serve(app, "report_gap")
    def report_gap(request: GapReport) -> ReportedGap:
        """Report a missing answer to people who can add documents and see every label that the caller sees."""
        return service().gaps.report(caller(), request)

    @serve(app, "list_gaps")
    def list_gaps() -> GapList:
        """List gaps for operators and writers of documents, if they see every label that the asker saw."""
        return service().gaps.groups(caller())

    @serve(app, "change_gap")
    def change_gap(id: _Id, request: GapChange) -> Gap:  # noqa: A002 - the name in the path
        """Mark a gap as answered or dismissed, or reopen it."""
        return service().gaps.change(caller(), id, request)


def _add_conversations(app: APIGatewayRestResolver, service: Service, caller: CurrentCaller) -> None:
    @serve(app, "list_conversations")
    def list_conversations(
        query: Annotated[
            str | None,
            Query(
                min_length=1,
                max_length=MAX_VALUE_CHARACTERS,
                description="Only conversations whose title and questions contain each of its words",
            ),
        ] = None,
        limit: _Limit = 50,
        next_token: NextToken = None,
    ) -> ConversationList:
        """List your conversations, newest first. Nobody else can list them, not even operators."""
        return service().conversations.page(caller(), query=query, limit=limit, token=next_token)

    @serve(app, "delete_conversations")
    def delete_conversations() -> DeletedConversations:
        """Delete all of your conversations, with the links to them."""
        return service().conversations.delete_all(caller())

    @serve(app, "get_conversation")
    def get_conversation(id: UUID, next_token: NextToken = None) -> Conversation:  # noqa: A002 - the name in the path
        """Return its turns. An answer is omitted if you may no longer see all of its documents."""
        return service().conversations.get(caller(), id, next_token)

    @serve(app, "rename_conversation")
    def rename_conversation(id: UUID, request: TitleChange) -> ConversationSummary:  # noqa: A002 - the name in the path
        """Change its title, which is the beginning of the first question."""
        return service().conversations.rename(caller(), id, request)

    @serve(app, "delete_conversation")
    def delete_conversation(id: UUID) -> DeletedConversations:  # noqa: A002 - the name in the path
        """Delete it and its link. An answer that is still being written is not saved."""
        return service().conversations.delete(caller(), id)

    @serve(app, "share_conversation")
    def share_conversation(id: UUID) -> ConversationLink:  # noqa: A002 - the name in the path
        """Return its link; create one if there is none. Later turns are shared too."""
        return service().conversations.share(caller(), id)

    @serve(app, "unshare_conversation")
    def unshare_conversation(id: UUID) -> ConversationLink:  # noqa: A002 - the name in the path
        """Revoke its link. Sharing again creates a different link."""
        return service().conversations.unshare(caller(), id)

    @serve(app, "get_shared_conversation")
    def get_shared_conversation(id: _Id, next_token: NextToken = None) -> Conversation:  # noqa: A002 - the same
        """Return a conversation by its link, without answers from documents that you may not see."""
        return service().conversations.shared(caller(), id, next_token)
