"""What checks of the services share: buckets, indexes and knowledge bases of the run, made when a check needs them."""

from typing import Any, Final

from ragstack_local.certify.removal import VECTOR_BUCKET, VECTOR_INDEX
from ragstack_local.certify.site import Site

TEXT: Final = "text"


def vector_bucket(site: Site) -> str:
    """The vector bucket."""
    name = site.name()
    with site.creating(VECTOR_BUCKET, name):
        site.client("s3vectors").create_vector_bucket(vectorBucketName=name)
    return name


def create_index(site: Site, name: str, dimension: int, **more: Any) -> dict[str, str]:
    """Create an index in the vector bucket of the run, and return its names as requests take them."""
    bucket = site.shared(vector_bucket)
    with site.creating(VECTOR_INDEX, name, bucket):
        site.client("s3vectors").create_index(
            vectorBucketName=bucket,
            indexName=name,
            dataType="float32",
            dimension=dimension,
            distanceMetric="cosine",
            **more,
        )
    return {"vectorBucketName": bucket, "indexName": name}
