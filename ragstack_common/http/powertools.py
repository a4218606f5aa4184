"""The HTTP interface of a function behind API Gateway: Powertools with strict requests and one form of errors."""

import base64
import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Final

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response, content_types
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from aws_lambda_powertools.event_handler.openapi.params import Query

from ragstack_common.access.callers import Caller
from ragstack_common.access.identity import BEARER
from ragstack_common.core.errors import InvalidRequestError, RagStackError
from ragstack_common.core.reporting import (
    MAX_NAME_CHARACTERS,
    error_code,
    invalid_members,
    public_message,
    record_failure,
)
from ragstack_common.core.telemetry import MetricSink
from ragstack_common.http.bodies import check_content_type, check_length, read_json, unknown_parameter
from ragstack_common.http.errors import error_body, retry_after, unexpected
from ragstack_common.http.route_table import ROUTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
    from aws_lambda_powertools.shared.types import AnyCallableT
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from ragstack_common.access.identity import Callers

TOOLS: Final = "/tools"
"""Errors of these routes have the form of the tools' specification."""

MAX_PARAMETER_CHARACTERS: Final = 2048

NextToken = Annotated[
    str | None,
    Query(min_length=1, max_length=MAX_PARAMETER_CHARACTERS, description="The next_token of the previous page"),
]
OfAllCallers = Annotated[bool, Query(description="Those of all callers, which takes the right operate")]


