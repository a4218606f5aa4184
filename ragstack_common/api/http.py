"""JSON in, errors out: how every function reads a request's body, and which status and body an error has."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from ragstack_common import errors

MAX_JSON_DEPTH: Final = 64
"""Objects and lists inside each other. A filter of 16 levels takes about 35."""

_TOO_DEEP: Final = f"The request body is nested deeper than {MAX_JSON_DEPTH} levels"

MAX_NUMBER_CHARACTERS: Final = 400
"""The largest float has 309 digits before its point."""

MAX_DETAILS: Final = 20
"""Problems that one answer lists. A body can have a hundred thousand unknown members; an answer has 6 MB at most."""

MAX_NAME_CHARACTERS: Final = 80
"""What an answer quotes of a name that the caller made up."""

_ABOUT_THE_REQUEST: Final = (errors.InvalidRequestError, errors.NotKnownError, errors.JobConflictError)
"""RAGStack writes these messages itself, about the caller's own input, so they are returned unchanged."""

_INTERNALS: Final = re.compile(
    r"(?P<kept>s3://\S+)|(?P<arn>\barn:[\w-]*:[^\s,;\"']+)|(?P<address>\b[a-z][a-z0-9+.-]*://[^\s\"']+)"
    r"|(?P<host>\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b|\b[\w-]+(?:\.[\w-]+)+:\d{2,5}\b)"
    r"|(?P<account>(?<!\d)\d{12}(?!\d))",
    re.IGNORECASE,
)

STATUS_OF: Final = {
    errors.RagStackError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.ConfigurationError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.UnknownEngineError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.MissingPackageError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.DimensionMismatchError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.EmbeddingError: HTTPStatus.BAD_GATEWAY,
    errors.InvalidRequestError: HTTPStatus.BAD_REQUEST,
    errors.InvalidQueryError: HTTPStatus.BAD_REQUEST,
    errors.UnsupportedContentTypeError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    errors.UnknownCorpusError: HTTPStatus.BAD_REQUEST,
    errors.InvalidFilterError: HTTPStatus.BAD_REQUEST,
    errors.InvalidDocumentError: HTTPStatus.BAD_REQUEST,
    errors.KnowledgeBaseNotFoundError: HTTPStatus.NOT_FOUND,
    errors.CollectionNotFoundError: HTTPStatus.NOT_FOUND,
    errors.PartitionNotFoundError: HTTPStatus.NOT_FOUND,
    errors.NotKnownError: HTTPStatus.NOT_FOUND,
    errors.DocumentNotFoundError: HTTPStatus.NOT_FOUND,
    errors.JobNotFoundError: HTTPStatus.NOT_FOUND,
    errors.JobConflictError: HTTPStatus.CONFLICT,
    errors.RegistryError: HTTPStatus.BAD_GATEWAY,
    errors.DeliveryError: HTTPStatus.BAD_GATEWAY,
    errors.AccessDeniedError: HTTPStatus.FORBIDDEN,
    errors.ThrottledError: HTTPStatus.TOO_MANY_REQUESTS,
    errors.RetrievalTimeoutError: HTTPStatus.GATEWAY_TIMEOUT,
    errors.ServiceUnavailableError: HTTPStatus.BAD_GATEWAY,
    errors.RetrievalError: HTTPStatus.BAD_GATEWAY,
}


def status_of(error: errors.RagStackError) -> HTTPStatus:
    """Return the status of the nearest class in the tree."""
    return next(STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF)


def message_of(error: errors.RagStackError) -> str:
    """Return the message for the caller: one line, without ARNs, account ids and internal addresses."""
    text = " ".join(str(error).split())
    return text if isinstance(error, _ABOUT_THE_REQUEST) else redacted(text)


def redacted(text: str) -> str:
    """Replace ARNs, account ids and addresses in a text from AWS; ``s3://`` URIs stay."""
    return _INTERNALS.sub(lambda found: found["kept"] or f"[{found.lastgroup}]", text)


