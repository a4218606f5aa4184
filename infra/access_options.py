"""The context values about callers: how they authenticate, the access file, and limits."""

import re
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import BeforeValidator, ConfigDict, Field

from infra.context_types import AccessFile, EmailAddress, UserPoolId
from infra.target import Target
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.settings.access import NO_ACCESS_FILE, TOKEN_KINDS, AccessSettings, AuthKind, AuthKinds, Tenants
from ragstack_common.settings.base import Allowed, Settings, separated_names
from ragstack_common.settings.names import MANAGED

PROGRAMS: Final = frozenset({AuthKind.IAM, AuthKind.API_KEY})

LOCAL_KINDS: Final = frozenset({AuthKind.NONE, AuthKind.OIDC})
"""The kinds that the local API Gateway has: its events name neither a signer nor a key."""

GROUP: Final = "group:"

DEFAULT_KEY: Final = "default"

DEFAULT_CALLBACKS: Final = tuple(f"http://localhost:{port}/callback" for port in range(8484, 8488))
"""Where `ragstack login` waits for the browser: on the first of these ports that is free."""

MAX_CALLBACKS: Final = 100
"""Source: quotas of Amazon Cognito, callback URLs of an app client. One is the console's."""

MAX_API_KEYS: Final = 50
"""Their resources fit into the 500 of a stack."""

LOOPBACK: Final = ("localhost", "127.0.0.1")
"""Hosts for which Amazon Cognito and the verifier of tokens accept http.

Source: Cognito user guide, application settings; ragstack_common.access.tokens.
"""

