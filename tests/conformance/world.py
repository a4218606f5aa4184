"""What the requests are about: knowledge bases, data sources, documents and jobs in a running local Bedrock."""

import itertools
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hypothesis import strategies as st

from ragstack_common.ingestion.requests import text_document
from tests.conformance.vectors import Vectors
from tests.local_bedrock.support import MODEL, Bedrock, Source

TEXTS = {
    "cheetah": "The cheetah is the fastest animal on land. It reaches a hundred kilometres an hour.",
    "snail": "The snail is slow. It carries its house on its back.",
    "whale": "The blue whale is the largest animal. It eats krill.",
}
TEXT_MODEL = "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-haiku-20240307-v1:0"
EMBEDDING_MODEL = "amazon.titan-embed-text-v2:0"
RERANKING_MODEL = "arn:aws:bedrock:us-east-1::foundation-model/cohere.rerank-v3-5:0"
USER = "ann@example.com"
# Ten letters and digits, as the model wants them; nothing of this id is ever made.
UNKNOWN_ID = "UNKNOWN000"

_numbers = itertools.count()


@dataclass(frozen=True)
class World:
    """A CUSTOM source with three indexed documents and an S3 source with one, and two jobs that have ended.

    Attributes:
        bedrock: Where it is.
        custom: The CUSTOM data source.
        s3: The S3 data source of the same knowledge base.
        bucket: The bucket of that one.
        job_id: The later of its ended ingestion jobs.
        vectors: A vector bucket with two vector indexes.
    """

    bedrock: Bedrock
    custom: Source
    s3: Source
    bucket: str
    job_id: str
    vectors: Vectors

    @classmethod
    def made(cls, bedrock: Bedrock, s3_client: Any, bucket: str) -> "World":
        s3_client.put_object(Bucket=bucket, Key="animals/ant.txt", Body=b"The ant is strong. It lives in a colony.")
        knowledge_base_id = bedrock.knowledge_base(new_name())
        custom = bedrock.custom_source(knowledge_base_id)
        details = custom.ingested(*(text_document(name, text, _attributes(name)) for name, text in TEXTS.items()))
        assert [detail["status"] for detail in details] == ["INDEXED"] * len(TEXTS), details
        source = bedrock.s3_source(knowledge_base_id, bucket)
        source.synchronised()
        job = source.synchronised()
        bedrock.knowledge_base(new_name())  # so that a list of them has two pages
        return cls(bedrock, custom, source, bucket, job["ingestionJobId"], Vectors.made(bedrock.url))

    @property
    def knowledge_base_id(self) -> str:
        return self.custom.knowledge_base_id

    @cached_property
    def managed(self) -> Source:
        """A data source of a managed knowledge base, whose documents a user may see, and some of them everybody."""
        base = self.bedrock.managed_base(new_name())
        source = self.bedrock.connector(base, "CUSTOM", aclEnabled=True)
        documents = [text_document(name, text, _attributes(name)) for name, text in TEXTS.items()]
        for document in documents:
            document["metadata"]["accessControlList"] = [{"name": USER, "type": "USER", "access": "ALLOW"}]
        open_to_all = self.bedrock.connector(base, "CUSTOM", "open")
        details = [*source.ingested(*documents), *open_to_all.ingested(text_document("owl", "Owls hunt at night."))]
        assert [detail["status"] for detail in details] == ["INDEXED"] * len(details), details
        return source

    @cached_property
    def knowledge_base_arn(self) -> str:
        found = self.bedrock.agent.get_knowledge_base(knowledgeBaseId=self.knowledge_base_id)
        return str(found["knowledgeBase"]["knowledgeBaseArn"])

    @cached_property
    def known(self) -> dict[str, Any]:
        """Values that a model cannot know, by the names of the members that take them."""
        return {
            "knowledgeBaseId": self.knowledge_base_id,
            "dataSourceId": self.custom.id,
            "ingestionJobId": self.job_id,
            "embeddingModelArn": MODEL,
            "connectorParameters": st.sampled_from(
                [
                    {},
                    {"type": "WIKI", "version": "1"},
                    {"type": "CUSTOM", "version": "1", "aclEnabled": True},
                    {"type": "S3", "version": "1", "connectionConfiguration": {"bucketName": self.bucket}},
                    {"type": "S3", "version": "1", "filterConfiguration": {"inclusionPatterns": ["["]}},
                ]
            ),
            "clientToken": st.uuids().map(str),
            **self.vectors.known,
            "key": st.sampled_from(
                ["animal", "legs", "habitats", "wild", "x-amz-bedrock-kb-data-source-id", "nothing"]
            ),
        }

    def expendable_connector(self, kind: str, **parameters: Any) -> Source:
        return self.bedrock.connector(self.bedrock.managed_base(new_name()), kind, **parameters)

    def expendable_s3_connector(self) -> Source:
        return self.expendable_connector("S3", connectionConfiguration={"bucketName": self.bucket})

    def expendable_source(self) -> Source:
        return self.bedrock.custom_source(self.expendable_knowledge_base())

    def expendable_s3_source(self) -> Source:
        return self.bedrock.s3_source(self.expendable_knowledge_base(), self.bucket)

    def expendable_knowledge_base(self) -> str:
        return self.bedrock.knowledge_base(new_name())

    def expendable_job(self) -> dict[str, str]:
        """Start a job that is under way, or at least was a moment ago."""
        source = self.expendable_s3_source()
        job = self.bedrock.agent.start_ingestion_job(**source.ids)["ingestionJob"]
        return {**source.ids, "ingestionJobId": job["ingestionJobId"]}


def new_name() -> str:
    return f"made-{next(_numbers)}-{uuid.uuid4().hex[:8]}"


def _attributes(name: str) -> dict[str, Any]:
    return {"animal": name, "legs": len(name), "habitats": [name, "zoo"], "wild": name != "snail"}


Case = Callable[[World], dict[str, Any]]
