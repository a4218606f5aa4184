"""The access file: which claims make which principals, who has which right, and who sees which documents."""

from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from ragstack_common.access.callers import EVERYONE, Right
from ragstack_common.core.errors import ConfigurationError
from ragstack_common.core.json_text import parse_json
from ragstack_common.core.names import canonical, canonical_if_text, forms
from ragstack_common.settings.access import AccessSettings
from ragstack_common.settings.names import CORPUS_KEY, OWN_PREFIX, RESERVED_PREFIX, VERSION_KEY
from ragstack_common.settings.tenants import SHARED

LABEL: Final = r"^[A-Za-z0-9][\w.:/@+-]*$"
MAX_LABEL: Final = 100
"""Short, because labels are part of the metadata of documents, of which S3 Vectors takes 1 KB.

A length, and not ``{0,99}`` in the pattern, for which pydantic would compile all letters of Unicode 99 times: as long
as a tenth of a cold start.
"""

PRINCIPAL: Final = rf"^({EVERYONE}|(user|group|tenant|role|key|scope):\S.*)$"

TENANT: Final = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,49}$"
"""Short, because tenants' names are part of the environment of functions, of which Lambda takes 4 KB."""

TENANT_PREFIX: Final = r"^[^/\s][^\s]*/$"

_Canonical: Final = BeforeValidator(canonical_if_text)

Label: TypeAlias = Annotated[str, _Canonical, StringConstraints(pattern=LABEL, max_length=MAX_LABEL)]
Principal: TypeAlias = Annotated[str, _Canonical, StringConstraints(pattern=PRINCIPAL, max_length=500)]
Contact: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Principals: TypeAlias = tuple[Principal, ...]
Prefix: TypeAlias = Annotated[str, _Canonical]


