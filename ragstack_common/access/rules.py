"""The rules in effect: the access file, and the changes that operators made since."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final

from ragstack_common.access.callers import Caller, Right
from ragstack_common.access.policy import AccessPolicy, PrefixRule
from ragstack_common.core.errors import ScopeTooLongError
from ragstack_common.core.names import canonical
from ragstack_common.filters import Clause, Filter, Operator

MAX_LABELS_IN_A_FILTER: Final = 200
"""Maximum number of labels of a caller. A longer filter makes each search slower, or takes several of them."""

NO_LABEL: Final = "\x00"
"""A label that no document can have: the filter of a caller who sees nothing."""


class Effect(StrEnum):
    """What a change does to a principal at a label."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True)
class RuleOverride:
    """A change of what a label does to a principal, which replaces the rule of the access file.

    It was made *by* a caller *at* a time in seconds since 1970.
    """

    label: str
    principal: str
    effect: Effect
    by: str
    at: float


@dataclass(frozen=True)
class Scope:
    """What a caller sees: the labels of documents, and the filter of chunks; both are None for everything."""

    labels: frozenset[str] | None = None
    filter: Filter | None = None


EVERYTHING: Final = Scope()


@dataclass(frozen=True)
class Decision:
    """Whether a caller sees a document, and the rule that decides it."""

    is_visible: bool
    rule: str


@dataclass(frozen=True)
class Writable:
    """A prefix under which a caller may upload and delete, and the labels that the caller may give there.

    A longer prefix of the access file can have other writers. Without a default, the caller must choose a label, or
    documents have none.
    """

    prefix: str
    default: str | None = None
    labels: tuple[str, ...] = ()


