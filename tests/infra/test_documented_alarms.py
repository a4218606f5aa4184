"""The operators' guide knows every alarm, and every right command to follow it."""

import re
from pathlib import Path
from typing import Any

GUIDE = (Path(__file__).parents[2] / "docs" / "INGESTION.md").read_text(encoding="utf-8")


def test_every_alarm_has_a_section_and_no_section_is_about_one_that_does_not_exist(aws: Any) -> None:
    headings = re.findall(r"^### (.+)$", GUIDE, flags=re.MULTILINE)
    documented = {name for heading in headings for name in re.findall(r"`(\w+Alarm)`", heading)}
    # CloudFormation's name for a resource ends in eight digits that the CDK makes of its path.
    deployed = {name[:-8] for name in aws.resources("AWS::CloudWatch::Alarm")}

    assert documented == deployed


def test_the_nightly_reconciliation_starts_when_the_guide_says(aws: Any) -> None:
    (rule,) = aws.resources("AWS::Events::Rule").values()

    assert f"by default `{rule['Properties']['ScheduleExpression']}`" in GUIDE


def test_the_guide_says_how_many_alarms_are_paid_for(aws: Any) -> None:
    assert f"{len(aws.resources('AWS::CloudWatch::Alarm'))} alarms, whether or not" in GUIDE
