"""What callers do with a deployment: one interface, in this process over the services, or over HTTP."""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic import BaseModel, Field, ValidationError

from ragstack_common.core.deadline import in_thread
from ragstack_common.core.errors import ConfigurationError, InvalidRequestError, OperationError
from ragstack_common.core.reporting import invalid_members
from ragstack_common.core.telemetry import NO_METRICS, MetricSink
from ragstack_common.core.uris import is_s3_uri
from ragstack_common.settings.limits import MAX_QUERY_CHARACTERS

if TYPE_CHECKING:
    from ragstack_common.access.callers import Caller
    from ragstack_common.services.ask import AskService
    from ragstack_common.services.ask_models import AskRequest, StreamEvent
    from ragstack_common.services.catalogue import Corpora, Versions
    from ragstack_common.services.document_models import DocumentList
    from ragstack_common.services.documents import Documents
    from ragstack_common.services.search import QueryService
    from ragstack_common.services.search_models import RetrieveRequest, RetrieveResponse
    from ragstack_common.tools import Registry

RequestT = TypeVar("RequestT", bound=BaseModel)


class DocumentStatusRequest(BaseModel, extra="forbid", frozen=True):
    """One document."""

    document: str = Field(
        min_length=1,
        max_length=MAX_QUERY_CHARACTERS,
        description="Its s3:// URI, which is the source of a result, or its key in the documents bucket",
        examples=["people/leave-and-holidays-2026.md"],
    )

    @property
    def name(self) -> dict[str, str]:
        """The parameter of ``GET /api/documents`` that names it."""
        return {"uri" if is_s3_uri(self.document) else "key": self.document}


class Operations(Protocol):
    """The operations. Each method raises RagStackError; OperationError if the message is complete."""

    async def search(self, request: "RetrieveRequest") -> "RetrieveResponse":
        """Answer ``POST /api/retrieve``."""
        ...

    def ask(self, request: "AskRequest") -> "AsyncGenerator[StreamEvent, None]":
        """Answer ``POST /api/ask/stream``. Closing the iterator ends the call of the model."""
        ...

    async def corpora(self) -> "Corpora":
        """Answer ``GET /api/corpora``."""
        ...

    async def versions(self) -> "Versions":
        """Answer ``GET /api/versions``."""
        ...

    async def document(self, request: DocumentStatusRequest) -> "DocumentList":
        """Answer ``GET /api/documents`` for one document."""
        ...

    async def tools(self) -> list[dict[str, Any]]:
        """Return the tools of ``GET /tools``."""
        ...

    async def run_tool(self, name: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the output of ``POST /tools/NAME``."""
        ...


def _missing() -> Any:
    raise ConfigurationError("This operation needs a stack: an engine alone has neither documents nor tools")


@dataclass(frozen=True)
class ServiceOperations:
    """The operations of one caller over the services of this process, each of which is built when it is first used."""

    caller: "Caller"
    searches: "Callable[[], QueryService]"
    answers: "Callable[[], AskService]"
    documents: "Callable[[], Documents]" = _missing
    registry: "Callable[[], Registry]" = _missing
    metrics: MetricSink = NO_METRICS

    async def search(self, request: "RetrieveRequest") -> "RetrieveResponse":
        """Search."""
        return await self.searches().retrieve_async(request, self.caller)

    def ask(self, request: "AskRequest") -> "AsyncGenerator[StreamEvent, None]":
        """Answer a question."""
        return self.answers().stream(request, self.caller)

    async def corpora(self) -> "Corpora":
        """List the corpora."""
        return await self.searches().corpora_async(self.caller)

    async def versions(self) -> "Versions":
        """List the versions."""
        return await self.searches().versions_async(self.caller)

    async def document(self, request: DocumentStatusRequest) -> "DocumentList":
        """Find a document."""
        return await in_thread(lambda: self.documents().named(self.caller, **request.name))

    async def tools(self) -> list[dict[str, Any]]:
        """List the registry's tools."""
        return (await in_thread(self.registry)).list()

    async def run_tool(self, name: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a tool of the registry."""
        from ragstack_common.tools import answer  # noqa: PLC0415 - most containers run none

        registry = await in_thread(self.registry)
        status, body = await answer(registry, name, {"input": data}, self.caller, self.metrics)
        if not body["success"]:
            raise OperationError(str(body["error"]), status)
        output: Mapping[str, Any] = body["output"]
        return output


def parse_request(model: type[RequestT], members: Mapping[str, Any]) -> RequestT:
    """Read a request; raises InvalidRequestError."""
    try:
        return model.model_validate(members)
    except ValidationError as error:
        message, _ = invalid_members(error.errors(include_url=False, include_context=False, include_input=False))
        raise InvalidRequestError(message) from None
