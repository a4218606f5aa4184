"""The HTTP interface of a function behind API Gateway: reads requests strictly, and answers errors in one form.

Powertools routes the requests.
"""

import base64
import json
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response, content_types
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError

from ragstack_common.error_responses import code_of, message_of, status_of
from ragstack_common.errors import InvalidRequestError, RagStackError, UnsupportedContentTypeError, loggable
from ragstack_common.telemetry import LOGGER

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
    from aws_lambda_powertools.utilities.typing import LambdaContext

TOOLS: Final = "/tools"
"""Routes under it answer errors in the form that the tools' specification fixes."""

MAX_BODY_CHARACTERS: Final = 2 * 1024 * 1024
"""The longest filter has a million, and the longest query 20,000. To check 7 million took 5 seconds."""

MAX_JSON_DEPTH: Final = 64
"""Objects and lists inside each other. A filter of 16 levels takes about 35."""

MAX_NUMBER_CHARACTERS: Final = 400
"""The largest float has 309 digits before its point."""

MAX_DETAILS: Final = 20
"""Problems that one answer lists. A body can have a hundred thousand unknown members; an answer has 6 MB at most."""

MAX_NAME_CHARACTERS: Final = 80
"""How much of a name that the caller made up an answer quotes."""

RETRY_AFTER_SECONDS: Final = "1"
"""The knowledge base counts requests by the second. API Gateway's own answers say the same."""

_TOO_DEEP: Final = f"The request body is nested deeper than {MAX_JSON_DEPTH} levels"


