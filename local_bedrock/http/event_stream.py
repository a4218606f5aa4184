"""The binary event stream format.

A message consists of its total length, the length of its headers and a checksum of both; the headers; the payload; and
a checksum of everything before. Source: https://smithy.io/2.0/aws/amazon-eventstream.html
"""

import json
import logging
import struct
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final
from zlib import crc32

from botocore.model import Shape, StructureShape

from local_bedrock.http.errors import ServiceError

CONTENT_TYPE: Final = "application/vnd.amazon.eventstream"

_PRELUDE: Final = struct.Struct("!II")
_CHECKSUM: Final = struct.Struct("!I")
_OVERHEAD: Final = _PRELUDE.size + 2 * _CHECKSUM.size

Serialise = Callable[[Shape, Any], Any]

log = logging.getLogger(__name__)


def encode(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Encode one message; names of headers have 1 to 255 bytes, and their values at most 32,767."""
    head = b"".join(_header(name, value) for name, value in headers.items())
    prelude = _PRELUDE.pack(_OVERHEAD + len(head) + len(payload), len(head))
    message = prelude + _CHECKSUM.pack(crc32(prelude)) + head + payload
    return message + _CHECKSUM.pack(crc32(message))


class Messages(Iterator[bytes]):
    """The messages of a streamed response. The first one is produced at once.

    Raises:
        ServiceError: Before the first event. A later error becomes the last message of the stream.
    """

    def __init__(self, shape: StructureShape, events: Iterable[Mapping[str, Any]], serialise: Serialise) -> None:
        self._shape = shape
        self._serialise = serialise
        self._source = iter(events)
        self._failed = False
        self._first = [self._message(event) for event in islice(self._source, 1)]

    def __next__(self) -> bytes:
        """Return the next message."""
        if self._first:
            return self._first.pop()
        if self._failed:
            raise StopIteration
        try:
            return self._message(next(self._source))
        except StopIteration:
            raise
        except ServiceError as error:
            return self._exception(error)
        except Exception:
            log.exception("The stream of %s failed", self._shape.name)
            return self._exception(ServiceError("The local Bedrock failed; its log has the details"))

    def close(self) -> None:
        """End the work behind the stream."""
        if isinstance(self._source, Generator):
            self._source.close()

    def _message(self, event: Mapping[str, Any]) -> bytes:
        ((name, value),) = event.items()
        headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
        body = self._serialise(self._shape.members[name], value)
        return encode(headers, json.dumps(body).encode())

    def _exception(self, error: ServiceError) -> bytes:
        self._failed = True
        # Exceptions are named by their member, which begins with a lower-case letter, not by their shape.
        name = error.code[0].lower() + error.code[1:]
        if name not in self._shape.members:
            message = str(error).encode()[: 2**15 - 1].decode(errors="ignore")
            return encode({":error-code": error.code, ":error-message": message, ":message-type": "error"}, b"")
        headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
        return encode(headers, json.dumps({"message": str(error)}).encode())


def _header(name: str, value: str) -> bytes:
    raw_name, raw_value = name.encode(), value.encode()
    string_type = 7
    return struct.pack("!B", len(raw_name)) + raw_name + struct.pack("!BH", string_type, len(raw_value)) + raw_value