class Api(APIGatewayRestResolver):
    """The routes of one function.

    Every body is one JSON object, read by :func:`read_json`; query parameters that a route does not have are rejected;
    every error has one form, and the id under which the log has the request.
    """

    def __init__(self, logger: "Logger", metrics: MetricSink, callers: "Callable[[], Callers]") -> None:
        """Make an interface without routes; *callers* is called with each request."""
        super().__init__(enable_validation=True, json_body_deserializer=read_json)
        self._logger = logger
        self._metrics = metrics
        self._request_id = ""
        self._callers = callers
        self._caller: Caller | None = None
        self.use([self._authorize, self._check_parameters])
        # Powertools checks bodies before all others, and would explain them to callers without a right.
        self._validate: Any = self._request_validation_middleware
        first: Any = self._authorize_first
        self._request_validation_middleware = first
        self.exception_handler(RagStackError)(self._explain)
        self.exception_handler(RequestValidationError)(self._explain_validation)
        self.exception_handler(Exception)(self._explain_bug)
        self.not_found(self._explain_not_found)

    @property
    def caller(self) -> Caller:
        """The caller of the current request, who has the right of its route."""
        assert self._caller is not None, "every route that needs a caller has a right"
        return self._caller

    def prepare(self, name: str) -> None:
        """Build the checks of a route's request and response, as its first request would."""
        for route in self._static_routes:
            if route.operation_id == name:
                checked = (*route.dependant.body_params, route.dependant.return_param)
                for field in filter(None, checked):
                    field.validate({}, loc=())

    def resolve(self, event: Mapping[str, Any], context: "LambdaContext") -> dict[str, Any]:
        """Handle a request from API Gateway, even a malformed one."""
        self._request_id = (event.get("requestContext") or {}).get("requestId") or context.aws_request_id
        self._logger.set_correlation_id(self._request_id)
        self._caller = None
        try:
            readable = _readable(event)
        except InvalidRequestError as error:
            status, body = self._error(event.get("path") or "", error)
            return {
                "statusCode": status,
                "body": json.dumps(body),
                "isBase64Encoded": False,
                "multiValueHeaders": {"Content-Type": [content_types.APPLICATION_JSON]},
            }
        return super().resolve(readable, context)

    def _authorize(self, app: APIGatewayRestResolver, following: "NextMiddleware") -> Response[Any]:
        """Reject a caller who lacks the right of the route."""
        route = ROUTES.get(self.context["_route"].operation_id)
        if self._caller is None and route is not None and route.right is not None:
            context = self.current_event.raw_event.get("requestContext") or {}
            self._caller = self._callers().authorized(route.right, f"{route.method} {route.path}", context)
        return following(app)

    def _authorize_first(self, app: APIGatewayRestResolver, following: "NextMiddleware") -> Response[Any]:
        passing: Any = lambda authorized: self._validate(authorized, following)  # noqa: E731 - typed as what it stands for
        return self._authorize(app, passing)

    def _check_parameters(self, app: APIGatewayRestResolver, following: "NextMiddleware") -> Response[Any]:
        """Reject a query parameter that the route does not have, or that is given twice."""
        route = self.context["_route"]
        given = self.current_event.multi_value_query_string_parameters or {}
        if given and route in self._static_routes + self._dynamic_routes:
            known = [parameter.alias for parameter in route.dependant.query_params]
            for name, values in given.items():
                if name not in known:
                    raise unknown_parameter(name, known)
                if len(values) > 1:
                    raise InvalidRequestError(f"{name[:MAX_NAME_CHARACTERS]} must not be repeated")
        return following(app)

    def _error(self, path: str, error: RagStackError) -> tuple[int, dict[str, Any]]:
        return record_failure(error, self._metrics), self._body(path, error_code(error), public_message(error))

    def _body(self, path: str, code: str, message: str, details: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
        if path == TOOLS or path.startswith(f"{TOOLS}/"):
            return {"success": False, "error": message}
        return error_body(code, message, self._request_id, details)

    def _explain(self, error: RagStackError) -> Response[Any]:
        answer = json_answer(*self._error(self.current_event.path, error))
        if (seconds := retry_after(error)) is not None:
            answer.headers["Retry-After"] = seconds
        if answer.status_code == HTTPStatus.UNAUTHORIZED:
            answer.headers["WWW-Authenticate"] = BEARER
        return answer

    def _explain_validation(self, error: RequestValidationError) -> Response[Any]:
        # Powertools puts "body" before the location of each problem.
        message, details = invalid_members([{**each, "loc": each["loc"][1:]} for each in error.errors()])
        body = self._body(self.current_event.path, "InvalidRequest", message, details)
        return json_answer(HTTPStatus.BAD_REQUEST, body)

    def _explain_not_found(self, _: Exception) -> Response[Any]:
        path = self.current_event.path
        shown = f"{self.current_event.http_method} {path}"[:MAX_NAME_CHARACTERS]
        body = self._body(path, "NotFound", f"There is no {shown}; see GET /openapi.json")
        return json_answer(HTTPStatus.NOT_FOUND, body)

    def _explain_bug(self, error: Exception) -> Response[Any]:
        body = self._body(self.current_event.path, *unexpected(error, self._request_id))
        return json_answer(HTTPStatus.INTERNAL_SERVER_ERROR, body)


def serve(
    app: APIGatewayRestResolver, name: str, *, enable_validation: bool = True
) -> "Callable[[AnyCallableT], AnyCallableT]":
    """Return a decorator for the function that serves a route, given the route's name in ROUTES."""
    route = ROUTES[name]
    return app.route(
        route.path.replace("{", "<").replace("}", ">"),
        route.method,
        summary=route.summary,
        tags=[route.tag] if route.tag else None,
        operation_id=name,
        include_in_schema=bool(route.summary),
        enable_validation=enable_validation,
        status_code=route.status,
    )


def json_answer(status: int, body: Mapping[str, Any]) -> Response[Any]:
    """Answer with JSON."""
    return Response(status, content_types.APPLICATION_JSON, dict(body))


def _readable(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request whose body, if it has one, is JSON as text; raises InvalidRequestError."""
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    # Without the header, Powertools reads every body as JSON.
    content_type, body = headers.pop("content-type", None), event.get("body")
    if body:
        check_content_type(content_type or "application/json")
        if event.get("isBase64Encoded"):
            try:
                body = base64.b64decode(body, validate=True).decode()
            except ValueError as error:
                raise InvalidRequestError(f"The request body is not text in UTF-8: {error}") from None
        check_length(body)
    return {**event, "headers": headers, "body": body or None, "isBase64Encoded": False}
