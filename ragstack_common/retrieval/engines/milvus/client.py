"""Connections to Milvus, shared by whoever searches the same one, and what its errors mean."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Final

import grpc
from pymilvus import MilvusClient
from pymilvus.exceptions import MilvusException

from ragstack_common.errors import (
    AccessDeniedError,
    CollectionNotFoundError,
    ConfigurationError,
    PartitionNotFoundError,
    RetrievalError,
    RetrievalTimeoutError,
    ServiceUnavailableError,
    ThrottledError,
)

LITE_SUFFIX: Final = ".db"
"""What the path of a Milvus Lite file ends in. Source: pymilvus, ConnectionConfig.from_uri."""

NOT_LOADED: Final = frozenset({101, 201})
"""Codes for a collection, or a partition, that is not in memory. Source: Milvus's merr package."""

_MEANING: Final[dict[Any, tuple[type[RetrievalError], str]]] = {
    2: (ServiceUnavailableError, "check that Milvus runs, and its address"),
    3: (AccessDeniedError, "check the user name and the password"),
    8: (ThrottledError, "send fewer requests a second"),
    9: (ThrottledError, "Milvus refuses requests until its quota allows them"),
    100: (CollectionNotFoundError, "check the collection's name and the database"),
    200: (PartitionNotFoundError, "check the partition's name"),
    800: (CollectionNotFoundError, "there is no such database"),
    grpc.StatusCode.UNAVAILABLE: (ServiceUnavailableError, "check that Milvus runs, and its address"),
    grpc.StatusCode.DEADLINE_EXCEEDED: (RetrievalTimeoutError, "try again, or raise timeout_seconds"),
    grpc.StatusCode.UNAUTHENTICATED: (AccessDeniedError, "check the user name and the password"),
    grpc.StatusCode.PERMISSION_DENIED: (AccessDeniedError, "grant the user Search and Query on the collection"),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (ThrottledError, "send fewer requests a second"),
}
"""Source: pymilvus.exceptions.ErrorCode, common.proto's ErrorCode, and Milvus's merr package."""

_REFUSED: Final = re.compile("auth check|authenticat|permission den", re.IGNORECASE)

# It writes the filter of every call that failed, and a traceback; the error itself is raised all the same.
logging.getLogger("pymilvus.decorators").setLevel(logging.CRITICAL)


@dataclass(frozen=True)
class Address:
    """Which Milvus, as whom.

    Attributes:
        uri: URL of a server, or the path of a Milvus Lite file.
        token: ``user:password`` or an API key.
        database: Empty is the default one.
    """

    uri: str
    token: str = field(default="", repr=False)
    database: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no address, and write the path of a file in one way."""
        if self.is_file:
            object.__setattr__(self, "uri", str(Path(self.uri).absolute()))
        elif not self.uri.lower().startswith(("http://", "https://", "tcp://", "unix:")):
            raise ConfigurationError(
                f"{self.uri!r} is no address of Milvus: give a URL such as http://localhost:19530, or the path of a "
                f"Milvus Lite file, which ends in {LITE_SUFFIX}"
            )

    @property
    def is_file(self) -> bool:
        """Whether it is a Milvus Lite file."""
        return self.uri.endswith(LITE_SUFFIX)

    @property
    def is_missing(self) -> bool:
        """Whether it is a file that is not there."""
        return self.is_file and not Path(self.uri).exists()


class Connections:
    """One client for each address, closed with the last of its users.

    pymilvus shares channels too, but keeps them open until the process ends.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._places: dict[str, _Place] = {}

    def acquire(self, address: Address, timeout_seconds: float) -> MilvusClient:
        """Return the client of an address, connected; give it back with :meth:`release`.

        Raises:
            RetrievalError: There is no way to it; the subclass says why.
        """
        with self._lock:
            place = self._places.setdefault(address.uri, _Place())
        with place.lock:
            if address not in place.clients:
                place.clients[address] = _Shared(place.connect(address, timeout_seconds))
            shared = place.clients[address]
            shared.users += 1
            return shared.client

    def release(self, address: Address) -> None:
        """Give a client back."""
        place = self._places[address.uri]
        with place.lock:
            shared = place.clients[address]
            shared.users -= 1
            if shared.users == 0:
                del place.clients[address]
                shared.client.close()
            if not place.clients:
                place.stop(address)

    def users_of(self, address: Address) -> int:
        """Count who shares the client of an address."""
        place = self._places.get(address.uri)
        shared = None if place is None else place.clients.get(address)
        return 0 if shared is None else shared.users


@dataclass
class _Shared:
    client: MilvusClient
    users: int = 0


@dataclass
class _Place:
    """A server or a file, with one client for each user and database."""

    lock: Lock = field(default_factory=Lock)
    clients: dict[Address, _Shared] = field(default_factory=dict)
    starts_server: bool = False

    def connect(self, address: Address, timeout_seconds: float) -> MilvusClient:
        if address.is_file and not self.clients:
            self.starts_server = address.uri not in _lite_servers()
        with explained(address.uri):
            return MilvusClient(
                address.uri,
                token=address.token,
                db_name=address.database,
                timeout=timeout_seconds,
                dedicated=True,
            )

    def stop(self, address: Address) -> None:
        """Let go of the file, so that another process can open it; not of one that others had open before."""
        if address.is_file and self.starts_server:
            from milvus_lite.server_manager import server_manager_instance  # noqa: PLC0415 - servers need none of it

            server_manager_instance.release_server(address.uri)


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Raise the errors of pymilvus as ours.

    Args:
        what: What was asked for, as the message shall name it.

    Raises:
        RetrievalError: Of the class that says what happened.
    """
    try:
        yield
    except MilvusException as error:
        raise _meant(what, error.code, error.message) from error
    except grpc.RpcError as error:
        raise _meant(what, error.code(), error.details() or "") from error
    except grpc.FutureTimeoutError as error:
        raise _meant(what, 2, "no connection in time") from error
    except ValueError as error:  # what gRPC raises of a channel that was closed meanwhile
        raise ServiceUnavailableError(f"{what}: the connection to Milvus was closed; try again") from error


def _meant(what: str, code: Any, message: str) -> RetrievalError:
    kind, advice = _MEANING.get(code, (RetrievalError, "see the message"))
    if kind is RetrievalError and _REFUSED.search(message):
        kind, advice = AccessDeniedError, "check the user name and the password"
    line = message.strip().partition("\n")[0]  # the lines after it quote the filter
    return kind(f"{what}: Milvus says {line[:200]!r} (code {code}); {advice}")


def _lite_servers() -> set[str]:
    try:
        from milvus_lite.server_manager import server_manager_instance  # noqa: PLC0415 - servers need none of it
    except ModuleNotFoundError:
        return set()
    return set(server_manager_instance._servers)  # noqa: SLF001 - it tells in no other way what is open


connections: Final = Connections()
"""Those of this process."""
