"""The errors of the service, by the names in the service models."""

from typing import ClassVar


class ServiceError(Exception):
    """An error that the caller sees.

    Attributes:
        code: ``Error.Code`` in botocore.
        status: The HTTP status, unless the operation's model has another one for this code.
    """

    code: ClassVar[str] = "InternalServerException"
    status: ClassVar[int] = 500

    def __init_subclass__(cls, code: str | None = None, status: int | None = None) -> None:
        """Set the code, and the status unless it is that of the base class."""
        cls.code = code or cls.code
        cls.status = status or cls.status


class InvalidRequest(ServiceError, code="ValidationException", status=400):
    """The request is malformed, out of range, or impossible in the present state."""


class InvalidBody(ServiceError, code="SerializationException", status=400):
    """The body can't be parsed. Every rest-json service can return this error, although no model lists it.

    Source: https://smithy.io/2.0/aws/protocols/aws-restjson1-protocol.html, protocol tests of malformed bodies.
    """


class NotFound(ServiceError, code="ResourceNotFoundException", status=404):
    """No such knowledge base, data source or ingestion job."""


class NoVectorResource(NotFound, code="NotFoundException"):
    """No such vector bucket or vector index."""


class Conflict(ServiceError, code="ConflictException", status=409):
    """The request conflicts with another resource or a running job."""


class DependencyFailed(ServiceError, code="DependencyFailedException", status=424):
    """A dependency failed, such as the embedding or the server that writes answers."""


class ModelError(ServiceError, code="ModelErrorException", status=424):
    """The model failed on the request."""


class ModelStreamError(ModelError, code="ModelStreamErrorException"):
    """The model failed in the middle of a streamed answer."""


class Throttled(ServiceError, code="ThrottlingException", status=429):
    """The request rate is exceeded.

    Attributes:
        retry_after_seconds: When to retry; at least 1.
    """

    def __init__(self, message: str, retry_after_seconds: int = 1) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class AccessDenied(ServiceError, code="AccessDeniedException", status=403):
    """The caller's policies don't allow the action."""


class TooManyRequests(Throttled, code="TooManyRequestsException"):
    """The request rate of S3 Vectors is exceeded."""


class QuotaExceeded(ServiceError, code="ServiceQuotaExceededException", status=402):
    """The account has reached a quota."""


class Unavailable(ServiceError, code="ServiceUnavailableException", status=503):
    """The service is temporarily unavailable."""


class TooLarge(ServiceError, code="RequestEntityTooLargeException", status=413):
    """The body is too large for any request. No model lists this error."""


class NotSupported(ServiceError, code="NotImplementedException", status=501):
    """AWS has this operation; the local Bedrock does not."""


class UnknownRoute(ServiceError, code="UnknownOperationException", status=404):
    """No operation has this method and path."""
