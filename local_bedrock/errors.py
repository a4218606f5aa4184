"""The errors that the local Bedrock answers with, by the names in the service models.

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
    ├── NotSupported          an operation of the service that does not exist here, 501
    └── UnknownRoute          a path or method of no operation at all, 404
"""


class ServiceError(Exception):
    """An error that the caller sees.

    Attributes:
        code: What botocore reports under ``Error.Code``.
        status: The HTTP status where the operation's model gives none for this code.
    """

    code = "InternalServerException"
    status = 500


class InvalidRequest(ServiceError):  # noqa: N818 - named as the answer reads
    """The request is malformed, out of range, or not possible in the present state."""

    code = "ValidationException"
    status = 400


class InvalidBody(ServiceError):  # noqa: N818
    """The body cannot be read at all. No model lists this error, which every rest-json service can answer with.

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
    """Another resource or a running job stands in the way."""

    code = "ConflictException"
    status = 409


class DependencyFailed(ServiceError):  # noqa: N818
    """What a knowledge base depends on failed: the server that writes its answers, for one."""

    code = "DependencyFailedException"
    status = 424


class ModelError(ServiceError):
    """The model failed on the request."""

    code = "ModelErrorException"
    status = 424


class ModelStreamError(ModelError):
    """The model failed after it had begun to answer."""

    code = "ModelStreamErrorException"


class Throttled(ServiceError):  # noqa: N818
    """One call too many for this second; the same call succeeds later.

    Attributes:
        retry_after_seconds: When another call may succeed; at least 1.
    """

    code = "ThrottlingException"
    status = 429

    def __init__(self, message: str, retry_after_seconds: int = 1) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class TooManyRequests(Throttled):
    """One call of S3 Vectors too many."""

    code = "TooManyRequestsException"


class QuotaExceeded(ServiceError):  # noqa: N818
    """The account has as much of something as it may."""

    code = "ServiceQuotaExceededException"
    status = 402


class Unavailable(ServiceError):  # noqa: N818
    """The service cannot answer at the moment."""

    code = "ServiceUnavailableException"
    status = 503


class TooLarge(ServiceError):  # noqa: N818
    """The body is larger than any request may be. No model lists this error."""

    code = "RequestEntityTooLargeException"
    status = 413


class HeadTooLarge(ServiceError):  # noqa: N818
    """Path and headers are larger than those of any request may be. No model lists this error."""

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
