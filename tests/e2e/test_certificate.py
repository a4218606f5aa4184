"""``ragstack certify`` against the local stack: what it believes is so, and it notices what is not."""

import itertools
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ragstack_local.certify.check import Check, Outcome, Verdict
from ragstack_local.certify.deployed import calls, operations, samples, untried
from ragstack_local.certify.deployed.calls import Answer
from ragstack_local.certify.deployed.checks import CHECKS, KINDS
from ragstack_local.certify.journal import Journal
from ragstack_local.certify.removal import remove_all
from ragstack_local.certify.run import certify, clean_up
from ragstack_local.certify.runner import run_check
from ragstack_local.certify.site import Place, Site
from ragstack_local.connection.connection import Connection, local_session
from tests.e2e.support import LocalStack
from tests.support.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("local stack")]

BY_NAME = {check.name: check for check in CHECKS}

ON_AWS_ALONE = (
    *(
        "failures.alarm_ends",
        "failures.alarm_rings",
        "limits.api_throttled",
        "api.unsigned",
        "changes.header_policy",
        "changes.protected_pool",
    ),
    *(
        "changes.second_factor",
        "console.transport",
        "deployment.first_sync",
        "deployment.managed",
        "deployment.references",
    ),
    *("deployment.text_search", "doctor.passes", "functions.reports", "kept.erased", "policies.size"),
    "search.word_search",
)
"""Tested with a programmed account: tests/ragstack_local/certify/deployed."""

HERE = [check for check in CHECKS if check.name not in ON_AWS_ALONE and check.topic != untried.TOPIC]


def place_of(connection: Connection) -> Place:
    services = ("bedrock-agent", "bedrock-agent-runtime", "bedrock-runtime", "s3vectors")
    endpoints = {"": str(connection.aws_endpoint), **dict.fromkeys(services, str(connection.bedrock_endpoint))}
    return Place("us-east-1", endpoints=endpoints)


def new_site(stack: LocalStack, folder: Path, token: str, clock: Callable[[], float] = time.monotonic) -> Site:
    connection, place = stack.connection, place_of(stack.connection)
    journal = Journal.begin(folder, token, place.fields)
    return Site(local_session(), place, token, journal, connection=connection, seconds=10**6, clock=clock)


def clean(site: Site) -> None:
    clients = site.client
    assert remove_all(site.journal, KINDS, clients, wait_seconds=0.1) == []
    site.journal.end()


