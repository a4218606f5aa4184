import pytest

from ragstack_common.access.callers import caller_from_arn, caller_from_claims
from ragstack_common.access.policy import Claims
from ragstack_common.core.errors import NotAuthenticatedError


def test_claims_make_principals() -> None:
    claims = {"sub": "alice", "groups": ["hr", "staff"], "scope": "read openid", "org": "acme", "exp": 1700000000}

    caller = caller_from_claims(claims, Claims(tenant="org"))

    assert caller.name == "user:alice"
    assert caller.principals == {
        *("everyone", "user:alice", "group:hr", "group:staff"),
        *("scope:read", "scope:openid", "tenant:acme"),
    }
    assert caller.expires_at == 1700000000


@pytest.mark.parametrize("groups", ["hr,staff", "[hr staff]", "[hr, staff]", ["hr", "staff"], ["hr", "staff", 7, ""]])
def test_lists_are_read_in_the_forms_of_api_gateway(groups: object) -> None:
    caller = caller_from_claims({"sub": "a", "cognito:groups": groups}, Claims())

    assert caller.principals == {"everyone", "user:a", "group:hr", "group:staff"}


@pytest.mark.parametrize("claims", [{}, {"sub": ""}, {"sub": 7}, {"sub": None}, {"groups": ["operators"]}])
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
