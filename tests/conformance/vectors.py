"""What the requests of S3 Vectors are about: a bucket with two indexes in a running local Bedrock."""

import itertools
import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hypothesis import strategies as st

from tests.local_bedrock.support import client

TEXT_KEY = "text"
DIMENSION = 3
ANIMALS = {
    "cheetah": ([1.0, 0.0, 0.0], "The cheetah is the fastest animal on land."),
    "snail": ([0.0, 1.0, 0.0], "The snail is slow and carries its house."),
    "whale": ([0.0, 0.6, 0.8], "The blue whale is the largest animal."),
}
UNKNOWN_NAME = "unknown-name"

_numbers = itertools.count()


@dataclass(frozen=True)
class Vectors:
    """A bucket, an index of three vectors that is searched by words too, and an empty one.

    Attributes:
        client: Of S3 Vectors.
        bucket: The name of the bucket.
        index: The name of the index with vectors.
    """

    client: Any
    bucket: str
    index: str

    @classmethod
    def made(cls, url: str) -> "Vectors":
        s3_vectors = client("s3vectors", url)
        made = cls(s3_vectors, _new_name(), _new_name())
        s3_vectors.create_vector_bucket(vectorBucketName=made.bucket)
        s3_vectors.create_vector_bucket(vectorBucketName=_new_name())
        s3_vectors.create_index(**made.index_request(made.bucket, made.index))
        s3_vectors.create_index(**made.index_request(made.bucket, _new_name()))
        s3_vectors.put_vectors(vectorBucketName=made.bucket, indexName=made.index, vectors=made.records)
        return made

    @property
    def names(self) -> dict[str, str]:
        return {"vectorBucketName": self.bucket, "indexName": self.index}

    @property
    def bucket_arn(self) -> str:
        return f"arn:aws:s3vectors:us-east-1:000000000000:bucket/{self.bucket}"

    @property
    def index_arn(self) -> str:
        return f"{self.bucket_arn}/index/{self.index}"

    @cached_property
    def known(self) -> dict[str, Any]:
        """Values that a model cannot know, by the names of the members that take them."""
        numbers = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3)
        return {
            **self.names,
            "vectorBucketArn": self.bucket_arn,
            "indexArn": self.index_arn,
            "metadataKey": st.sampled_from([TEXT_KEY, "animal"]),
            "float32": numbers,
            "dimension": DIMENSION,
        }

    @property
    def records(self) -> list[dict[str, Any]]:
        return [
            {"key": key, "data": {"float32": numbers}, "metadata": {TEXT_KEY: text, "animal": key, "legs": len(key)}}
            for key, (numbers, text) in ANIMALS.items()
        ]

    def index_request(self, bucket: str, name: str) -> dict[str, Any]:
        return {
            "vectorBucketName": bucket,
            "indexName": name,
            "dataType": "float32",
            "dimension": DIMENSION,
            "distanceMetric": "cosine",
            "metadataConfiguration": {
                "nonFilterableMetadataKeys": [TEXT_KEY],
                "textSearchConfigurations": [{"metadataKey": TEXT_KEY, "language": "en"}],
            },
        }

    def expendable_bucket(self) -> str:
        name = _new_name()
        self.client.create_vector_bucket(vectorBucketName=name)
        return name

    def expendable_index(self) -> dict[str, str]:
        """The names of an index with vectors that may go, and of its bucket."""
        bucket, index = self.expendable_bucket(), _new_name()
        self.client.create_index(**self.index_request(bucket, index))
        self.client.put_vectors(vectorBucketName=bucket, indexName=index, vectors=self.records)
        return {"vectorBucketName": bucket, "indexName": index}

    def known_to(self, name: str) -> dict[str, Any]:
        """What an operation may change: something new where it deletes or replaces."""
        changes = ("Delete", "Put", "Update", "CreateIndex")
        if not name.startswith(changes) or not ("Vector" in name or "Index" in name or "MetadataConf" in name):
            return {}
        made = self.expendable_index()
        if name == "CreateIndex":
            made["indexName"] = _new_name()
        bucket_arn = f"arn:aws:s3vectors:us-east-1:000000000000:bucket/{made['vectorBucketName']}"
        index_arn = f"{bucket_arn}/index/{made['indexName']}"
        return {**made, "vectorBucketArn": bucket_arn, "indexArn": index_arn}


def _new_name() -> str:
    return f"vectors-{next(_numbers)}-{uuid.uuid4().hex[:8]}"
