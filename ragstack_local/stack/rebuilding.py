"""Ingests all documents of the bucket again after the local Bedrock has replaced an index that it could not read.

The mark of the local Bedrock stays until the end, so that the next start continues after an interruption.
"""

from pathlib import Path
from typing import Final

from local_bedrock.store.schema import INCOMPLETE
from ragstack_common.registry.jobs import FULL
from ragstack_common.services.jobs import JobAnswer, JobList
from ragstack_common.settings.names import MANAGED
from ragstack_local.api.calls import run
from ragstack_local.api.http_operations import HttpOperations
from ragstack_local.api.jobs import JOBS, check_complete, follow_job, is_running
from ragstack_local.connection.address import Address
from ragstack_local.connection.connection import Connection
from ragstack_local.show import display

MAX_SECONDS: Final = 12 * 3600.0

_PROCESSED: Final = (
    "numberOfDocumentsSkipped",
    "numberOfNewDocumentsIndexed",
    "numberOfModifiedDocumentsIndexed",
    "numberOfMetadataDocumentsModified",
    "numberOfDocumentsFailed",
)


def rebuild(connection: Connection, bedrock: Path, *, is_uploaded: bool = False) -> None:
    """Fill a replaced index from the bucket, and show how far it is; do nothing if the index was not replaced.

    Args:
        connection: The stack, whose knowledge base may be empty.
        bedrock: Data folder of the local Bedrock.
        is_uploaded: The recovery after a kill has uploaded, and so submitted, all documents already.

    Raises:
        StackError: The synchronisation failed.
    """
    mark = bedrock / INCOMPLETE
    if not mark.exists():
        return
    display.console.print(mark.read_text(), soft_wrap=True)
    if not is_uploaded:
        _synchronise(connection)
    if is_uploaded or connection.vector_store == MANAGED:  # whose documents are submitted one by one
        done = "All documents of the bucket were submitted to the new index."
    else:
        done = "The index was built again from the bucket."
    mark.unlink()
    rest = "The replaced file is no longer used: delete it, unless you need other knowledge bases or vectors in it"
    display.console.print(f"{done} {rest}", soft_wrap=True)


def _synchronise(connection: Connection) -> None:
    api, agent = HttpOperations(lambda: Address(connection.api_url)), connection.client("bedrock-agent")
    ids = {"knowledgeBaseId": connection.knowledge_base_id, "dataSourceId": connection.data_source_id}
    with display.progress() as bars:
        bar = bars.add_task("Building the index from the bucket", total=None, detail="")

        def show(_job: JobAnswer) -> None:
            newest = agent.list_ingestion_jobs(**ids, maxResults=1)["ingestionJobSummaries"]
            counts = newest[0]["statistics"] if newest else {}
            failed = counts.get("numberOfDocumentsFailed")
            bars.update(
                bar,
                total=counts.get("numberOfDocumentsScanned"),
                completed=sum(counts.get(name, 0) for name in _PROCESSED),
                detail=f"{failed} failed: `ragstack status --failed`" if failed else "",
            )

        check_complete(follow_job(api, _full_job(api), show, MAX_SECONDS), MAX_SECONDS)


def _full_job(api: HttpOperations) -> JobAnswer:
    """Start a full synchronisation, or return the one that an interrupted start left running."""
    jobs = run(api.request("GET", JOBS, JobList)).jobs
    left = next((job for job in jobs if job.kind == FULL and is_running(job)), None)
    return left or run(api.request("POST", JOBS, JobAnswer, {"kind": FULL}))
