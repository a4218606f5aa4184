"""The checks that AWS alone can answer: what they make of answers that are as expected, and of others."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from ragstack_local.certify import fixtures
from ragstack_local.certify.check import Verdict
from ragstack_local.certify.deployed import kept, operations, templates
from ragstack_local.certify.deployed.calls import Answer
from ragstack_local.certify.deployed.checks import CHECKS
from ragstack_local.certify.deployed.operations import FUNCTIONS, Failure
from ragstack_local.certify.deployed.people import People
from ragstack_local.certify.deployed.samples import Uploaded
from ragstack_local.certify.runner import run_check
from ragstack_local.certify.site import Site
from ragstack_local.connection.address import Address
from ragstack_local.signin.provider import ClientRegistration
from tests.e2e.test_certificate import ON_AWS_ALONE, names_in
from tests.ragstack_local.certify.deployed.account import Account, Request, in_turn
from tests.ragstack_local.certify.deployed.conftest import CONSOLE, PREFIX, PROGRAMS
from tests.support.aws_service import Fault

BY_NAME = {check.name: check for check in CHECKS}
NOW = datetime(2026, 12, 1, tzinfo=UTC)
NAME = "ragstack-certify-0123456789"

Setting = Callable[[Account], None]


def json_answer(status: int, content: Any, **headers: str) -> Answer:
    return Answer(status, headers, json.dumps(content).encode())


def error(status: int, code: str, **headers: str) -> Answer:
    return json_answer(status, {"error": {"code": code, "message": "No.", "details": []}}, **headers)


def stack(status: str, **outputs: str) -> dict[str, Any]:
    listed = [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]
    return {"Stacks": [{"StackName": "a", "CreationTime": NOW, "StackStatus": status, "Outputs": listed}]}


def outputs(**found: str) -> Setting:
    def program(account: Account) -> None:
        account.replies["cloudformation.DescribeStacks"] = stack("CREATE_COMPLETE", **found)

    return program


def references(template: str) -> Setting:
    def program(account: Account) -> None:
        outputs()(account)
        account.replies["cloudformation.GetTemplate"] = {"TemplateBody": template}

    return program


def policies(limit: int) -> Setting:
    """Count the characters of policies without white space, as IAM does."""

    def program(account: Account) -> None:
        role = {
            "Path": "/",
            "RoleName": NAME,
            "RoleId": "A" * 16,
            "Arn": "arn:aws:iam::123456789012:role/a",
            "CreateDate": NOW,
        }
        account.replies["iam.CreateRole"] = {"Role": role}
        account.replies["iam.PutRolePolicy"] = lambda given: (
            {} if len("".join(given["PolicyDocument"].split())) <= limit else Fault("LimitExceeded")
        )

    return program


def small_stack(*statuses: str, pool: str = "CREATE_COMPLETE", ids: tuple[str, ...] = ("one",)) -> Setting:
    """Let a stack have these statuses, and its resource these physical ids, one after the other."""

    def program(account: Account) -> None:
        def resources(physical: str, logical: str) -> dict[str, Any]:
            found = {
                "LogicalResourceId": logical,
                "PhysicalResourceId": physical,
                "ResourceType": "AWS::Cognito::UserPool",
                "Timestamp": NOW,
                "ResourceStatus": pool,
            }
            return {"StackResources": [found]}

        logical = "Pool" if len(ids) == 1 and "ROLLBACK" in statuses[-1] else "Part"
        account.replies |= {
            "cloudformation.CreateStack": {"StackId": "a"},
            "cloudformation.UpdateStack": {"StackId": "a"},
            "cloudformation.DeleteStack": {},
            "cloudformation.DescribeStacks": in_turn(*map(stack, statuses)),
            "cloudformation.DescribeStackResources": in_turn(*(resources(each, logical) for each in ids)),
        }

    return program


IN_PROGRESS = ("CREATE_IN_PROGRESS", "CREATE_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE")


def status_report(search_type: str) -> Setting:
    def program(account: Account) -> None:
        account.web[PROGRAMS] = lambda _: json_answer(200, {"word_search": {"search_type": search_type}})

    return program


READER = Address(PROGRAMS, token="reader")
OPERATOR = Address(PROGRAMS, token="operator")
SIGNED_IN = People(PROGRAMS, "issuer", OPERATOR, READER, READER, ClientRegistration("c", ("c",)), "olga")


def erasing(*, notes: bool = True) -> Setting:
    """An API that erases people; *notes*: whether a search notes them again."""

    def program(account: Account) -> None:
        def answer(request: Request) -> Answer:
            method, url, _, _ = request
            path = url.removeprefix(PROGRAMS)
            if method == "GET" and path.startswith("/api/conversations/"):
                return error(404, "ConversationNotFound")
            found: Mapping[str, Any] = {
                "/api/me": {"name": "user:alice"},
                "/api/ask": {"conversation": {"saved": True}},
                "/api/gaps": {"id": "a"},
                "/api/people/erase": {"principal": "user:alice", "conversations": 1, "gaps": 1, "seen": True},
                "/api/retrieve": {"results": []},
                "/api/people": {"people": [{"principal": "user:alice"}] if notes else []},
            }
            return json_answer(200, found[path])

        account.web[PROGRAMS] = answer

    return program


def gateway(*, checks_signatures: bool = True, throttle: str | None = "of the route") -> Setting:
    """An API Gateway, which may throttle the routes each for itself, or all of them."""

    def program(account: Account) -> None:
        asked = []

        def answer(request: Request) -> Answer:
            _, url, _, headers = request
            path = url.removeprefix(PROGRAMS)
            if "authorization" not in headers and checks_signatures:
                return error(403, "MISSING_AUTHENTICATION_TOKEN")
            if path == "/api/versions" and checks_signatures:
                return error(403, "INVALID_SIGNATURE")
            asked.append(path)
            is_asked = path == "/api/ask" or throttle == "of all"
            if throttle and is_asked and len(asked) > 4:
                return error(429, "Throttled", **{"retry-after": "1"})
            return json_answer(400 if path == "/api/ask" else 200, {})

        account.web[PROGRAMS] = answer

    return program


def page(**headers: str) -> Setting:
    def program(account: Account) -> None:
        account.web[CONSOLE] = lambda _: Answer(
            200, {name.replace("_", "-"): value for name, value in headers.items()}, b""
        )

    return program


def alarm(*states: str) -> Setting:
    def program(account: Account) -> None:
        def found(state: str) -> dict[str, Any]:
            name = f"{PREFIX}Storage-ChangesDeadLettersAlarm202A83E5-ABCDEF"
            return {"MetricAlarms": [{"AlarmName": name, "StateValue": state}]}

        account.replies["cloudwatch.DescribeAlarms"] = in_turn(*map(found, states))

    return program


def report(init: float | None = 900.0, used: int = 200) -> str:
    cold = "" if init is None else f"\tInit Duration: {init} ms"
    durations = "Duration: 8 ms\tBilled Duration: 8 ms"
    return f"REPORT RequestId: 1\t{durations}\tMemory Size: 512 MB\tMax Memory Used: {used} MB{cold}\t\n"


def logged(line: str = report(), *, leaves_out: str = "") -> Setting:
    """Let each function log a line."""

    def program(account: Account) -> None:
        account.replies["lambda.ListFunctions"] = {
            "Functions": [
                {
                    "FunctionName": f"{PREFIX}Api-{name}",
                    "Environment": {"Variables": {"POWERTOOLS_SERVICE_NAME": name}},
                    "LoggingConfig": {"LogGroup": f"/group/{name}"},
                }
                for name in FUNCTIONS
            ]
        }
        account.replies["logs.FilterLogEvents"] = lambda given: {
            "events": [] if given["logGroupName"].endswith(f"/{leaves_out}") else [{"message": line}]
        }

    return program


def doctor(status: str) -> Setting:
    """Let the command print this status of a check."""

    def program(account: Account) -> None:
        printed = json.dumps({"checks": [{"name": "search", "status": status}]})
        account.programs["doctor"] = CompletedProcess(["ragstack"], 0, printed)

    return program


@dataclass(frozen=True)
class Case:
    """Answers that are as expected, and others."""

    expected: Setting
    other: Setting


STRICT = "max-age=31536000"

CASES: Mapping[str, Case] = {
    "deployment.first_sync": Case(outputs(FirstSync="COMPLETE (1)"), outputs(FirstSync="FAILED: no (1)")),
    "deployment.text_search": Case(outputs(TextSearch="BUILDING (1)"), outputs(TextSearch="OFF: 403 (1)")),
    "deployment.references": Case(
        references('{"a": {"Fn::GetStackOutput": {}}}'), references('{"a": {"Fn::ImportValue": ""}}')
    ),
    "deployment.managed": Case(
        small_stack("CREATE_IN_PROGRESS", "CREATE_COMPLETE"), small_stack("CREATE_IN_PROGRESS", "ROLLBACK_COMPLETE")
    ),
    "policies.size": Case(policies(10_240), policies(10_241)),
    "changes.protected_pool": Case(
        small_stack("CREATE_IN_PROGRESS", "ROLLBACK_COMPLETE", pool="DELETE_SKIPPED"),
        small_stack("CREATE_IN_PROGRESS", "ROLLBACK_FAILED", pool="DELETE_FAILED"),
    ),
    "changes.second_factor": Case(
        small_stack(*IN_PROGRESS, ids=("one", "one")), small_stack(*IN_PROGRESS, ids=("one", "two"))
    ),
    "changes.header_policy": Case(
        small_stack(*IN_PROGRESS, ids=("one", "one")),
        small_stack(*IN_PROGRESS[:-1], "UPDATE_ROLLBACK_COMPLETE", ids=("one", "one")),
    ),
    "kept.erased": Case(erasing(), erasing(notes=False)),
    "search.word_search": Case(status_report("HYBRID"), status_report("SEMANTIC")),
    "api.unsigned": Case(gateway(), gateway(checks_signatures=False)),
    "limits.api_throttled": Case(gateway(), gateway(throttle="of all")),
    "console.transport": Case(page(strict_transport_security=STRICT), page()),
    "failures.alarm_rings": Case(alarm("INSUFFICIENT_DATA", "OK", "ALARM"), alarm("OK")),
    "failures.alarm_ends": Case(alarm("ALARM", "OK"), alarm("ALARM")),
    "functions.reports": Case(logged(), logged(report(init=12_000.0))),
    "doctor.passes": Case(doctor("warning"), doctor("failed")),
}
"""By the names of the checks. The second answers are the facts that change underneath."""

FAILED = Failure(Uploaded("0" * 32, "s3://documents/broken.pdf", {"status": "FAILED"}), ("1",))


@pytest.fixture
def prepared(site: Site, account: Account, monkeypatch: pytest.MonkeyPatch) -> Site:
    pauses: list[float] = []
    monkeypatch.setattr(site, "pause", pauses.append)
    monkeypatch.setattr(site, "clock", lambda: 60.0 * len(pauses))  # a pause is a minute, which nobody waits for
    monkeypatch.setattr(operations, "failure", lambda _: FAILED)
    monkeypatch.setattr(operations, "discarded", lambda _: 1)
    monkeypatch.setattr(kept, "people", lambda _: SIGNED_IN)
    monkeypatch.setattr(operations, "run", lambda command, **_: account.programs[command[4]])
    monkeypatch.setattr(fixtures, "knowledge_base", lambda _: None)
    monkeypatch.setattr(fixtures, "role", lambda _: "arn:aws:iam::123456789012:role/bedrock")
    return site


@pytest.mark.parametrize("name", CASES)
def test_expected_answers_match(prepared: Site, account: Account, name: str) -> None:
    CASES[name].expected(account)

    outcome = run_check(prepared, BY_NAME[name])

    assert (outcome.observed, outcome.reason) == (BY_NAME[name].expected, "")


@pytest.mark.parametrize("name", CASES)
def test_other_answers_differ(prepared: Site, account: Account, name: str) -> None:
    CASES[name].other(account)

    outcome = run_check(prepared, BY_NAME[name])

    assert outcome.verdict is Verdict.DIFFERS, outcome.reason
    assert "raised" not in str(outcome.observed)
    assert not names_in(outcome)


def test_each_check_of_aws_alone_has_both() -> None:
    assert {*CASES} == {*ON_AWS_ALONE}


def test_functions_that_need_all_their_memory_or_never_started_are_named(prepared: Site, account: Account) -> None:
    logged(report(used=512), leaves_out="viewer")(account)

    outcome = run_check(prepared, BY_NAME["functions.reports"])

    assert isinstance(outcome.observed, Mapping)
    assert outcome.observed["without a report"] == ["viewer"]
    assert outcome.observed["out of memory"] == [name for name in FUNCTIONS if name != "viewer"]


@pytest.mark.parametrize("characters", [10_240, 10_241])
def test_a_policy_has_as_many_characters_as_asked(characters: int) -> None:
    document = templates.policy(characters)

    assert len("".join(document.split())) == characters
    assert all(len(each) < 1024 for each in json.loads(document)["Statement"][0]["Resource"])


@pytest.mark.slow
def test_the_small_templates_pass_cfn_lint(prepared: Site, account: Account, tmp_path: Path) -> None:
    for name in ("deployment.managed", "changes.protected_pool", "changes.second_factor", "changes.header_policy"):
        CASES[name].expected(account)
        run_check(prepared, BY_NAME[name])
    asked = [*account.asked("cloudformation.CreateStack"), *account.asked("cloudformation.UpdateStack")]
    files = [tmp_path / f"{number}.json" for number in range(len(asked))]
    for file, each in zip(files, asked, strict=True):
        file.write_text(each["TemplateBody"])

    command = [str(Path(sys.executable).with_name("cfn-lint")), "--non-zero-exit-code", "error", *map(str, files)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)

    assert len(files) == 6
    assert finished.returncode == 0, finished.stdout
