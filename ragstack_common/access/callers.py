"""Callers, their principals, and the rights that routes require."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.core.errors import NotAllowedError, NotAuthenticatedError
from ragstack_common.core.json_text import parse_json
from ragstack_common.core.names import canonical

if TYPE_CHECKING:
    from ragstack_common.access.policy import Claims

EVERYONE: Final = "everyone"
"""The principal that every authenticated caller is."""

CALLER: Final = "ragstack.caller"
"""The member of an ASGI request's scope that holds its caller."""

MAX_PRINCIPALS: Final = 1000
"""Maximum number of one caller. Identity providers put at most a few hundred groups into a token."""


class Right(StrEnum):
    """What a caller may do with what they see."""

    READ = "read"
    WRITE = "write"
    OPERATE = "operate"


@dataclass(frozen=True)
class Caller:
    """Who sends a request, as a verified token, signature or key says.

    Attributes:
        name: The principal in messages and audit events, such as ``user:alice``.
        principals: All principals of the caller, such as ``group:people``; always with ``everyone``.
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


def user_from_claims(claims: Mapping[str, Any], mapping: "Claims") -> str:
    """Return the principal of a verified token's user, such as ``user:alice``; raises NotAuthenticatedError."""
    user = claim(claims, mapping.user)
    if not isinstance(user, str) or not user.strip():
        raise NotAuthenticatedError(f"The token has no claim {mapping.user}, which names the user")
    if mapping.user == "email" and str(claims.get("email_verified")).lower() != "true":
        raise NotAuthenticatedError("The token's e-mail address is not verified")
    return canonical(f"user:{user}")


def caller_from_claims(claims: Mapping[str, Any], mapping: "Claims") -> Caller:
    """Return the caller whose verified token has these claims.

    A claim that cannot be read is not a claim without names: a rule that denies a group would admit its members.

    Raises:
        NotAuthenticatedError: The token does not name the user, or names too many groups.
        NotAllowedError: The token leaves out the user's groups, or a claim has a form that cannot be read.
    """
    user = user_from_claims(claims, mapping)
    _check_complete(claims, mapping)
    scopes = claims.get("scope")
    found = {
        *(f"group:{name}" for each in mapping.group for name in _names(each, claim(claims, each))),
        # The only claim that is a text with several names. Source: RFC 8693, section 4.2.
        *(f"scope:{name}" for name in (scopes.split() if isinstance(scopes, str) else _names("scope", scopes))),
    }
    if mapping.tenant is not None:
        # A text is one tenant, also in brackets: its name may be chosen by the tenant.
        tenant = claim(claims, mapping.tenant)
        found |= {f"tenant:{name}" for name in _names(mapping.tenant, [tenant] if isinstance(tenant, str) else tenant)}
    principals = frozenset({EVERYONE, user, *map(canonical, found)})
    if len(principals) > MAX_PRINCIPALS:
        raise NotAuthenticatedError(
            f"The token names {len(principals)} groups and scopes; at most {MAX_PRINCIPALS} count"
        )
    expires = claims.get("exp")
    return Caller(user, principals, None if expires is None else float(expires))


def claim(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim by its name, or by the path to it in objects, such as ``realm_access.roles``; None if absent.

    Names can have dots themselves, as ``https://example.com/groups`` does. The longest name that exists wins. A path
    that ends at something else than an object gives :data:`UNREADABLE`, which no use of a claim accepts.
    """
    if name in claims:
        return claims[name]
    places = [place for place, character in enumerate(name) if character == "."]
    unreadable = None
    for place in reversed(places):
        inner = claims.get(name[:place])
        if not isinstance(inner, Mapping):
            unreadable = unreadable if inner is None else UNREADABLE
        elif (found := claim(inner, name[place + 1 :])) is not None:
            return found
    return unreadable


def claims_that_count(claims: Mapping[str, Any], mapping: "Claims") -> dict[str, Any]:
    """Return the claims from which a caller is made, those at the end of a path under the path as their name."""
    mapped = (mapping.user, *mapping.group, *([] if mapping.tenant is None else [mapping.tenant]))
    found = {name: claim(claims, name) for name in mapped} | {name: claims.get(name) for name in _ALWAYS}
    return {name: value for name, value in found.items() if value is not None}


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
    principal = canonical(f"key:{name}")
    return Caller(principal, frozenset({EVERYONE, principal}))


def is_program(caller: Caller) -> bool:
    """Whether a caller is an IAM role or an API key, not a person."""
    return caller.name.startswith(("role:", "key:"))


def _check_complete(claims: Mapping[str, Any], mapping: "Claims") -> None:
    """Check that the token has all of its claims, for some providers leave out long lists; raises NotAllowedError."""
    elsewhere = claims.get(_ELSEWHERE) or {}
    if not isinstance(elsewhere, Mapping):
        raise NotAllowedError(f"The token's claim {_ELSEWHERE} is not an object, so it is not known what it leaves out")
    left_out = {*elsewhere}
    if str(claims.get(_HAS_GROUPS, "false")).lower() not in ("false", "none"):
        left_out.add("groups")
    for name in (*mapping.group, *([] if mapping.tenant is None else [mapping.tenant])):
        if name in left_out or any(name.startswith(f"{each}.") for each in left_out):
            raise NotAllowedError(
                f"The token leaves out the claim {name}, because it has too many entries. Configure the identity"
                " provider to write fewer into tokens, such as the groups assigned to the application, or application"
                " roles, and name their claim in the access file"
            )


def _names(name: str, value: Any) -> Iterable[str]:
    """Return the names in a claim: each member of a list; a text is one name, unless API Gateway made it of a list.

    Raises:
        NotAllowedError: The claim is neither a text nor a list of texts.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        value = _members(value)
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise NotAllowedError(f"The token's claim {name} is neither a text nor a list of texts: map another claim")
    return [each.strip() for each in value if each.strip()]


def _members(text: str) -> Any:
    """Read a list that was written as text: as JSON, or as API Gateway does, ``[a b]`` or ``[a, b]``."""
    if not (text.startswith("[") and text.endswith("]")):
        return [text]
    try:
        return parse_json(text)
    except ValueError:
        inner = text[1:-1]
        return inner.split(",") if "," in inner else inner.split()


UNREADABLE: Final[Mapping[str, Any]] = {}
"""Stands for a claim whose path leads through a text, a list or a number."""

_ELSEWHERE: Final = "_claim_names"
"""Names the claims that are not in the token. Source: OpenID Connect Core, section 5.6.2; Microsoft Entra ID writes it
for users of more than 200 groups."""

_HAS_GROUPS: Final = "hasgroups"
"""Microsoft Entra ID writes it into tokens of the implicit flow instead of six or more groups. Source: Microsoft
identity platform, access token claims reference."""

_ALWAYS: Final = ("sub", "exp", "scope", "email_verified", _ELSEWHERE, _HAS_GROUPS)
"""Claims that count with every access file."""
