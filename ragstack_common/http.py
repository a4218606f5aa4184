"""What every error of ours is over HTTP: a status, and a body of one form. For any function; it knows none."""

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from ragstack_common import errors

STATUS_OF: Final = {
    errors.RagStackError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.ConfigurationError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.UnknownEngineError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.MissingPackageError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.DimensionMismatchError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.EmbeddingError: HTTPStatus.BAD_GATEWAY,
    errors.InvalidRequestError: HTTPStatus.BAD_REQUEST,
    errors.InvalidQueryError: HTTPStatus.BAD_REQUEST,
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


def body_of(error: errors.RagStackError) -> dict[str, Any]:
    """Name the error's class and give its message."""
    return error_body(type(error).__name__.removesuffix("Error"), str(error))


def error_body(code: str, message: str, details: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
    """Put an error into the form that all of ours have."""
    return {"error": {"code": code, "message": message, "details": [*details]}}


def invalid_body(problems: Iterable[Mapping[str, Any]], content_type: str | None) -> dict[str, Any]:
    """Name each member of a body that does not fit.

    Args:
        problems: As pydantic lists them.
        content_type: What the caller said that the body is; JSON under another name is not read as such.
    """
    found = list(problems)
    details = [{"member": _member(problem["loc"]), "problem": str(problem["msg"])} for problem in found]
    message = "; ".join(f"{detail['member']}: {detail['problem']}" for detail in details)
    if "json" not in (content_type or "") and any(problem["loc"][:1] == ("body",) for problem in found):
        message += "; send the header Content-Type: application/json"
    return error_body("InvalidRequest", message, details)


def _member(location: Sequence[str | int]) -> str:
    """Name the member of the body that is wrong; a position in text that is no JSON names none.

    The first part says that it is in the body. What follows a member's name, such as which of its types was tried,
    names no member.
    """
    return next((part for part in location[1:] if isinstance(part, str)), "body")
