"""Every error of RAGStack, in one tree.

Each carries its meaning in its name and its one-line message says what to do. None knows HTTP: the function that
answers a request maps a class to a status.

::

    RagStackError
    ├── ConfigurationError               a setting is missing or unusable
    │   ├── UnknownEngineError           there is no engine of that name
    │   ├── MissingPackageError          an optional package is not installed
    │   ├── ScopeTooLongError            what a caller may see needs a longer filter than searches can have
    │   └── DimensionMismatchError       the embedding is not the one that the collection was made with
    ├── EmbeddingError                   an embedding cannot be had, or failed
    ├── InvalidRequestError              the caller must change the request
    │   ├── UnsupportedContentTypeError  a body that is not JSON
    │   ├── InvalidQueryError            empty or over-long query, num_results out of range
    │   ├── UnknownCorpusError           there is no corpus of that name
    │   ├── InvalidFilterError           a metadata filter that is malformed or that the engine cannot express
    │   └── InvalidDocumentError         a document that cannot be submitted as it is
    ├── NotAuthenticatedError            the caller did not prove who they are
    ├── NotAllowedError                  the caller lacks a right
    │   └── AccessNeededError            the caller does not see a document, and may ask somebody for access
    ├── LimitReachedError                the caller reached a limit
    ├── NotFoundError                    nothing has the name that was given
    │   ├── DocumentNotFoundError        neither the bucket nor the registry has the document
    │   ├── GapNotFoundError             the caller sees no such gap
    │   ├── ConversationNotFoundError    the caller has no such conversation, or there is no such link
    │   ├── JobNotFoundError             there is no ingestion job of that id
    │   └── UnknownCollectionError       the caller named a collection or partition that does not exist
    ├── JobConflictError                 another ingestion job is still running
    ├── DocumentExistsError              a document has the name, and is not to be replaced
    ├── GenerationError                  a model did not write an answer
    │   ├── ModelAccessError             this process's role lacks access to the model
    │   ├── ModelThrottledError          the model's request rate is exceeded
    │   └── GenerationTimeoutError       the answer was not finished before the deadline
    ├── RegistryError                    the document registry, or the way to it, failed
    │   └── AccessRulesError             a change of the access rules in the registry cannot be read
    ├── IndexingError                    some documents were not put into an index
    ├── DeliveryError                    a queue or an event bus did not take everything
    ├── OperationError                   an operation failed elsewhere; the message is complete
    └── RetrievalError                   no slice of a search succeeded
        ├── KnowledgeBaseNotFoundError   no such knowledge base
        ├── CollectionNotFoundError      no such collection, partition or index
        │   └── PartitionNotFoundError   the collection is there, and has no such partition
        ├── AccessDeniedError            this process's role lacks a permission
        ├── ThrottledError               the service's request rate is exceeded
        ├── RetrievalTimeoutError        nothing came back before the deadline
        └── ServiceUnavailableError      the service, or the way to it, failed
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import distributions
from itertools import islice
from typing import Final

from ragstack_common import DISTRIBUTION

_CLAUSE: Final = re.compile(r"[^'\"\[{]*?\b(?P<clause>\w+\([^,()'\"]+)|(?P<key>[^'\"\s:]{1,100}): ")
"""Where a message about a filter names the operator and the attribute; what follows, or is quoted, can be a value."""

_MAX_FAILURES: Final = 5
"""Maximum number of failed documents in a message; the error has all of them."""


class RagStackError(Exception):
    """Base of every error that RAGStack raises on purpose."""


class ConfigurationError(RagStackError):
    """A setting is missing or unusable."""


class UnknownEngineError(ConfigurationError, ValueError):
    """There is no engine of that name; also a ValueError, as in the interface's specification."""

    def __init__(self, name: object, known: Iterable[str]) -> None:
        super().__init__(f"Unknown backend type: {name}; choose one of {', '.join(sorted(known))}")


class MissingPackageError(ConfigurationError, ModuleNotFoundError):
    """An optional package is not installed; also a ModuleNotFoundError, whose ``name`` is the missing module.

    Args:
        needed_by: The part of RAGStack that needs it, as the subject of the message.
        module: The missing module.
        extra: The extra that installs it; None if it belongs to another distribution.
    """

    def __init__(self, needed_by: str, module: str | None, extra: str | None) -> None:
        advice = command_to_install(extra) if extra else "install it"
        super().__init__(f"{needed_by} needs the package {module}, which is not installed: {advice}", name=module)


def command_to_install(extra: str) -> str:
    """Return the command that adds an extra to this installation, from where the package itself came.

    Source: PEP 610, which describes direct_url.json.
    """
    installed = (each.read_text("direct_url.json") for each in distributions(name=DISTRIBUTION))
    origin = json.loads(next(filter(None, installed), "{}"))
    if origin.get("dir_info", {}).get("editable"):
        return "run `make setup` in the checkout"
    system = origin.get("vcs_info", {}).get("vcs")
    place = f" @ {f'{system}+' if system else ''}{origin['url']}" if origin else ""
    return f"pip install '{DISTRIBUTION}[{extra}]{place}'"


@contextmanager
def needs_extra(extra: str | None, needed_by: str) -> Iterator[None]:
    """Wrap the imports of optional packages. Where two are nested, the outer one names the extra.

    Raises:
        MissingPackageError: A package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingPackageError(needed_by, error.name, extra) from error


class DimensionMismatchError(ConfigurationError):
    """The embedding's vectors are not as long as those of the collection: choose the one that it was made with."""


