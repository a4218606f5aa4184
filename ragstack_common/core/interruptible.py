"""Calls of boto3 that another thread can end, while they wait for a response or while a streamed one is read.

Neither boto3 nor urllib3 can do this: closing a response waits for the thread that reads it. Without it, a model would
continue to write after its user has left.
"""

import socket
import threading
from contextlib import suppress
from typing import Any, Final, Self

from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
)

_thread: Final = threading.local()
"""Its ``call`` is the call that the thread is making."""


class InterruptibleCall:
    """A context around a call of a client that :func:`make_interruptible` prepared, and around reading its response."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        """Allow :meth:`end` to interrupt the work of this thread."""
        _thread.call = self
        return self

    def __exit__(self, *_error: object) -> None:
        """Forget the connection: another call may use it next."""
        _thread.call = None
        with self._lock:
            self._socket = None

    def end(self) -> None:
        """Wake the thread with an error of the connection, which is then closed; no later call gets a connection."""
        self.ended.set()
        with self._lock:
            self._shut_down()

    def uses(self, connected: socket.socket | None) -> None:
        """Note the socket that the call waits for."""
        with self._lock:
            self._socket = connected
            if self.ended.is_set():
                self._shut_down()

    def _shut_down(self) -> None:
        if self._socket is not None:
            with suppress(OSError):  # it is not connected any more
                self._socket.shutdown(socket.SHUT_RDWR)


def make_interruptible(client: Any) -> None:
    """Make a client's calls interruptible with :class:`InterruptibleCall`. Other calls work as before."""
    # botocore has no public way to choose the class of connections. The tests end calls, so that they would find a
    # change of these names.
    client._endpoint.http_session._pool_classes_by_scheme.update(http=_Pool, https=_SecurePool)  # noqa: SLF001


class _Noting:
    sock: socket.socket | None

    def request(self, *arguments: Any, **options: Any) -> Any:
        sent = super().request(*arguments, **options)  # type: ignore[misc]
        call: InterruptibleCall | None = getattr(_thread, "call", None)
        if call is not None:
            call.uses(self.sock)
        return sent


class _Connection(_Noting, AWSHTTPConnection):  # type: ignore[misc]
    pass


class _SecureConnection(_Noting, AWSHTTPSConnection):  # type: ignore[misc]
    pass


class _Pool(AWSHTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(AWSHTTPSConnectionPool):
    ConnectionCls = _SecureConnection
