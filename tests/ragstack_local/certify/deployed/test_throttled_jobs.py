"""Jobs of the checks start one after the other, because an account starts one in ten seconds."""

import pytest

from ragstack_local.certify import fixtures
from ragstack_local.certify.fixtures import DataSource
from ragstack_local.certify.site import Site
from tests.ragstack_local.certify.deployed.account import Account, in_turn
from tests.ragstack_local.certify.deployed.test_aws_checks import NOW
from tests.support.aws_service import Fault

IDS = {"knowledgeBaseId": "ABCDEFGHIJ", "dataSourceId": "KLMNOPQRST"}
JOB = {**IDS, "ingestionJobId": "UVWXYZABCD", "status": "STARTING", "startedAt": NOW, "updatedAt": NOW}


def test_a_job_that_is_throttled_starts_later(
    undeployed: Site, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixtures, "SECONDS_BETWEEN_JOBS", 0.001)
    throttled = Fault("ThrottlingException", status=429)
    account.replies["bedrock-agent.StartIngestionJob"] = in_turn(throttled, throttled, {"ingestionJob": JOB})

    job = DataSource(undeployed, *IDS.values()).start_job()

    assert job == JOB["ingestionJobId"]
    assert len(account.asked("bedrock-agent.StartIngestionJob")) == 3
