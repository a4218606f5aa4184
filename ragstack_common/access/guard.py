"""The guard of a process: it applies the rules in effect to each request and to each result."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from threading import Lock
from typing import Any, Final, NamedTuple, Self

from ragstack_common.access.audit import AuditSink, ErasureKind, ReadKind, record, record_read
from ragstack_common.access.audit_bus import audit_sink
from ragstack_common.access.callers import Caller, Right
from ragstack_common.access.changes import AccessTable
from ragstack_common.access.policy import AccessPolicy, policy_from_env
from ragstack_common.access.rules import AccessRules, Decision, Effect, Writable
from ragstack_common.core.artefacts import mails_of
from ragstack_common.core.errors import ConfigurationError, InvalidRequestError, NotAllowedError, RegistryError
from ragstack_common.core.names import canonical
from ragstack_common.core.reporting import is_refused, reaching_the_registry
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.settings.access import AccessSettings, AuthKind

MAX_PLACES: Final = 20
"""Maximum number of prefixes in a refusal."""


class Checked(NamedTuple):
    """The rules in effect after a search, and which of its documents the caller may not see."""

    rules: AccessRules
    hidden: frozenset[str]


class _OpenRules(AccessRules):
    """The rules without an access file: every caller may do and see everything."""

    def rights(self, caller: Caller) -> frozenset[Right]:  # noqa: ARG002
        return frozenset(Right)

    def sees_everything(self, caller: Caller) -> bool:  # noqa: ARG002
        return True

    def writable(self, caller: Caller) -> tuple[Writable, ...]:  # noqa: ARG002
        return (Writable(""),)


# Validation would build the schema of a file that there is not, which takes a hundredth of a cold start.
OPEN_RULES: Final = _OpenRules(AccessPolicy.model_construct())


class Guard:
    """Applies the rules in effect. Each method raises RegistryError if the table cannot be read.

    Without an access file, everything is allowed, and the table must have neither changes of rules nor labels. The
    *loaded_rules* are those that were read last; None before the first time. With *audits_reads*, it records which
    documents each caller saw.
    """

    def __init__(
        self,
        policy: AccessPolicy | None = None,
        table: AccessTable | None = None,
        sink: AuditSink | None = None,
        *,
        audits_reads: bool = False,
    ) -> None:
        self.policy = policy
        self._table = table
        self._sink = sink
        self._audits_reads = audits_reads
        self._lock = Lock()
        self._unchecked = table if policy is None else None
        self.loaded_rules: AccessRules | None = (
            OPEN_RULES if policy is None else AccessRules(policy) if table is None else None
        )

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Build the guard that the environment describes; raises ConfigurationError."""
        policy, settings = policy_from_env(env), AccessSettings.from_env(env)
        sink, audits_reads = audit_sink(settings), settings.audit_reads
        if settings.registry_table is None or (policy is None and {*settings.api_auth} == {AuthKind.NONE}):
            # An API without authentication has no callers to tell apart.
            return cls(policy, sink=sink, audits_reads=audits_reads)
        from ragstack_common.core.clients import dynamodb_client  # noqa: PLC0415 - not every process has a table

        table = AccessTable(dynamodb_client(), settings.registry_table)
        return cls(policy, table, sink, audits_reads=audits_reads)

    def known_rules(self) -> AccessRules:
        """Return the rules as they were read last, for searches; :meth:`check` compares results with newer ones."""
        return self.loaded_rules or self._refreshed(None)

    def rules(self) -> AccessRules:
        """Return the rules in effect now, which takes one read of the table."""
        if self.policy is None or self._table is None:
            return self.known_rules()
        with reaching_the_registry():
            return self._refreshed(self._table.version())

    def check(self, caller: Caller, uris: Collection[str], otherwise: Mapping[str, Any] | None = None) -> Checked:
        """Compare documents with the rules and the labels in effect now, in one read for up to 99 documents.

        Documents that are deleted in the registry have no label. Those that the registry does not know have the label
        *otherwise*, if there is one. Who does not see a mail does not see what is attached to it, whose own label
        follows that of the mail only when the mail is converted again.
        """
        rules = self.known_rules()
        if rules.labels(caller) is None:
            return Checked(rules, frozenset())
        found: dict[str, Any] = dict(otherwise or {})
        mails: dict[str, tuple[str, ...]] = {}
        if self._table is not None:
            mails = {uri: mails_of(uri) for uri in uris}
            with reaching_the_registry():
                labels = self._table.labels({*uris, *chain.from_iterable(mails.values())})
                rules = self._refreshed(labels.version)
            found |= labels.of

        def is_seen(uri: str) -> bool:
            return all(rules.sees(caller, found.get(each)) for each in (uri, *mails.get(uri, ())))

        return Checked(rules, frozenset(uri for uri in uris if not is_seen(uri)))

    def require(self, caller: Caller, right: Right, resource: str) -> None:
        """Check that a caller has a right.

        The *resource* is the route, for the audit event.

        Raises:
            NotAllowedError: The caller does not have it.
            ConfigurationError: There is no access file, although there are changes of rules, or labels.
        """
        if self._unchecked is not None:
            self._require_no_rules(self._unchecked)
        # Rights come from the file alone, which only a deployment changes.
        if right not in self.known_rules().rights(caller):
            self.refuse(caller, right, resource, f"{caller.name} lacks the right {right}")

    def require_writer(self, caller: Caller, key: str) -> None:
        """Check that a caller may write documents with the prefix of a key.

        Raises:
            NotAllowedError: The caller is not a writer there; the message lists the prefixes of the caller.
        """
        if self.policy is None or caller.is_local:
            return
        prefix, rule = self.policy.rule_for(key)
        if not caller.principals & {*rule.writers}:
            place = f"under {prefix}" if prefix else f"the key {key:.300}"
            choice = _places(self.rules().writable(caller))
            self.refuse(caller, Right.WRITE, key, f"{caller.name} may not write {place}: {choice}")

    def hide(self, caller: Caller, right: Right, uri: str, decision: Decision) -> None:
        """Write the audit event of a document that a caller named and does not see, or that does not exist."""
        record("refused", caller, right=right, resource=uri, rule=decision.rule, sink=self._sink)

    def saw(self, kind: ReadKind, caller: Caller, uris: Iterable[str]) -> None:
        """Write the audit event of documents that a caller saw, if the deployment records them."""
        if self._audits_reads:
            record_read(kind, caller, uris)

    def view_as(self, caller: Caller, uri: str, viewer: str) -> None:
        """Write the audit event of a caller who looks at what another one sees of a document."""
        record("view as", caller, right=Right.OPERATE, resource=uri, rule=viewer, sink=self._sink)

    def audit_erasure(self, kind: ErasureKind, caller: Caller, name: str, rule: str = "") -> None:
        """Write an audit event of an operator who deletes what is stored of a person."""
        record(kind, caller, right=Right.OPERATE, resource=name, rule=rule, sink=self._sink)

    def refuse(self, caller: Caller, right: Right, resource: str, message: str) -> None:
        """Write an audit event, and raise NotAllowedError."""
        record("refused", caller, right=right, resource=resource, rule=message, sink=self._sink)
        raise NotAllowedError(message)

    def change(self, caller: Caller, label: str, principal: str, effect: Effect | None) -> AccessRules:
        """Change what a label does to a principal; None returns to what the access file says.

        Raises:
            InvalidRequestError: There are no rules to change, or no such label.
        """
        if self.policy is None or self._table is None:
            raise InvalidRequestError("This deployment has no access file: deploy it with access=FILE")
        label, principal = canonical(label), canonical(principal)
        if label not in self.policy.labels:
            raise InvalidRequestError(f"There is no label {label!r:.100}: add it to the access file and deploy")
        with reaching_the_registry():
            version = self._table.change(label, principal, effect, caller.name)
        action = "removes its change for" if effect is None else f"{effect}s" if effect == "allow" else "denies"
        record("rule changed", caller, resource=label, rule=f"{label} {action} {principal}", sink=self._sink)
        return self._refreshed(version)

    def _require_no_rules(self, table: AccessTable) -> None:
        """Check once that no rule and no label is ignored: a deployment may have forgotten its access file."""
        try:
            with reaching_the_registry():
                is_in_use = table.is_in_use()
        except RegistryError as error:
            if is_refused(error):
                raise
            # Searches continue while the registry cannot be reached. The next request checks again.
            LOGGER.error("whether documents have access labels is unknown: %s", error)
            return
        if is_in_use:
            raise ConfigurationError(
                "There is no access file, but there are changes of access rules, or documents with labels: deploy with"
                " access=FILE"
            )
        self._unchecked = None

    def _refreshed(self, version: int | None) -> AccessRules:
        """Return the rules, read again if those in memory have another version."""
        with self._lock:
            if self.loaded_rules is None or (version is not None and version != self.loaded_rules.version):
                assert self.policy is not None
                assert self._table is not None
                with reaching_the_registry():
                    self.loaded_rules = self._table.rules(self.policy)
            return self.loaded_rules


def _places(writable: Sequence[Writable]) -> str:
    """List the prefixes where a caller may write."""
    if not writable:
        return "the access file has no prefix where you may write"
    names = [each.prefix or "any other prefix" for each in writable[:MAX_PLACES]]
    more = f" and {len(writable) - MAX_PLACES} more, which GET /api/me lists" if len(writable) > MAX_PLACES else ""
    return f"you may write under {', '.join(names)}{more}"
