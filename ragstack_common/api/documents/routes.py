"""Which path is answered by what.

The routes stand here and not in the handler, because the function for searches describes them too: it serves the
description of the whole interface, and a function has no other function's code.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

from aws_lambda_powertools.event_handler import APIGatewayRestResolver
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query

from ragstack_common.api.documents.job_models import JobAnswer, JobList, JobRequest
from ragstack_common.api.documents.models import (
    DocumentDetail,
    DocumentList,
    Facets,
    UploadAnswer,
    UploadRequest,
    WrittenStatus,
)
from ragstack_common.errors import InvalidRequestError
from ragstack_common.registry.records import Status

if TYPE_CHECKING:
    from ragstack_common.api.documents.service import DocumentService

MAX_LIMIT: Final = 100
MAX_VALUE_CHARACTERS: Final = 200
MAX_NAME_CHARACTERS: Final = 2048

CREATED: Final = 201
ACCEPTED: Final = 202

_Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="At most so many")]
_Token = Annotated[str | None, Query(min_length=1, max_length=MAX_NAME_CHARACTERS, description="Of the page before")]
_Value = Annotated[str | None, Query(min_length=1, max_length=MAX_VALUE_CHARACTERS)]
_Id = Annotated[str, Path(min_length=1, max_length=MAX_VALUE_CHARACTERS)]
_Name = Annotated[str | None, Query(min_length=1, max_length=MAX_NAME_CHARACTERS)]


def add_routes(app: APIGatewayRestResolver, service: Callable[[], "DocumentService"]) -> None:
    """Have a function answer requests about documents and jobs.

    Args:
        app: Routes them.
        service: Called with each request.
    """
    _add_documents(app, service)
    _add_jobs(app, service)


def _add_documents(app: APIGatewayRestResolver, service: Callable[[], "DocumentService"]) -> None:
    @app.post("/api/documents", status_code=CREATED, summary="Ask to upload a document")
    def create_document(request: UploadRequest) -> UploadAnswer:
        """Write the document's attributes, and permit one upload of it for a short time."""
        return service().uploads.permit(request)

    @app.get("/api/documents", summary="List documents and how far they have come")
    def list_documents(
        status: Annotated[WrittenStatus | None, Query(description="Left out: all but those that were DELETED")] = None,
        corpus: _Value = None,
        limit: _Limit = 50,
        next_token: _Token = None,
        key: _Name = None,
        uri: _Name = None,
    ) -> DocumentList:
        """List by status and corpus; or find one document by key or uri, which looks into the bucket too."""
        if key is None and uri is None:
            return service().documents.page(Status(status) if status else None, corpus, limit, next_token)
        # A limit is harmless, and generated clients send it by default.
        if sum(each is not None for each in (key, uri, status, corpus, next_token)) > 1:
            raise InvalidRequestError("key and uri: each names one document; give one of them, and no other filter")
        return service().documents.named(key=key, uri=uri)

    @app.get("/api/documents/<id>", summary="Tell everything about a document")
    def get_document(id: _Id) -> DocumentDetail:  # noqa: A002 - the name in the path
        """Tell its status, its history and what happens next, with what changed in the bucket since."""
        return service().documents.detail(id)

    @app.delete("/api/documents/<id>", status_code=ACCEPTED, summary="Delete a document")
    def delete_document(id: _Id) -> DocumentDetail:  # noqa: A002 - the name in the path
        """Delete it and its sidecar from the bucket; the knowledge base follows, until the status is DELETED."""
        return service().documents.delete(id)

    @app.get("/api/facets", summary="Count the documents that can be searched, by attribute")
    def list_facets(key: _Value = None) -> Facets:
        """Count the values of each attribute, or of one."""
        return service().facets(key)


def _add_jobs(app: APIGatewayRestResolver, service: Callable[[], "DocumentService"]) -> None:
    @app.post("/api/ingestion-jobs", status_code=ACCEPTED, summary="Reconcile or synchronise everything")
    def start_job(request: Annotated[JobRequest | None, Body()] = None) -> JobAnswer:
        """Start a job, unless one of its kind is under way."""
        return service().jobs.start((request or JobRequest()).kind)

    @app.get("/api/ingestion-jobs", summary="List jobs")
    def list_jobs(limit: _Limit = 20, next_token: _Token = None) -> JobList:
        """List jobs, the newest first."""
        return service().jobs.page(limit, next_token)

    @app.get("/api/ingestion-jobs/<id>", summary="Tell how a job went")
    def get_job(id: _Id) -> JobAnswer:  # noqa: A002 - the name in the path
        """Tell its status and its report."""
        return service().jobs.get(id)
