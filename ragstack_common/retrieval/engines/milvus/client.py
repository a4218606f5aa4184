"""Shared connections to Milvus, and its errors as errors of this package."""

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
"""Suffix of a Milvus Lite file. Source: pymilvus, ConnectionConfig.from_uri."""

NOT_LOADED: Final = frozenset({101, 201})
"""Codes of a collection or partition that is not in memory. Source: Milvus's merr package."""

_MEANINGS: Final[dict[Any, tuple[type[RetrievalError], str]]] = {
    2: (ServiceUnavailableError, "check that Milvus is running, and its address"),
    3: (AccessDeniedError, "check the user name and the password"),
    8: (ThrottledError, "send fewer requests a second"),
    9: (ThrottledError, "Milvus rejects requests until its quota allows them"),
    100: (CollectionNotFoundError, "check the collection's name and the database"),
    200: (PartitionNotFoundError, "check the partition's name"),
    800: (CollectionNotFoundError, "the database does not exist"),
    grpc.StatusCode.UNAVAILABLE: (ServiceUnavailableError, "check that Milvus is running, and its address"),
    grpc.StatusCode.DEADLINE_EXCEEDED: (RetrievalTimeoutError, "try again, or raise timeout_seconds"),
    grpc.StatusCode.UNAUTHENTICATED: (AccessDeniedError, "check the user name and the password"),
    grpc.StatusCode.PERMISSION_DENIED: (AccessDeniedError, "grant the user Search and Query on the collection"),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (ThrottledError, "send fewer requests a second"),
}
"""Source: pymilvus.exceptions.ErrorCode, common.proto's ErrorCode, and Milvus's merr package."""

_DENIED: Final = re.compile("auth check|authenticat|permission den", re.IGNORECASE)

# It logs the filter of every failed call, with a traceback; the error itself is raised anyway.
logging.getLogger("pymilvus.decorators").setLevel(logging.CRITICAL)


@dataclass(frozen=True)
class Address:
    """An address of Milvus and the login.

    Attributes:
        uri: URL of a server, or the path of a Milvus Lite file.
        token: ``user:password`` or an API key.
        database: Empty for the default one.
    """

    uri: str
    token: str = field(default="", repr=False)
    database: str = ""

    def __post_init__(self) -> None:
        """Check the address, and make the path of a file absolute."""
        if self.is_file:
            object.__setattr__(self, "uri", str(Path(self.uri).absolute()))
        elif not self.uri.lower().startswith(("http://", "https://", "tcp://", "unix:")):
            raise ConfigurationError(
                f"{self.uri!r} is not an address of Milvus: give a URL such as http://localhost:19530, or the path of "
                f"a Milvus Lite file, which ends in {LITE_SUFFIX}"
            )

    @property
    def is_file(self) -> bool:
        """Whether this is a Milvus Lite file."""
        return self.uri.endswith(LITE_SUFFIX)

    @property
    def is_missing(self) -> bool:
        """Whether this is a file that does not exist."""
        return self.is_file and not Path(self.uri).exists()


class Connections:
    """One client for each address, shared by all backends and closed by the last one.

    pymilvus shares channels too, but keeps them open until the process ends.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._shared: dict[Address, _SharedClient] = {}

    def acquire(self, address: Address, timeout_seconds: float) -> MilvusClient:
        """Return the connected client of an address. The caller must call :meth:`release`.

        Raises:
            RetrievalError: The address cannot be reached.
        """
        with self._lock:
            shared = self._shared.setdefault(address, _SharedClient())
        with shared.lock, translated_errors(address.uri):
            if shared.client is None:
                shared.starts_server = address.is_file and address.uri not in _lite_servers()
                shared.client = MilvusClient(
                    address.uri,
                    token=address.token,
                    db_name=address.database,
                    timeout=timeout_seconds,
                    dedicated=True,
                )
            shared.users += 1
            return shared.client

    def release(self, address: Address) -> None:
        """Return a client. The last user closes it, and the Lite file unless it was open before."""
        shared = self._shared[address]
        with shared.lock:
            shared.users -= 1
            if shared.users == 0 and shared.client is not None:
                shared.client.close()
                shared.client = None
                if shared.starts_server:
                    from milvus_lite.server_manager import server_manager_instance  # noqa: PLC0415 - only for files

                    server_manager_instance.release_server(address.uri)

    def users_of(self, address: Address) -> int:
        """Return the number of users of an address."""
        shared = self._shared.get(address)
        return 0 if shared is None else shared.users


@dataclass
class _SharedClient:
    lock: Lock = field(default_factory=Lock)
    client: MilvusClient | None = None
    users: int = 0
    starts_server: bool = False


@contextmanager
def translated_errors(subject: str) -> Iterator[None]:
    """Translate pymilvus's errors.

    Args:
        subject: Begins the message.

    Raises:
        RetrievalError: The subclass that matches the error.
    """
    try:
        yield
    except MilvusException as error:
        raise _translated(subject, error.code, error.message) from error
    except grpc.RpcError as error:
        raise _translated(subject, error.code(), error.details() or "") from error
    except grpc.FutureTimeoutError as error:
        raise _translated(subject, 2, "no connection in time") from error
    except ValueError as error:  # gRPC raises it for a channel that was closed meanwhile
        raise ServiceUnavailableError(f"{subject}: the connection to Milvus was closed; try again") from error


def _translated(subject: str, code: Any, message: str) -> RetrievalError:
    kind, advice = _MEANINGS.get(code, (RetrievalError, "see the message"))
    if kind is RetrievalError and _DENIED.search(message):
        kind, advice = AccessDeniedError, "check the user name and the password"
    line = message.strip().partition("\n")[0]  # the lines after it quote the filter
    return kind(f"{subject}: Milvus says {line[:200]!r} (code {code}); {advice}")


def _lite_servers() -> set[str]:
    try:
        from milvus_lite.server_manager import server_manager_instance  # noqa: PLC0415 - only for files
    except ModuleNotFoundError:
        return set()
    return set(server_manager_instance._servers)  # noqa: SLF001 - there is no public name for the open files


connections: Final = Connections()
