"""The access rules: describing a caller, showing and changing the rules, and explaining who sees a document."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, Field, StringConstraints

from ragstack_common.access.callers import EVERYONE, Caller, Right
from ragstack_common.access.guard import Guard
from ragstack_common.access.people import People, Seen
from ragstack_common.access.policy import Label, Principal
from ragstack_common.access.rules import AccessRules, Decision, Effect
from ragstack_common.core.artefacts import maker_of
from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.core.names import canonical
from ragstack_common.core.reporting import reaching_the_registry
from ragstack_common.core.times import Time, iso
from ragstack_common.core.uris import SIDECAR_SUFFIX, is_s3_uri
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.records import DocumentRecord
from ragstack_common.services.bucket import DocumentsBucket

UNKNOWN_DOCUMENT: Final = "The registry does not know the document: it was not uploaded, or not processed yet"
MAX_CHANGES: Final = 1000
"""Maximum number of changes in a response; older ones should move to the access file."""

MAX_NAMED: Final = 5
"""Maximum number of principals in a note."""


GroupsOrigin = Literal["request", "seen", "unknown"]


class WritablePrefix(BaseModel, defer_build=True):
    """A prefix of keys under which the caller may upload and delete."""

    prefix: str = Field(description="The beginning of keys; empty for all that no other prefix of the file begins")
    default: str | None = Field(
        description="The label of documents for which the caller names none; null if they must choose one of labels, or"
        " if documents need no label"
    )
    labels: list[str] = Field(description="The labels that the caller may give here")


class Me(BaseModel, defer_build=True):
    """The caller, as the service sees them."""

    name: str
    principals: list[str] = Field(description="Everything that the caller is, such as group:people")
    rights: list[Right]
    labels: list[str] | None = Field(description="The labels whose documents the caller sees; null for every document")
    expires_at: str | None = Field(description="When the proof of identity expires")
    label_attribute: str | None = Field(
        default=None, description="The attribute that has the label of a document; null without an access file"
    )
    writable: list[WritablePrefix] = Field(default=[], description="Where the caller may write, by prefix")
    viewers: dict[str, list[str]] = Field(
        default={},
        description="For each label that the caller may give: the principals that see its documents. Those of others"
        " are left out, unless the caller is an operator",
    )


class RuleChange(BaseModel, extra="forbid", frozen=True, defer_build=True):
    """A change of one label for one principal."""

    label: Label
    principal: Principal = Field(description="Such as group:people or user:alice")
    effect: Effect | None = Field(description="null removes an earlier change, so that the access file counts again")


class RecordedChange(RuleChange):
    """A change in effect."""

    by: str
    at: str


class LabelView(BaseModel, defer_build=True):
    """Who sees the documents of a label: the principals in `allow` that are not in `deny`."""

    label: str
    allow: list[str]
    deny: list[str]


class RulesView(BaseModel, defer_build=True):
    """The rules in effect: the access file with the changes since."""

    version: int = Field(description="Increases with each change")
    rights: dict[Right, list[str]]
    sees_everything: list[str]
    prefixes: dict[str, Any] = Field(description="As in the access file")
    labels: list[LabelView]
    changes: list[RecordedChange] = Field(description=f"At most {MAX_CHANGES}, newest first")


class SeenPerson(BaseModel, defer_build=True):
    """A caller as they were seen last: a person, or a program. Rights and labels are those in effect now."""

    principal: str = Field(description="Such as user:alice")
    groups: list[str] = Field(description="The other principals in their last token, such as group:people")
    last_seen: Time = Field(description="To the hour; to the day if they only search")
    rights: list[Right]
    labels: list[str] | None = Field(description="The labels whose documents they see; null for every document")
    writable: list[WritablePrefix] = Field(description="Where they may write, by prefix")


class PeopleList(BaseModel, defer_build=True):
    """A page of callers by name. Callers who were not seen for 90 days are left out."""

    people: list[SeenPerson]
    next_token: str | None = Field(description="Requests the next page; null on the last page")


class Explanation(BaseModel, defer_build=True):
    """Whether a principal sees a document, and why."""

    uri: str
    label: str | None = Field(description="The label in effect")
    label_rule: str = Field(description="Where the label comes from")
    visible: bool
    rule: str = Field(description="The rule that shows or hides it")
    depends_on: list[str] = Field(
        default=[],
        description="Groups, tenants and scopes that the request does not name for a user, and that would change the"
        " answer",
    )
    principals: list[str] = Field(default=[], description="The principals of the viewer, without everyone")
    groups: GroupsOrigin = Field(
        default="request",
        description="Where the groups come from: the request, the last token of the user, or nowhere, because the user"
        " was not seen",
    )
    seen_at: Time | None = Field(default=None, description="When the user was seen with these groups")
    note: str | None = Field(default=None, description="What the request should name to be sure; null if it is sure")


PrincipalList = Annotated[str, StringConstraints(min_length=1, max_length=2000)]


class ViewAs(BaseModel, extra="forbid", frozen=True, defer_build=True):
    """Documents, and the principals who look at them."""

    principal: PrincipalList = Field(description="Who: principals with commas, such as user:alice,group:people")
    uris: list[Annotated[str, StringConstraints(min_length=1, max_length=2048)]] = Field(
        min_length=1, max_length=200, description="The documents' s3:// URIs or keys"
    )


class Access:
    """Answers requests about the rules."""

    def __init__(self, guard: Guard, registry: DocumentRegistry, bucket: DocumentsBucket, people: People) -> None:
        self._guard = guard
        self._people = people
        self._registry = registry
        self._bucket = bucket

    def me(self, caller: Caller) -> Me:
        """Describe a caller."""
        rules = self._guard.rules()
        labels = rules.labels(caller)
        return Me(
            name=caller.name,
            principals=sorted(caller.principals),
            rights=sorted(rules.rights(caller)),
            labels=None if labels is None else sorted(labels),
            expires_at=None if caller.expires_at is None else iso(caller.expires_at),
            label_attribute=None if self._guard.policy is None else self._guard.policy.attribute,
            writable=[WritablePrefix(**vars(each)) for each in rules.writable(caller)],
            viewers=rules.viewers(caller),
        )

    def view(self, label: str | None) -> RulesView:
        """Return the rules in effect, of one label or of all; raises InvalidRequestError."""
        rules = self._guard.rules()
        policy = rules.policy
        label = None if label is None else canonical(label)
        if label is not None and label not in policy.labels:
            raise InvalidRequestError(f"label: there is no label {label!r:.100}")
        changes = sorted(rules.changes.values(), key=lambda each: -each.at)
        return RulesView(
            version=rules.version,
            rights={right: [*holders] for right, holders in policy.rights.items()},
            sees_everything=[*policy.sees_everything],
            prefixes={prefix: rule.model_dump() for prefix, rule in policy.prefixes.items()},
            labels=[_label_view(each, holders) for each, holders in rules.holders().items() if label in (None, each)],
            changes=[
                RecordedChange(
                    label=each.label, principal=each.principal, effect=each.effect, by=each.by, at=iso(each.at)
                )
                for each in changes
                if label in (None, each.label)
            ][:MAX_CHANGES],
        )

    def change(self, caller: Caller, change: RuleChange) -> LabelView:
        """Change a rule, and return its label with the change in effect.

        Raises:
            InvalidRequestError: There is no access file, or no such label.
        """
        rules = self._guard.change(caller, change.label, change.principal, change.effect)
        return _label_view(change.label, rules.holders()[change.label])

    def explain(self, caller: Caller, principals: str, name: str) -> Explanation:
        """Explain whether principals, separated by commas, see a document, given by its URI or key.

        Raises:
            InvalidRequestError: A principal is malformed, or the URI does not name an object of the bucket.
        """
        viewer, uri = self._looking(principals), self._bucket.uri(self._key("document", name))
        self._guard.view_as(caller, uri, viewer.caller.name)
        return self._explained(viewer, [uri])[0]

    def explain_all(self, caller: Caller, request: ViewAs) -> list[Explanation]:
        """Explain each document as :meth:`explain` does, with one audit event."""
        viewer = self._looking(request.principal, "principal")
        uris = [self._bucket.uri(self._key("uris", name)) for name in request.uris]
        self._guard.view_as(
            caller, uris[0] if len(uris) == 1 else f"{len(uris)} documents from {uris[0]}", viewer.caller.name
        )
        return self._explained(viewer, uris)

    def _key(self, member: str, name: str) -> str:
        key = self._bucket.key(name) if is_s3_uri(name) else name
        if not key or key.endswith(SIDECAR_SUFFIX) or maker_of(key) is not None:
            raise InvalidRequestError(f"{member}: write the document's key, or {self._bucket.uri('')} and its key")
        return key

    def people(self, limit: int, token: str | None) -> PeopleList:
        """List who was seen, 1 to 100 of them.

        Raises:
            InvalidRequestError: The token is not from the previous page.
        """
        page, rules = self._people.page(limit, token), self._guard.rules()
        return PeopleList(people=[_person(rules, seen) for seen in page.people], next_token=page.next_token)

    def _looking(self, principals: str, member: str = "as") -> "_Viewer":
        """Return who looks; a user who is named alone has the groups with which they were seen last."""
        viewer = _viewer(principals, member)
        if not viewer.name.startswith("user:") or viewer.principals != {EVERYONE, viewer.name}:
            return _Viewer(viewer, "request")
        seen = self._people.find(viewer.name)
        return _Viewer(viewer, "unknown") if seen is None else _Viewer(seen.caller, "seen", seen.at)

    def _explained(self, viewer: "_Viewer", uris: Sequence[str]) -> list[Explanation]:
        rules = self._guard.rules()
        with reaching_the_registry():
            known = self._registry.read_by_name(uris)
        return [_explanation(rules, viewer, self._key("document", known[uri].uri), known[uri]) for uri in uris]


class _Viewer(NamedTuple):
    """Who looks at a document, where their groups come from, and when they were seen with them."""

    caller: Caller
    groups: GroupsOrigin
    seen_at: float | None = None


def _person(rules: AccessRules, seen: Seen) -> SeenPerson:
    caller = seen.caller
    labels = rules.labels(caller)
    return SeenPerson(
        principal=seen.name,
        groups=sorted(seen.principals - {EVERYONE, seen.name}),
        last_seen=iso(seen.at),
        rights=sorted(rules.rights(caller)),
        labels=None if labels is None else sorted(labels),
        writable=[WritablePrefix(**vars(each)) for each in rules.writable(caller)],
    )


def _explanation(rules: AccessRules, viewing: _Viewer, key: str, known: DocumentRecord) -> Explanation:
    viewer, label = viewing.caller, known.label if known.observed.is_present else None
    decision = rules.explain(viewer, label)
    depends_on = () if viewing.groups == "seen" else rules.depends_on(viewer, label)
    return Explanation(
        uri=known.uri,
        label=label,
        label_rule=_label_rule(rules, key, label) if known.observed.is_present else UNKNOWN_DOCUMENT,
        visible=decision.is_visible,
        rule=decision.rule,
        depends_on=[*depends_on],
        principals=sorted(viewer.principals - {EVERYONE}),
        groups=viewing.groups,
        seen_at=None if viewing.seen_at is None else iso(viewing.seen_at),
        note=_note(viewer, decision, depends_on) if depends_on else None,
    )


def _note(viewer: Caller, decision: Decision, depends_on: Sequence[str]) -> str:
    shown = ", ".join(depends_on[:MAX_NAMED]) + (", or others" if len(depends_on) > MAX_NAMED else "")
    does = "does not see it" if decision.is_visible else "sees it"
    return (
        f"{viewer.name} {does} with one of {shown}. The service does not know who has which: name those of the user, as"
        f" {viewer.name},{depends_on[0]}"
    )


def _label_rule(rules: AccessRules, key: str, label: str | None) -> str:
    prefix, rule = rules.policy.rule_for(key)
    if not rule.permitted:
        return "No prefix of the access file gives documents with this key a label"
    place = f"the prefix {prefix!r}" if prefix else "all keys"
    if label is None:
        return f"{place} has no default, and the document's sidecar names none of its labels"
    named = f"Named by the sidecar, as {place} permits"
    return f"The default of {place}" if label == rule.default else named


def _label_view(label: str, holders: Mapping[Effect, list[str]]) -> LabelView:
    return LabelView(label=label, allow=holders[Effect.ALLOW], deny=holders[Effect.DENY])


def _viewer(principals: str, member: str = "as") -> Caller:
    found = []
    for name in filter(None, (part.strip() for part in canonical(principals).split(","))):
        kind, _, rest = name.partition(":")
        if name == EVERYONE:
            continue
        found.append(name if rest else f"user:{name}")
        if rest and kind not in ("user", "group", "tenant", "role", "key", "scope"):
            raise InvalidRequestError(
                f"{member}: {name!r:.100} is not a principal: write user:NAME, group:NAME or the like"
            )
    if not found:
        raise InvalidRequestError(f"{member}: name at least one principal, such as user:alice,group:people")
    return Caller(found[0], frozenset({EVERYONE, *found}))
