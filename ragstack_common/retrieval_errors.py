"""What a failed Retrieve call means to the caller."""

import json
import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError, ParamValidationError

from ragstack_common.core.errors import (
    AccessDeniedError,
    ConfigurationError,
    InvalidRequestError,
    KnowledgeBaseNotFoundError,
    RagStackError,
    RetrievalError,
    ServiceUnavailableError,
    ThrottledError,
)
from ragstack_common.filters import Filter, clauses_of

Meaning: TypeAlias = tuple[type[RagStackError], str]
"""A class, and what the caller can do."""

_MEANING: Final[dict[str, Meaning]] = {
    "ResourceNotFoundException": (
        KnowledgeBaseNotFoundError,
        "check the knowledge base's id, the account and the region",
    ),
    "AccessDeniedException": (
        AccessDeniedError,
        "allow bedrock:Retrieve on the knowledge base to the process's role",
    ),
    "UnrecognizedClientException": (AccessDeniedError, "check the credentials"),
    "ExpiredTokenException": (AccessDeniedError, "sign in again: the credentials have expired"),
    "InvalidSignatureException": (AccessDeniedError, "check the credentials and the clock"),
    "ThrottlingException": (ThrottledError, "send fewer requests a second, or ask for a higher quota"),
    "ServiceQuotaExceededException": (ThrottledError, "send fewer requests a second, or ask for a higher quota"),
    "ValidationException": (InvalidRequestError, "change the query or the filter; the log has what the service says"),
}
"""Source: the errors that bedrock-agent-runtime models for Retrieve, and those of AWS's request signing."""


_MAX_SHOWN: Final = 16
"""Characters of a filter's value by which it is recognized in a message that may have shortened it."""


def reason_of(error: Exception) -> str:
    """Return the part of an error that callers may see: the service's code, or the error's class.

    Messages of AWS name roles, accounts and endpoints; :func:`describe` has them, for logs. The messages of RAGStack's
    own errors are part of the reason.
    """
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", "Unknown"))
    name = type(error).__name__
    return " ".join(f"{name}: {error}".split()) if isinstance(error, RagStackError) else name


def describe(error: Exception, query: str, filters: Filter | None = None) -> str:
    """Return the error with its full message, in one line, for logs.

    The service quotes a value that it refuses. The query and the values of the filter are left out, because they can
    be personal data.
    """
    if isinstance(error, ClientError):
        details = error.response.get("Error", {})
        text = f"{details.get('Code', 'Unknown')}: {details.get('Message', '')}"
    else:
        text = f"{type(error).__name__}: {error}"
    text = text.replace(f"'{query}'", "'...'")
    literals = [clause.value for clause in clauses_of(filters)] if filters is not None else []
    values = {str(each) for value in literals for each in (value if isinstance(value, tuple) else (value,))}
    for value in sorted(filter(None, values), key=len, reverse=True):
        # The service may shorten a long value, and escapes it where it quotes JSON.
        for form in {value, json.dumps(value)[1:-1]}:
            shown, more = form[:_MAX_SHOWN], r"[^'\"]*" if len(form) > _MAX_SHOWN else r"(?!\w)"
            text = re.sub(rf"(?<!\w){re.escape(shown)}{more}", "...", text)
    return " ".join(text.split())


def meaning(error: Exception, own: Mapping[str, Meaning] = _MEANING) -> Meaning:
    """Return the error class for an error of boto3, and what to do about it.

    Args:
        error: What was raised.
        own: Meanings by error code, for services other than Bedrock; those of Bedrock still apply.
    """
    if isinstance(error, ClientError):
        code = error.response.get("Error", {}).get("Code", "")
        unknown = ServiceUnavailableError, "try again; if it lasts, check the service's health"
        return {**_MEANING, **own}.get(code, unknown)
    if isinstance(error, NoCredentialsError | NoRegionError):
        return ConfigurationError, "configure the AWS credentials and the region"
    if isinstance(error, ParamValidationError):
        return InvalidRequestError, "change the request; the cause of this error says how"
    if isinstance(error, BotoCoreError):
        return ServiceUnavailableError, "check the endpoint and the network"
    return RetrievalError, "see the cause"