class ScopeTooLongError(ConfigurationError):
    """What a caller may see needs a longer filter than searches can have: its labels are too many."""


class EmbeddingError(RagStackError):
    """An embedding cannot be had, failed, or is not the one that the data was indexed with."""


class InvalidRequestError(RagStackError):
    """The caller must change the request before trying again."""


class UnsupportedContentTypeError(InvalidRequestError):
    """A request's body is not JSON."""


class InvalidQueryError(InvalidRequestError):
    """The query text or the number of results is out of range."""


class UnknownCorpusError(InvalidRequestError):
    """There is no corpus of that name."""


class InvalidFilterError(InvalidRequestError):
    """A metadata filter is malformed, or names something that the engine cannot express."""


class InvalidDocumentError(InvalidRequestError):
    """A document cannot be submitted as it is."""


class NotAuthenticatedError(RagStackError):
    """The caller did not prove who they are: sign in again."""


class NotAllowedError(RagStackError):
    """The caller lacks a right; the message names it and the caller, and nothing else."""


class AccessNeededError(NotAllowedError):
    """The caller does not see a document, and the access file names whom to ask."""


class LimitReachedError(RagStackError):
    """The caller reached a limit; the same request may succeed after *retry_after_seconds*."""

    def __init__(self, message: str, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds

    def __reduce__(self) -> tuple[type["LimitReachedError"], tuple[str, int]]:
        """Pickle by the arguments: processes pass errors on."""
        return type(self), (str(self), self.retry_after_seconds)


class NotFoundError(RagStackError):
    """Nothing has the name that was given."""


class DocumentNotFoundError(NotFoundError):
    """Neither the documents bucket nor the registry has the document."""


class GapNotFoundError(NotFoundError):
    """The caller sees no gap of that id."""


class ConversationNotFoundError(NotFoundError):
    """The caller has no such conversation, or there is no such link to one."""


class JobNotFoundError(NotFoundError):
    """There is no ingestion job of that id."""


class UnknownCollectionError(NotFoundError):
    """The caller named a collection or partition that does not exist."""


class JobConflictError(RagStackError):
    """Another ingestion job is still running."""


class DocumentExistsError(RagStackError):
    """A document has the name, and is not to be replaced."""


class GenerationError(RagStackError):
    """A model, or the way to it, failed; the message says what to do."""


class ModelAccessError(GenerationError):
    """The role of this process, or the account, lacks access to the model."""


class ModelThrottledError(GenerationError):
    """The model's request rate is exceeded; the same request may succeed later."""


class GenerationTimeoutError(GenerationError):
    """The answer was not finished before the deadline."""


class RegistryError(RagStackError):
    """The document registry, or the way to it, failed; the same request may succeed later."""


class AccessRulesError(RegistryError):
    """A change of the access rules in the registry cannot be read: nobody is let in until an operator corrects it."""


class IndexingError(RagStackError):
    """Some documents were not put into an index.

    Attributes:
        indexed: Ids of the documents that were.
        failed: Reasons by id of the others.
    """

    def __init__(self, indexed: Iterable[str], failed: Mapping[str, str]) -> None:
        self.indexed = tuple(indexed)
        self.failed = dict(failed)
        reasons = "; ".join(f"{id_}: {reason}" for id_, reason in islice(self.failed.items(), _MAX_FAILURES))
        more = "; ..." if len(self.failed) > _MAX_FAILURES else ""
        total = len(self.failed) + len(self.indexed)
        super().__init__(f"{len(self.failed)} of {total} documents were not indexed: {reasons}{more}")

    def __reduce__(self) -> tuple[type["IndexingError"], tuple[tuple[str, ...], dict[str, str]]]:
        """Pickle by the arguments: processes pass errors on."""
        return type(self), (self.indexed, self.failed)


class DeliveryError(RagStackError):
    """A queue or an event bus did not take everything that was sent; the same may succeed later."""


class OperationError(RagStackError):
    """An operation failed elsewhere, with an HTTP status or without; callers get the message word for word."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class RetrievalError(RagStackError):
    """No slice of a search succeeded; ``__cause__`` is the error of the first one."""


class KnowledgeBaseNotFoundError(RetrievalError):
    """The knowledge base does not exist in this account and region."""


class CollectionNotFoundError(RetrievalError):
    """An engine has no collection, partition or index of that name."""


class PartitionNotFoundError(CollectionNotFoundError):
    """The collection exists and has no partition of that name."""


class AccessDeniedError(RetrievalError):
    """The role of this process lacks a permission."""


class ThrottledError(RetrievalError):
    """The service's request rate is exceeded; the same request may succeed later."""


class RetrievalTimeoutError(RetrievalError):
    """Nothing came back before the deadline."""


class ServiceUnavailableError(RetrievalError):
    """The service, or the way to it, failed; the same request may succeed later."""


def loggable(error: Exception) -> str:
    """Return an error's text for logs; for a rejected filter, only the operator and the attribute.

    A filter's values can be personal data. The caller, who sent them, gets the whole message.
    """
    cause = error.__cause__
    # The message repeats those of its members. A batch raises one member as the error itself.
    if isinstance(cause, ExceptionGroup) and error not in cause.exceptions:
        members = "; ".join(loggable(member) for member in cause.exceptions)
        return f"{type(error).__name__}: {members}"
    if not isinstance(error, InvalidFilterError):
        return str(error)
    found = _CLAUSE.match(str(error))
    place = "" if found is None else f"{found['clause']})" if found["clause"] else found["key"]
    return f"InvalidFilter {place}".rstrip()
