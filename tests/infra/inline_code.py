"""Runs the code of custom resources as Lambda does, with time that passes when the code waits."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

from tests.support.aws_service import AwsService, aws_service


@contextmanager
def service_of_function(name: str, patch: pytest.MonkeyPatch) -> Iterator[AwsService]:
    """Run a service of AWS that the code of a function calls; it may refuse nothing."""
    with aws_service(name) as running:
        for variable, value in {
            f"AWS_ENDPOINT_URL_{name.upper().replace('-', '_')}": running.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_MAX_ATTEMPTS": "1",
        }.items():
            patch.setenv(variable, value)
        yield running
        assert running.refusals == []


@dataclass
class InlineCode:
    """The handler of a custom resource's function.

    Attributes:
        seconds: The time.
        ends: When Lambda ends the running invocation.
        answers: What CloudFormation was told.
    """

    code: str
    patch: pytest.MonkeyPatch
    seconds: float = 0.0
    ends: float = 900.0
    answers: list[dict[str, Any]] = field(default_factory=list)
    function_name: str = "function"

    def __post_init__(self) -> None:
        module = ModuleType("cfnresponse")
        vars(module).update(SUCCESS="SUCCESS", FAILED="FAILED", send=self._send)
        self.patch.setitem(sys.modules, "cfnresponse", module)
        self.patch.setattr("time.sleep", self._sleep)
        self.patch.setattr("time.time", lambda: self.seconds)
        self.names: dict[str, Any] = {}
        exec(self.code, self.names)

    def run(self, request: str, properties: dict[str, Any] | None = None, **members: Any) -> dict[str, Any] | None:
        """Return the answer of one invocation, None if it left it to another one."""
        before = len(self.answers)
        self.ends = self.seconds + 900
        self.names["handler"]({"RequestType": request, "ResourceProperties": properties or {}, **members}, self)
        return self.answers[-1] if len(self.answers) > before else None

    def get_remaining_time_in_millis(self) -> float:
        return (self.ends - self.seconds) * 1000

    def _sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def _send(
        self, _event: Any, _context: Any, status: str, data: Any, physical_id: str, *, reason: str | None = None
    ) -> None:
        self.answers.append({"status": status, "data": data, "id": physical_id, "reason": reason})