class Api(APIGatewayRestResolver):
    """The routes of one function.

    Every body is one JSON object, read by :func:`read_json`; query parameters that a route does not have are rejected;
    every error has one form, and the id under which the log has the request.
    """

    def __init__(self, logger: "Logger") -> None:
        """Make an interface without routes.

        Args:
            logger: The function's logger; each of its lines gets the request's id.
        """
        super().__init__(enable_validation=True, json_body_deserializer=read_json)
        self._logger = logger
        self._request_id = ""
        self.use([self._check_parameters])
        self.exception_handler(RagStackError)(self._explain)
        self.exception_handler(RequestValidationError)(self._explain_validation)
        self.exception_handler(Exception)(self._explain_bug)
        self.not_found(self._explain_not_found)

    def resolve(self, event: Mapping[str, Any], context: "LambdaContext") -> dict[str, Any]:
        """Handle a request from API Gateway, even a malformed one."""
        self._request_id = (event.get("requestContext") or {}).get("requestId") or context.aws_request_id
        self._logger.set_correlation_id(self._request_id)
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

    def _check_parameters(self, app: APIGatewayRestResolver, following: "NextMiddleware") -> Response[Any]:
        """Reject a query parameter that the route does not have, or that is given twice."""
        route = self.context["_route"]
        given = self.current_event.multi_value_query_string_parameters or {}
        if given and route in self._static_routes + self._dynamic_routes:
            known = [parameter.alias for parameter in route.dependant.query_params]
            for name, values in given.items():
                shown = name[:MAX_NAME_CHARACTERS]
                if name not in known:
                    raise InvalidRequestError(
                        f"{shown}: unknown parameter; this route takes {', '.join(known) or 'none'}"
                    )
                if len(values) > 1:
                    raise InvalidRequestError(f"{shown}: give it once")
        return following(app)

    def _error(self, path: str, error: RagStackError) -> tuple[int, dict[str, Any]]:
        status = status_of(error)
        level = logging.WARNING if status < HTTPStatus.INTERNAL_SERVER_ERROR else logging.ERROR
        LOGGER.log(level, "request failed: %s", loggable(error))
        return status, self._body(path, code_of(error), message_of(error))

    def _body(self, path: str, code: str, message: str, details: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
        if path == TOOLS or path.startswith(f"{TOOLS}/"):
            return {"success": False, "error": message}
        error = {"code": code, "message": message, "details": [*details], "requestId": self._request_id}
        return {"error": error}

    def _explain(self, error: RagStackError) -> Response[Any]:
        answer = json_answer(*self._error(self.current_event.path, error))
        if answer.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            answer.headers["Retry-After"] = RETRY_AFTER_SECONDS
        return answer

    def _explain_validation(self, error: RequestValidationError) -> Response[Any]:
        message, details = invalid_members(error.errors())
        body = self._body(self.current_event.path, "InvalidRequest", message, details)
        return json_answer(HTTPStatus.BAD_REQUEST, body)

    def _explain_not_found(self, _: Exception) -> Response[Any]:
        path = self.current_event.path
        shown = f"{self.current_event.http_method} {path}"[:MAX_NAME_CHARACTERS]
        body = self._body(path, "NotFound", f"There is no {shown}; see GET /openapi.json")
        return json_answer(HTTPStatus.NOT_FOUND, body)

    def _explain_bug(self, error: Exception) -> Response[Any]:
        LOGGER.error("unexpected error", exc_info=error)
        message = f"The service failed with an unexpected error; its log has the details for request {self._request_id}"
        body = self._body(self.current_event.path, "InternalError", message)
        return json_answer(HTTPStatus.INTERNAL_SERVER_ERROR, body)


def json_answer(status: int, body: Mapping[str, Any]) -> Response[Any]:
    """Answer with JSON."""
    return Response(status, content_types.APPLICATION_JSON, dict(body))


def _readable(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request whose body, if it has one, is JSON as text.

    Raises:
        UnsupportedContentTypeError: The body is of another type.
        InvalidRequestError: The body is too long, or not UTF-8 in base64 although it should be.
    """
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    content_type, body = headers.pop("content-type", None) or "", event.get("body")
    if not body:
        return {**event, "headers": headers, "body": None}
    check_content_type(content_type)
    if event.get("isBase64Encoded"):
        try:
            body = base64.b64decode(body, validate=True).decode()
        except ValueError as error:
            raise InvalidRequestError(f"The request body is not text in UTF-8: {error}") from None
    if len(body) > MAX_BODY_CHARACTERS:
        raise InvalidRequestError(
            f"The request body has {len(body):,} characters; at most {MAX_BODY_CHARACTERS:,} are accepted"
        )
    # Without the header, Powertools reads every body as JSON.
    return {**event, "headers": headers, "body": body, "isBase64Encoded": False}


def invalid_members(problems: Iterable[Mapping[str, Any]]) -> tuple[str, list[dict[str, str]]]:
    """Describe each invalid member of a request, at most 20 of them.

    Args:
        problems: As pydantic lists them.

    Returns:
        The message, and the details.
    """
    found = list(problems)
    details = [
        {
            # The location begins with "body". After the member's name it may say which of its types was tried.
            "member": next((part for part in problem["loc"][1:] if isinstance(part, str)), "body")[
                :MAX_NAME_CHARACTERS
            ],
            "problem": str(problem["msg"]),
        }
        for problem in found[:MAX_DETAILS]
    ]
    message = "; ".join(f"{detail['member']}: {detail['problem']}" for detail in details)
    more = len(found) - len(details)
    return f"{message}; and {more} more" if more else message, details


def check_content_type(content_type: str) -> None:
    """Accept JSON in UTF-8, and a body without a content type.

    Args:
        content_type: The header's value; empty without the header.

    Raises:
        UnsupportedContentTypeError: It is another type, or not UTF-8.
    """
    media_type, *parameters = (part.strip().lower() for part in content_type.split(";"))
    charsets = [part.removeprefix("charset=").strip('"') for part in parameters if part.startswith("charset=")]
    if media_type not in ("", "application/json") or any(charset not in ("utf-8", "utf8") for charset in charsets):
        raise UnsupportedContentTypeError(
            f"The content type {content_type[:MAX_NAME_CHARACTERS]!r} is not supported: send JSON in UTF-8, with the "
            "header Content-Type: application/json"
        )


def read_json(text: str) -> dict[str, Any]:
    """Read a body strictly: one JSON object with unique names and finite numbers, at most 64 levels deep.

    Raises:
        InvalidRequestError: The body is anything else; the message says what.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_int,
        )
    except RecursionError:
        raise InvalidRequestError(_TOO_DEEP) from None
    except ValueError as error:
        raise InvalidRequestError(f"The request body is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidRequestError("The request body must be a JSON object")
    _check_values(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise InvalidRequestError(f"{name[:MAX_NAME_CHARACTERS]}: the request body has this name twice")
        members[name] = value
    return members


def _constant(name: str) -> float:
    raise InvalidRequestError(f"The request body holds {name}, which is not JSON")


def _int(text: str) -> int:
    _check_length(text)
    return int(text)


def _float(text: str) -> float:
    _check_length(text)
    number = float(text)
    if not math.isfinite(number):
        raise InvalidRequestError(f"The request body holds {text}, which is too large a number")
    return number


def _check_length(number: str) -> None:
    if len(number) > MAX_NUMBER_CHARACTERS:
        raise InvalidRequestError(f"The request body holds a number of {len(number)} characters")


def _check_values(value: Any) -> None:
    """Check what the parser accepts: the depth, and lone surrogates. Without recursion."""
    level, depth = [value], 0
    while level:
        depth += 1
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict | list):
                if depth > MAX_JSON_DEPTH:
                    raise InvalidRequestError(_TOO_DEEP)
                inner += [*each.keys(), *each.values()] if isinstance(each, dict) else each
            elif isinstance(each, str) and not _is_unicode(each):
                raise InvalidRequestError("The request body holds text that is not valid Unicode")
        level = inner


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
