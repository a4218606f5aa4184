"""Checks of what operators rely on: failures, alarms, reconciliations, logs, and ``ragstack doctor``."""

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from subprocess import run
from typing import Any, Final

from ragstack_common.services.status import read_alarms
from ragstack_local.certify.check import Json, NotTried, Source, Topic
from ragstack_local.certify.deployed import deployment, stacks
from ragstack_local.certify.deployed.deployment import Deployment
from ragstack_local.certify.deployed.people import people
from ragstack_local.certify.deployed.samples import BROKEN, PAGES, Uploaded, samples, uploaded
from ragstack_local.certify.site import Site

FAILURES: Final = Topic("failures", "failures (docs/OPERATIONS.md#failures)", "")
ALARMS: Final = Topic("alarms", "alarms (docs/OPERATIONS.md#alarms)", "")
RECONCILIATION: Final = Topic("reconciliation", "reconciliation (docs/OPERATIONS.md#reconciliation)", "")
DOCTOR: Final = Topic("doctor", "ragstack doctor (docs/OPERATIONS.md#check)", "")
LOGS: Final = Topic("functions", "the functions' roles, memory and time limits", "")

NO_ALARMS: Final = "the local CloudWatch evaluates no alarms"

DEAD_LETTERS_ALARM: Final = "ChangesDeadLettersAlarm"

ALARM_SECONDS: Final = 15 * 60.0
"""Amazon SQS sends the metrics of a queue to CloudWatch every minute, of a queue that was idle after up to 15 minutes.

Source: Amazon SQS developer guide, available CloudWatch metrics.
"""

DISCARD_SECONDS: Final = 120.0
LOG_SECONDS: Final = 120.0
DOCTOR_SECONDS: Final = 600.0

FUNCTIONS: Final = (
    *("answers", "authorizer", "converter", "documents", "ingestion", "ingestion_status", "query", "receipts"),
    *("reconcile", "viewer"),
)
"""The functions of the stacks, by the names of their folders in ``lambdas/``."""

DENIED: Final = re.compile(r"AccessDenied|not authorized to perform|UnauthorizedOperation|AuthorizationError")
"""How services say that a role lacks a right."""

REPORT: Final = re.compile(
    r"REPORT RequestId.*?Memory Size: (?P<size>\d+) MB\s+Max Memory Used: (?P<used>\d+) MB"
    r"(?:\s+Init Duration: (?P<init>[\d.]+) ms)?"
)
"""Source: Lambda developer guide, viewing logs for Python functions."""

COLD_START_SECONDS: Final = 10.0
"""Lambda ends an initialization that takes longer, and repeats it.

Source: Lambda developer guide, execution environment.
"""


@dataclass(frozen=True)
class Failure:
    """A document that failed for good, and its dead letters."""

    document: Uploaded
    message_ids: tuple[str, ...]


def failure(site: Site) -> Failure:
    """A document that failed for good."""
    deployed = deployment.of(site)
    made = uploaded(deployed, BROKEN, value=f"{site.token}-broken")

    def look() -> tuple[str, ...]:
        return tuple(_failed(deployed, made).get("message_ids", ()))

    return Failure(made, site.eventually(look, "the dead letter of a document that failed"))


def _failed(deployed: Deployment, document: Uploaded) -> Mapping[str, Any]:
    listed = deployed.read("GET", "/api/failures")["documents"]
    return next((each for each in listed if each["uri"] == document.uri), {})


def discarded(site: Site) -> int:
    """The dead letters of the document that failed, which are discarded."""
    deployed, found = deployment.of(site), site.shared(failure)
    answer = deployed.read("POST", "/api/failures/discard", {"message_ids": [*found.message_ids]})
    return len(answer["messages"])


@FAILURES.check(
    "document",
    "A file that cannot be parsed becomes FAILED with a reason, and leaves one dead letter",
    Source.GUESS,
    {"status": "FAILED", "reason": "given", "dead letters": 1, "advice": "given"},
)
def _failed_document(site: Site) -> Json:
    found = site.shared(failure)
    return {
        "status": found.document.status,
        "reason": "given" if found.document.detail["reason"] else "missing",
        "dead letters": len(found.message_ids),
        "advice": "given" if _failed(deployment.of(site), found.document).get("advice") else "missing",
    }


