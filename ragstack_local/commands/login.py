"""``ragstack login``, ``ragstack logout`` and ``ragstack whoami``."""

import webbrowser
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import BaseModel

from ragstack_common.core.addresses import keeps_secrets
from ragstack_local.api.calls import run
from ragstack_local.connection.address import Address, UrlOfFile, user_logins
from ragstack_local.connection_options import ApiUrl, AsJson, ConnectionOptions, DeploymentOptions, with_options
from ragstack_local.errors import StackError
from ragstack_local.show import display

if TYPE_CHECKING:
    from ragstack_common.services.access import Me, WritablePrefix
    from ragstack_local.connection.connection import Connection
    from ragstack_local.signin.provider import ClientRegistration, Provider, Tokens


class _Metadata(BaseModel):
    authorization_servers: list[str]


Issuer = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Who issues the tokens. Default: what the stack or the API names."),
]
ClientId = Annotated[
    str | None,
    typer.Option(help="The id under which the issuer knows the command line. Default: the stack's first audience."),
]
Audience = Annotated[
    list[str] | None,
    typer.Option(help="An audience of tokens that the API accepts. Repeatable. Default: the stack's, or --client-id."),
]
Scope = Annotated[
    list[str] | None,
    typer.Option(help="A scope to request. Repeatable. Default: openid, email, profile and offline_access."),
]


@with_options
def login(
    stack: DeploymentOptions,
    api_url: ApiUrl = None,
    issuer: Issuer = None,
    client_id: ClientId = None,
    audience: Audience = None,
    scope: Scope = None,
    user: Annotated[
        str | None, typer.Option(help="Sign in as an example user of the local issuer: alice, bob or olga.")
    ] = None,
    device: Annotated[
        bool, typer.Option("--device", help="Show a code to enter in a browser on another machine.")
    ] = False,
) -> None:
    """Sign in to a stack as a person; other commands then call its API as this person.

    A browser opens the issuer's page, which comes back to a port of this machine, 8484 to 8487. The token is kept in a
    file that only you can read, sent to this API alone, and renewed when it expires.

    Example:  ragstack login

    As an example user of the local stack:  ragstack login --user alice

    With a stack on AWS:  ragstack login --aws

    With an API by its URL:  ragstack login --api-url https://search.example/prod --client-id 0abcdefgh

    On a machine without a browser:  ragstack login --device
    """
    if user is not None and device:
        raise typer.BadParameter("give --user or --device, not both", param_hint="--device")
    is_api = api_url is not None and not stack.aws
    if is_api and isinstance(api_url, UrlOfFile):
        raise typer.BadParameter(f"{api_url} is named by {api_url.file}: confirm it", param_hint="--api-url")
    if is_api and not keeps_secrets(str(api_url)):
        raise typer.BadParameter(f"{api_url} is not encrypted: use https", param_hint="--api-url")
    connection = None if is_api else stack.connect()
    url = _people_url(connection) if connection else str(api_url).rstrip("/")
    audiences = audience or _audiences(connection)
    client_id = client_id or next(iter(audiences), None)
    if client_id is None:
        raise typer.BadParameter("name the command line's id at the issuer", param_hint="--client-id")
    from ragstack_local.signin.logins import Login  # noqa: PLC0415 - help does without
    from ragstack_local.signin.provider import ClientRegistration, Provider  # noqa: PLC0415 - the same

    issuer = issuer or (connection.oidc_issuer if connection else None) or _read_issuer(url)
    application = ClientRegistration(client_id, tuple(audiences or [client_id]), tuple(scope or ()))
    provider = Provider.discover(issuer)
    tokens = _signed_in(provider, application, user=user, device=device)
    found = Login(
        url,
        issuer,
        client_id,
        application.audiences,
        application.scopes,
        tokens.bearer,
        tokens.expires_at,
        tokens.refresh,
        user,
    )
    me = _me(Address(url, token=tokens.bearer))
    user_logins().write(found)
    display.console.print(f"Signed in to {url}", soft_wrap=True)
    _print(me)


