"""What the servers of the console share, local and on AWS: its settings, its policy, and the paths of the API."""

from collections.abc import Sequence
from typing import Any, Final

SETTINGS_FILE: Final = "console.json"
"""File next to the page, with the settings that :func:`page_settings` returns."""

ASSETS: Final = "assets"
"""The folder of files whose names change with their content."""

FOREVER: Final = "public, max-age=31536000, immutable"
ASK_AGAIN: Final = "no-cache"

API_PATHS: Final = ("/api", "/health", "/openapi.json", "/.well-known", "/tools", "/mcp")
"""Paths of the API, with everything below; the server of the page forwards them, so that both have one origin."""

REFERRER_POLICY: Final = "no-referrer"

EXAMPLE: Final = "Who do I call when my laptop is stolen?"
"""A question about the sample documents."""

EXAMPLES: Final = (
    EXAMPLE,
    "How many days of annual leave do I have?",
    "How long is the warranty of a gateway?",
    "When does the release freeze start?",
    "What is the hotel limit in Zürich?",
)
"""Questions about the sample documents: every user of the local issuer may see the answers to some."""

MAX_QUESTIONS: Final = 8
"""The page searches each one before it shows it."""


def content_security_policy(bucket_url: str, connections: Sequence[str] = ()) -> str:
    """Return what the page may load: its own files, and nothing else.

    It may upload forms to the bucket and new documents below it, and call other servers, where people sign in.
    """
    allowed = ["'self'", bucket_url, f"{bucket_url}/", *connections]
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self';"
        f" connect-src {' '.join(allowed)};"
        " frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none';"
        " require-trusted-types-for 'script'"
    )


def parse_questions(text: str) -> tuple[str, ...]:
    """Return the questions of a setting, which are separated by semicolons."""
    return tuple(question.strip() for question in text.split(";") if question.strip())


def page_settings(
    auth: str,
    *,
    anonymous: bool = False,
    issuer: str | None = None,
    client_id: str | None = None,
    audiences: Sequence[str] = (),
    scope: str | None = None,
    sign_out_url: str | None = None,
    questions: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the settings of the page.

    Args:
        auth: How callers prove who they are: `none`, `oidc` or `api_key`.
        anonymous: Whether the API also answers callers without a proof.
        issuer: The OpenID Connect issuer of people's tokens.
        client_id: The console's client at the issuer.
        audiences: The audiences of tokens that the API accepts, by which the page chooses one.
        scope: The scope that the page requests.
        sign_out_url: The issuer's sign-out page, if its metadata has none.
        questions: Questions for the first page, which shows those that the documents can answer for a person.
    """
    return {
        "auth": auth,
        "anonymous": anonymous,
        "issuer": issuer,
        "client_id": client_id,
        "audiences": [*audiences],
        "scope": scope,
        "sign_out_url": sign_out_url,
        "title": "RAGStack",
        "questions": [*questions],
    }
