import pytest

from ragstack_common.access.callers import caller_from_arn, caller_from_claims, caller_from_key, claims_that_count
from ragstack_common.access.policy import Claims
from ragstack_common.core.errors import NotAllowedError, NotAuthenticatedError


def test_claims_make_principals() -> None:
    claims = {"sub": "alice", "groups": ["hr", "staff"], "scope": "read openid", "org": "acme", "exp": 1700000000}

    caller = caller_from_claims(claims, Claims(tenant="org"))

    assert caller.name == "user:alice"
    assert caller.principals == {
        *("everyone", "user:alice", "group:hr", "group:staff"),
        *("scope:read", "scope:openid", "tenant:acme"),
    }
    assert caller.expires_at == 1700000000


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        ("finance contractors", {"finance contractors"}),
        ("a, b, operators", {"a, b, operators"}),
        ("hr,staff", {"hr,staff"}),
        ("[hr staff]", {"hr", "staff"}),
        ("[Human Resources, staff]", {"Human Resources", "staff"}),
        ('["Human Resources", "staff"]', {"Human Resources", "staff"}),
        (["hr", "all staff", ""], {"hr", "all staff"}),
        ([], set()),
        ("[]", set()),
        ("", set()),
        (None, set()),
    ],
)
def test_a_text_is_one_group_unless_api_gateway_made_it_of_a_list(groups: object, names: set[str]) -> None:
    caller = caller_from_claims({"sub": "ann", "groups": groups}, Claims())

    assert caller.principals == {"everyone", "user:ann", *(f"group:{name}" for name in names)}


@pytest.mark.parametrize("value", [{"hr": {}}, {}, 7, True, ["hr", 7], ["hr", ["staff"]], [None]])
@pytest.mark.parametrize("name", ["groups", "org"])
def test_a_claim_of_another_form_is_refused(name: str, value: object) -> None:
    """A rule that denies one of its groups would otherwise admit the members."""
    with pytest.raises(NotAllowedError, match=f"claim {name} is neither a text nor a list"):
        caller_from_claims({"sub": "ann", name: value}, Claims(tenant="org"))


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"realm_access": {"roles": ["people"]}}, "realm_access.roles"),
        ({"resource_access": {"my.client": {"roles": ["people"]}}}, "resource_access.my.client.roles"),
        ({"https://example.com/groups": "people"}, "https://example.com/groups"),
        ({"https://example.com/x": {"groups": ["people"]}}, "https://example.com/x.groups"),
        ({"realm_access.roles": ["people"], "realm_access": {"roles": ["other"]}}, "realm_access.roles"),
        ({"a": {"b": {"c": ["other"]}}, "a.b": {"c": ["people"]}}, "a.b.c"),
    ],
)
def test_a_path_leads_to_a_claim_and_a_literal_name_wins(claims: dict[str, object], name: str) -> None:
    by_group = caller_from_claims({"sub": "ann", **claims}, Claims(group=name))
    by_tenant = caller_from_claims({"sub": "ann", **claims}, Claims(tenant=name))
    passed_on = claims_that_count({"sub": "ann", **claims, "other": 1}, Claims(group=name))

    assert by_group.principals == {"everyone", "user:ann", "group:people"}
    assert "tenant:people" in by_tenant.principals
    assert passed_on.keys() == {"sub", name}
    assert caller_from_claims(passed_on, Claims(group=name)) == by_group


@pytest.mark.parametrize("claims", [{}, {"realm_access": None}, {"realm_access": {}}])
def test_a_missing_path_gives_no_group(claims: dict[str, object]) -> None:
    caller = caller_from_claims({"sub": "ann", **claims}, Claims(group="realm_access.roles"))

    assert caller.principals == {"everyone", "user:ann"}


@pytest.mark.parametrize("value", ['{"roles": ["contractors"]}', ["contractors"], 7])
def test_a_path_through_something_else_than_an_object_is_refused(value: object) -> None:
    """Without its groups, a caller would pass a rule that denies one of them."""
    claims, mapping = {"sub": "ann", "realm_access": value}, Claims(group="realm_access.roles")

    for each in (claims, claims_that_count(claims, mapping)):
        with pytest.raises(NotAllowedError, match=r"claim realm_access\.roles is neither a text nor a list"):
            caller_from_claims(each, mapping)