class AccessRules:
    """The rules in effect: the access file and its changes, whose number is the version."""

    def __init__(self, policy: AccessPolicy, changes: Iterable[RuleOverride] = (), version: int = 0) -> None:
        self.policy = policy
        self.version = version
        self.changes = {(each.label, each.principal): each for each in changes}
        effects: dict[tuple[str, str], Effect] = {}
        for label, rule in policy.labels.items():
            effects |= {(label, principal): Effect.ALLOW for principal in rule.allow}
            effects |= {(label, principal): Effect.DENY for principal in rule.deny}
        # A label that was removed from the file admits no caller, despite earlier changes.
        effects |= {place: each.effect for place, each in self.changes.items() if each.label in policy.labels}
        self._effects = effects
        self._labels: dict[Effect, dict[str, set[str]]] = {effect: defaultdict(set) for effect in Effect}
        for (label, principal), effect in effects.items():
            self._labels[effect][principal].add(label)
        self._labels_of = lru_cache(1024)(self._computed_labels)

    def rights(self, caller: Caller) -> frozenset[Right]:
        """Return the rights of a caller."""
        if caller.is_local:
            return frozenset(Right)
        return frozenset(right for right, holders in self.policy.rights.items() if caller.principals & {*holders})

    def sees_everything(self, caller: Caller) -> bool:
        """Whether a caller sees every document, also those without a label."""
        if caller.is_local or caller.principals & {*self.policy.sees_everything}:
            return True
        return bool(caller.principals & {*self.policy.rights.get(Right.OPERATE, ())})

    def labels(self, caller: Caller) -> frozenset[str] | None:
        """Return the labels whose documents a caller sees; None for every document."""
        return None if self.sees_everything(caller) else self._labels_of(caller.principals)

    def scope(self, caller: Caller) -> Scope:
        """Return what a caller sees.

        Raises:
            ScopeTooLongError: The caller has more labels than a search can have.
        """
        labels = self.labels(caller)
        if labels is None:
            return EVERYTHING
        if len(labels) > MAX_LABELS_IN_A_FILTER:
            raise ScopeTooLongError(
                f"{caller.name} has {len(labels)} access labels, and a search takes at most {MAX_LABELS_IN_A_FILTER}:"
                " join labels that the same people see"
            )
        return Scope(labels, Clause(Operator.IN, self.policy.attribute, tuple(sorted(labels) or [NO_LABEL])))

    def sees(self, caller: Caller, label: object) -> bool:
        """Whether a caller sees the documents of a label; None or a value that is not a text is a missing label."""
        labels = self.labels(caller)
        return labels is None or (isinstance(label, str) and canonical(label) in labels)

    def writable(self, caller: Caller) -> tuple[Writable, ...]:
        """Return where a caller may write, by prefix. Left out are prefixes whose documents the caller cannot see."""
        if Right.WRITE not in self.rights(caller):
            return ()
        prefixes = {"": PrefixRule(), **self.policy.prefixes} if caller.is_local else self.policy.prefixes
        found = []
        for prefix, rule in sorted(prefixes.items()):
            labels = tuple(sorted(label for label in rule.permitted if self.sees(caller, label)))
            is_writer = caller.is_local or caller.principals & {*rule.writers}
            if is_writer and (labels or self.sees_everything(caller)):
                found.append(Writable(prefix, rule.default if rule.default in labels else None, labels))
        return tuple(found)

    def depends_on(self, caller: Caller, label: str | None) -> tuple[str, ...]:
        """Return principals that a user may be too, and with which :meth:`explain` would decide otherwise.

        These are groups, tenants and scopes if the caller is a user without a principal of that kind.
        """
        kinds = {_kind(name) for name in caller.principals}
        unnamed = _OF_USERS - kinds if "user" in kinds else frozenset()
        named = {*self.policy.sees_everything, *self.policy.rights.get(Right.OPERATE, ())}
        named |= {name for each, name in self._effects if each == label}
        is_visible = self.explain(caller, label).is_visible
        return tuple(
            name
            for name in sorted(each for each in named if _kind(each) in unnamed)
            if self.explain(replace(caller, principals=caller.principals | {name}), label).is_visible != is_visible
        )

    def explain(self, caller: Caller, label: str | None) -> Decision:
        """Return whether a caller sees the documents of a label, and the rule that decides it."""
        if self.sees_everything(caller):
            return Decision(is_visible=True, rule=f"{caller.name} sees every document")
        if label is None:
            return _hidden("The document has no label: only operators see it")
        label = canonical(label)
        if label not in self.policy.labels:
            return _hidden(f"The access file has no label {label}: only operators see its documents")
        found = {
            effect: sorted(name for name in caller.principals if self._effects.get((label, name)) is effect)
            for effect in Effect
        }
        for effect in (Effect.DENY, Effect.ALLOW):
            if found[effect]:
                principal = found[effect][0]
                verb = "allows" if effect is Effect.ALLOW else "denies"
                change = self.changes.get((label, principal))
                origin = "by the access file" if change is None else f"by a change of {change.by}"
                return Decision(effect is Effect.ALLOW, f"{label} {verb} {principal}, {origin}")
        return _hidden(f"{label} allows none of {', '.join(sorted(caller.principals))}")

    def contacts(self, labels: Iterable[str | None]) -> tuple[str, ...]:
        """Return whom to ask for access to some labels; nobody unless the access file names someone for each."""
        rules = [self.policy.labels.get(canonical(label or "")) for label in labels]
        found = [None if rule is None else rule.contact for rule in rules]
        named = dict.fromkeys(contact for contact in found if contact is not None)
        return () if None in found else tuple(named)

    def holders(self) -> dict[str, dict[Effect, list[str]]]:
        """Return the principals that each label allows and denies."""
        found = {label: {effect: list[str]() for effect in Effect} for label in self.policy.labels}
        for (label, principal), effect in sorted(self._effects.items()):
            found[label][effect].append(principal)
        return found

    def viewers(self, caller: Caller) -> dict[str, list[str]]:
        """Return the principals that see each label that a caller may give, as far as the caller may know them.

        Operators may know all of them, and others those that they are themselves.
        """
        known = None if Right.OPERATE in self.rights(caller) else caller.principals
        holders = self.holders()
        return {
            label: [
                name
                for name in holders[label][Effect.ALLOW]
                if name not in holders[label][Effect.DENY] and (known is None or name in known)
            ]
            for label in sorted({label for each in self.writable(caller) for label in each.labels})
        }

    def _computed_labels(self, principals: frozenset[str]) -> frozenset[str]:
        allowed, denied = (
            frozenset[str]().union(*(labels[name] for name in principals & labels.keys()))
            for labels in (self._labels[Effect.ALLOW], self._labels[Effect.DENY])
        )
        return allowed - denied


def _hidden(rule: str) -> Decision:
    return Decision(is_visible=False, rule=rule)


def _kind(principal: str) -> str:
    return principal.partition(":")[0]


_OF_USERS: Final = frozenset({"group", "tenant", "scope"})
"""Kinds of principals that are known only from a user's token."""
