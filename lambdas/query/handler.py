"""Answers searches over HTTP."""

import gc

# What the imports make lives as long as the process: looking for garbage in it is a tenth of a cold start.
gc.disable()

import binascii
import os
from functools import cache
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response, content_types
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from aws_lambda_powertools.logging.utils import copy_config_to_registered_loggers
from aws_lambda_powertools.utilities.typing import LambdaContext

from ragstack_common import errors
from ragstack_common.query import QueryService, RetrieveRequest, RetrieveResponse

gc.freeze()
gc.enable()


STATUS_OF = {
    errors.RagStackError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.ConfigurationError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.UnknownEngineError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.MissingEngineError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.DimensionMismatchError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.EmbeddingError: HTTPStatus.BAD_GATEWAY,
    errors.InvalidRequestError: HTTPStatus.BAD_REQUEST,
    errors.InvalidQueryError: HTTPStatus.BAD_REQUEST,
    errors.InvalidFilterError: HTTPStatus.BAD_REQUEST,
    errors.InvalidDocumentError: HTTPStatus.BAD_REQUEST,
    errors.KnowledgeBaseNotFoundError: HTTPStatus.NOT_FOUND,
    errors.CollectionNotFoundError: HTTPStatus.NOT_FOUND,
    errors.AccessDeniedError: HTTPStatus.FORBIDDEN,
    errors.ThrottledError: HTTPStatus.TOO_MANY_REQUESTS,
    errors.RetrievalTimeoutError: HTTPStatus.GATEWAY_TIMEOUT,
    errors.ServiceUnavailableError: HTTPStatus.BAD_GATEWAY,
    errors.RetrievalError: HTTPStatus.BAD_GATEWAY,
}

logger = Logger()
copy_config_to_registered_loggers(logger, include={"ragstack"})
metrics = Metrics()
app = APIGatewayRestResolver(enable_validation=True)


@cache
def service() -> QueryService:
    """Build the service on the first request and keep it for the life of the container."""
    return QueryService.from_env(os.environ, metrics)


@app.post("/api/retrieve", summary="Search the knowledge base")
def retrieve(request: RetrieveRequest) -> RetrieveResponse:
    """Search with and without the metadata filter at once, and merge what comes back."""
    return service().retrieve(request)


@app.get("/health", summary="Tell whether the function can answer")
def health() -> dict[str, str]:
    """Answer ok when the settings are usable; it does not call the knowledge base."""
    service()
    return {"status": "ok"}


@app.get("/openapi.json", include_in_schema=False)
def openapi() -> Response[str]:
    """Describe this interface."""
    schema = app.get_openapi_json_schema(title="RAGStack", version="1", description="Search over your documents")
    return Response(HTTPStatus.OK, content_types.APPLICATION_JSON, schema)


@app.exception_handler(errors.RagStackError)
def explain(error: errors.RagStackError) -> Response[Any]:
    """Answer an error of ours with its class, its message and the status that fits."""
    status = next(STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF)
    (logger.warning if status < HTTPStatus.INTERNAL_SERVER_ERROR else logger.error)("request failed: %s", error)
    return _error(status, type(error).__name__.removesuffix("Error"), str(error))


@app.exception_handler(RequestValidationError)
def explain_validation(error: RequestValidationError) -> Response[Any]:
    """Answer a body that does not fit, naming each member that is wrong."""
    details = [{"member": _member(e["loc"]), "problem": e["msg"]} for e in error.errors()]
    message = "; ".join(f"{detail['member']}: {detail['problem']}" for detail in details)
    if "json" not in (app.current_event.headers.get("content-type") or ""):
        message += "; send the header Content-Type: application/json"
    return _error(HTTPStatus.BAD_REQUEST, "InvalidRequest", message, details)


@app.exception_handler([binascii.Error, UnicodeDecodeError])
def explain_encoding(error: Exception) -> Response[Any]:
    """Answer a body whose base64 holds no text."""
    return _error(HTTPStatus.BAD_REQUEST, "InvalidRequest", f"body: {error}")


@app.not_found
def explain_not_found(_: Exception) -> Response[Any]:
    """Answer a path that is not served."""
    path = f"{app.current_event.http_method} {app.current_event.path}"
    return _error(HTTPStatus.NOT_FOUND, "NotFound", f"There is no {path}; see GET /openapi.json")


@app.exception_handler(Exception)
def explain_bug(error: Exception) -> Response[Any]:
    """Answer what should not happen; the trace stands in the log alone."""
    logger.error("unexpected error", exc_info=error)
    message = "Something went wrong on our side; the log of this request tells what"
    return _error(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", message)


def _member(location: tuple[str | int, ...]) -> str:
    """Name the member of the body that is wrong; a position in text that is no JSON names none."""
    return ".".join(part for part in location[1:] if isinstance(part, str)) or "body"


def _error(status: HTTPStatus, code: str, message: str, details: list[dict[str, Any]] | None = None) -> Response[Any]:
    body = {"error": {"code": code, "message": message, "details": details or []}}
    return Response(status, content_types.APPLICATION_JSON, body)


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Route a request of API Gateway."""
    metrics.add_metric("Requests", "Count", 1)
    return app.resolve(event, context)
