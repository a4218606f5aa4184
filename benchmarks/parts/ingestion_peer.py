"""The plain way into a knowledge base: StartIngestionJob after a change, and asking until the job is COMPLETE.

It works on a bucket and a knowledge base of its own in the same local Bedrock, so that neither way waits for the other.
"""

import time
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError
from parts.ingestion_stack import Stack

from local_bedrock.creation import create_knowledge_base
from ragstack_common.documents import s3_uri

BUCKET: Final = "benchmark-peer"
POLL_SECONDS: Final = 0.25
"""Oftener than anybody asks on AWS: the figures are the best that this way can have."""

ENDED: Final = ("COMPLETE", "FAILED", "STOPPED")
LIMIT_SECONDS: Final = 1800.0


@dataclass(frozen=True)
class Peer:
    """A knowledge base that is filled by ingestion jobs."""

    stack: Stack
    knowledge_base_id: str
    data_source_id: str

    @classmethod
    def create(cls, stack: Stack) -> "Peer":
        """Make the bucket and the knowledge base."""
        stack.s3.create_bucket(Bucket=BUCKET)
        knowledge_base_id = create_knowledge_base(stack.agent, "peer")
        source = stack.agent.create_data_source(
            knowledgeBaseId=knowledge_base_id,
            name="documents",
            dataSourceConfiguration={"type": "S3", "s3Configuration": {"bucketArn": f"arn:aws:s3:::{BUCKET}"}},
        )
        return cls(stack, knowledge_base_id, source["dataSource"]["dataSourceId"])

    def put(self, key: str, body: str) -> str:
        """Upload a document."""
        self.stack.s3.put_object(Bucket=BUCKET, Key=key, Body=body.encode())
        return s3_uri(BUCKET, key)

    def synchronise(self) -> int:
        """Run a job and wait for its end; return the documents that it indexed."""
        ids = {"knowledgeBaseId": self.knowledge_base_id, "dataSourceId": self.data_source_id}
        deadline = time.monotonic() + LIMIT_SECONDS
        job = self._started(ids)
        while job["status"] not in ENDED:
            if time.monotonic() > deadline:
                raise SystemExit(f"The peer's job took longer than {LIMIT_SECONDS:g} s")
            time.sleep(POLL_SECONDS)
            job = self.stack.agent.get_ingestion_job(**ids, ingestionJobId=job["ingestionJobId"])["ingestionJob"]
        if job["status"] != "COMPLETE":
            raise SystemExit(f"The peer's job is {job['status']}: {job.get('failureReasons')}")
        return int(job["statistics"]["numberOfNewDocumentsIndexed"])

    def _started(self, ids: dict[str, str]) -> dict[str, Any]:
        while True:
            try:
                started: dict[str, Any] = self.stack.agent.start_ingestion_job(**ids)["ingestionJob"]
            except ClientError as error:
                if error.response["Error"]["Code"] != "ConflictException":
                    raise
                time.sleep(POLL_SECONDS)
            else:
                return started
