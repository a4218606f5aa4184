"""A replaced index is filled from the bucket, and an interrupted attempt is repeated."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from local_bedrock.store.schema import INCOMPLETE
from ragstack_common.registry.jobs import JobKind, JobStatus
from ragstack_common.services.jobs import JobAnswer, JobList
from ragstack_local.connection.connection import Connection
from ragstack_local.errors import StackError
from ragstack_local.stack import rebuilding
from ragstack_local.stack.rebuilding import rebuild
from tests.ragstack_local.support import stack_at

FAULT = "The index is damaged. The replaced file is in replaced-index-1"


@dataclass
class Api:
    """The jobs of the API: each ends when it is read."""

    ends_as: JobStatus = "COMPLETE"
    jobs: list[JobAnswer] = field(default_factory=list)
    started: int = 0

    async def request(self, method: str, path: str, model: type[BaseModel], body: Any = None) -> Any:
        if method == "POST":
            self.started += 1
            self.jobs.append(job("new", body["kind"], "QUEUED"))
            return self.jobs[-1]
        if model is JobList:
            return JobList(jobs=self.jobs, next_token=None)
        return job(path.rpartition("/")[2], "full", self.ends_as)


def job(name: str, kind: JobKind, status: JobStatus) -> JobAnswer:
    times = dict.fromkeys(("created_at", "started_at", "finished_at"), "2026-02-03T04:05:06.789Z")
    return JobAnswer(
        id=name, kind=kind, status=status, by="api", reason=None, report={}, ingestion_job_id=None, **times
    )


class Agent:
    def list_ingestion_jobs(self, **_: Any) -> Any:
        statistics = {"numberOfDocumentsScanned": 3, "numberOfNewDocumentsIndexed": 2, "numberOfDocumentsFailed": 1}
        return {"ingestionJobSummaries": [{"statistics": statistics}]}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    api = Api()
    monkeypatch.setattr(rebuilding, "HttpOperations", lambda _find: api)
    monkeypatch.setattr(Connection, "client", lambda _self, _service: Agent())
    return api


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    (tmp_path / INCOMPLETE).write_text(FAULT)
    return tmp_path / INCOMPLETE


def test_an_index_that_was_not_replaced_is_left_alone(
    api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rebuild(stack_at(), tmp_path)

    assert (api.started, capsys.readouterr().out) == (0, "")


def test_a_replaced_index_is_filled_and_the_user_reads_why(
    api: Api, mark: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rebuild(stack_at(), mark.parent)

    shown = capsys.readouterr().out
    assert [(each.id, each.kind) for each in api.jobs] == [("new", "full")]
    assert not mark.exists()
    assert FAULT in shown
    assert "3/3" in shown
    assert "1 failed" in shown
    assert "delete it" in shown


def test_a_failed_attempt_is_repeated_at_the_next_start(api: Api, mark: Path) -> None:
    api.ends_as = "FAILED"

    with pytest.raises(StackError, match="FAILED"):
        rebuild(stack_at(), mark.parent)

    assert mark.exists()


def test_a_job_of_an_interrupted_start_is_followed(api: Api, mark: Path) -> None:
    api.jobs = [job("other", "reconcile", "RUNNING"), job("a", "full", "QUEUED")]

    rebuild(stack_at(), mark.parent)

    assert api.started == 0
    assert not mark.exists()


def test_after_a_kill_the_recovery_has_submitted_the_documents(api: Api, mark: Path) -> None:
    rebuild(stack_at(), mark.parent, is_uploaded=True)

    assert api.started == 0
    assert not mark.exists()
