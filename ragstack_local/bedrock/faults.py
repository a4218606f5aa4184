"""The errors that the local Bedrock answers with, by the names in the service models.

::

    ServiceError
    ├── InvalidRequest        ValidationException, 400
    ├── NotFound              ResourceNotFoundException, 404
    ├── Conflict              ConflictException, 409
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


class NotFound(ServiceError):  # noqa: N818
    """No such knowledge base, data source or ingestion job."""

    code = "ResourceNotFoundException"
    status = 404


class Conflict(ServiceError):  # noqa: N818
    """Another resource or a running job stands in the way."""

    code = "ConflictException"
    status = 409


class NotSupported(ServiceError):  # noqa: N818
    """AWS has this operation; the local Bedrock does not."""

    code = "NotImplementedException"
    status = 501


class UnknownRoute(ServiceError):  # noqa: N818
    """No operation has this method and path."""

    code = "UnknownOperationException"
    status = 404