@FAILURES.check(
    "alarm_rings",
    "A single dead letter raises the alarm about dead letters",
    Source.DOCUMENTATION,
    "ALARM",
    used_by=ALARMS.used_by,
    aws_only=NO_ALARMS,
)
def _alarm_rings(site: Site) -> Json:
    deployed = deployment.of(site)
    site.shared(failure)
    return _alarm_becomes(site, deployed, "ALARM")


@FAILURES.check(
    "discarded",
    "Discarding removes the dead letter from its queue",
    Source.DOCUMENTATION,
    {"discarded": 1, "left": False},
)
def _discarded(site: Site) -> Json:
    """Discard the dead letters; SQS lists a message again some seconds after it was read."""
    deployed, found = deployment.of(site), site.shared(failure)
    number = site.shared(discarded)

    def look() -> bool:
        return not _failed(deployed, found.document).get("message_ids")

    try:
        site.eventually(look, "the end of the dead letters", DISCARD_SECONDS)
    except TimeoutError:
        return {"discarded": number, "left": True}
    return {"discarded": number, "left": False}


@FAILURES.check(
    "alarm_ends",
    "The alarm about dead letters returns to OK when none is left",
    Source.DOCUMENTATION,
    "OK",
    used_by=ALARMS.used_by,
    aws_only=NO_ALARMS,
)
def _alarm_ends(site: Site) -> Json:
    deployed = deployment.of(site)
    site.shared(discarded)
    return _alarm_becomes(site, deployed, "OK")


def _alarm_becomes(site: Site, deployed: Deployment, state: str) -> Json:
    """Wait until the alarm about dead letters has a state; returns the one that it has at the end."""
    cloudwatch = site.client("cloudwatch")

    def found() -> str:
        alarms = read_alarms(cloudwatch, deployed.prefix)
        return next((each["StateValue"] for each in alarms if DEAD_LETTERS_ALARM in each["AlarmName"]), "no alarm")

    try:
        site.eventually(lambda: found() == state, f"the alarm in the state {state}", ALARM_SECONDS)
    except TimeoutError:
        return found()
    return state


@ALARMS.check(
    "listed",
    "The stacks create as many alarms as the documentation says, and the API lists them",
    Source.DOCUMENTATION,
    {"as documented": True, "in the status": True},
)
def _alarms(site: Site) -> Json:
    """Count the alarms, as CloudWatch and as the API lists them."""
    deployed = deployment.of(site)
    apis = 2 if deployed.connection.people_url not in (None, deployed.connection.api_url) else 1
    own = len(read_alarms(site.client("cloudwatch"), deployed.prefix))
    listed = len(deployed.read("GET", "/api/status")["alarms"] or ())
    documented = {1: 46, 2: 49}[apis]
    return {"as documented": own == documented, "in the status": listed == own}


@RECONCILIATION.check(
    "scheduled",
    "The schedule starts a reconciliation, which compares everything and completes",
    Source.DOCUMENTATION,
    {"status": "COMPLETE", "complete": True},
)
def _reconciliation(site: Site) -> Json:
    """Wait for a reconciliation that the schedule starts; locally, send what the schedule sends."""
    deployed = deployment.of(site)
    site.shared(samples)
    before = {each["id"] for each in _jobs(deployed)}
    if not site.is_aws:
        site.client("sqs").send_message(
            QueueUrl=deployed.connection.jobs_queue_url, MessageBody='{"start": "reconcile", "by": "schedule"}'
        )

    def look() -> Mapping[str, Any] | None:
        new = (each for each in _jobs(deployed) if each["id"] not in before and each["by"] == "schedule")
        return next((each for each in new if each["finished_at"]), None)

    found: Any = site.eventually(look, "a scheduled reconciliation", 3 * 60 * stacks.EVERY_MINUTES)
    return {"status": found["status"], "complete": found["report"].get("complete")}


