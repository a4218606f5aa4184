"""Checks of the console: its page, the headers of its responses, and the API at its origin."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from ragstack_common.http.console import ASK_AGAIN, FOREVER, REFERRER_POLICY, SETTINGS_FILE
from ragstack_local.certify.check import Json, NotTried, Source, Topic
from ragstack_local.certify.deployed import calls, deployment
from ragstack_local.certify.deployed.calls import Answer
from ragstack_local.certify.deployed.documents import console_origin
from ragstack_local.certify.deployed.errors import UNKNOWN
from ragstack_local.certify.deployed.people import people
from ragstack_local.certify.deployed.samples import PASSING, permitted
from ragstack_local.certify.site import Site
from ragstack_local.connection.address import Address

CONSOLE: Final = Topic("console", "the console (docs/CONSOLE.md)", "")

TRUSTED: Final = "require-trusted-types-for"


def _asked(site: Site) -> Answer:
    """Load the page."""
    answer = calls.send("GET", f"{console_origin(site)}/")
    if answer.status == HTTPStatus.SERVICE_UNAVAILABLE and not site.is_aws:
        raise NotTried("the console is not built: `make setup` builds it")
    return answer


def _directives(answer: Answer) -> Mapping[str, str]:
    """Return the directives of the content security policy."""
    parts = (each.strip().partition(" ") for each in answer.headers.get("content-security-policy", "").split(";"))
    return {name: value for name, _, value in parts}


@CONSOLE.check(
    "page",
    "The console's address serves the page, which browsers must revalidate",
    Source.DOCUMENTATION,
    {"status": 200, "type": "text/html", "cache": ASK_AGAIN},
)
def _page(site: Site) -> Json:
    answer = _asked(site)
    return {
        "status": answer.status,
        "type": answer.headers.get("content-type", "").partition(";")[0],
        "cache": answer.headers.get("cache-control"),
    }


@CONSOLE.check(
    "headers",
    "Every response of the console has the security headers",
    Source.DOCUMENTATION,
    {"referrer-policy": REFERRER_POLICY, "x-content-type-options": "nosniff"},
)
def _headers(site: Site) -> Json:
    answer = _asked(site)
    return {name: answer.headers.get(name) for name in ("referrer-policy", "x-content-type-options")}


@CONSOLE.check(
    "policy",
    "The content security policy lets the console load only its own files",
    Source.DOCUMENTATION,
    {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data: blob:",
        "font-src": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "object-src": "'none'",
        TRUSTED: "'script'",
    },
)
def _policy(site: Site) -> Json:
    """Describe what the page may do, without the addresses that it may call."""
    found = _directives(_asked(site))
    return {name: value for name, value in found.items() if name != "connect-src"}


@CONSOLE.check(
    "connections",
    "The content security policy lets the console call the API, the bucket and the issuer",
    Source.GUESS,
    {"its own origin": True, "uploads": True, "sign-in": True},
)
def _connections(site: Site) -> Json:
    """Compare what the page may call with where it uploads documents and where people sign in."""
    allowed = _directives(_asked(site)).get("connect-src", "").split()
    upload = permitted(deployment.of(site), PASSING, value=f"{site.token}-passing")["upload"]["url"]
    issuer = urlsplit(deployment.of(site).connection.oidc_issuer or "")
    return {
        "its own origin": "'self'" in allowed,
        "uploads": upload.rstrip("/") in allowed,
        "sign-in": f"{issuer.scheme}://{issuer.netloc}" in allowed if issuer.netloc else "no sign-in",
    }


@CONSOLE.check(
    "transport",
    "Browsers are made to use the console with TLS only",
    Source.DOCUMENTATION,
    {"strict-transport-security": "max-age=31536000"},
    aws_only="the local console has no TLS",
)
def _transport(site: Site) -> Json:
    answer = _asked(site)
    return {"strict-transport-security": answer.headers.get("strict-transport-security")}


@CONSOLE.check(
    "files",
    "Browsers cache the console's files for a year, and revalidate its settings",
    Source.DOCUMENTATION,
    {
        "script": {"status": 200, "cache": FOREVER},
        "settings": {"status": 200, "cache": ASK_AGAIN},
        "title": "RAGStack",
    },
)
def _files(site: Site) -> Json:
    """Load a file that the page names, and the settings of the page."""
    answer, origin = _asked(site), console_origin(site)
    name = next(part for part in answer.body.decode().split('"') if part.endswith(".js"))
    script = calls.send("GET", f"{origin}/{name.lstrip('./')}")
    settings = calls.send("GET", f"{origin}/{SETTINGS_FILE}")
    return {
        "script": {"status": script.status, "cache": script.headers.get("cache-control")},
        "settings": {"status": settings.status, "cache": settings.headers.get("cache-control")},
        "title": settings.content["title"],
    }


@CONSOLE.check(
    "errors",
    "CloudFront passes errors of the API to the console unchanged, and caches none",
    Source.DOCUMENTATION,
    {
        "refused": {"status": 403, "code": "NotAllowed"},
        "answered": {"status": 200, "code": None},
        "unknown": {"status": 404, "code": "DocumentNotFound"},
        "from a cache": False,
    },
)
def _errors(site: Site) -> Json:
    """Send a request that is refused, and at once the same from someone for whom it succeeds."""
    deployed, found, origin = deployment.of(site), site.shared(people), console_origin(site)
    reader, operator = (Address(origin, token=each.token) for each in (found.reader, found.operator))
    answers = {
        "refused": deployed.call("GET", "/api/status", caller=reader),
        "answered": deployed.call("GET", "/api/status", caller=operator),
        "unknown": deployed.call("GET", f"/api/documents/{UNKNOWN}", caller=operator),
    }
    kept = any(each.headers.get("x-cache", "").lower().startswith("hit") for each in answers.values())
    described = {name: {"status": each.status, "code": each.error_code} for name, each in answers.items()}
    return {**described, "from a cache": kept}
