"""Checks of the statuses with which the API refuses requests, and of its throttles."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Final

from ragstack_local.certify.check import Check, Json, NotTried, Source
from ragstack_local.certify.deployed import calls, deployment
from ragstack_local.certify.deployed.calls import Answer
from ragstack_local.certify.deployed.deployment import SECONDS
from ragstack_local.certify.runner import LIMITS
from ragstack_local.certify.site import Site

TOPIC: Final = "api"

TOO_LARGE: Final = 10 * 1024 * 1024 + 1
"""Bytes. Source: Amazon API Gateway quotas, payload size."""

BURST: Final = 60
"""Requests at once. The API takes bursts of 4 questions, and then 2 a second."""

UNKNOWN: Final = "0" * 32
"""An id that no document has."""


def _described(answer: Answer) -> Json:
    return {"status": answer.status, "code": answer.error_code}


def _bad_request(site: Site) -> Json:
    answer = deployment.of(site).call("POST", "/api/retrieve", {"query": ""})
    names = [each["member"] for each in answer.content["error"]["details"]]
    return {"status": answer.status, "code": answer.error_code, "names": [*names]}


def _no_json(site: Site) -> Json:
    return _described(deployment.of(site).call("POST", "/api/retrieve", b"{"))


def _unknown_document(site: Site) -> Json:
    return _described(deployment.of(site).call("GET", f"/api/documents/{UNKNOWN}"))


def _unknown_route(site: Site) -> Json:
    return _described(deployment.of(site).call("GET", "/api/nothing"))


def _too_large(site: Site) -> Json:
    return {"status": deployment.of(site).call("POST", "/api/retrieve", b"x" * TOO_LARGE).status}


def _health(site: Site) -> Json:
    """Ask without any proof of identity, also where others need one."""
    deployed = deployment.of(site)
    answer = deployed.call("GET", "/health", caller=deployed.anonymous())
    return {"status": answer.status, "content": answer.content}


def _unsigned(site: Site) -> Json:
    """Send a request without a signature, and one with a wrong signature."""
    deployed = deployment.of(site)
    if not site.is_aws:
        raise NotTried("the local API of programs takes requests of everybody on this machine")
    without = deployed.call("GET", "/api/corpora", caller=deployed.anonymous())
    url = f"{deployed.operator.api_url}/api/corpora"
    signed = deployed.operator.headers("GET", url, None)
    wrong = deployed.call("GET", "/api/versions", caller=deployed.anonymous(), headers=signed)
    return {"without": _described(without), "of another request": _described(wrong)}


def _throttled(site: Site) -> Json:
    """Send more requests to one route than it takes, and then one to another."""
    deployed = deployment.of(site)
    if not site.is_aws:
        raise NotTried("the local API Gateway does not throttle")
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


def _check(
    name: str, belief: str, expected: Json, observe: Callable[[Site], Json], source: Source, topic: str = TOPIC
) -> Check:
    return Check(
        name=f"api.{name}",
        topic=topic,
        belief=belief,
        source=source,
        used_by="the API (docs/DOCUMENTS.md#routes)",
        expected=expected,
        observe=observe,
        seconds=SECONDS,
    )


CHECKS: Final = (
    _check(
        "bad_request",
        "An invalid request is answered with 400, and the name of what is invalid",
        {"status": 400, "code": "InvalidRequest", "names": ["query"]},
        _bad_request,
        Source.GUESS,
    ),
    _check(
        "no_json",
        "A body that is not JSON is answered with 400 by the function, not by API Gateway",
        {"status": 400, "code": "InvalidRequest"},
        _no_json,
        Source.GUESS,
    ),
    _check(
        "unknown_document",
        "An unknown document is answered with 404",
        {"status": 404, "code": "DocumentNotFound"},
        _unknown_document,
        Source.GUESS,
    ),
    _check(
        "unknown_route",
        "API Gateway answers 403 for a route that does not exist, in the form of the API's errors",
        {"status": 403, "code": "MISSING_AUTHENTICATION_TOKEN"},
        _unknown_route,
        Source.DOCUMENTATION,
    ),
    _check(
        "too_large",
        "A body of more than 10 MB is answered with 413",
        {"status": 413},
        _too_large,
        Source.DOCUMENTATION,
    ),
    _check(
        "health",
        "Everybody may ask whether the API works",
        {"status": 200, "content": {"status": "ok"}},
        _health,
        Source.DOCUMENTATION,
    ),
    _check(
        "unsigned",
        "A request without a valid signature is answered with 403, in the form of the API's errors",
        {
            "without": {"status": 403, "code": "MISSING_AUTHENTICATION_TOKEN"},
            "of another request": {"status": 403, "code": "INVALID_SIGNATURE"},
        },
        _unsigned,
        Source.DOCUMENTATION,
    ),
    _check(
        "throttled",
        "A route that gets too many requests answers 429, and others answer as before",
        {
            "others": [400],
            "throttled": {"status": 429, "code": "Throttled"},
            "retry after": "1",
            "another route": 200,
        },
        _throttled,
        Source.DOCUMENTATION,
        LIMITS,
    ),
)
