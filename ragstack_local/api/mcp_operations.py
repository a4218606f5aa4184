"""The operations that the tools of ``ragstack mcp`` call: the HTTP API of a stack."""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import BaseModel, ValidationError

from ragstack_common.api.ask_models import EVENTS, AskRequest, StreamEvent
from ragstack_common.api.catalogue import Corpora, Versions
from ragstack_common.api.documents import DocumentList
from ragstack_common.api.mcp import CallError, DocumentStatusRequest
from ragstack_common.api.search_models import RetrieveRequest, RetrieveResponse
from ragstack_common.api.tool_models import ToolList, ToolSuccess
from ragstack_common.core.deadline import in_thread
from ragstack_common.core.errors import RagStackError
from ragstack_local.api.api_client import ApiClient

T = TypeVar("T")
ModelT = TypeVar("ModelT", bound=BaseModel)

_END: Final = object()


class ApiOperations:
    """Calls the HTTP API. Each method raises CallError.

    Args:
        api: Returns the client; called for each operation, so that a stack that is started later, or again, is found.
    """

    def __init__(self, api: Callable[[], ApiClient]) -> None:
        self._api = api

    async def search(self, request: RetrieveRequest) -> RetrieveResponse:
        """Search."""
        return await self._called(lambda api: _read(RetrieveResponse, api.retrieve(_body(request))))

    async def ask(self, request: AskRequest) -> AsyncGenerator[StreamEvent, None]:
        """Answer a question; closing the iterator ends the request after its current event."""
        api = await self._called(lambda api: api)
        events = api.ask_stream(_body(request))
        lock = Lock()

        def following() -> Any:
            with lock, _call_errors():
                return next(events, _END)

        def close() -> None:
            with lock:
                events.close()

        try:
            while (event := await in_thread(following)) is not _END:
                name, data = event
                if name in EVENTS:  # a newer API may have more
                    yield _read(EVENTS[name], data)  # type: ignore[misc] # one of the events
        finally:
            # A thread may still wait for an event: the event loop does not wait for it.
            Thread(target=close, name="ragstack-close", daemon=True).start()

    async def corpora(self) -> Corpora:
        """List the corpora."""
        return await self._called(lambda api: _read(Corpora, api.look_up("corpora")))

    async def versions(self) -> Versions:
        """List the versions."""
        return await self._called(lambda api: _read(Versions, api.look_up("versions")))

    async def document(self, request: DocumentStatusRequest) -> DocumentList:
        """Look at a document."""
        path = f"/api/documents?{urlencode(request.name)}"
        return await self._called(lambda api: _read(DocumentList, api.request("GET", path, "documents")))

    async def tools(self) -> list[dict[str, Any]]:
        """List the tools."""
        listed = await self._called(lambda api: _read(ToolList, api.request("GET", "/tools", "tools")))
        return [tool.model_dump() for tool in listed.tools]

    async def run_tool(self, name: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a tool."""
        path, body = f"/tools/{quote(name, safe='')}", {"input": data}
        return (await self._called(lambda api: _read(ToolSuccess, api.request("POST", path, "output", body)))).output

    async def _called(self, call: Callable[[ApiClient], T]) -> T:
        def run() -> T:
            with _call_errors():
                return call(self._api())

        return await in_thread(run)


@contextmanager
def _call_errors() -> Generator[None, None, None]:
    try:
        yield
    except (RagStackError, ClientError, BotoCoreError, Boto3Error, OSError) as error:
        raise CallError(str(error)) from error


def _body(request: BaseModel) -> dict[str, Any]:
    return request.model_dump(mode="json", exclude_unset=True)


def _read(form: type[ModelT], answer: Mapping[str, Any]) -> ModelT:
    try:
        return form.model_validate(answer)
    except ValidationError as error:
        raise CallError(
            f"The API answered in another form than {form.__name__}: `ragstack` and the stack have different versions"
        ) from error
