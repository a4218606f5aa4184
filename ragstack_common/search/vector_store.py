"""A vector store by its connection string, for callers that keep the choice of a store in one text.

::

    chroma:///absolute/folder#COLLECTION      chroma:relative/folder#COLLECTION
    chroma://HOST:PORT#COLLECTION             chroma+https://HOST:PORT/DATABASE#COLLECTION
    milvus:///absolute/file.db#COLLECTION     milvus:relative/file.db#COLLECTION
    milvus://USER:PASSWORD@HOST:PORT/DATABASE#COLLECTION, also milvus+https://
    bedrock://KNOWLEDGE_BASE_ID               bedrock://KNOWLEDGE_BASE_ID/DATA_SOURCE_ID

Further options of the engine are a query before the ``#``, such as ``?embedding=hashed&timeout_seconds=10``; values are
JSON where they can be, and texts otherwise.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from ragstack_common.core.errors import ConfigurationError
from ragstack_common.core.json_text import parse_json
from ragstack_common.search.base import PassingWrapper, RetrievalBackend
from ragstack_common.search.factory import create_retrieval_backend
from ragstack_common.search.models import RetrievedChunk, SearchOutcome, SearchRequest

TLS: Final = "+https"


class VectorStoreBackend(PassingWrapper):
    """The engine that a connection string names.

    Args:
        connection_string: As in :mod:`ragstack_common.search.vector_store`.
        options: Further options of the engine, which override the connection string.

    Raises:
        ConfigurationError: The connection string is malformed, or the engine cannot be created from it.
        MissingPackageError: The engine's package is not installed.
    """

    def __init__(self, connection_string: str, **options: Any) -> None:
        super().__init__(create_retrieval_backend({**engine_config(connection_string), **options}))
        self.name = self.backend.name

    async def search(self, request: SearchRequest) -> SearchOutcome:
        """Search without a span of its own."""
        return await self.backend.search(request)

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        return await self.backend.search(request)

    async def retrieve_batch(self, queries: Sequence[str], *args: Any, **options: Any) -> list[list[RetrievedChunk]]:
        """Pass the whole batch on."""
        return await self.backend.retrieve_batch(queries, *args, **options)

    def around(self, wrap: Callable[[RetrievalBackend], RetrievalBackend]) -> RetrievalBackend:
        """Return the engine inside another backend, within its slices if it has any."""
        return self.backend.around(wrap)


def engine_config(connection_string: str) -> dict[str, Any]:
    """Return the configuration of the engine that a connection string names.

    Raises:
        ConfigurationError: It is malformed; the message says how it should look, and does not quote it.
    """
    try:
        url = urlsplit(connection_string)
        found = _ENGINES[url.scheme](url)
    except (KeyError, ValueError, AttributeError, TypeError):
        raise ConfigurationError(
            "The connection string is not one of chroma:///FOLDER#COLLECTION, chroma://HOST:PORT#COLLECTION, "
            "milvus:///FILE.db#COLLECTION, milvus://HOST:PORT#COLLECTION and "
            "bedrock://KNOWLEDGE_BASE_ID"
        ) from None
    options = {name: _value(text) for name, text in parse_qsl(url.query, keep_blank_values=True)}
    return {**options, **{name: value for name, value in found.items() if value is not None}}


def _chroma(url: SplitResult) -> dict[str, Any]:
    place: dict[str, Any]
    if "@" in url.netloc:
        raise ValueError("the engine takes no login")
    if url.hostname is None:
        place = {"path": _required(unquote(url.path))}
    else:
        is_tls = url.scheme.endswith(TLS)
        place = {"host": url.hostname, "port": url.port, "ssl": is_tls or None, "database": _part(url) or None}
    return {"type": "chroma", **place, "collection_name": _collection(url)}


def _milvus(url: SplitResult) -> dict[str, Any]:
    place: dict[str, Any]
    if url.hostname is None:
        place = {"uri": _required(unquote(url.path))}
    else:
        port = "" if url.port is None else f":{url.port}"
        host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
        login = [unquote(part) for part in (url.username, url.password) if part]
        place = {
            "uri": f"{'https' if url.scheme.endswith(TLS) else 'http'}://{host}{port}",
            "token": ":".join(login) or None,
            "database": _part(url) or None,
        }
    return {"type": "milvus", **place, "collection_name": _collection(url)}


def _bedrock(url: SplitResult) -> dict[str, Any]:
    if url.fragment:
        raise ValueError("there are no collections")
    if not url.netloc.isalnum():
        raise ValueError("an ARN has slashes of its own")
    return {"type": "bedrock", "knowledge_base_id": url.netloc, "data_source_id": _part(url) or None}


_ENGINES: Final[Mapping[str, Callable[[SplitResult], dict[str, Any]]]] = {
    **dict.fromkeys(("chroma", f"chroma{TLS}"), _chroma),
    **dict.fromkeys(("milvus", f"milvus{TLS}"), _milvus),
    "bedrock": _bedrock,
}


def _collection(url: SplitResult) -> str:
    if "?" in url.fragment:
        raise ValueError("the options come before the collection")
    return _required(unquote(url.fragment))


def _part(url: SplitResult) -> str:
    """Return the only part of the path."""
    part = unquote(url.path.removeprefix("/"))
    if "/" in part:
        raise ValueError("there is one part")
    return part


def _required(text: str) -> str:
    if not text:
        raise ValueError("a part is missing")
    return text


def _value(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return text
