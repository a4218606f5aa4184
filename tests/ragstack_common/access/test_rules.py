from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.access.callers import EVERYONE, OPERATOR, Caller, Right
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.access.rules import EVERYTHING, MAX_LABELS_IN_A_FILTER, AccessRules, Effect, RuleOverride, Writable
from ragstack_common.core.errors import ScopeTooLongError
from ragstack_common.core.metrics import DEPLOYMENT_FAULTS
from ragstack_common.core.reporting import record_failure
from ragstack_common.filters import evaluate
from tests.support.backends import Ledger

LABELS = ["a", "b", "c"]
PRINCIPALS = [EVERYONE, "user:u", "group:g", "group:h", "tenant:t"]

principals = st.lists(st.sampled_from(PRINCIPALS), unique=True)
policies = st.builds(
    AccessPolicy,
    labels=st.dictionaries(
        st.sampled_from(LABELS), st.fixed_dictionaries({"allow": principals, "deny": principals}), max_size=3
    ),
    sees_everything=st.lists(st.sampled_from(PRINCIPALS[1:]), max_size=1),
)
changes = st.lists(
    st.builds(
        RuleOverride,
        label=st.sampled_from(LABELS),
        principal=st.sampled_from(PRINCIPALS),
        effect=st.sampled_from(Effect),
        by=st.just("user:o"),
        at=st.just(0.0),
    ),
    max_size=6,
)
callers = st.builds(
    lambda found: Caller("user:u", frozenset({EVERYONE, *found})), st.lists(st.sampled_from(PRINCIPALS), unique=True)
)


def sees(policy: AccessPolicy, made: list[RuleOverride], caller: Caller, label: str | None) -> bool:
    """Decide the slow and obvious way."""
    if caller.principals & {*policy.sees_everything}:
        return True
    if label is None or label not in policy.labels:
        return False
    effects = dict.fromkeys(policy.labels[label].allow, Effect.ALLOW)
    effects |= dict.fromkeys(policy.labels[label].deny, Effect.DENY)
    for change in made:
        if change.label == label:
            effects[change.principal] = change.effect
    mine = {effects[name] for name in caller.principals if name in effects}
    return Effect.DENY not in mine and Effect.ALLOW in mine


@given(policy=policies, made=changes, caller=callers, label=st.sampled_from([*LABELS, None]))
def test_rules_agree_with_the_obvious_evaluation(
    policy: AccessPolicy, made: list[RuleOverride], caller: Caller, label: str | None
) -> None:
    rules = AccessRules(policy, made)
    expected = sees(policy, made, caller, label)
    scope = rules.scope(caller)

    assert rules.sees(caller, label) == expected
    assert rules.explain(caller, label).is_visible == expected
    assert (scope.filter is None or evaluate(scope.filter, {} if label is None else {"access": label})) == expected


def test_nothing_is_allowed_by_default() -> None:
    rules = AccessRules(AccessPolicy(labels={"a": {}}))
    caller = Caller("user:u")

    assert rules.rights(caller) == frozenset()
    assert rules.labels(caller) == frozenset()
    scope = rules.scope(caller).filter
    assert scope is not None
    assert not evaluate(scope, {"access": "a"})
    assert not evaluate(scope, {})


def test_operators_see_documents_without_a_label() -> None:
    rules = AccessRules(AccessPolicy(rights={"operate": ["group:ops"]}, labels={"a": {}}))
    operator, reader = Caller("user:o", frozenset({"group:ops"})), Caller("user:r")

    assert rules.scope(operator) is EVERYTHING
    assert rules.sees(operator, None)
    assert not rules.sees(reader, None)
    assert rules.rights(OPERATOR) == {*Right}


def test_more_labels_than_a_search_can_have_are_a_fault_of_the_deployment() -> None:
    names = [f"l{number}" for number in range(MAX_LABELS_IN_A_FILTER + 1)]
    rules = AccessRules(AccessPolicy(labels={name: {"allow": [EVERYONE]} for name in names}))

    with pytest.raises(ScopeTooLongError, match=f"{len(names)} access labels") as raised:
        rules.scope(Caller("user:u"))

    metrics = Ledger()
    assert record_failure(raised.value, metrics) == HTTPStatus.INTERNAL_SERVER_ERROR
    assert metrics[DEPLOYMENT_FAULTS] == [1]


def test_an_explanation_names_the_rule_and_its_origin() -> None:
    policy = AccessPolicy(labels={"hr": {"allow": ["group:hr"], "deny": ["user:intern"]}})
    rules = AccessRules(policy, [RuleOverride("hr", "group:audit", Effect.ALLOW, "user:olga", 0.0)])

    def explain(*principals: str) -> str:
        return rules.explain(Caller(principals[0], frozenset({EVERYONE, *principals})), "hr").rule

    assert explain("user:alice", "group:hr") == "hr allows group:hr, by the access file"
    assert explain("user:intern", "group:hr") == "hr denies user:intern, by the access file"
    assert explain("user:carl", "group:audit") == "hr allows group:audit, by a change of user:olga"
    assert explain("user:bob") == "hr allows none of everyone, user:bob"


def test_a_label_missing_from_the_file_admits_no_caller() -> None:
    rules = AccessRules(AccessPolicy(labels={}), [RuleOverride("old", EVERYONE, Effect.ALLOW, "user:o", 0.0)])

    assert rules.labels(Caller("user:u")) == frozenset()


@given(policy=policies, made=changes, caller=callers, label=st.sampled_from([*LABELS, None]))
def test_an_answer_depends_on_exactly_the_groups_with_which_it_is_another(
    policy: AccessPolicy, made: list[RuleOverride], caller: Caller, label: str | None
) -> None:
    rules = AccessRules(policy, made)
    named = {name.partition(":")[0] for name in caller.principals}
    others = [name for name in ("group:g", "group:h", "tenant:t") if name.partition(":")[0] not in named]
    expected = [
        name
        for name in others
        if sees(policy, made, Caller(caller.name, caller.principals | {name}), label)
        != sees(policy, made, caller, label)
    ]

    assert [*rules.depends_on(caller, label)] == (expected if "user:u" in caller.principals else [])


def test_a_writer_may_write_where_they_are_named_and_see_a_label() -> None:
    policy = AccessPolicy(
        rights={"write": ["group:g", "group:ops"], "operate": ["group:ops"]},
        labels={"a": {"allow": ["group:g"]}, "b": {"allow": ["group:h"]}, "c": {"allow": ["everyone"]}},
        prefixes={
            "a/": {"default": "a", "labels": ["b", "c"], "writers": ["group:g"]},
            "b/": {"default": "b", "labels": ["c"]},
            "hidden/": {"default": "b"},
            "none/": {},
            "ops/": {"default": "a", "writers": ["group:ops"]},
        },
    )
    rules = AccessRules(policy)
    writer, operator = (Caller("user:u", frozenset({EVERYONE, "user:u", f"group:{name}"})) for name in ("g", "ops"))

    assert rules.writable(writer) == (Writable("a/", "a", ("a", "c")), Writable("b/", None, ("c",)))
    assert [each.prefix for each in rules.writable(operator)] == ["b/", "hidden/", "none/", "ops/"]
    assert rules.writable(Caller("user:r", frozenset({EVERYONE, "user:r"}))) == ()
    assert [each.prefix for each in rules.writable(OPERATOR)] == ["", "a/", "b/", "hidden/", "none/", "ops/"]
