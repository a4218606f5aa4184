"""The gate that direct ingestion waits at."""

from typing import Any

import pytest

from ragstack_common.registry.coordination import Gate
from tests.ingestion.clock import Clock
from tests.support.registry_table import TABLE


@pytest.fixture
def gate(dynamodb: Any, clock: Clock) -> Gate:
    clock.now = 1_000.0
    return Gate(dynamodb, TABLE, clock=clock)


def test_a_gate_that_nobody_closed_is_open(gate: Gate) -> None:
    assert gate.closed_until() is None


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
