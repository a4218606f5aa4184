"""An AWS account that answers calls as a test programs them, without a network.

botocore validates the parameters of every call, and the account both them and the answers against the service model, as
:mod:`tests.support.aws_service` does. It shows what the checks do with answers, not that AWS answers so.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any

import boto3

from ragstack_local.certify import rights as rights_of_services
from ragstack_local.certify.deployed import calls, rights
from ragstack_local.certify.deployed.calls import Answer
from ragstack_local.certify.rights import actions_of
from tests.support.aws_service import Fault, violations

ALLOWED = {
    action
    for statement in (*rights_of_services.policy()["Statement"], *rights.policy()["Statement"])
    for action in statement["Action"]
} | {"sts:GetCallerIdentity"}
"""What the policies in the documentation allow; everybody may ask who they are."""

Reply = Callable[[Mapping[str, Any]], Any]
Request = tuple[str, str, bytes | None, Mapping[str, str]]


@dataclass
class Account:
    """The account, and the servers that its stacks have on the web.

    Attributes:
        replies: What each call is answered with, by ``SERVICE.OPERATION``: an answer, or a function of the parameters.
        web: What each request is answered with, by the beginning of its URL; the longest one wins.
        programs: What commands of the command line end with, by their names.
        called: The calls, with their parameters.
    """

    replies: dict[str, Any] = field(default_factory=dict)
    web: dict[str, Callable[[Request], Answer]] = field(default_factory=dict)
    programs: dict[str, CompletedProcess[str]] = field(default_factory=dict)
    called: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def session(self) -> Any:
        """Return a session whose clients this account answers."""
        session = boto3.Session("test", "test", region_name="eu-west-1")
        session.events.register("before-parameter-build", self._note)
        session.events.register("before-call", self._answer)
        return session

    def asked(self, name: str) -> list[Mapping[str, Any]]:
        return [parameters for called, parameters in self.called if called == name]

    def send(
        self,
        method: str,
        url: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        form: Mapping[str, str] | None = None,  # noqa: ARG002 - the signature of the function
    ) -> Answer:
        """Replace :func:`ragstack_local.certify.deployed.calls.send`."""
        found = max((each for each in self.web if url.startswith(each)), key=len)
        return self.web[found]((method, url, body, {name.lower(): value for name, value in (headers or {}).items()}))

    @staticmethod
    def _note(params: Any, context: dict[str, Any], **_: Any) -> None:
        context["given"] = dict(params)

    def _answer(self, model: Any, context: Mapping[str, Any], **_: Any) -> Any:
        name, given = f"{model.service_model.service_name}.{model.name}", context["given"]
        assert not violations(given, model.input_shape), (name, violations(given, model.input_shape))
        assert {*actions_of([name])} <= ALLOWED, f"docs/certificates does not name the right to {name}"
        self.called.append((name, given))
        assert name in self.replies, f"the test programmed nothing for {name}"
        reply = self.replies[name]
        answer = reply(given) if callable(reply) else reply
        if isinstance(answer, Fault):
            error = {"Code": answer.code, "Message": answer.message}
            return SimpleNamespace(status_code=answer.status), {"Error": error, "ResponseMetadata": {}}
        assert not violations(answer, model.output_shape), (name, violations(answer, model.output_shape))
        return SimpleNamespace(status_code=200), {**answer, "ResponseMetadata": {}}


def install(account: Account, monkeypatch: Any) -> None:
    """Let the checks of this process send their requests to the account."""
    monkeypatch.setattr(calls, "send", account.send)


def in_turn(*answers: Any) -> Reply:
    """Answer successive calls with successive answers, the last for ever."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]
