"""The routes of the HTTP interface, which the functions serve, the stacks deploy and the OpenAPI document describes."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

ANSWERS: Final = "answers"
DOCUMENTS: Final = "documents"
QUERY: Final = "query"

_OPERATORS: Final = "Operators"

_UNKNOWN: Final = (HTTPStatus.NOT_FOUND,)


@dataclass(frozen=True)
class ApiRoute:
    """A route.

    Attributes:
        function: The function that serves it, by the name of its folder in lambdas/.
        method: HTTP method.
        path: Path with parameters in braces.
        summary: A few words for the OpenAPI document, which leaves out routes without them.
        status: Status of a successful response.
        errors: Statuses of errors that only some routes have.
        tag: Heading in the OpenAPI document.
    """

    function: str
    method: str
    path: str
    summary: str = ""
    status: int = HTTPStatus.OK
    errors: tuple[int, ...] = ()
    tag: str | None = None


ROUTES: Final[Mapping[str, ApiRoute]] = {
    "retrieve": ApiRoute(QUERY, "POST", "/api/retrieve", "Search the knowledge base"),
    "ask": ApiRoute(ANSWERS, "POST", "/api/ask", "Ask a question"),
    "ask_stream": ApiRoute(ANSWERS, "POST", "/api/ask/stream", "Ask a question, and stream the answer"),
    "corpora": ApiRoute(QUERY, "GET", "/api/corpora", "List the corpora that can be searched"),
    "versions": ApiRoute(QUERY, "GET", "/api/versions", "List the versions of documents that can be searched"),
    "list_facets": ApiRoute(DOCUMENTS, "GET", "/api/facets", "Count searchable documents by attribute"),
    "create_document": ApiRoute(
        DOCUMENTS, "POST", "/api/documents", "Request the upload of a document", status=HTTPStatus.CREATED
    ),
    "list_documents": ApiRoute(DOCUMENTS, "GET", "/api/documents", "List documents and their status"),
    "get_document": ApiRoute(DOCUMENTS, "GET", "/api/documents/{id}", "Get a document", errors=_UNKNOWN),
    "delete_document": ApiRoute(
        DOCUMENTS, "DELETE", "/api/documents/{id}", "Delete a document", status=HTTPStatus.ACCEPTED, errors=_UNKNOWN
    ),
    "start_job": ApiRoute(
        DOCUMENTS,
        "POST",
        "/api/ingestion-jobs",
        "Start a reconciliation or a full synchronisation",
        status=HTTPStatus.ACCEPTED,
        errors=(HTTPStatus.CONFLICT,),
    ),
    "list_jobs": ApiRoute(DOCUMENTS, "GET", "/api/ingestion-jobs", "List jobs"),
    "get_job": ApiRoute(DOCUMENTS, "GET", "/api/ingestion-jobs/{id}", "Get a job", errors=_UNKNOWN),
    "list_failures": ApiRoute(
        DOCUMENTS, "GET", "/api/failures", "List failed documents and dead letters", tag=_OPERATORS
    ),
    "replay_failures": ApiRoute(
        DOCUMENTS,
        "POST",
        "/api/failures/replay",
        "Replay dead letters and failed documents",
        errors=_UNKNOWN,
        tag=_OPERATORS,
    ),
    "discard_failures": ApiRoute(
        DOCUMENTS, "POST", "/api/failures/discard", "Delete dead letters", errors=_UNKNOWN, tag=_OPERATORS
    ),
    "list_tools": ApiRoute(QUERY, "GET", "/tools", "List the tools"),
    "run_tool": ApiRoute(QUERY, "POST", "/tools/{name}", "Run a tool"),
    "mcp": ApiRoute(ANSWERS, "POST", "/mcp"),
    "mcp_get": ApiRoute(ANSWERS, "GET", "/mcp"),  # answers 405, as the protocol has it
    "health": ApiRoute(QUERY, "GET", "/health", "Check that the function can answer"),
    "openapi": ApiRoute(QUERY, "GET", "/openapi.json"),
}
"""Each route by the name of its operation, from which generated clients name their functions."""
