"""What a failed Retrieve call means to the caller."""

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
    "ThrottlingException": (ThrottledError, "send fewer requests a second, or request a higher quota"),
    "ServiceQuotaExceededException": (ThrottledError, "send fewer requests a second, or request a higher quota"),
    "ValidationException": (InvalidRequestError, "change the query or the filter; the log has what the service says"),
}
"""Source: the errors that bedrock-agent-runtime models for Retrieve, and those of AWS's request signing."""


def public_reason(error: Exception) -> str:
    """Return the part of an error that callers may see: the service's code, or the error's class.

    Messages of AWS name roles, accounts and endpoints, and are for logs alone. The messages of RAGStack's
    own errors are part of the reason.
    """
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", "Unknown"))
    name = type(error).__name__
    return " ".join(f"{name}: {error}".split()) if isinstance(error, RagStackError) else name


def meaning(error: Exception, own: Mapping[str, Meaning] = _MEANING) -> Meaning:
    """Return the error class for an error of boto3, and what to do about it.

    Services other than Bedrock have their *own* meanings of error codes; those of Bedrock still apply.
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
