"""Where all three agree, nothing is reported, and nothing is sent."""

from tests.ragstack_common.reconciliation.stack import Stack


def test_an_agreeing_stack_has_no_differences_and_nothing_is_looked_at(stack: Stack) -> None:
    stack.indexed("a.txt", "b/c d.txt", "é+.txt")
    stack.indexed("e.txt", corpus="x", tags=["one", "two"])

    job = stack.reconcile()

    assert (job.status, job.reason) == ("COMPLETE", None)
    assert job.report["differences"] == {}
    assert job.report["differences_in_all"] == 0
    assert job.report["catalogue"] == {"values": 4, "differences": 0, "repaired": 0}
    assert job.report["compared"] == {"documents": 4, "registry": 4, "bucket": 5, "knowledge_base": 4}
    assert job.report["complete"] is True
    assert stack.take("ingestion") == []
    assert stack.metrics.values["ReconciliationDifferences"] == ("Count", 0)
    assert stack.metrics.values["DocumentsCompared"] == ("Count", 4)
    assert stack.metrics.values["ReconciliationSeconds"][0] == "Seconds"


def test_an_empty_stack_agrees(stack: Stack) -> None:
    job = stack.reconcile()

    assert job.status == "COMPLETE"
    assert job.report["compared"] == {"documents": 0, "registry": 0, "bucket": 0, "knowledge_base": 0}