def _one_or_more(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _unreserved(name: str) -> str:
    if name in (CORPUS_KEY, VERSION_KEY) or name.startswith((RESERVED_PREFIX, OWN_PREFIX)):
        raise ValueError(f"{name!r} has a meaning of its own: choose another name, such as access")
    return name


class _Part(BaseModel, extra="forbid", frozen=True, defer_build=True):
    """A part of the access file. Unknown names are rejected."""


class Claims(_Part):
    """Which claims of a token make which principals. A dot leads into an object, as in ``realm_access.roles``."""

    user: str = Field(default="sub", description="the claim that names the user; `email` counts only if it is verified")
    group: Annotated[tuple[str, ...], BeforeValidator(_one_or_more)] = Field(
        default=("groups", "cognito:groups"), description="the claims that list the user's groups"
    )
    tenant: str | None = Field(default=None, description="the claim that names the user's tenant, if there are tenants")


class LabelRule(_Part):
    """Who sees the documents of a label: those in *allow* who are not in *deny*."""

    allow: Principals = Field(default=(), description="principals who see these documents")
    deny: Principals = Field(default=(), description="principals who do not, even if they are allowed as well")
    contact: Contact | None = Field(
        default=None,
        description="whom others may ask for access; who has the address of such a document then learns that it exists",
    )


class PrefixRule(_Part):
    """The rules of documents whose keys begin with a prefix. The longest prefix of a key decides alone."""

    default: Label | None = Field(
        default=None, description="the label of documents without one, or with one that is not listed here"
    )
    labels: tuple[Label, ...] = Field(default=(), description="other labels that documents may have")
    writers: Principals = Field(
        default=(EVERYONE,), description="who may upload and delete here, with the right to write"
    )

    @property
    def permitted(self) -> frozenset[str]:
        """The labels that documents under the prefix can have."""
        return frozenset(self.labels) | ({self.default} if self.default else set())


class TenantRule(_Part):
    """A tenant. With `tenants=index`, its documents have a knowledge base of their own."""

    prefix: Annotated[Prefix, StringConstraints(pattern=TENANT_PREFIX, max_length=300)] = Field(
        description="the beginning of the keys of its documents, up to a slash"
    )

    @property
    def has_several_forms(self) -> bool:
        """Whether keys can write the prefix in several ways, of which a data source takes one."""
        return len(forms(self.prefix)) > 1


class AccessPolicy(_Part):
    """The access file. Whatever it does not allow is refused.

    Raises:
        ValueError: A prefix names a label that does not exist, or two tenants share documents.
    """

    claims: Claims = Field(default_factory=Claims, description="which claims of a token make which principals")
    attribute: Annotated[
        str,
        _Canonical,
        StringConstraints(pattern=r"^[A-Za-z][\w-]*$", max_length=50),
        AfterValidator(_unreserved),
    ] = Field(default="access", description="the attribute of documents that holds their label")
    rights: Mapping[Right, Principals] = Field(
        default={}, description="who may read (search, ask, list), write (upload, delete) and operate"
    )
    labels: Mapping[Label, LabelRule] = Field(default={}, description="who sees the documents of each label")
    prefixes: Mapping[Prefix, PrefixRule] = Field(
        default={}, description="the labels of documents by the beginning of their keys; an empty one is for all keys"
    )
    tenants: Mapping[Annotated[str, StringConstraints(pattern=TENANT)], TenantRule] = Field(
        default={}, description="the tenants by name, whose prefixes do not overlap"
    )
    sees_everything: Principals = Field(
        default=(), description="who sees every document, also those without a label, as operators do"
    )

    @model_validator(mode="after")
    def _names_existing_labels(self) -> Self:
        for prefix, rule in self.prefixes.items():
            if unknown := sorted(rule.permitted - self.labels.keys()):
                raise ValueError(f"prefixes: {prefix!r} names the label {unknown[0]!r}, which labels does not have")
        return self

    @property
    def principals(self) -> frozenset[str]:
        """All principals in the file."""
        named = [*self.rights.values(), self.sees_everything]
        named += [each for rule in self.labels.values() for each in (rule.allow, rule.deny)]
        return frozenset[str]().union(*named, *(rule.writers for rule in self.prefixes.values()))

    @model_validator(mode="after")
    def _separates_tenants(self) -> Self:
        if SHARED in self.tenants:
            raise ValueError(f"tenants: {SHARED!r} is the name of what tenants share")
        in_order = sorted((tenant.prefix, name) for name, tenant in self.tenants.items())
        for (shorter, one), (longer, other) in pairwise(in_order):
            if longer.startswith(shorter):
                raise ValueError(f"tenants: the prefixes of {one} and {other} overlap, {shorter!r} and {longer!r}")
        return self

    def tenant_of(self, key: str) -> str | None:
        """Return the tenant of a document's key; None if it has none."""
        key = canonical(key)
        return next((name for name, tenant in self.tenants.items() if key.startswith(tenant.prefix)), None)

    def labels_of_tenant(self, tenant: str | None) -> frozenset[str]:
        """Return the labels that documents of a tenant can have; None is for the documents without a tenant."""
        if tenant is None:
            own = tuple(each.prefix for each in self.tenants.values())
            rules = [rule for prefix, rule in self.prefixes.items() if not prefix.startswith(own)]
        else:
            own_prefix = self.tenants[tenant].prefix
            rules = [rule for prefix, rule in self.prefixes.items() if prefix.startswith(own_prefix)]
            rules.append(self.rule_for(own_prefix)[1])
        return frozenset[str]().union(*(rule.permitted for rule in rules))

    @cached_property
    def _longest_first(self) -> list[tuple[str, PrefixRule]]:
        return sorted(self.prefixes.items(), key=lambda each: -len(each[0]))

    def rule_for(self, key: str) -> tuple[str, PrefixRule]:
        """Return the longest prefix of a document's key, with its rule; without one, a rule that permits nothing."""
        key = canonical(key)
        return next((each for each in self._longest_first if key.startswith(each[0])), ("", PrefixRule(writers=())))

    def label_of(self, key: str, wanted: Any) -> str | None:
        """Return the label of a document: the value of its attribute if the prefix permits it, or the default."""
        _, rule = self.rule_for(key)
        label = canonical(wanted) if isinstance(wanted, str) else None
        return label if label in rule.permitted else rule.default


_FORMS: Final = {
    LABEL: f"a letter or digit, then up to {MAX_LABEL - 1} letters, digits and _ . : / @ + -",
    TENANT: "a letter or digit, then up to 49 letters, digits, _ and -",
    TENANT_PREFIX: "a prefix that ends with a slash and has no spaces, such as tenants/acme/",
    PRINCIPAL: f"{EVERYONE}, or a kind with a name, such as group:people",
}


def read_policy(file: Path) -> AccessPolicy:
    """Read an access file.

    Raises:
        ConfigurationError: It cannot be read, or is invalid; the message names the place.
    """
    try:
        return parse_policy(file.read_bytes(), str(file))
    except OSError as error:
        raise ConfigurationError(f"The access file {file} cannot be read: {error.strerror}") from error


def policy_from_env(env: Mapping[str, str]) -> AccessPolicy | None:
    """Read the access file that the environment names; None if it names none; raises ConfigurationError."""
    file = AccessSettings.from_env(env).access_file
    return None if file is None else read_policy(file)


def parse_policy(body: bytes, name: str) -> AccessPolicy:
    """Read the content of an access file, which messages call *name*. Raises the errors of :func:`read_policy`."""
    try:
        return AccessPolicy.model_validate(parse_json(body, object_pairs_hook=_distinct))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in problem["loc"] if part != "[key]")
        reason = str(problem["msg"]).removeprefix("Value error, ")
        if problem["type"] == "string_pattern_mismatch":
            form = _FORMS.get(problem["ctx"]["pattern"], "a letter, then letters, digits, _ and -")
            reason = f"{problem['input']!r:.100} must be {form}"
        raise ConfigurationError(
            f"The access file {name} is invalid: {': '.join(filter(None, (place, reason)))}"
        ) from error
    except ValueError as error:
        raise ConfigurationError(f"The access file {name} is invalid: {error}") from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = {canonical(name): value for name, value in pairs}
    if len(found) < len(pairs):
        names = [canonical(name) for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is given twice")
    return found
