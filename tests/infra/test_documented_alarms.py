"""The operators' guide knows every alarm, and every right command to follow it."""

import re
from pathlib import Path
from typing import Any

GUIDE = (Path(__file__).parents[2] / "docs" / "INGESTION.md").read_text(encoding="utf-8")


def test_every_alarm_is_documented_and_none_that_does_not_exist(aws: Any) -> None:
    documented = set(re.findall(r"^\| `(\w+Alarm)` \|", GUIDE, flags=re.MULTILINE))
    # CloudFormation's name for a resource ends in eight digits that the CDK makes of its path.
    deployed = {name[:-8] for name in aws.resources("AWS::CloudWatch::Alarm")}

    assert documented == deployed


def test_the_nightly_reconciliation_starts_when_the_guide_says(aws: Any) -> None:
    (rule,) = aws.resources("AWS::Events::Rule").values()

    assert f"by default `{rule['Properties']['ScheduleExpression']}`" in GUIDE