@with_options
def logout(stack: DeploymentOptions, api_url: ApiUrl = None) -> None:
    """Forget the login to a stack; commands then call its API as before.

    Example:  ragstack logout
    """
    is_api = api_url is not None and not stack.aws
    url = str(api_url).rstrip("/") if is_api else _people_url(stack.connect())
    was_signed_in = user_logins().remove(url)
    display.console.print(f"Signed out of {url}" if was_signed_in else f"Not signed in to {url}", soft_wrap=True)


@with_options
def whoami(stack: ConnectionOptions, as_json: AsJson = False) -> None:
    """Show who you are to the API: your name, groups, rights and labels, and when the proof expires.

    Example:  ragstack whoami
    """
    me = _me(stack.address())
    if as_json:
        display.print_json(me)
    else:
        _print(me)


def _me(address: Address) -> "Me":
    from ragstack_common.services.access import Me  # noqa: PLC0415 - imports the AWS SDK
    from ragstack_local.api.http_operations import HttpOperations  # noqa: PLC0415 - help does without

    return run(HttpOperations(lambda: address).request("GET", "/api/me", Me))


def _print(me: "Me") -> None:
    labels = "every document" if me.labels is None else ", ".join(me.labels) or "no documents"
    rows = (
        ("Name", me.name),
        ("Also", ", ".join(name for name in me.principals if name != me.name)),
        ("Rights", ", ".join(me.rights) or "none"),
        ("Sees", labels),
        (
            "Writes",
            "; ".join(_place(each, "everywhere else" if me.writable[1:] else "everywhere") for each in me.writable),
        ),
        ("Expires", me.expires_at),
    )
    for name, value in rows:
        if value:
            display.console.print(f"{name:8} {value}", soft_wrap=True)


def _place(place: "WritablePrefix", without_prefix: str) -> str:
    labels = f" ({', '.join(place.labels)})" if place.labels else ""
    return f"{place.prefix or without_prefix}{labels}"


def _people_url(connection: "Connection") -> str:
    if connection.people_url is None:
        how = "start it with `ragstack up --auth none,oidc`" if connection.is_local else "deploy it with auth=cognito"
        raise StackError(f"Nobody can sign in to this stack: {how}, or auth=oidc")
    return connection.people_url


def _audiences(connection: "Connection | None") -> list[str]:
    named = (connection.oidc_audience if connection else None) or ""
    return [each.strip() for each in named.split(",") if each.strip()]


def _read_issuer(url: str) -> str:
    """Return the issuer that an API names.

    Raises:
        BadParameter: It names none.
        ApiError: It does not answer.
    """
    from ragstack_local.api.http_operations import HttpOperations  # noqa: PLC0415 - help does without

    path = "/.well-known/oauth-protected-resource"  # Source: RFC 9728
    issuers = run(HttpOperations(lambda: Address(url)).request("GET", path, _Metadata)).authorization_servers
    if not issuers:
        raise typer.BadParameter("the API names no issuer: add it", param_hint="--issuer")
    return issuers[0]


def _signed_in(provider: "Provider", application: "ClientRegistration", *, user: str | None, device: bool) -> "Tokens":
    from ragstack_local.signin.browser import redirect  # noqa: PLC0415 - help does without

    if user is not None:
        return provider.silently(application, user)
    if device:
        return provider.from_device(application, _show_code)
    with redirect() as back:
        asked = provider.authorization(application, back.url)
        display.console.print("Opening the browser. If it does not open, visit this page on this machine:")
        display.console.print(asked.url, soft_wrap=True)
        webbrowser.open(asked.url)
        return provider.redeem(application, asked, back.wait())


def _show_code(found: Mapping[str, Any]) -> None:
    page = found.get("verification_uri_complete") or found["verification_uri"]
    display.console.print(f"Visit {page} and enter the code {found['user_code']}", soft_wrap=True)