@pytest.fixture(scope="module")
def site(stack: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One run for all tests, whose documents the tests of other files do not find."""
    made = new_site(stack, tmp_path_factory.mktemp("journals"), "aaaaaaaaaa")
    yield made
    clean(made)

    def is_gone() -> bool:
        _, listed = stack.request("GET", f"/api/documents?prefix={made.name()}%2F")
        return all(each["status"] == "DELETED" for each in listed["documents"])

    eventually(is_gone)


@pytest.mark.parametrize("name", [*ON_AWS_ALONE, *(check.name for check in CHECKS if check.topic == untried.TOPIC)])
def test_what_this_machine_cannot_try_is_not_tried(site: Site, name: str) -> None:
    outcome = run_check(site, BY_NAME[name])

    assert outcome.verdict is Verdict.NOT_TRIED
    assert outcome.reason


Change = Callable[[Answer], Answer]


@dataclass
class Underneath:
    """What is between the checks and the stack."""

    monkeypatch: pytest.MonkeyPatch
    site: Site

    def answers(self, method: str, path: str, change: Change) -> None:
        """Change the answers to some requests, whose URLs match a pattern."""
        send = calls.send

        def changed(verb: str, url: str, *rest: Any, **more: Any) -> Answer:
            answer = send(verb, url, *rest, **more)
            return change(answer) if verb == method and re.search(path, url) else answer

        self.monkeypatch.setattr(calls, "send", changed)

    def requests(self, path: str, change: Callable[[Any], Any]) -> None:
        """Change the JSON of some requests."""
        send = calls.send

        def changed(verb: str, url: str, body: bytes | None = None, *rest: Any, **more: Any) -> Answer:
            if body is not None and re.search(path, url):
                body = json.dumps(change(json.loads(body))).encode()
            return send(verb, url, body, *rest, **more)

        self.monkeypatch.setattr(calls, "send", changed)

    def aws(self, service: str, operation: str, change: Callable[[Any], None]) -> None:
        """Change the answers to some calls of AWS."""
        events = self.site.client(service).meta.events
        name = f"after-call.{self.site.client(service).meta.service_model.service_id.hyphenize()}.{operation}"

        def changed(parsed: Any, **_: Any) -> None:
            change(parsed)

        events.register(name, changed)
        self.monkeypatch.setattr(self, "undo", lambda: events.unregister(name, changed), raising=False)


def with_status(status: int) -> Change:
    return lambda answer: replace(answer, status=status)


def with_header(name: str, value: str | None) -> Change:
    def change(answer: Answer) -> Answer:
        kept = {key: text for key, text in answer.headers.items() if key != name}
        return replace(answer, headers=kept if value is None else {**kept, name: value})

    return change


def with_json(change: Callable[[Any], Any]) -> Change:
    def changed(answer: Answer) -> Answer:
        content = answer.content
        return replace(answer, body=json.dumps(change(content)).encode())

    return changed


def member(*path: Any, value: Any) -> Callable[[Any], Any]:
    """Set a member of some JSON, by its path; ``*`` is every item of a list."""

    def change(content: Any) -> Any:
        first, *others = path
        for key in range(len(content)) if first == "*" else [first]:
            content[key] = member(*others, value=value)(content[key]) if others else value
        return content

    return change


def garbled(text: str) -> Callable[[Any], Any]:
    """Read the UTF-8 of a text as if it were Latin-1, as ASCII parsers do."""

    def change(content: Any) -> Any:
        for result in content["results"]:
            result["content"] = result["content"].replace(text, text.encode().decode("latin-1"))
        return content

    return change


def reversed_results(content: Any) -> Any:
    return {**content, "results": content["results"][::-1]}


def without_kinds(request: Any) -> Any:
    """Ignore a part of a filter, as some stores do with operators that they do not know."""
    chosen = {name: value for name, value in request["metadata_filter"].items() if name != samples.KIND}
    return {**request, "metadata_filter": chosen}


def remembered() -> Change:
    """Repeat the first answer, as an index does that deletes later than it says."""
    first: list[Answer] = []

    def change(answer: Answer) -> Answer:
        first.append(answer)
        return first[0]

    return change


def on_second_call(change: Change) -> Change:
    numbers = itertools.count(1)
    return lambda answer: change(answer) if next(numbers) == 2 else answer


def at_once(answer: Answer) -> Answer:
    return replace(answer, arrivals=(0.0,))


def with_text(old: str, new: str) -> Change:
    return lambda answer: replace(
        answer, headers={name: value.replace(old, new) for name, value in answer.headers.items()}
    )


BUCKET = r"/ragstack-documents$"
SEARCH = r"/api/retrieve$"
DOCUMENT = r"/api/documents/[0-9a-f]{32}$"
CORPORA = r"/api/corpora$"
CONSOLE = r"localhost:\d+/$"

Fault = Callable[[Underneath], None]


def answering(method: str, path: str, change: Change) -> Fault:
    return lambda underneath: underneath.answers(method, path, change)


def calling(service: str, operation: str, change: Callable[[Any], None]) -> Fault:
    return lambda underneath: underneath.aws(service, operation, change)


def status_of_a_stack(parsed: Any) -> None:
    parsed["Stacks"][0]["StackStatus"] = "UPDATE_ROLLBACK_COMPLETE"


def one_alarm_less(parsed: Any) -> None:
    del parsed["MetricAlarms"][0]


def no_events(parsed: Any) -> None:
    parsed["events"] = []


def a_refusal(parsed: Any) -> None:
    message = "An error occurred (AccessDeniedException) when calling the Retrieve operation: User is not authorized"
    parsed["events"] = [{"message": message, "timestamp": 1, "ingestionTime": 1}]


def impatient(fault: Fault) -> Fault:
    def install(underneath: Underneath) -> None:
        for name in ("DISCARD_SECONDS", "LOG_SECONDS"):
            underneath.monkeypatch.setattr(operations, name, 0.5)
        fault(underneath)

    return install


PRIVATE = re.compile(
    r"arn:|s3://|https?://|ragstack-certify|ragstack-documents|\b(?=[A-Z]*\d)[A-Z0-9]{10}\b|\b[0-9a-f]{32}\b|\b\d{12}\b"
)
"""ARNs, URIs, names of resources, ids of knowledge bases and documents, and accounts."""


def names_in(outcome: Outcome) -> list[str]:
    """Find what a report must not have, because it is published."""
    return PRIVATE.findall(json.dumps([outcome.observed, outcome.reason]))


FAULTS: Mapping[str, Fault] = {
    "deployment.stacks": calling("cloudformation", "DescribeStacks", status_of_a_stack),
    "uploads.post": answering("POST", BUCKET, with_header("etag", None)),
    "uploads.post_of_a_page": answering("POST", BUCKET, with_header("access-control-allow-origin", None)),
    "uploads.preflight": answering(
        "OPTIONS", BUCKET, lambda answer: with_status(200)(with_header("access-control-allow-origin", "*")(answer))
    ),
    "uploads.other_size": answering("POST", BUCKET, with_status(204)),
    "uploads.other_type": answering("POST", BUCKET, with_status(204)),
    "uploads.new_only": answering("PUT", BUCKET.replace("$", "/"), with_status(200)),
    "documents.ascii_text": answering("POST", SEARCH, with_json(member("results", value=[]))),
    "documents.utf8_text": answering("POST", SEARCH, with_json(garbled("ü"))),
    "documents.utf8_markdown": answering("POST", SEARCH, with_json(garbled("é"))),
    "documents.converted": answering("GET", DOCUMENT, with_json(member("receipt", value=None))),
    "documents.pdf": answering("GET", DOCUMENT, with_json(member("status", value="FAILED"))),
    "documents.page": answering("POST", SEARCH, with_json(member("results", "*", "page", value=1))),
    "documents.viewed": answering("POST", r"/api/view$", with_status(502)),
    "documents.deleted": answering("POST", SEARCH, remembered()),
    "search.filters": lambda underneath: underneath.requests(SEARCH, without_kinds),
    "search.words": answering("POST", SEARCH, with_json(reversed_results)),
    "answers.citation": answering("POST", r"/api/ask$", with_json(member("sources", "*", "page", value=None))),
    "answers.stream": answering("POST", r"/api/ask/stream$", at_once),
    "api.bad_request": answering("POST", SEARCH, with_json(member("error", "details", value=[]))),
    "api.no_json": answering("POST", SEARCH, with_status(502)),
    "api.unknown_document": answering("GET", DOCUMENT, with_status(403)),
    "api.unknown_route": answering("GET", r"/api/nothing$", with_status(404)),
    "api.too_large": answering("POST", SEARCH, with_status(400)),
    "api.health": answering("GET", r"/health$", with_status(403)),
    "sign_in.token": answering("GET", r"/api/me$", with_json(member("rights", value=["read"]))),
    "sign_in.no_token": answering("GET", CORPORA, with_header("www-authenticate", None)),
    "sign_in.malformed_token": answering("GET", CORPORA, with_status(403)),
    "sign_in.forged_token": answering("GET", CORPORA, with_status(200)),
    "sign_in.other_client": answering("GET", CORPORA, with_status(200)),
    "sign_in.not_allowed": answering("GET", r"/api/status$", with_status(200)),
    "sign_in.metadata": answering(
        "GET", r"/oauth-protected-resource$", with_json(member("resource", value="https://example.com/mcp"))
    ),
    "sign_in.mcp": answering(
        "POST", r"/mcp$", lambda answer: with_status(403)(answer) if answer.status == 401 else answer
    ),
    "sign_in.page": answering("GET", CORPORA, with_status(401)),
    "kept.conversation": answering("GET", r"/api/conversations/[0-9a-f-]{36}$", with_status(200)),
    "kept.names": answering("GET", r"/api/documents/find\?", with_json(member("documents", value=[]))),
    "labels.hidden": answering("GET", DOCUMENT, with_status(200)),
    "console.page": answering("GET", CONSOLE, with_header("cache-control", "max-age=60")),
    "console.headers": answering("GET", CONSOLE, with_header("x-content-type-options", None)),
    "console.policy": answering("GET", CONSOLE, with_text("script-src 'self'", "script-src 'unsafe-inline'")),
    "console.connections": answering("GET", CONSOLE, with_text("/ragstack-documents", "/another-bucket")),
    "console.files": answering("GET", r"/console\.json$", with_header("cache-control", "max-age=60")),
    "console.errors": answering("GET", r"localhost:\d+/api/status$", remembered()),
    "failures.document": answering("GET", r"/api/failures$", with_json(member("documents", "*", "advice", value=None))),
    "failures.discarded": impatient(
        answering("GET", r"/api/failures$", with_json(member("documents", "*", "message_ids", value=["still there"])))
    ),
    "alarms.listed": calling("cloudwatch", "DescribeAlarms", one_alarm_less),
    "reconciliation.scheduled": answering(
        "GET", r"/api/ingestion-jobs$", with_json(member("jobs", "*", "status", value="INCOMPLETE"))
    ),
    "functions.invoked": impatient(calling("logs", "FilterLogEvents", no_events)),
    "functions.rights": calling("logs", "FilterLogEvents", a_refusal),
}
"""A fact that changes underneath, by the name of the check that must notice it."""

LATE = ("documents.indexed", "documents.findable")
"""They have tests of their own, because their figures are measured while the documents are uploaded."""


@pytest.fixture
def underneath(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Underneath]:
    made = Underneath(monkeypatch, site)
    yield made
    getattr(made, "undo", lambda: None)()


@pytest.mark.parametrize("name", [check.name for check in HERE if check.name not in LATE])
def test_a_check_matches_until_a_fact_changes(site: Site, underneath: Underneath, name: str) -> None:
    check = BY_NAME[name]

    before = run_check(site, check)
    FAULTS[name](underneath)
    after = run_check(site, check)

    assert (before.observed, before.reason) == (check.expected, "")
    assert after.verdict is Verdict.DIFFERS, (after.observed, after.reason)
    assert "KeyError" not in str(after.observed)
    assert not [*names_in(before), *names_in(after)]


@pytest.mark.parametrize("name", LATE)
def test_documents_are_indexed_soon_and_found_at_once(site: Site, name: str) -> None:
    outcome = run_check(site, BY_NAME[name])

    assert (outcome.observed, outcome.reason) == (BY_NAME[name].expected, "")


def test_documents_that_are_indexed_and_found_late_are_noticed(
    stack: LocalStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = [0.0]
    made = new_site(stack, tmp_path, "bbbbbbbbbb", lambda: time.monotonic() + waited[0])
    monkeypatch.setattr(samples, "SAMPLES", (samples.ASCII,))
    send, searches = calls.send, itertools.count()

    def late(method: str, url: str, *rest: Any, **more: Any) -> Answer:
        answer = send(method, url, *rest, **more)
        if re.search(DOCUMENT, url):
            waited[0] = 2 * samples.INDEXED_SECONDS
        is_early = re.search(SEARCH, url) and next(searches) < 2
        return with_json(member("results", value=[]))(answer) if is_early else answer

    monkeypatch.setattr(calls, "send", late)
    try:
        outcomes = [run_check(made, BY_NAME[name]) for name in LATE]
    finally:
        clean(made)

    assert [outcome.verdict for outcome in outcomes] == [Verdict.DIFFERS] * 2
    name = samples.ASCII.name
    assert [outcome.observed for outcome in outcomes] == [{name: samples.LATE}, {name: samples.LATER}]


def test_a_run_removes_its_documents_and_no_others(stack: LocalStack, tmp_path: Path) -> None:
    connection = stack.connection
    foreign = stack.put("ragstack-certify-of-somebody-else/kept.md", "This document is somebody else's.")
    checks: list[Check] = [BY_NAME["uploads.post"], BY_NAME["failures.document"]]

    report, left, _ = certify(local_session(), place_of(connection), checks, tmp_path, connection=connection)

    assert [outcome.verdict for outcome in report.outcomes] == [Verdict.MATCHES] * 2
    assert left == []
    assert not [*tmp_path.glob("*.jsonl")]
    listed = connection.client("s3").list_objects_v2(Bucket=connection.bucket, Prefix="ragstack-certify-")
    assert {found["Key"] for found in listed.get("Contents", [])} - own_keys(stack) == {
        "ragstack-certify-of-somebody-else/kept.md"
    }
    assert stack.settled(foreign)[foreign] == "INDEXED"
    stack.delete("ragstack-certify-of-somebody-else/kept.md")


def test_what_a_killed_run_leaves_is_cleaned_up(stack: LocalStack, tmp_path: Path) -> None:
    connection = stack.connection
    sqs, queue = connection.client("sqs"), connection.dead_letter_queue_url
    killed = new_site(stack, tmp_path, "cccccccccc")
    run_check(killed, BY_NAME["failures.document"])
    killed.journal._file.close()  # as the end of its process does
    foreign = sqs.send_message(QueueUrl=queue, MessageBody='{"from": "somebody else"}')["MessageId"]

    count, left, _ = clean_up(local_session(), place_of(connection), tmp_path)

    found = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, VisibilityTimeout=5).get("Messages", [])
    for message in found:
        if message["MessageId"] == foreign:
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    listed = connection.client("s3").list_objects_v2(Bucket=connection.bucket, Prefix="ragstack-certify-cccccccccc/")
    assert (count, left) == (2, [])
    assert foreign in {message["MessageId"] for message in found}
    assert not any("cccccccccc" in message["Body"] for message in found)
    assert "Contents" not in listed
    assert not [*tmp_path.glob("*.jsonl")]


def own_keys(stack: LocalStack) -> set[str]:
    """The documents of the run that the other tests of this file share."""
    found = stack.connection.client("s3").list_objects_v2(
        Bucket=stack.connection.bucket, Prefix="ragstack-certify-aaaaaaaaaa/"
    )
    return {each["Key"] for each in found.get("Contents", [])}


def test_each_check_has_a_fault() -> None:
    assert {*FAULTS, *LATE} == {check.name for check in HERE}
