"""The console of the local stack: where it is, and what it is served with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

from local_bedrock.options import LOCAL
from ragstack_common.http.console import EXAMPLE, EXAMPLES, content_security_policy, page_settings

SERVER: Final = "ragstack_local.stack.console_app"
"""The module that serves it."""

DEFAULT_PORT: Final = 4580

SCOPE: Final = "openid email profile offline_access"


@dataclass(frozen=True)
class ConsoleSettings:
    """What the console is served with.

    Attributes:
        api_url: The API of callers without a token.
        people_url: The API of callers with a token; None if nobody signs in.
        client_id: The console's id at the issuer.
        anonymous: Whether the API answers callers without a token too.
        origins: Other pages that may use it.
        questions: What it suggests to ask, if the documents have an answer.
    """

    port: int
    api_url: str
    answers_url: str
    uploads_url: str
    people_url: str | None = None
    issuer: str | None = None
    client_id: str | None = None
    anonymous: bool = True
    origins: Sequence[str] = ()
    questions: Sequence[str] = EXAMPLES

    @property
    def content_security_policy(self) -> str:
        """What the page may load, and from where."""
        parts = urlsplit(self.issuer or "")
        return content_security_policy(self.uploads_url, [f"{parts.scheme}://{parts.netloc}"] if self.issuer else [])

    @property
    def for_the_page(self) -> dict[str, Any]:
        """The settings that the page reads."""
        return page_settings(
            "oidc" if self.issuer else "none",
            anonymous=self.anonymous,
            issuer=self.issuer,
            client_id=self.client_id,
            audiences=[self.client_id] if self.client_id else [],
            scope=SCOPE if self.issuer else None,
            questions=self.questions,
        )


def console_url(port: int) -> str:
    """Return the URL of the console, to which the issuer sends people back."""
    return f"http://localhost:{port}/"


def console_origins(port: int) -> tuple[str, ...]:
    """Return the origins of the console's page, one for each name of this machine."""
    return tuple(f"http://{name}:{port}" for name in ("localhost", LOCAL))


def question_url(url: str, question: str = EXAMPLE) -> str:
    """Return the address at which a console asks a question."""
    return f"{url}#/ask?q={quote(question, safe='')}"
