"""The address and the login of a Milvus server, from settings; without its client."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ragstack_common.core.clients import secrets_client
from ragstack_common.core.errors import ConfigurationError
from ragstack_common.core.reporting import failing_as
from ragstack_common.settings.milvus import MilvusSettings
from ragstack_common.settings.names import MILVUS_ENGINE

DEFAULT_ADDRESS: Final = "localhost:19530"
"""Milvus's default port."""


@dataclass(frozen=True)
class MilvusConfig:
    """Address and login of Milvus.

    Attributes:
        address: ``host:port``, a URL, or the path of a Milvus Lite file, which ends in ``.db``.
        username: None without authentication.
        password: The password of *username*; without a name, an API key.
        database: None is the server's default.
    """

    address: str = field(default=DEFAULT_ADDRESS, repr=False)  # a URL may have a password
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    database: str | None = None

    @classmethod
    def from_settings(cls, settings: MilvusSettings) -> "MilvusConfig":
        """Return the configuration, with the login from its secret."""
        username, password = settings.milvus_username, settings.milvus_password
        if settings.milvus_secret is not None:
            username, password = _login(settings.milvus_secret)
        return cls(settings.milvus_address or DEFAULT_ADDRESS, username, password, settings.milvus_database)

    @property
    def uri(self) -> str:
        """The address for Milvus's client."""
        known = "://" in self.address or self.address.endswith(".db") or self.address.startswith("unix:")
        return self.address if known else f"http://{self.address}"

    @property
    def token(self) -> str | None:
        """User name and password for Milvus's client; None without authentication."""
        return ":".join(part for part in (self.username, self.password) if part) or None

    def options(self) -> dict[str, Any]:
        """Return the options of the Milvus engine."""
        return {"uri": self.uri, "token": self.token, "database": self.database}


def _login(secret: str) -> tuple[str | None, str]:
    """Read a secret: a user name, None for an API key, and the password or key."""
    with failing_as(ConfigurationError, "The secret in MILVUS_SECRET could not be read"):
        text = secrets_client().get_secret_value(SecretId=secret).get("SecretString", "")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    match found:
        case {"username": str(username), "password": str(password)} if username and password:
            return username, password
    if not text.strip() or isinstance(found, dict | list):
        raise ConfigurationError(
            "The secret in MILVUS_SECRET must be a JSON object with username and password, or an API key"
        )
    return None, text.strip()


def with_server(config: Any, settings: MilvusSettings) -> Any:
    """Add the server and its login to every part of a configuration that is a Milvus collection without a ``uri``.

    A part with a ``uri`` has its own login, so that this one never goes to another server.
    """
    if isinstance(config, list):
        return [with_server(part, settings) for part in config]
    if not isinstance(config, Mapping):
        return config
    parts = {name: with_server(part, settings) for name, part in config.items()}
    if parts.get("type") != MILVUS_ENGINE or "uri" in parts:
        return parts
    server = MilvusConfig.from_settings(settings).options()
    known = {name: value for name, value in server.items() if value is not None}
    return {**known, **parts}