def code_of(error: errors.RagStackError) -> str:
    """Return the error code for programs."""
    return type(error).__name__.removesuffix("Error")


def error_body(code: str, message: str, request_id: str, details: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
    """Return the body that every error response has.

    Args:
        code: For programs, such as ``InvalidFilter``.
        message: For people: one line that says what to do.
        request_id: The log has the request under this id.
        details: Members of the body that do not fit.
    """
    return {"error": {"code": code, "message": message, "details": [*details], "requestId": request_id}}


def invalid_members(problems: Iterable[Mapping[str, Any]]) -> tuple[str, list[dict[str, str]]]:
    """Describe each member of a request that does not fit, at most 20 of them.

    Args:
        problems: As pydantic lists them.

    Returns:
        The message, and the details.
    """
    found = list(problems)
    details = [
        {"member": _member(problem["loc"])[:MAX_NAME_CHARACTERS], "problem": str(problem["msg"])}
        for problem in found[:MAX_DETAILS]
    ]
    message = "; ".join(f"{detail['member']}: {detail['problem']}" for detail in details)
    more = len(found) - len(details)
    return f"{message}; and {more} more" if more else message, details


def _member(location: Sequence[str | int]) -> str:
    """Name the member that is wrong.

    The first part of the location says that it is in the body. What follows a member's name, such as which of its
    types was tried, is left out.
    """
    return next((part for part in location[1:] if isinstance(part, str)), "body")


def check_content_type(content_type: str) -> None:
    """Accept JSON, and a body whose type is not given.

    Args:
        content_type: The header's value; empty if there is none.

    Raises:
        UnsupportedContentTypeError: It is something else, or not UTF-8.
    """
    media_type, *parameters = (part.strip().lower() for part in content_type.split(";"))
    charsets = [part.removeprefix("charset=").strip('"') for part in parameters if part.startswith("charset=")]
    if media_type not in ("", "application/json") or any(charset not in ("utf-8", "utf8") for charset in charsets):
        raise errors.UnsupportedContentTypeError(
            f"The content type {content_type[:MAX_NAME_CHARACTERS]!r} is not supported: send JSON in UTF-8, with the "
            "header Content-Type: application/json"
        )


def read_json(text: str) -> dict[str, Any]:
    """Read a body strictly: one JSON object whose names are unique, with finite numbers, not nested too deep.

    Raises:
        InvalidRequestError: The text is something else; the message says what.
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
        raise errors.InvalidRequestError(_TOO_DEEP) from None
    except ValueError as error:
        raise errors.InvalidRequestError(f"The request body is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise errors.InvalidRequestError("The request body must be a JSON object")
    _check_values(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise errors.InvalidRequestError(f"{name[:MAX_NAME_CHARACTERS]}: the request body has this name twice")
        members[name] = value
    return members


def _constant(name: str) -> float:
    raise errors.InvalidRequestError(f"The request body holds {name}, which is not JSON")


def _int(text: str) -> int:
    _check_length(text)
    return int(text)


def _float(text: str) -> float:
    _check_length(text)
    number = float(text)
    if not math.isfinite(number):
        raise errors.InvalidRequestError(f"The request body holds {text}, which is too large a number")
    return number


def _check_length(number: str) -> None:
    if len(number) > MAX_NUMBER_CHARACTERS:
        raise errors.InvalidRequestError(f"The request body holds a number of {len(number)} characters")


def _check_values(value: Any) -> None:
    """Check what the parser lets through: depth, and text that is half a surrogate pair. Without recursion."""
    level, depth = [value], 0
    while level:
        depth += 1
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict | list):
                if depth > MAX_JSON_DEPTH:
                    raise errors.InvalidRequestError(_TOO_DEEP)
                inner += [*each.keys(), *each.values()] if isinstance(each, dict) else each
            elif isinstance(each, str) and not _is_unicode(each):
                raise errors.InvalidRequestError("The request body holds text that is not valid Unicode")
        level = inner


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
