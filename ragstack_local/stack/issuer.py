"""The local issuer: an OpenID Connect provider with three example users and no passwords, for this machine only.

oauthlib has the protocol: authorization code with PKCE, refresh and device code. `ragstack login` uses it as well, so
the issuer adds no package. The mock that was considered, oidc-provider-mock 0.3.4, needs more code around it than this
takes: it does not check PKCE, creates any user who signs in, has no device code, and a refresh returns no token that
the API accepts.
"""

from collections.abc import Mapping, Sequence
from typing import Final

SERVER: Final = "ragstack_local.stack.issuer_app"
"""The module that serves it."""

DEFAULT_PORT: Final = 4569

CLIENT: Final = "ragstack"
"""The id of the only client, which has no secret, and the audience of its tokens."""

USERS: Final[Mapping[str, Sequence[str]]] = {
    "alice": ("people", "staff"),
    "bob": ("engineering", "staff"),
    "olga": ("operators", "staff"),
}
"""The groups of each example user."""
