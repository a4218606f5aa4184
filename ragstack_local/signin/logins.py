"""Who is signed in to which API: files that only their owner can read."""

import fcntl
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from ragstack_common.core.json_text import parse_json
from ragstack_local.errors import StackError

EARLY_SECONDS: Final = 30.0
"""A token counts as expired so long before, so that it does not expire on the way."""


@dataclass(frozen=True)
class Login:
    """A person who is signed in to an API.

    Attributes:
        api_url: The API, to which alone the token is sent.
        client_id: The command line's id at the issuer.
        audiences: The audiences that the API accepts.
        scopes: The requested scopes; empty for the usual ones.
        bearer: The token for the API.
        expires_at: When it expires, in seconds since 1970.
        user: The example user of the local issuer, who can be signed in again without a page.
    """

    api_url: str
    issuer: str
    client_id: str
    audiences: tuple[str, ...]
    scopes: tuple[str, ...]
    bearer: str
    expires_at: float
    refresh: str | None = None
    user: str | None = None

    def __repr__(self) -> str:
        return f"Login(api_url={self.api_url!r}, issuer={self.issuer!r})"

    @classmethod
    def read(cls, file: Path) -> Self | None:
        """Read a file; None if there is none, or it has another form."""
        try:
            found = parse_json(file.read_text())
            return cls(**{**found, "audiences": tuple(found["audiences"]), "scopes": tuple(found["scopes"])})
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None


@dataclass(frozen=True)
class Logins:
    """The logins of this user, one file for each API."""

    folder: Path

    def read(self, api_url: str) -> Login | None:
        """Return who is signed in to an API."""
        login = Login.read(self._file(api_url))
        return login if login is not None and login.api_url == api_url else None

    def write(self, login: Login) -> None:
        """Keep a login, in place of an earlier one."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        file = self._file(login.api_url)
        # Created for its owner alone, and complete before it has the name.
        handle, name = tempfile.mkstemp(prefix=f"{file.name}.", dir=self.folder)
        try:
            with os.fdopen(handle, "w") as new:
                json.dump(asdict(login), new, indent=2)
            Path(name).replace(file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def remove(self, api_url: str) -> bool:
        """Forget a login; return whether there was one."""
        with self._locked(api_url):
            is_known = self.read(api_url) is not None
            self._file(api_url).unlink(missing_ok=True)
        return is_known

    def bearer(self, api_url: str, *, clock: Callable[[], float] = time.time) -> str | None:
        """Return the token for an API, a new one if it expired; None if nobody is signed in.

        Of several processes, one refreshes: many providers accept a refresh token only once.

        Raises:
            StackError: It expired, and the issuer issues no new one.
        """
        login = self.read(api_url)
        if login is None:
            return None
        if login.expires_at - EARLY_SECONDS > clock():
            return login.bearer
        with self._locked(api_url):
            login = self.read(api_url)
            if login is None:
                return None
            if login.expires_at - EARLY_SECONDS <= clock():
                login = _renewed(login)
                self.write(login)
        return login.bearer

    @contextmanager
    def _locked(self, api_url: str) -> Iterator[None]:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._file(api_url).with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _file(self, api_url: str) -> Path:
        return self.folder / f"{hashlib.sha256(api_url.encode()).hexdigest()[:32]}.json"


def _renewed(login: Login) -> Login:
    """Return a login with a new token, by the refresh token or for an example user.

    Raises:
        StackError: Neither is possible.
    """
    from ragstack_local.signin.provider import ClientRegistration, Provider, Tokens  # noqa: PLC0415 - takes 0.1 s to import

    application = ClientRegistration(login.client_id, login.audiences, login.scopes)
    tokens: Tokens | None = None
    try:
        provider = Provider.discover(login.issuer)
        if login.user is not None:
            tokens = provider.silently(application, login.user)
        elif login.refresh is not None:
            tokens = provider.refreshed(application, login.refresh)
    except StackError as error:
        raise StackError(f"The login expired, and cannot be renewed ({error}): run `ragstack login`") from error
    if tokens is None:
        raise StackError("The login expired: run `ragstack login`")
    fields: dict[str, Any] = {"bearer": tokens.bearer, "expires_at": tokens.expires_at}
    return replace(login, **fields, refresh=tokens.refresh or login.refresh)
