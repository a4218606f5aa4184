"""docs/OPERATIONS.md describes every alarm."""

import re
from pathlib import Path
from typing import Any

import pytest

from .conftest import PEOPLE_ADDED

pytestmark = pytest.mark.xdist_group("synthesized stacks")

GUIDE = (Path(__file__).parents[2] / "docs" / "OPERATIONS.md").read_text(encoding="utf-8")


def test_the_documented_alarms_are_the_deployed_ones(everything: Any, synthesize: Any) -> None:
    documented = set(re.findall(r"`(\w+Alarm)`", GUIDE))
    # The CDK appends eight digits to a resource's name.
    assemblies = (everything, synthesize(**PEOPLE_ADDED))
    deployed = {name[:-8] for each in assemblies for name in each.resources("AWS::CloudWatch::Alarm")}

    assert documented == deployed


def test_the_documented_schedule_of_the_reconciliation_is_the_default(aws: Any) -> None:
    (rule,) = aws.resources("AWS::Events::Rule").values()

    assert f"by default `{rule['Properties']['ScheduleExpression']}`" in GUIDE


def test_the_documented_number_of_alarms_is_right(aws: Any, edge: Any) -> None:
    assert f"{len(aws.resources('AWS::CloudWatch::Alarm'))} alarms, whether or not" in GUIDE
    assert f"; {len(edge.resources('AWS::CloudWatch::Alarm'))} with an API for people and one for programs" in GUIDE
