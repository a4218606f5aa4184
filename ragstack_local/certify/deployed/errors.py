"""Checks of the statuses with which the API refuses requests, and of its throttles."""

from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Final

from ragstack_local.certify.check import Json, Source, Topic
from ragstack_local.certify.deployed import calls, deployment
from ragstack_local.certify.deployed.calls import Answer
from ragstack_local.certify.runner import LIMITS
from ragstack_local.certify.site import Site

USED_BY: Final = "the API (docs/DOCUMENTS.md#routes)"

API: Final = Topic("api", USED_BY, "")
LIMITS_OF_API: Final = Topic(LIMITS, USED_BY, "")

TOO_LARGE: Final = 10 * 1024 * 1024 + 1
"""Bytes. Source: Amazon API Gateway quotas, payload size."""

BURST: Final = 60
"""Requests at once. The API takes bursts of 4 questions, and then 2 a second."""

UNKNOWN: Final = "0" * 32
"""An id that no document has."""


def _described(answer: Answer) -> Json:
    return {"status": answer.status, "code": answer.error_code}


@API.check(
    "bad_request",
    "An invalid request is answered with 400, and the name of what is invalid",
    Source.GUESS,
    {"status": 400, "code": "InvalidRequest", "names": ["query"]},
)
def _bad_request(site: Site) -> Json:
    answer = deployment.of(site).call("POST", "/api/retrieve", {"query": ""})
    names = [each["member"] for each in answer.content["error"]["details"]]
    return {"status": answer.status, "code": answer.error_code, "names": [*names]}


@API.check(
    "no_json",
    "A body that is not JSON is answered with 400 by the function, not by API Gateway",
    Source.GUESS,
    {"status": 400, "code": "InvalidRequest"},
)
def _no_json(site: Site) -> Json:
    return _described(deployment.of(site).call("POST", "/api/retrieve", b"{"))


@API.check(
    "unknown_document",
    "An unknown document is answered with 404",
    Source.GUESS,
    {"status": 404, "code": "DocumentNotFound"},
)
def _unknown_document(site: Site) -> Json:
    return _described(deployment.of(site).call("GET", f"/api/documents/{UNKNOWN}"))


@API.check(
    "unknown_route",
    "API Gateway answers 403 for a route that does not exist, in the form of the API's errors",
    Source.DOCUMENTATION,
    {"status": 403, "code": "MISSING_AUTHENTICATION_TOKEN"},
)
def _unknown_route(site: Site) -> Json:
    return _described(deployment.of(site).call("GET", "/api/nothing"))


@API.check("too_large", "A body of more than 10 MB is answered with 413", Source.DOCUMENTATION, {"status": 413})
def _too_large(site: Site) -> Json:
    return {"status": deployment.of(site).call("POST", "/api/retrieve", b"x" * TOO_LARGE).status}


@API.check(
    "health",
    "The API's health check answers without authentication",
    Source.DOCUMENTATION,
    {"status": 200, "content": {"status": "ok"}},
)
def _health(site: Site) -> Json:
    """Ask without any proof of identity, also where others need one."""
    deployed = deployment.of(site)
    answer = deployed.call("GET", "/health", caller=deployed.anonymous())
    return {"status": answer.status, "content": answer.content}


@API.check(
    "unsigned",
    "A request without a valid signature is answered with 403, in the form of the API's errors",
    Source.DOCUMENTATION,
    {
        "without": {"status": 403, "code": "MISSING_AUTHENTICATION_TOKEN"},
        "of another request": {"status": 403, "code": "INVALID_SIGNATURE"},
    },
    aws_only="the local API of programs takes requests of everybody on this machine",
)
def _unsigned(site: Site) -> Json:
    """Send a request without a signature, and one with a wrong signature."""
    deployed = deployment.of(site)
    without = deployed.call("GET", "/api/corpora", caller=deployed.anonymous())
    url = f"{deployed.operator.api_url}/api/corpora"
    signed = deployed.operator.headers("GET", url, None)
    wrong = deployed.call("GET", "/api/versions", caller=deployed.anonymous(), headers=signed)
    return {"without": _described(without), "of another request": _described(wrong)}


@LIMITS_OF_API.check(
    "api_throttled",
    "Above its rate limit, a route of the API answers 429, while other routes answer normally",
    Source.DOCUMENTATION,
    {
        "others": [400],
        "throttled": {"status": 429, "code": "Throttled"},
        "retry after": "1",
        "another route": 200,
    },
    aws_only="the local API Gateway does not throttle",
)
def _throttled(site: Site) -> Json:
    """Send more requests to one route than it takes, and then one to another."""
    deployed = deployment.of(site)
    caller, body = deployed.operator, b"{}"
    asked = f"{caller.api_url}/api/ask"
    signed = caller.headers("POST", asked, body)  # once, because it takes longer than a request

    def ask(_: int) -> Answer:
        return calls.send("POST", asked, body, signed)

    with ThreadPoolExecutor(BURST) as threads:
        answers = [*threads.map(ask, range(BURST))]
    other = f"{caller.api_url}/api/corpora"
    meanwhile = calls.send("GET", other, None, caller.headers("GET", other, None))
    site.calls["execute-api.Request"] += BURST + 1
    refused = next((each for each in answers if each.status == HTTPStatus.TOO_MANY_REQUESTS), None)
    return {
        "others": sorted({each.status for each in answers if each.status != HTTPStatus.TOO_MANY_REQUESTS}),
        "throttled": None if refused is None else _described(refused),
        "retry after": None if refused is None else refused.headers.get("retry-after"),
        "another route": meanwhile.status,
    }
