"""The errors of the service, by the names in the service models.

::

    ServiceError
    ├── InvalidRequest        ValidationException, 400
    ├── InvalidBody           SerializationException, 400
    ├── NotFound              ResourceNotFoundException, 404
    │   └── NoVectorResource  NotFoundException, as S3 Vectors calls it
    ├── Conflict              ConflictException, 409
    ├── DependencyFailed      DependencyFailedException, 424
    ├── ModelError            ModelErrorException, 424
    │   └── ModelStreamError  ModelStreamErrorException, within a stream
    ├── Throttled             ThrottlingException, 429
    │   └── TooManyRequests   TooManyRequestsException, as S3 Vectors calls it
    ├── QuotaExceeded         ServiceQuotaExceededException, 402
    ├── Unavailable           ServiceUnavailableException, 503
    ├── TooLarge              RequestEntityTooLargeException, 413
    ├── HeadTooLarge          RequestHeaderSectionTooLarge, 431
    ├── NotSupported          an operation of AWS that the local Bedrock lacks, 501
    └── UnknownRoute          a method and path that belong to no operation, 404
"""


class ServiceError(Exception):
    """An error that the caller sees.

    Attributes:
        code: ``Error.Code`` in botocore.
        status: The HTTP status, unless the operation's model has another one for this code.
    """

    code = "InternalServerException"
    status = 500


class InvalidRequest(ServiceError):  # noqa: N818 - named as the answer reads
    """The request is malformed, out of range, or impossible in the present state."""

    code = "ValidationException"
    status = 400


class InvalidBody(ServiceError):  # noqa: N818
    """The body can't be parsed. Every rest-json service can return this error, although no model lists it.

    Source: https://smithy.io/2.0/aws/protocols/aws-restjson1-protocol.html, protocol tests of malformed bodies.
    """

    code = "SerializationException"
    status = 400


class NotFound(ServiceError):  # noqa: N818
    """No such knowledge base, data source or ingestion job."""

    code = "ResourceNotFoundException"
    status = 404


class NoVectorResource(NotFound):
    """No such vector bucket, vector index or policy."""

    code = "NotFoundException"


class Conflict(ServiceError):  # noqa: N818
    """The request conflicts with another resource or a running job."""

    code = "ConflictException"
    status = 409


class DependencyFailed(ServiceError):  # noqa: N818
    """A dependency failed, such as the embedding or the server that writes answers."""

    code = "DependencyFailedException"
    status = 424


class ModelError(ServiceError):
    """The model failed on the request."""

    code = "ModelErrorException"
    status = 424


class ModelStreamError(ModelError):
    """The model failed in the middle of a streamed answer."""

    code = "ModelStreamErrorException"


class Throttled(ServiceError):  # noqa: N818
    """The request rate is exceeded.

    Attributes:
        retry_after_seconds: When to retry; at least 1.
    """

    code = "ThrottlingException"
    status = 429

    def __init__(self, message: str, retry_after_seconds: int = 1) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class TooManyRequests(Throttled):
    """The request rate of S3 Vectors is exceeded."""

    code = "TooManyRequestsException"


class QuotaExceeded(ServiceError):  # noqa: N818
    """The account has reached a quota."""

    code = "ServiceQuotaExceededException"
    status = 402


class Unavailable(ServiceError):  # noqa: N818
    """The service is temporarily unavailable."""

    code = "ServiceUnavailableException"
    status = 503


class TooLarge(ServiceError):  # noqa: N818
    """The body is too large for any request. No model lists this error."""

    code = "RequestEntityTooLargeException"
    status = 413


class HeadTooLarge(ServiceError):  # noqa: N818
    """Path and headers are too large for any request. No model lists this error."""

    code = "RequestHeaderSectionTooLarge"
    status = 431


class NotSupported(ServiceError):  # noqa: N818
    """AWS has this operation; the local Bedrock does not."""

    code = "NotImplementedException"
    status = 501


class UnknownRoute(ServiceError):  # noqa: N818
    """No operation has this method and path."""

    code = "UnknownOperationException"
    status = 404
