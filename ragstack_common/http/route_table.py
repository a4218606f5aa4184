"""The routes of the HTTP interface, which the functions serve, the stacks deploy and the OpenAPI document describes."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from ragstack_common.access.callers import Right
from ragstack_common.reading.page_links import PATH as VIEW_PATH

ANSWERS: Final = "answers"
DOCUMENTS: Final = "documents"
QUERY: Final = "query"
VIEWER: Final = "viewer"

_CONVERSATIONS: Final = "Conversations"
_OPERATORS: Final = "Operators"

_UNKNOWN: Final = (HTTPStatus.NOT_FOUND,)


@dataclass(frozen=True)
class ApiRoute:
    """A route.

    Attributes:
        function: The function that serves it, by the name of its folder in lambdas/.
        method: HTTP method.
        path: Path with parameters in braces.
        right: What a caller needs; None for every caller, also without authentication.
        summary: A few words for the OpenAPI document, which leaves out routes without them.
        status: Status of a successful response.
        errors: Statuses of errors that only some routes have.
        tag: Heading in the OpenAPI document.
    """

    function: str
    method: str
    path: str
    right: Right | None
    summary: str = ""
    status: int = HTTPStatus.OK
    errors: tuple[int, ...] = ()
    tag: str | None = None


ROUTES: Final[Mapping[str, ApiRoute]] = {
    "retrieve": ApiRoute(QUERY, "POST", "/api/retrieve", Right.READ, "Search the knowledge base"),
    "explain": ApiRoute(QUERY, "POST", "/api/explain", Right.READ, "Explain why a document is found, or not"),
    "ask": ApiRoute(ANSWERS, "POST", "/api/ask", Right.READ, "Ask a question"),
    "ask_stream": ApiRoute(ANSWERS, "POST", "/api/ask/stream", Right.READ, "Ask a question, and stream the answer"),
    "corpora": ApiRoute(QUERY, "GET", "/api/corpora", Right.READ, "List the corpora that can be searched"),
    "versions": ApiRoute(
        QUERY, "GET", "/api/versions", Right.READ, "List the versions of documents that can be searched"
    ),
    "list_facets": ApiRoute(DOCUMENTS, "GET", "/api/facets", Right.READ, "Count searchable documents by attribute"),
    "create_document": ApiRoute(
        DOCUMENTS, "POST", "/api/documents", Right.WRITE, "Request the upload of a document", status=HTTPStatus.CREATED
    ),
    "list_documents": ApiRoute(DOCUMENTS, "GET", "/api/documents", Right.READ, "List documents and their status"),
    "find_documents": ApiRoute(
        DOCUMENTS, "GET", "/api/documents/find", Right.READ, "Find documents by words of their names and attributes"
    ),
    "get_document": ApiRoute(DOCUMENTS, "GET", "/api/documents/{id}", Right.READ, "Get a document", errors=_UNKNOWN),
    "download_document": ApiRoute(
        DOCUMENTS,
        "GET",
        "/api/documents/{id}/download",
        Right.READ,
        "Get an address from which the file is downloaded",
        errors=_UNKNOWN,
    ),
    "change_document": ApiRoute(
        DOCUMENTS,
        "PATCH",
        "/api/documents/{id}",
        Right.WRITE,
        "Change the attributes of a document",
        status=HTTPStatus.ACCEPTED,
        errors=_UNKNOWN,
    ),
    "delete_document": ApiRoute(
        DOCUMENTS,
        "DELETE",
        "/api/documents/{id}",
        Right.WRITE,
        "Delete a document",
        status=HTTPStatus.ACCEPTED,
        errors=_UNKNOWN,
    ),
    "view": ApiRoute(VIEWER, "POST", VIEW_PATH, Right.READ, "Show a document with marks", errors=_UNKNOWN),
    "view_region": ApiRoute(
        VIEWER, "GET", VIEW_PATH, Right.READ, "Show the part of a page around words", errors=_UNKNOWN
    ),
    "start_job": ApiRoute(
        DOCUMENTS,
        "POST",
        "/api/ingestion-jobs",
        Right.OPERATE,
        "Start a reconciliation or a full synchronisation",
        status=HTTPStatus.ACCEPTED,
        errors=(HTTPStatus.CONFLICT,),
    ),
    "list_jobs": ApiRoute(DOCUMENTS, "GET", "/api/ingestion-jobs", Right.OPERATE, "List jobs"),
    "get_job": ApiRoute(DOCUMENTS, "GET", "/api/ingestion-jobs/{id}", Right.OPERATE, "Get a job", errors=_UNKNOWN),
    "list_failures": ApiRoute(
        DOCUMENTS, "GET", "/api/failures", Right.OPERATE, "List failed documents and dead letters", tag=_OPERATORS
    ),
    "replay_failures": ApiRoute(
        DOCUMENTS,
        "POST",
        "/api/failures/replay",
        Right.OPERATE,
        "Replay dead letters and failed documents",
        errors=_UNKNOWN,
        tag=_OPERATORS,
    ),
    "discard_failures": ApiRoute(
        DOCUMENTS,
        "POST",
        "/api/failures/discard",
        Right.OPERATE,
        "Delete dead letters",
        errors=_UNKNOWN,
        tag=_OPERATORS,
    ),
    "status": ApiRoute(
        DOCUMENTS, "GET", "/api/status", Right.OPERATE, "Show the state of the deployment", tag=_OPERATORS
    ),
    "list_judgments": ApiRoute(DOCUMENTS, "GET", "/api/judgments", Right.READ, "List judgments of results and answers"),
    "write_judgment": ApiRoute(DOCUMENTS, "PUT", "/api/judgments", Right.READ, "Judge a result or an answer"),
    "measure_ranking": ApiRoute(
        DOCUMENTS, "POST", "/api/judgments/measure", Right.READ, "Measure a ranking by the grades of documents"
    ),
    "export_judgments": ApiRoute(
        QUERY, "GET", "/api/judgments/export", Right.READ, "Export judgments as a data set in BEIR's form"
    ),
    "report_gap": ApiRoute(
        DOCUMENTS, "POST", "/api/gaps", Right.READ, "Report a question without a good answer", status=HTTPStatus.CREATED
    ),
    "list_gaps": ApiRoute(DOCUMENTS, "GET", "/api/gaps", Right.READ, "List questions without a good answer"),
    "change_gap": ApiRoute(DOCUMENTS, "PATCH", "/api/gaps/{id}", Right.READ, "Close or reopen a gap", errors=_UNKNOWN),
    "list_conversations": ApiRoute(
        DOCUMENTS, "GET", "/api/conversations", Right.READ, "List your conversations", tag=_CONVERSATIONS
    ),
    "delete_conversations": ApiRoute(
        DOCUMENTS, "DELETE", "/api/conversations", Right.READ, "Delete all of your conversations", tag=_CONVERSATIONS
    ),
    "get_conversation": ApiRoute(
        DOCUMENTS,
        "GET",
        "/api/conversations/{id}",
        Right.READ,
        "Get a conversation of yours",
        errors=_UNKNOWN,
        tag=_CONVERSATIONS,
    ),
    "rename_conversation": ApiRoute(
        DOCUMENTS,
        "PATCH",
        "/api/conversations/{id}",
        Right.READ,
        "Rename a conversation",
        errors=_UNKNOWN,
        tag=_CONVERSATIONS,
    ),
    "delete_conversation": ApiRoute(
        DOCUMENTS,
        "DELETE",
        "/api/conversations/{id}",
        Right.READ,
        "Delete a conversation",
        errors=_UNKNOWN,
        tag=_CONVERSATIONS,
    ),
    "share_conversation": ApiRoute(
        DOCUMENTS,
        "PUT",
        "/api/conversations/{id}/share",
        Right.READ,
        "Get the link to a conversation",
        errors=_UNKNOWN,
        tag=_CONVERSATIONS,
    ),
    "unshare_conversation": ApiRoute(
        DOCUMENTS,
        "DELETE",
        "/api/conversations/{id}/share",
        Right.READ,
        "Revoke the link to a conversation",
        errors=_UNKNOWN,
        tag=_CONVERSATIONS,
    ),
    "get_shared_conversation": ApiRoute(
        DOCUMENTS,
        "GET",
        "/api/shared/{id}",
        Right.READ,
        "Get a conversation that was shared",
        errors=_UNKNOWN,
        tag=_CONVERSATIONS,
    ),
    "me": ApiRoute(DOCUMENTS, "GET", "/api/me", Right.READ, "Describe the caller"),
    "get_access": ApiRoute(DOCUMENTS, "GET", "/api/access", Right.OPERATE, "Get the rules of access", tag=_OPERATORS),
    "change_access": ApiRoute(
        DOCUMENTS, "POST", "/api/access", Right.OPERATE, "Change a rule of access", tag=_OPERATORS
    ),
    "explain_access": ApiRoute(
        DOCUMENTS, "GET", "/api/access/explain", Right.OPERATE, "Explain who sees a document", tag=_OPERATORS
    ),
    "view_as": ApiRoute(
        DOCUMENTS, "POST", "/api/access/explain", Right.OPERATE, "Explain what a user can see", tag=_OPERATORS
    ),
    "list_settings": ApiRoute(
        DOCUMENTS, "GET", "/api/settings", Right.OPERATE, "List the settings in force", tag=_OPERATORS
    ),
    "list_people": ApiRoute(
        DOCUMENTS, "GET", "/api/people", Right.OPERATE, "List who was seen, and what they may do", tag=_OPERATORS
    ),
    "erase_person": ApiRoute(
        DOCUMENTS, "POST", "/api/people/erase", Right.OPERATE, "Erase what is stored of a person", tag=_OPERATORS
    ),
    "list_tools": ApiRoute(QUERY, "GET", "/tools", Right.READ, "List the tools"),
    "run_tool": ApiRoute(QUERY, "POST", "/tools/{name}", Right.READ, "Run a tool"),
    "mcp": ApiRoute(ANSWERS, "POST", "/mcp", Right.READ),
    "mcp_get": ApiRoute(ANSWERS, "GET", "/mcp", Right.READ),  # answers 405, as the protocol has it
    "mcp_metadata": ApiRoute(ANSWERS, "GET", "/.well-known/oauth-protected-resource", None),
    "health": ApiRoute(QUERY, "GET", "/health", None, "Check that the function can answer"),
    "openapi": ApiRoute(QUERY, "GET", "/openapi.json", Right.READ),
}
"""Each route by the name of its operation, from which generated clients name their functions."""
