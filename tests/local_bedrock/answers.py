"""Clients of the runtime services that hold every answer to the service model, and what comes in streams."""

from typing import Any

from local_bedrock.validation import violations
from tests.local_bedrock.support import client

TEXT_MODEL = "anthropic.claude-3-haiku-20240307-v1:0"


def checked_client(service: str, url: str) -> Any:
    """Make a client that fails where an answer does not fit its model."""
    made = client(service, url)

    def check(model: Any, parsed: Any, http_response: Any, **_more: Any) -> None:
        if http_response.status_code < 300 and not model.has_event_stream_output:
            members = {name: value for name, value in parsed.items() if name != "ResponseMetadata"}
            if model.has_streaming_output:
                del members["body"]
            assert not [fault for fault in violations(model.output_shape, members) if "'body'" not in fault]

    made.meta.events.register("after-call.*.*", check)
    return made


def checked_events(made: Any, operation: str, stream: Any) -> list[dict[str, Any]]:
    """Read a stream to its end, and hold every event to its model."""
    shape = made.meta.service_model.operation_model(operation).get_event_stream_output()
    events = list(stream)
    for event in events:
        ((name, members),) = event.items()
        assert not list(violations(shape.members[name], members))
    return events