def _jobs(deployed: Deployment) -> list[Mapping[str, Any]]:
    return [*deployed.read("GET", "/api/ingestion-jobs")["jobs"]]


def _lines(site: Site) -> Mapping[str, list[str]]:
    """Return what each function has logged."""
    deployed, client = deployment.of(site), site.client("logs")
    found = {}
    for name, group in deployed.function_groups().items():
        pages = client.get_paginator("filter_log_events").paginate(
            logGroupName=group, startTime=int(1000 * deployed.since)
        )
        found[name] = [event["message"] for page in pages for event in page["events"]]
    return found


def _exercise(site: Site) -> list[str]:
    """Let each function do something; returns the names of those that must have a log then."""
    deployed = deployment.of(site)
    made = site.shared(samples)  # ingestion, ingestion_status, converter, receipts, documents and query
    deployed.call("POST", "/api/view", {"uri": made[PAGES.name].uri})
    deployed.call("POST", "/api/ingestion-jobs", {})
    expected = [*FUNCTIONS]
    if site.is_aws:
        deployed.call("POST", "/api/ask", {"question": PAGES.question}, streams=True)
    else:  # the local stack runs it as a server, which logs to a file
        expected.remove("answers")
    try:
        site.shared(people)
    except NotTried:
        expected.remove("authorizer")
    return expected


@LOGS.check(
    "invoked",
    "Every function is invoked by its route, queue or schedule, and can write its log",
    Source.GUESS,
    {"without a line": []},
)
def _invoked(site: Site) -> Json:
    expected = _exercise(site)

    def missing() -> list[Json]:
        found = _lines(site)
        return [name for name in expected if not found.get(name)]

    try:
        site.eventually(lambda: not missing(), "the logs of all functions", LOG_SECONDS)
    except TimeoutError:
        return {"without a line": missing()}
    return {"without a line": []}


@LOGS.check("rights", "The functions' roles lack no right that this run needed", Source.GUESS, {"denied": []})
def _rights(site: Site) -> Json:
    _exercise(site)
    found = _lines(site)
    return {"denied": [name for name in FUNCTIONS if any(DENIED.search(line) for line in found.get(name, ()))]}


@LOGS.check(
    "reports",
    "No function uses all of its memory, or takes more than ten seconds for a cold start",
    Source.GUESS,
    {"without a report": [], "out of memory": [], f"cold start after more than {COLD_START_SECONDS:g} s": []},
    aws_only="the local Lambda measures neither memory nor cold starts",
)
def _reports(site: Site) -> Json:
    """Read memory and cold starts from the lines that Lambda writes at the end of invocations."""
    full, slow, reported = set(), set(), set()
    for name, logged in _lines(site).items():
        for report in filter(None, map(REPORT.search, logged)):
            reported.add(name)
            if int(report["used"]) >= int(report["size"]):
                full.add(name)
            if report["init"] and float(report["init"]) > 1000 * COLD_START_SECONDS:
                slow.add(name)
    return {
        "without a report": [name for name in FUNCTIONS if name not in reported],
        "out of memory": sorted(full),
        f"cold start after more than {COLD_START_SECONDS:g} s": sorted(slow),
    }


@DOCTOR.check(
    "passes",
    "ragstack doctor finds nothing wrong with new stacks",
    Source.GUESS,
    {"failed": []},
    aws_only="`ragstack doctor` checks a local stack without a run",
)
def _doctor(site: Site) -> Json:
    """Run the command as an operator does; returns the names of the checks that fail."""
    deployed = deployment.of(site)
    command = [sys.executable, "-P", "-m", "ragstack_local", "doctor", "--aws", "--json"]
    command += ["--stack-prefix", deployed.prefix]
    environment = {**os.environ, "AWS_REGION": site.region, "AWS_DEFAULT_REGION": site.region}
    ended = run(  # noqa: S603 - our own command
        command, env=environment, capture_output=True, text=True, check=False, timeout=DOCTOR_SECONDS
    )
    checks = json.loads(ended.stdout)["checks"]
    return {"failed": sorted(each["name"] for each in checks if each["status"] == "failed")}