@pytest.mark.parametrize("value", ["groups", '{"groups": "src1"}', ["groups"]])
def test_a_marker_in_another_form_is_refused(value: object) -> None:
    with pytest.raises(NotAllowedError, match="_claim_names is not an object"):
        caller_from_claims({"sub": "ann", "_claim_names": value}, Claims())


def test_the_name_of_an_api_key_compares_composed() -> None:
    assert caller_from_key("schlu\u0308ssel") == caller_from_key("schl\u00fcssel")


@pytest.mark.parametrize(
    "marker",
    [
        {"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": "https://graph.example"}}},
        {"_claim_names": {"groups": "src1"}, "groups": ["some"]},
        {"hasgroups": True},
        {"hasgroups": "true"},
    ],
)
def test_a_token_that_leaves_out_groups_is_refused_with_what_to_do(marker: dict[str, object]) -> None:
    with pytest.raises(NotAllowedError, match=r"leaves out the claim groups.*assigned to the application.*roles"):
        caller_from_claims({"sub": "ann", **marker}, Claims())


@pytest.mark.parametrize("marker", [{"_claim_names": {"groups": "src1"}}, {"hasgroups": True}, {"hasgroups": False}])
def test_groups_that_no_rule_reads_may_be_left_out(marker: dict[str, object]) -> None:
    caller = caller_from_claims({"sub": "ann", "roles": ["people"], **marker}, Claims(group="roles"))

    assert caller.principals == {"everyone", "user:ann", "group:people"}


def test_an_object_that_is_left_out_has_no_groups_to_read() -> None:
    with pytest.raises(NotAllowedError, match=r"realm_access\.roles"):
        caller_from_claims({"sub": "ann", "_claim_names": {"realm_access": "x"}}, Claims(group="realm_access.roles"))


def test_names_of_users_groups_and_tenants_compare_composed() -> None:
    claims = {"sub": "Ju\u0308rgen", "groups": ["Vertra\u0308ge"], "scope": "le\u0301xico", "org": "Mu\u0308ller"}

    caller = caller_from_claims(claims, Claims(tenant="org"))

    assert caller.name == "user:J\u00fcrgen"
    assert caller.principals == {
        *("everyone", "user:J\u00fcrgen", "group:Vertr\u00e4ge", "scope:l\u00e9xico", "tenant:M\u00fcller"),
    }


@pytest.mark.parametrize(
    "claims", [{}, {"sub": ""}, {"sub": " "}, {"sub": 7}, {"sub": None}, {"groups": ["operators"]}]
)
def test_a_token_without_a_user_is_rejected(claims: dict[str, object]) -> None:
    with pytest.raises(NotAuthenticatedError):
        caller_from_claims(claims, Claims())


@pytest.mark.parametrize("verified", [False, None, "false", 1, "yes"])
def test_an_unverified_address_names_no_user(verified: object) -> None:
    claims = {"sub": "x", "email": "ceo@example.com", "email_verified": verified}

    with pytest.raises(NotAuthenticatedError, match="not verified"):
        caller_from_claims(claims, Claims(user="email"))


def test_a_token_with_too_many_groups_is_rejected() -> None:
    with pytest.raises(NotAuthenticatedError, match="1000"):
        caller_from_claims({"sub": "a", "groups": [f"g{number}" for number in range(1001)]}, Claims())


def test_a_session_is_its_role() -> None:
    session = caller_from_arn("arn:aws:sts::123456789012:assumed-role/Deploy/session-1")
    user = caller_from_arn("arn:aws:iam::123456789012:user/ci")

    assert session.name == "role:arn:aws:iam::123456789012:role/Deploy"
    assert session.principals == {"everyone", session.name}
    assert user.principals == {"everyone", "role:arn:aws:iam::123456789012:user/ci"}
