"""Fill a vector index and search it."""

import asyncio
import os

import boto3

from ragstack_common.search import create_retrieval_backend

client = boto3.client("s3vectors")
place = {"vectorBucketName": f"packaging-{os.getpid()}", "indexName": "documents"}
client.create_vector_bucket(vectorBucketName=place["vectorBucketName"])
client.create_index(
    **place,
    dataType="float32",
    dimension=1024,
    distanceMetric="cosine",
    metadataConfiguration={"nonFilterableMetadataKeys": ["content"]},
)


async def main() -> None:
    config = {
        "type": "s3_vectors",
        "vector_bucket_name": place["vectorBucketName"],
        "index_name": place["indexName"],
        "endpoint_url": client.meta.endpoint_url,
    }
    async with create_retrieval_backend(config) as backend:
        await backend.add(
            [
                ("leave", "Employees have thirty days of leave.", "leave.md", {"year": 2026}),
                ("lunch", "Lunch is at noon.", "lunch.md", {"year": 2020}),
            ]
        )
        found = await backend.retrieve("days of leave", top_k=2, filters={"year": {"$gte": 2025}})
        assert [chunk.source for chunk in found] == ["leave.md"], found


asyncio.run(main())
