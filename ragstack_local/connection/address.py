"""Where an API is, and how its callers authenticate."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

from ragstack_common.core.addresses import is_here, keeps_secrets
from ragstack_common.core.errors import ConfigurationError
from ragstack_local.connection.environment import user_folder
from ragstack_local.errors import ApiError, StackError
from ragstack_local.signin.logins import Logins

if TYPE_CHECKING:
    from ragstack_local.connection.connection import Connection

_EXECUTE_API: Final = re.compile(r"[\w-]+\.execute-api\.([a-z0-9-]+)\.(vpce\.)?amazonaws\.com(\.cn)?")
"""Source: Amazon API Gateway developer guide, invoking REST APIs."""

HOW_TO_AUTHENTICATE: Final = (
    "run `ragstack login` (auth=cognito or oidc), set RAGSTACK_API_KEY or --api-key (auth=api_key), RAGSTACK_TOKEN or"
    " --token (a bearer token), or AWS credentials and a region, for an identity that may execute-api:Invoke (auth=iam)"
)


class UrlOfFile(str):
    """The URL of an API from a file of the current folder, which may be from elsewhere: it gets no credential.

    Args:
        url: The URL.
        file: The file.
    """

    __slots__ = ("file",)
    file: Path

    def __new__(cls, url: str, file: Path) -> Self:
        """Remember the file."""
        made = super().__new__(cls, url)
        made.file = file
        return made


@dataclass(frozen=True)
class Address:
    """Where an API is, and how its callers authenticate: by a key, a token, the login of this user or a signature.

    Raises:
        ConfigurationError: A credential would be sent unencrypted to another machine.
    """

    api_url: str
    api_key: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    logins: Logins | None = field(default=None, repr=False)
    sign: bool = False
    region: str | None = None  # of the signature; None for that of the AWS settings
    answers_url: str | None = None  # where answers stream, if elsewhere
    file: Path | None = None  # the file that names it; None if the user does

    def __post_init__(self) -> None:
        """Check that the credentials stay secret."""
        has_credentials = self.api_key or self.token or self.logins or self.sign
        for url in (self.api_url, self.answers_url):
            if has_credentials and url is not None and not keeps_secrets(url):
                raise ConfigurationError(f"{url} is not encrypted, so no key, token or login is sent to it: use https")

    @classmethod
    def for_stack(cls, connection: "Connection", api_key: str | None = None, token: str | None = None) -> "Address":
        """Use a stack's API: that for people with a token or a login, otherwise that for programs.

        Requests to the latter are unsigned on this machine or with a key.
        """
        url = connection.people_url
        logins = None if api_key or token or url is None else _logins_at(url)
        if url is None or not (token or logins):
            url = connection.api_url
        sign = not (connection.is_local or api_key or token or logins)
        return cls(url, api_key, token, logins, sign=sign, answers_url=connection.answers_url)

    @classmethod
    def for_url(cls, url: str, api_key: str | None = None, token: str | None = None) -> "Address":
        """Use an API given only its URL, without access to the rest of its stack.

        Without a key, a token or a login, requests are signed: to a host of API Gateway for the region in its name; to
        another host, by https, if there are AWS credentials, because it may be a custom domain of API Gateway. Requests
        to this machine are not signed. A URL from a file gets no credential at all.

        Raises:
            ConfigurationError: The URL is not an API's, or would get a credential unencrypted.
        """
        scheme, host = _checked(url)
        found = _EXECUTE_API.fullmatch(host)
        if found and not urlsplit(url).path.strip("/"):
            raise ConfigurationError(f"{url!r} lacks the API's stage: write {url.rstrip('/')}/prod, for example")
        if isinstance(url, UrlOfFile):
            return cls(url.rstrip("/"), file=url.file)
        url = url.rstrip("/")
        logins = None if api_key or token else _logins_at(url)
        may_sign = not (api_key or token or logins or is_here(url))
        sign = may_sign and (found is not None or (scheme == "https" and _has_credentials()))
        return cls(url, api_key, token, logins, sign=sign, region=found[1] if found else None)

    def headers(self, method: str, url: str, payload: bytes | None) -> dict[str, str]:
        """Return the headers of a request, with the key, the token or the signature.

        Raises:
            ApiError: The login expired, or the request needs a signature and there are no AWS credentials.
        """
        headers = {"Content-Type": "application/json"}
        if self.api_key:
            headers["x-api-key"] = self.api_key
        if token := self.token or self._token_of_login():
            headers["Authorization"] = f"Bearer {token}"
        return self._signed(method, url, payload, headers) if self.sign else headers

    @property
    def takes_time(self) -> bool:
        """Whether headers may need a request of their own: for credentials, or for a new token."""
        return self.sign or self.logins is not None

    def _token_of_login(self) -> str | None:
        try:
            return None if self.logins is None else self.logins.bearer(self.api_url)
        except StackError as error:
            raise ApiError(str(error)) from error

    def _signed(self, method: str, url: str, payload: bytes | None, headers: dict[str, str]) -> dict[str, str]:
        import boto3  # noqa: PLC0415 - requests to a local stack are not signed
        from botocore.auth import SigV4Auth  # noqa: PLC0415
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415

        session = boto3.Session()
        credentials, region = session.get_credentials(), self.region or session.region_name
        if credentials is None or region is None:
            raise ApiError(f"The API needs signed requests, and there are no AWS credentials: {HOW_TO_AUTHENTICATE}")
        request = AWSRequest(method, url, data=payload, headers=headers)
        SigV4Auth(credentials, "execute-api", region).add_auth(request)
        return dict(request.headers)


def user_logins() -> Logins:
    """Return the logins of this user."""
    return Logins(user_folder() / "logins")


def _logins_at(url: str) -> Logins | None:
    logins = user_logins()
    return logins if logins.read(url) else None


def _has_credentials() -> bool:
    import boto3  # noqa: PLC0415 - as above

    return boto3.Session().get_credentials() is not None


def _checked(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        parts, host = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise ConfigurationError(
            f"{url!r} is not the URL of an API: write it up to the stage, such as"
            " https://abcde12345.execute-api.eu-west-1.amazonaws.com/prod"
        )
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError("Leave the user name and the password out of the URL: use --api-key or --token")
    return parts.scheme, host
