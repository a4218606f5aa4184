"""Checks of S3 Vectors."""

from typing import Final

from ragstack_local.certify.check import Check, Json, Source
from ragstack_local.certify.fixtures import vector_bucket
from ragstack_local.certify.site import Site


def _default_mode(site: Site) -> Json:
    found = site.client("s3vectors").get_vector_bucket(vectorBucketName=site.shared(vector_bucket))
    return found["vectorBucket"].get("defaultIndexMode")


CHECKS: Final = (
    Check(
        name="vectors.default_mode",
        topic="vectors",
        belief="Indexes of a new vector bucket are in ENHANCED mode",
        source=Source.DOCUMENTATION,
        used_by="word search (docs/SEARCH.md#words)",
        held_in="local_bedrock.operations.vector_buckets",
        expected="ENHANCED",
        observe=_default_mode,
    ),
)