_ORIGIN: Final = re.compile(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?(?=[/?#]|\Z)", re.ASCII)
"""Source: Content Security Policy Level 3, section 2.3.1, host-source."""

_COGNITO_GROUP: Final = re.compile(r"\S{1,128}")
"""Source: cognito-idp, shape GroupNameType."""

MAX_TENANTS: Final = 90
"""Source: quotas of Amazon Bedrock, 100 knowledge bases in each Region of an account. The shared one is another.

An account has 10,000 managed ones, and the 200 outputs of a stack have room for 99.
"""


Urls = Annotated[
    tuple[Annotated[str, Field(pattern=r"^[a-z][a-z0-9+.-]*://[^\s#]+$")], ...],
    BeforeValidator(separated_names),
    Allowed("URLs separated by commas"),
]
KeyNames = Annotated[
    tuple[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,49}$")], ...],
    BeforeValidator(separated_names),
    Allowed("names of a letter, then at most 49 letters, digits, _ and -, separated by commas"),
]


class Mfa(StrEnum):
    """Whether people need a second factor to sign in.

    The sign-in page has no place to register one if it is optional. Source: Cognito developer guide,
    user-pool-settings-mfa.
    """

    OFF = "off"
    REQUIRED = "required"


class AccessValues(Settings):
    """The context values about callers."""

    model_config = ConfigDict(alias_generator=None)

    auth: AuthKinds = Field(
        (AuthKind.IAM,),
        description="[how callers authenticate](#authentication); `none` is for `target=local`, and its default",
    )
    access: AccessFile | None = Field(
        None,
        description="the access file: who may do and see what; `none` lets every caller do and see everything. One of"
        " them is required with `auth=cognito`, `oidc` and `api_key`",
    )
    tenants: Tenants = Field(
        Tenants.LABEL,
        description="`index` gives each tenant of the access file [a knowledge base of its own](ACCESS.md#tenants);"
        " `label` has one for all, in which labels separate them",
    )
    api_requests_per_second: int = Field(
        20,
        ge=1,
        le=10_000,
        description="rate limit of each route of each API, for all of its callers together; bursts may be twice as"
        " large. By default 10 with a managed knowledge base. Searches reach [the quotas of Amazon Bedrock](#limits)"
        " first",
    )
    ask_requests_per_second: int = Field(
        2,
        ge=1,
        le=10_000,
        description="the same for `POST /api/ask`, `/api/ask/stream` and `/mcp`, which call a model; at most"
        " `api_requests_per_second`",
    )
    api_keys: KeyNames = Field(
        (DEFAULT_KEY,), description="with `auth=api_key`: names of the keys. The key NAME is the principal `key:NAME`"
    )
    api_key_requests_per_second: int = Field(
        10, ge=1, le=10_000, description="rate limit of each API key; bursts may be twice as large"
    )
    api_key_requests_per_day: int = Field(20_000, ge=1, le=10**9, description="requests of each API key in a day")
    answers_concurrency: int | None = Field(
        None,
        ge=1,
        le=10_000,
        description="reserved concurrency of the function `answers`: at most this many questions at once. By default"
        " it shares the account's. 100 of those cannot be reserved, so new accounts cannot reserve any",
    )
    callback_urls: Urls = Field(
        DEFAULT_CALLBACKS,
        description="with `auth=cognito`: where the sign-in page may send people back to; by default, `ragstack"
        " login`. The console is always allowed",
    )
    user_pool: UserPoolId | None = Field(
        None,
        description="with `auth=cognito`: [an existing user pool](#people) without a sign-in domain, such as one that"
        " an earlier deployment left",
    )
    mfa: Mfa = Field(
        Mfa.OFF,
        description="with `auth=cognito`: `required` makes people register an authenticator app at their first sign-in",
    )
    email_sender: EmailAddress | None = Field(
        None,
        description="with `auth=cognito`: sender of invitations, through Amazon SES, where its domain must be verified"
        " in the same Region. By default, Amazon Cognito sends them, about 50 a day",
    )

    @property
    def people(self) -> AuthKind | None:
        """How people authenticate; None if there are only programs."""
        return next((kind for kind in self.auth if kind in TOKEN_KINDS), None)

    @property
    def access_file(self) -> Path | None:
        """The access file; None if every caller may do everything."""
        return self.access if isinstance(self.access, Path) else None


def access_problems(values: AccessValues, settings: AccessSettings, target: Target) -> list[str]:
    """Return what is wrong with choices that are valid one by one."""
    kinds, given = values.auth, values.model_fields_set
    issuer, audience = settings.oidc_issuer, settings.oidc_audience
    on_aws = target is Target.AWS
    rules = [
        (
            AuthKind.NONE in kinds and on_aws,
            "auth=none is for target=local: choose from iam, api_key, cognito and oidc",
        ),
        (
            not on_aws and not LOCAL_KINDS.issuperset(kinds),
            "target=local has auth=none and auth=oidc: the local API Gateway verifies no signatures and keys",
        ),
        (len({*kinds}) < len(kinds), "auth names a kind twice"),
        (TOKEN_KINDS.issubset(kinds), "auth=cognito and auth=oidc exclude each other: people have one issuer"),
        (
            PROGRAMS.issubset(kinds),
            "auth=iam and auth=api_key exclude each other: programs authenticate in one way",
        ),
        (
            AuthKind.OIDC in kinds and not (issuer and audience),
            (
                "auth=oidc needs oidc_issuer and oidc_audience: add --context oidc_issuer=https://... and"
                " --context oidc_audience=..."
            ),
        ),
        (
            AuthKind.OIDC not in kinds and (issuer or audience),
            "oidc_issuer and oidc_audience need auth=oidc: add it, or leave them out",
        ),
        (
            issuer and not _is_issuer(issuer, target),
            (
                f"oidc_issuer={issuer} is invalid: it must begin with https:// and a host, as the issuer's tokens write"
                " it, in ASCII characters, or be on localhost with target=local"
            ),
        ),
        *(
            (name in given and AuthKind.API_KEY not in kinds, f"{name} needs auth=api_key: add it, or leave {name} out")
            for name in ("api_keys", "api_key_requests_per_second", "api_key_requests_per_day")
        ),
        (len({name.lower() for name in values.api_keys}) < len(values.api_keys), "api_keys names a key twice"),
        (
            len(values.api_keys) > MAX_API_KEYS,
            f"api_keys names {len(values.api_keys)} keys; at most {MAX_API_KEYS} are possible: let people sign in",
        ),
        *(
            (
                name in given and AuthKind.COGNITO not in kinds,
                f"{name} needs auth=cognito: add it, or leave {name} out",
            )
            for name in ("callback_urls", "user_pool", "mfa", "email_sender")
        ),
        *(
            (
                values.user_pool and name in given,
                f"{name} cannot be changed in the pool that user_pool names: leave {name} out",
            )
            for name in ("mfa", "email_sender")
        ),
        (
            len(values.callback_urls) >= MAX_CALLBACKS,
            f"callback_urls names {len(values.callback_urls)} URLs; at most {MAX_CALLBACKS - 1} are possible",
        ),
        *(
            (
                urlsplit(url).scheme == "http" and urlsplit(url).hostname not in LOOPBACK,
                f"callback_urls={url} is invalid: http is for localhost alone, others need https",
            )
            for url in values.callback_urls
        ),
        (
            "ask_requests_per_second" in given and values.ask_requests_per_second > values.api_requests_per_second,
            (
                f"ask_requests_per_second={values.ask_requests_per_second} exceeds api_requests_per_second"
                f"={values.api_requests_per_second}, the limit of the other routes"
            ),
        ),
        *(
            (
                kind in kinds and values.access is None,
                (
                    f"auth={kind} needs access: write a file such as samples/access.json, and add --context"
                    f" access=FILE. Or let every caller do and see everything, with --context access={NO_ACCESS_FILE}"
                ),
            )
            for kind in (*sorted(TOKEN_KINDS), AuthKind.API_KEY)
        ),
    ]
    return [message for is_broken, message in rules if is_broken]


def tenant_prefixes(values: AccessValues, policy: AccessPolicy | None) -> dict[str, str]:
    """Return the prefixes of the tenants that get knowledge bases of their own, by name."""
    if policy is None or values.tenants is Tenants.LABEL:
        return {}
    return {name: tenant.prefix for name, tenant in policy.tenants.items()}


def tenant_problem(
    values: AccessValues, policy: AccessPolicy | None, given: Collection[str], *, existing: bool, store: str
) -> str | None:
    """Return what is wrong with the choices about tenants.

    Args:
        values: The choices.
        policy: The access file.
        given: The tenants whose knowledge bases the deployer names.
        existing: Whether the deployer names the shared one.
        store: The vector store; in a managed one, data sources have no prefixes.
    """
    by_index, named = values.tenants is Tenants.INDEX, tenant_prefixes(values, policy).keys()
    if by_index and not named:
        return "tenants=index needs an access file with tenants: add them, or leave tenants out"
    twofold = [name for name in named if policy is not None and policy.tenants[name].has_several_forms]
    if twofold and store != MANAGED:
        return (
            f"the prefix of the tenant {twofold[0]} has letters that can be written in two ways, and the data source of"
            " a knowledge base takes one of them: with tenants=index, use a prefix without accents"
        )
    if given and not (by_index and existing):
        return "tenant_knowledge_bases needs tenants=index and knowledge_base=existing: leave it out"
    if by_index and existing and set(given) != named:
        return (
            "tenants=index with knowledge_base=existing needs tenant_knowledge_bases with the tenants of the access"
            f" file, which differ by {', '.join(sorted(named ^ set(given)))}"
        )
    if not existing and len(named) > MAX_TENANTS:
        return (
            f"tenants=index creates {len(named) + 1} knowledge bases, and Amazon Bedrock and CloudFormation take at"
            f" most 100: name at most {MAX_TENANTS} tenants, or use tenants=label"
        )
    return None


def groups_of_people(policy: AccessPolicy) -> list[str]:
    """Return the names of the groups in an access file, for the groups of a user pool.

    Raises:
        ValueError: Amazon Cognito takes no such name.
    """
    names = sorted(name.removeprefix(GROUP) for name in policy.principals if name.startswith(GROUP))
    if wrong := [name for name in names if not _COGNITO_GROUP.fullmatch(name)]:
        raise ValueError(
            f"the access file has the group {wrong[0]!r:.150}; Amazon Cognito takes 128 characters, no spaces"
        )
    return names


def parse_origin(url: str) -> str | None:
    """Return the origin of a URL; None if a content security policy cannot name it."""
    found = _ORIGIN.match(url)
    return None if found is None else found[0]


def _is_issuer(url: str, target: Target) -> bool:
    if parse_origin(url) is None or not (url.isascii() and url.isprintable()) or not {" ", "?", "#"}.isdisjoint(url):
        return False
    address = urlsplit(url)
    return address.scheme == "https" or (target is Target.LOCAL and address.hostname in LOOPBACK)
