"""Callers, the principals that they are, and the rights that a route asks for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.core.errors import NotAuthenticatedError

if TYPE_CHECKING:
    from ragstack_common.access.policy import Claims

EVERYONE: Final = "everyone"
"""The principal that every authenticated caller is."""

CALLER: Final = "ragstack.caller"
"""The member of an ASGI request's scope that holds its caller."""

MAX_PRINCIPALS: Final = 1000
"""Principals of one caller. Identity providers put at most a few hundred groups into a token."""


class Right(StrEnum):
    """What a caller may do with what they see."""

    READ = "read"
    WRITE = "write"
    OPERATE = "operate"


@dataclass(frozen=True)
class Caller:
    """Who sends a request, as a verified token, signature or key says.

    Attributes:
        name: The principal by which messages and audit events name the caller, such as ``user:alice``.
        principals: Everything that the caller is, such as ``group:people``; always with ``everyone``.
        expires_at: When the proof of identity expires, in seconds since 1970; None for never.
        is_local: Whether the deployment has no authentication at all, as a stack on one machine may have. Such a caller
            has every right and sees everything.
    """

    name: str
    principals: frozenset[str] = frozenset({EVERYONE})
    expires_at: float | None = None
    is_local: bool = False


OPERATOR: Final = Caller("local", is_local=True)
"""The caller in a process that has no other callers, such as a script that uses the library."""


def caller_from_claims(claims: Mapping[str, Any], mapping: "Claims") -> Caller:
    """Return the caller whose verified token has these claims.

    Args:
        claims: The claims. API Gateway passes them on as text, lists with commas or in brackets.
        mapping: Which claims are what.

    Raises:
        NotAuthenticatedError: The token does not name the user.
    """
    user = claims.get(mapping.user)
    if not isinstance(user, str) or not user:
        raise NotAuthenticatedError(f"The token has no claim {mapping.user}, which names the user")
    if mapping.user == "email" and str(claims.get("email_verified")).lower() != "true":
        raise NotAuthenticatedError("The token's e-mail address is not verified")
    found = {
        EVERYONE,
        f"user:{user}",
        *(f"group:{name}" for claim in mapping.group for name in _names(claims.get(claim), ",")),
        *(f"scope:{name}" for name in _names(claims.get("scope"), " ")),
    }
    tenants = None if mapping.tenant is None else claims.get(mapping.tenant)
    # A text is one tenant: its name may have commas and spaces, and be chosen by the tenant.
    found |= {f"tenant:{name}" for name in ([tenants] if isinstance(tenants, str) else _names(tenants, "")) if name}
    if len(found) > MAX_PRINCIPALS:
        raise NotAuthenticatedError(f"The token names {len(found)} groups and scopes; at most {MAX_PRINCIPALS} count")
    expires = claims.get("exp")
    return Caller(f"user:{user}", frozenset(found), None if expires is None else float(expires))


def caller_from_arn(arn: str) -> Caller:
    """Return the caller who signed a request, by the ARN that API Gateway reports.

    The session of an assumed role is the role without its path, which the ARN of a session does not have. Source: IAM
    user guide, identifiers.
    """
    service, _, resource = arn.partition(":assumed-role/")
    if not resource:
        return Caller(f"role:{arn}", frozenset({EVERYONE, f"role:{arn}"}))
    role = f"{service.replace(':sts:', ':iam:', 1)}:role/{resource.split('/')[0]}"
    return Caller(f"role:{role}", frozenset({EVERYONE, f"role:{role}"}))


def caller_from_key(name: str) -> Caller:
    """Return the caller who holds an API key."""
    return Caller(f"key:{name}", frozenset({EVERYONE, f"key:{name}"}))


def _names(value: Any, separator: str) -> Iterable[str]:
    """Return the members of a claim: a list, or a text with separators, which brackets may enclose."""
    if isinstance(value, str):
        value = value.strip().removeprefix("[").removesuffix("]").replace(separator, " ").split()
    if not isinstance(value, list | tuple):
        return ()
    return [name for name in value if isinstance(name, str) and name]
