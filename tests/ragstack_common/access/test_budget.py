"""People have a number of questions a day; programs have their own, or none."""

from typing import Any

import pytest

from ragstack_common.access.budget import DAY_SECONDS, DailyBudget
from ragstack_common.access.callers import OPERATOR, Caller, caller_from_arn, caller_from_key
from ragstack_common.core.errors import LimitReachedError
from ragstack_common.settings.access import AccessSettings
from tests.support.registry_table import TABLE

ALICE, BOB = Caller("user:alice"), Caller("user:bob")
BACKEND = caller_from_arn("arn:aws:sts::123456789012:assumed-role/backend/session")
READER = caller_from_key("reader")


def asked(budget: DailyBudget, caller: Caller, questions: int) -> int:
    """Return how many of these questions are allowed."""
    for number in range(questions):
        try:
            budget.spend(caller)
        except LimitReachedError:
            return number
    return questions


def test_people_are_counted_one_by_one(dynamodb: Any) -> None:
    budget = DailyBudget(dynamodb, TABLE, 2)

    assert [asked(budget, each, 5) for each in (ALICE, BOB, ALICE)] == [2, 2, 0]


def test_a_role_that_asks_for_many_people_has_no_limit_by_default(dynamodb: Any) -> None:
    budget = DailyBudget(dynamodb, TABLE, 2)

    assert [asked(budget, each, 5) for each in (BACKEND, READER, OPERATOR)] == [5, 5, 5]


def test_programs_have_a_limit_of_their_own(dynamodb: Any) -> None:
    budget = DailyBudget(dynamodb, TABLE, 0, 3)

    assert [asked(budget, each, 5) for each in (BACKEND, READER, ALICE)] == [3, 3, 5]
    with pytest.raises(LimitReachedError, match="role/backend asked 3 questions today"):
        budget.spend(BACKEND)


def test_a_new_day_begins_at_midnight(dynamodb: Any) -> None:
    now = [20_000 * DAY_SECONDS - 1.0]
    budget = DailyBudget(dynamodb, TABLE, 1, clock=lambda: now[0])
    first = asked(budget, ALICE, 2)
    now[0] += 1

    assert (first, asked(budget, ALICE, 2)) == (1, 1)


def test_nothing_is_counted_without_a_limit() -> None:
    none = {"REGISTRY_TABLE": TABLE, "QUESTIONS_PER_DAY": "0"}

    assert DailyBudget.from_env(none) is None
    assert AccessSettings.from_env({**none, "QUESTIONS_PER_DAY_OF_PROGRAM": "5"}).limits_questions
