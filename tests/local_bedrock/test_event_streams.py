import json
import struct
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import botocore.session
import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given, settings
from hypothesis import strategies as st

from local_bedrock.http.errors import InvalidRequest, ServiceError
from local_bedrock.http.event_stream import Messages, encode
from local_bedrock.http.wire import serialise

names = st.text(min_size=1, max_size=60).filter(lambda name: len(name.encode()) <= 255)
texts = st.text(max_size=200)


@settings(deadline=None)
@given(st.dictionaries(names, texts, max_size=5), st.binary(max_size=500))
def test_a_message_is_decoded_to_what_was_encoded(headers: dict[str, str], payload: bytes) -> None:
    (message,) = _decoded(encode(headers, payload))

    assert message.headers == headers
    assert message.payload == payload


def test_a_message_is_laid_out_byte_for_byte_as_specified() -> None:
    header = b"\x01n\x07\x00\x01v"
    prelude = struct.pack("!II", 12 + len(header) + 3 + 4, len(header))
    head = prelude + struct.pack("!I", crc32(prelude)) + header + b"abc"

    assert encode({"n": "v"}, b"abc") == head + struct.pack("!I", crc32(head))


def test_an_error_before_the_first_event_is_a_response() -> None:
    def events() -> Iterator[dict[str, Any]]:
        raise InvalidRequest("no")
        yield {}

    with pytest.raises(InvalidRequest):
        _messages(events())


def test_a_late_error_is_the_last_event_of_the_stream() -> None:
    def events() -> Iterator[dict[str, Any]]:
        yield {"output": {"text": "a"}}
        raise InvalidRequest("no")

    first, last = _decoded(*_messages(events()))

    assert first.headers == {":event-type": "output", ":content-type": "application/json", ":message-type": "event"}
    assert json.loads(first.payload) == {"text": "a"}
    assert last.headers[":message-type"] == "exception"
    assert last.headers[":exception-type"] == "validationException"
    assert json.loads(last.payload) == {"message": "no"}


def test_an_error_that_the_stream_does_not_model_is_an_error_message() -> None:
    class StrangeError(ServiceError):
        code = "StrangeException"

    def events() -> Iterator[dict[str, Any]]:
        yield {"output": {"text": "a"}}
        raise StrangeError("odd")

    *_, last = _decoded(*_messages(events()))

    assert last.headers == {":message-type": "error", ":error-code": "StrangeException", ":error-message": "odd"}


def test_a_bug_after_the_first_event_is_an_internal_error() -> None:
    def events() -> Iterator[dict[str, Any]]:
        yield {"output": {"text": "a"}}
        yield {"output": {"unknown": "a"}}

    *_, last = _decoded(*_messages(events()))

    assert last.headers[":exception-type"] == "internalServerException"


def test_closing_a_stream_ends_the_work_behind_it() -> None:
    ended = []

    def events() -> Iterator[dict[str, Any]]:
        try:
            while True:
                yield {"output": {"text": "a"}}
        finally:
            ended.append(True)

    messages = _messages(events())
    next(messages)
    messages.close()

    assert ended == [True]


def _messages(events: Iterator[dict[str, Any]]) -> Messages:
    model = botocore.session.get_session().get_service_model("bedrock-agent-runtime")
    shape: Any = model.operation_model("RetrieveAndGenerateStream").get_event_stream_output()
    return Messages(shape, events, serialise)


def _decoded(*parts: bytes) -> list[Any]:
    buffer = EventStreamBuffer()
    for part in parts:
        buffer.add_data(part)
    return list(buffer)
