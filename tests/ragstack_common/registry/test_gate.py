"""The gate that direct ingestion waits at."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from ragstack_common.registry.gate import Gate
from tests.ingestion.clock import Clock
from tests.support.registry_table import TABLE


@pytest.fixture
def gate(dynamodb: Any, clock: Clock) -> Gate:
    clock.now = 1_000.0
    return Gate(dynamodb, TABLE, clock=clock)


def test_a_gate_that_nobody_closed_is_open(gate: Gate) -> None:
    assert gate.closed_until() is None


def test_a_closed_gate_says_until_when(gate: Gate) -> None:
    assert gate.close("one", 1_060.5)

    assert gate.closed_until() == 1_060.5


def test_a_gate_opens_by_itself_when_its_time_is_over(gate: Gate, clock: Clock) -> None:
    gate.close("one", 1_060.0)
    clock.now = 1_060.0

    assert gate.closed_until() is None


def test_its_owner_keeps_it_closed_for_longer_or_shorter(gate: Gate) -> None:
    gate.close("one", 1_060.0)

    assert gate.close("one", 1_090.0)
    assert gate.closed_until() == 1_090.0
    assert gate.close("one", 1_030.0)
    assert gate.closed_until() == 1_030.0


def test_nobody_else_moves_a_closed_gate(gate: Gate) -> None:
    gate.close("one", 1_060.0)

    assert not gate.close("two", 2_000.0)
    assert not gate.open("two")
    assert gate.closed_until() == 1_060.0


def test_a_gate_whose_owner_died_is_anybodys_when_its_time_is_over(gate: Gate, clock: Clock) -> None:
    gate.close("one", 1_060.0)
    clock.now = 1_061.0

    assert gate.close("two", 2_000.0)
    assert not gate.open("one")
    assert not gate.close("one", 3_000.0)
    assert gate.closed_until() == 2_000.0


def test_opening_is_done_once_however_often_it_is_asked_for(gate: Gate) -> None:
    gate.close("one", 1_060.0)

    assert gate.open("one")
    assert gate.open("one")
    assert gate.closed_until() is None


def test_a_table_that_is_not_there_is_an_error_and_no_open_gate(dynamodb: Any) -> None:
    gate = Gate(dynamodb, "no-such-table")

    for call in (gate.closed_until, lambda: gate.close("one", 2.0**33), lambda: gate.open("one")):
        with pytest.raises(ClientError, match="ResourceNotFoundException"):
            call()


def test_a_time_that_somebody_edited_keeps_nothing_closed_and_nobody_out(gate: Gate, dynamodb: Any) -> None:
    gate.close("one", 1_060.0)
    key = {"pk": {"S": "GATE"}, "sk": {"S": "GATE"}}
    dynamodb.put_item(TableName=TABLE, Item={**key, "owner": {"S": "one"}, "closed_until": {"S": "tomorrow"}})

    assert gate.closed_until() is None
    assert gate.close("two", 1_090.0)
    assert gate.closed_until() == 1_090.0
