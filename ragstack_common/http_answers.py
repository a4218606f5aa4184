"""Error answers of a function behind API Gateway, whatever it serves. Powertools routes; this says what is answered."""

import binascii
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response, content_types
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError

from ragstack_common import http
from ragstack_common.errors import RagStackError, loggable

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger


def json_answer(status: int, body: dict[str, Any]) -> Response[Any]:
    """Answer with JSON."""
    return Response(status, content_types.APPLICATION_JSON, body)


def answer_errors(app: APIGatewayRestResolver, logger: "Logger") -> None:
    """Have every error answered in the one form, and what the caller is not to see written into the log alone."""

    def explain(error: RagStackError) -> Response[Any]:
        status = http.status_of(error)
        (logger.warning if status < HTTPStatus.INTERNAL_SERVER_ERROR else logger.error)(
            "request failed: %s", loggable(error)
        )
        return json_answer(status, http.body_of(error))

    def explain_validation(error: RequestValidationError) -> Response[Any]:
        content_type = app.current_event.headers.get("content-type")
        return json_answer(HTTPStatus.BAD_REQUEST, http.invalid_body(error.errors(), content_type))

    def explain_encoding(error: Exception) -> Response[Any]:
        return json_answer(HTTPStatus.BAD_REQUEST, http.error_body("InvalidRequest", f"body: {error}"))

    def explain_not_found(_: Exception) -> Response[Any]:
        path = f"{app.current_event.http_method} {app.current_event.path}"
        body = http.error_body("NotFound", f"There is no {path}; see GET /openapi.json")
        return json_answer(HTTPStatus.NOT_FOUND, body)

    def explain_bug(error: Exception) -> Response[Any]:
        logger.error("unexpected error", exc_info=error)
        message = "Something went wrong on our side; the log of this request tells what"
        return json_answer(HTTPStatus.INTERNAL_SERVER_ERROR, http.error_body("InternalError", message))

    app.exception_handler(RagStackError)(explain)
    app.exception_handler(RequestValidationError)(explain_validation)
    app.exception_handler([binascii.Error, UnicodeDecodeError])(explain_encoding)
    app.exception_handler(Exception)(explain_bug)
    app.not_found(explain_not_found)
